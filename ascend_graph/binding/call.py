"""Which parameter of an aclnn function is which input, attr or output of a prototype: the plan of a call.

A C function that is called with the wrong parameters does not fail, it corrupts memory. So parameters are matched by name and
type, never by order alone; what that leaves open is refused. The boxed kernel and generated code call by the same plan.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ascend_graph.aclnn import AclnnFunction, CType, Value
from ascend_graph.binding.errors import BindingError
from ascend_graph.prototypes import AttrType, DataType, OpPrototype, Parameter, ParameterKind, PassedAs


class Part(enum.Enum):
    """What of a prototype an argument of a call is."""

    INPUT = "input"
    ATTR = "attr"
    OUTPUT = "output"
    #: A value that the prototype has nothing for.
    CONSTANT = "constant"


class Evidence(enum.Enum):
    """Why an argument of a call is what it is."""

    EXPLICIT = "aclnn_arguments="
    SAME_NAME = "same name"
    NORMALIZED = "same name but for case and underscores"
    SUFFIX = "same name but for Optional, Ref or Out"
    SYNONYM = "synonyms"
    ONLY_OUTPUT = "the only output left on both sides"
    FIRST_TENSOR = "the first tensor, and the only input left on both sides"
    ABSENT = "may be null, and the prototype has nothing for it"
    HEADER_DEFAULT = "the header's default argument"
    MSOPGEN = "msOpGen's order"
    DERIVED = "the schema is made from it"


@dataclass(frozen=True, slots=True)
class CallArgument:
    """One argument of the function, in its order."""

    #: The function's name for it.
    name: str
    type: CType
    part: Part
    #: The position among the prototype's inputs, attrs or outputs.
    index: int = -1
    #: The value of a constant; None is null, or memory that nobody reads.
    value: Any = None
    evidence: Evidence = Evidence.MSOPGEN


@dataclass(frozen=True, slots=True)
class Call:
    """How an aclnn function is called for an operator."""

    function: str
    arguments: tuple[CallArgument, ...]
    #: The declaration that the arguments follow; None where it is msOpGen's order.
    declared: AclnnFunction | None = None
    #: The attrs and inputs, by name, that the function has nothing for: a call may only leave them at their default.
    unused: tuple[str, ...] = ()
    #: In words, where the order comes from.
    source: str = field(default="", compare=False)

    def number_inputs(self, prototype: OpPrototype) -> dict[str, Value]:
        """The inputs that go as a number or a list of numbers, by name: their values are needed on the host."""
        return {
            prototype.inputs[argument.index].name: argument.type.value
            for argument in self.arguments
            if argument.part is Part.INPUT and argument.type.value in NUMBERS
        }

    def dtype_attrs(self, prototype: OpPrototype) -> tuple[str, ...]:
        """The ``Int`` attrs that the function takes as a dtype."""
        attrs = [
            prototype.attrs[a.index] for a in self.arguments if a.part is Part.ATTR and a.type.value is Value.DTYPE
        ]
        return tuple(attr.name for attr in attrs if attr.type is AttrType.INT)


#: What an input goes as that msOpGen calls ValueDepend, and the dtypes that it may have then.
ARRAYS: Mapping[Value, frozenset[DataType]] = {
    Value.INTS: frozenset(getattr(DataType, f"{sign}INT{bits}") for sign in ("", "U") for bits in (8, 16, 32, 64)),
    Value.FLOATS: frozenset({DataType.FLOAT, DataType.FLOAT16, DataType.BF16, DataType.DOUBLE}),
    Value.BOOLS: frozenset({DataType.BOOL}),
}
_ANY_NUMBER = frozenset({DataType.COMPLEX32, DataType.COMPLEX64, DataType.COMPLEX128}).union(*ARRAYS.values())
#: What an input goes as whose values the function takes, and the dtypes that the input may have then.
NUMBERS: Mapping[Value, frozenset[DataType]] = {
    **ARRAYS,
    Value.SCALAR: _ANY_NUMBER,
    Value.SCALAR_LIST: _ANY_NUMBER,
}
#: What msOpGen makes of attrs.
_GENERATED = {
    AttrType.INT: CType("int64_t"),
    AttrType.FLOAT: CType("double"),
    AttrType.BOOL: CType("bool"),
    AttrType.STRING: CType("char", 1),
    AttrType.TYPE: CType("int64_t"),
    AttrType.LIST_INT: CType("aclIntArray", 1, True),
    AttrType.LIST_FLOAT: CType("aclFloatArray", 1, True),
    AttrType.LIST_BOOL: CType("aclBoolArray", 1, True),
    AttrType.LIST_TYPE: CType("aclIntArray", 1, True),
}
#: Why an array that a function makes is not returned.
NO_READER = "is an array that the function makes, and no function of libopapi.so reads what is in one"


def msopgen_call(prototype: OpPrototype, function: str | None = None, source: str = "") -> Call:
    """The call that msOpGen's functions take: inputs, attrs, outputs; an output that is an input stands once.

    An input that the OpDef calls ValueDepend, Scalar or ScalarList goes as its values.

    Raises:
        BindingError: An attr has a type that aclnn functions do not take.
    """
    arguments = [CallArgument(p.name, input_type(p), Part.INPUT, n) for n, p in enumerate(prototype.inputs)]
    for n, attr in enumerate(prototype.attrs):
        if attr.type not in _GENERATED:
            raise BindingError(
                f"{prototype.op_type}: attr {attr.name} has the type {attr.type.value}, which aclnn functions do not take; they "
                f"take {', '.join(kind.value for kind in _GENERATED)}"
            )
        arguments.append(CallArgument(attr.name, _GENERATED[attr.type], Part.ATTR, n))
    for n, output in enumerate(prototype.outputs):
        if output.name not in prototype.in_place:
            arguments.append(CallArgument(output.name, _tensor_type(output), Part.OUTPUT, n))
    return Call(function or f"aclnn{prototype.op_type}", tuple(arguments), source=source)


def _tensor_type(parameter: Parameter) -> CType:
    return CType("aclTensorList" if parameter.kind is ParameterKind.DYNAMIC else "aclTensor", 1, True)


def input_type(parameter: Parameter) -> CType:
    """What the function that msOpGen generates takes for an input."""
    if parameter.passed_as is PassedAs.VALUES and parameter.dtypes and parameter.kind is not ParameterKind.DYNAMIC:
        for array, dtypes in ARRAYS.items():
            if dtypes.issuperset(parameter.dtypes):
                return CType(
                    {Value.INTS: "aclIntArray", Value.FLOATS: "aclFloatArray"}.get(array, "aclBoolArray"), 1, True
                )
    numbers = {PassedAs.SCALAR: "aclScalar", PassedAs.SCALAR_LIST: "aclScalarList"}.get(parameter.passed_as)
    return CType(numbers, 1, True) if numbers else _tensor_type(parameter)

"""Call plan: how each aclnn parameter is supplied from a prototype's inputs, attrs and outputs.

A C function that is called with the wrong parameters does not fail, it corrupts memory. So parameters are matched by
name and type, never by order alone; an undecided parameter is an error. The boxed kernel and generated code use the
same plan.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ascend_graph.aclnn import AclnnFunction, CType, ValueKind
from ascend_graph.binding.errors import BindingError
from ascend_graph.prototypes import AttrType, DataType, OpPrototype, Parameter, ParameterKind, PassedAs


class Part(enum.Enum):
    """Part of a prototype that an argument of a call stands for."""

    INPUT = "input"
    ATTR = "attr"
    OUTPUT = "output"
    #: A value without a counterpart in the prototype.
    CONSTANT = "constant"
    #: A value that a function computes from the arguments of a call.
    COMPUTED = "computed"


class ArgumentEvidence(enum.Enum):
    """Evidence for an argument of a call."""

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
class Computed:
    """Value that each call computes from its arguments."""

    #: Function of the argument's value, or of all arguments by name; or a table of the argument's allowed values.
    function: Callable[[Any], Any] | Mapping[Any, Any]
    #: Input or attr whose value it gets; None if it gets a mapping of all arguments by their names in the schema.
    argument: str | None = None

    def __str__(self) -> str:
        name = getattr(self.function, "__qualname__", "a table")
        return f"{name}({'all arguments' if self.argument is None else self.argument})"


@dataclass(frozen=True, slots=True)
class CallArgument:
    """One argument of the function, in its order."""

    #: Its name in the function.
    name: str
    type: CType
    part: Part
    #: The position among the prototype's inputs, attrs or outputs.
    index: int = -1
    #: The value of a constant; None is null, or memory that is never read. A :class:`Computed` of a computed value.
    value: Any = None
    evidence: ArgumentEvidence = ArgumentEvidence.MSOPGEN


@dataclass(frozen=True, slots=True)
class AclnnCall:
    """Plan for calling an aclnn function for an operator."""

    function: str
    arguments: tuple[CallArgument, ...]
    #: The declaration that the arguments follow; None for msOpGen's order.
    declared: AclnnFunction | None = None
    #: The attrs and inputs, by name, that the function has nothing for: a call may only leave them at their default.
    unused: tuple[str, ...] = ()
    #: Those that the function does not get, whatever their value.
    dropped: tuple[str, ...] = ()
    #: A text that names the origin of the order.
    source: str = field(default="", compare=False)

    def number_inputs(self, prototype: OpPrototype) -> dict[str, ValueKind]:
        """Return the inputs passed as a number or a list of numbers, by name: the host needs their values."""
        return {
            prototype.inputs[argument.index].name: argument.type.value
            for argument in self.arguments
            if argument.part is Part.INPUT and argument.type.value in NUMBERS
        }

    def dtype_attrs(self, prototype: OpPrototype) -> tuple[str, ...]:
        """Return the ``Int`` attrs that the function takes as a dtype."""
        attrs = [
            prototype.attrs[a.index] for a in self.arguments if a.part is Part.ATTR and a.type.value is ValueKind.DTYPE
        ]
        return tuple(attr.name for attr in attrs if attr.type is AttrType.INT)


#: Array types for an input that msOpGen calls ValueDepend, and the dtypes that it may then have.
ARRAYS: Mapping[ValueKind, frozenset[DataType]] = {
    ValueKind.INTS: frozenset(getattr(DataType, f"{sign}INT{bits}") for sign in ("", "U") for bits in (8, 16, 32, 64)),
    ValueKind.FLOATS: frozenset({DataType.FLOAT, DataType.FLOAT16, DataType.BF16, DataType.DOUBLE}),
    ValueKind.BOOLS: frozenset({DataType.BOOL}),
}
_ANY_NUMBER = frozenset({DataType.COMPLEX32, DataType.COMPLEX64, DataType.COMPLEX128}).union(*ARRAYS.values())
#: Types for an input whose values the function takes, and the dtypes that it may then have.
NUMBERS: Mapping[ValueKind, frozenset[DataType]] = {
    **ARRAYS,
    ValueKind.SCALAR: _ANY_NUMBER,
    ValueKind.SCALAR_LIST: _ANY_NUMBER,
}
#: C types that msOpGen generates for attrs.
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
#: The reason why an array that a function makes is not returned.
NO_READER = "is an array that the function makes, and no function of libopapi.so reads what is in one"


def msopgen_call(prototype: OpPrototype, function: str | None = None, source: str = "") -> AclnnCall:
    """Return the call that msOpGen's functions take: inputs, attrs, outputs; an in-place output comes once.

    An input that the OpDef calls ValueDepend, Scalar or ScalarList is passed by its values.

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
    return AclnnCall(function or f"aclnn{prototype.op_type}", tuple(arguments), source=source)


def _tensor_type(parameter: Parameter) -> CType:
    return CType("aclTensorList" if parameter.kind is ParameterKind.DYNAMIC else "aclTensor", 1, True)


def input_type(parameter: Parameter) -> CType:
    """Return the C type that the function generated by msOpGen takes for an input."""
    if parameter.passed_as is PassedAs.VALUES and parameter.dtypes and parameter.kind is not ParameterKind.DYNAMIC:
        for array, dtypes in ARRAYS.items():
            if dtypes.issuperset(parameter.dtypes):
                return CType(
                    {ValueKind.INTS: "aclIntArray", ValueKind.FLOATS: "aclFloatArray"}.get(array, "aclBoolArray"),
                    1,
                    True,
                )
    numbers = {PassedAs.SCALAR: "aclScalar", PassedAs.SCALAR_LIST: "aclScalarList"}.get(parameter.passed_as)
    return CType(numbers, 1, True) if numbers else _tensor_type(parameter)

"""Generated torch schema: the signature that an operator without hand-written C++ gets from its prototype. No torch.

Inputs come first, in the prototype's order, then the attrs as keyword-only arguments with the prototype's defaults. An
output that is an input is written in place: the argument is ``Tensor(a!)`` and is not returned. ``torch.compile`` can
functionalize this form for operators of any library.
"""

from __future__ import annotations

import enum
import keyword
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ascend_graph.aclnn import ValueKind
from ascend_graph.binding.dtype_ints import Numbers
from ascend_graph.binding.dtypes import torch_number
from ascend_graph.binding.errors import EagerError
from ascend_graph.prototypes import Attr, AttrType, AttrValue, DataType, OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.naming import snake_case


class AclnnArgumentKind(enum.IntEnum):
    """Kind of an aclnn parameter; the numbers are those of ``AclnnArgumentKind`` in csrc/eager/kernel.cpp."""

    TENSOR = 0
    TENSOR_LIST = 1
    INT = 2
    FLOAT = 3
    BOOL = 4
    STRING = 5
    INTS = 6
    FLOATS = 7
    BOOLS = 8
    DTYPE = 9
    OUTPUT = 10
    OUTPUT_LIST = 11
    DTYPES = 12
    #: An aclScalar made from a number.
    SCALAR = 13
    #: A number in 32 bits.
    FLOAT32 = 14
    #: Host memory for one number, which is copied to an output afterwards.
    HOST_OUTPUT = 15
    #: An aclScalarList made from numbers.
    SCALARS = 16


#: Schema type and parameter kind of each attr type that aclnn functions take. A dtype is an ``int``, as in torch_npu's
#: newer operators: callers pass a ``torch.dtype`` or, for a dtype that torch does not have, torch_npu's number of it.
#: ``ScalarType`` would truncate that number.
ATTR_KINDS = MappingProxyType(
    {
        AttrType.INT: ("int", AclnnArgumentKind.INT),
        AttrType.FLOAT: ("float", AclnnArgumentKind.FLOAT),
        AttrType.BOOL: ("bool", AclnnArgumentKind.BOOL),
        AttrType.STRING: ("str", AclnnArgumentKind.STRING),
        AttrType.TYPE: ("int", AclnnArgumentKind.DTYPE),
        AttrType.LIST_INT: ("int[]", AclnnArgumentKind.INTS),
        AttrType.LIST_FLOAT: ("float[]", AclnnArgumentKind.FLOATS),
        AttrType.LIST_BOOL: ("bool[]", AclnnArgumentKind.BOOLS),
        AttrType.LIST_TYPE: ("int[]", AclnnArgumentKind.DTYPES),
    }
)

_GE_NUMBERS = frozenset(map(int, DataType))

#: Parameters of the functions that get a call's keywords, of PyTorch's fake tensors and vmap, and of TorchAir's converters.
RULES_OWN = frozenset({"self", "keyset", "meta_outputs"})

_PLAIN_STRING = re.compile(r"[A-Za-z0-9_ .,:;/+*=<>()\[\]{}-]*\Z")


@dataclass(frozen=True, slots=True)
class GeneratedArgument:
    """One argument of a schema and the input or attr of the prototype that it feeds."""

    name: str
    parameter: Parameter | Attr
    kind: AclnnArgumentKind
    #: The schema's text for the argument, e.g. ``int axis=-1``.
    text: str
    #: The value that ``None`` stands for: an attr's default that a schema cannot express.
    default: AttrValue = None
    #: True if it is keyword-only; such arguments come last.
    keyword: bool = False

    @property
    def is_input(self) -> bool:
        """True if it feeds an input; it is not a tensor if the function takes the input's values."""
        return isinstance(self.parameter, Parameter)

    @property
    def is_null(self) -> bool:
        """True if it is an attr with None as its default, which the function gets as null."""
        return not self.is_input and self.default is None and self.text.endswith("=None")

    @property
    def is_tensor(self) -> bool:
        """True if it is a tensor or a list of tensors."""
        return self.kind in (AclnnArgumentKind.TENSOR, AclnnArgumentKind.TENSOR_LIST)


@dataclass(frozen=True, slots=True)
class OperatorSchema:
    """A schema made from a prototype, or from an aclnn function and its equivalent prototype.

    >>> from ascend_graph.prototypes import parse_text
    >>> prototype = parse_text('''
    ... REG_OP(AddLayerNorm)
    ...     .INPUT(x1, TensorType({DT_FLOAT})).INPUT(x2, TensorType({DT_FLOAT})).OPTIONAL_INPUT(bias, TensorType({DT_FLOAT}))
    ...     .OUTPUT(y, TensorType({DT_FLOAT})).ATTR(epsilon, Float, 1e-5)
    ...     .OP_END_FACTORY_REG(AddLayerNorm)
    ... ''').prototypes[0]
    >>> print(operator_schema(prototype))
    add_layer_norm(Tensor x1, Tensor x2, Tensor? bias=None, *, float epsilon=1e-05) -> Tensor y
    """

    name: str
    prototype: OpPrototype
    arguments: tuple[GeneratedArgument, ...]
    #: The outputs that are returned: those that are not inputs.
    returns: tuple[Parameter, ...]
    #: The ``Int`` attrs that are dtypes.
    dtype_ints: Mapping[str, Numbers] = field(default_factory=dict, hash=False)
    #: The schema as its author wrote it, if any, without a namespace.
    text: str = ""

    def __str__(self) -> str:
        if self.text:
            return self.text
        positional = [a.text for a in self.arguments if not a.keyword]
        keyword = [a.text for a in self.arguments if a.keyword]
        arguments = ", ".join([*positional, *(["*", *keyword] if keyword else [])])
        returns = [f"{_tensor_type(p)} {plain_name(p.name)}" for p in self.returns]
        returned = returns[0] if len(returns) == 1 else f"({', '.join(returns)})"
        return f"{self.name}({arguments}) -> {returned}"


def operator_name(op_type: str) -> str:
    """Return the name of the operator of an op type: in snake case, followed by ``_op`` if that is a keyword.

    >>> operator_name("AddCustom"), operator_name("While")
    ('add_custom', 'while_op')
    """
    name = snake_case(op_type)
    return f"{name}_op" if keyword.iskeyword(name) else name


def operator_schema(
    prototype: OpPrototype,
    name: str | None = None,
    dtype_ints: Mapping[str, Numbers] | None = None,
    numbers: Mapping[str, ValueKind] | None = None,
) -> OperatorSchema:
    """Return the schema of the operator that calls ``aclnn<OpType>``.

    Args:
        prototype: The operator.
        name: Its name in torch; the op type in snake case by default, followed by ``_op`` if that is a keyword.
        dtype_ints: The ``Int`` attrs that are dtypes (:func:`~ascend_graph.binding.dtype_ints.dtype_ints`).
        numbers: The inputs whose values the function takes on the host, as a number or a list of numbers.

    Raises:
        EagerError: The prototype has something that aclnn functions do not take: an attr of an unsupported type, a
            subgraph, a name that a schema cannot have; or the default of a dtype attr is not a dtype.
    """
    op_type = prototype.op_type
    if prototype.graphs:
        raise EagerError(f"{op_type} has the subgraph {prototype.graphs[0].name}; aclnn functions take no graphs")
    taken: set[str] = set()
    arguments = []
    for index, parameter in enumerate(prototype.inputs):
        unique = _unique(op_type, parameter.name, taken)
        number = (numbers or {}).get(parameter.name)
        arguments.append(_input(prototype, index, unique, number))
    for attr in prototype.attrs:
        as_torchs = (dtype_ints or {}).get(attr.name) is Numbers.TORCH
        chosen = f"{attr.name}_" if attr.name in RULES_OWN else attr.name
        arguments.append(_attr(prototype, attr, _unique(op_type, chosen, taken), as_torchs=as_torchs))
    in_place = prototype.in_place
    returns = tuple([p for p in prototype.outputs if p.name not in in_place])
    for output in returns:
        _check_name(op_type, output.name)
    return OperatorSchema(name or operator_name(op_type), prototype, tuple(arguments), returns, dict(dtype_ints or {}))


def _check_name(op_type: str, name: str) -> str:
    if not (name.isascii() and name.isidentifier()):
        raise EagerError(f"{op_type}: {name!r} cannot be the name of an argument: it is not an ASCII identifier")
    return name


def plain_name(name: str) -> str:
    """Return a name as schemas and graphs, which PyTorch writes in Python, accept it: a keyword gets an underscore."""
    return f"{name}_" if keyword.iskeyword(name) else name


def _unique(op_type: str, name: str, taken: set[str]) -> str:
    """Return a name not yet taken: if an input and an attr share one, the second gets an underscore."""
    unique = plain_name(_check_name(op_type, name))
    while unique in taken:
        unique += "_"
    taken.add(unique)
    return unique


def _tensor_type(parameter: Parameter) -> str:
    return "Tensor[]" if parameter.kind is ParameterKind.DYNAMIC else "Tensor"


_NUMBERS = {
    ValueKind.INTS: ("int[]", AclnnArgumentKind.INTS),
    ValueKind.FLOATS: ("float[]", AclnnArgumentKind.FLOATS),
    ValueKind.BOOLS: ("bool[]", AclnnArgumentKind.BOOLS),
    ValueKind.SCALAR: ("Scalar", AclnnArgumentKind.SCALAR),
    ValueKind.SCALAR_LIST: ("Scalar[]", AclnnArgumentKind.SCALARS),
}


def _input(prototype: OpPrototype, index: int, name: str, number: ValueKind | None = None) -> GeneratedArgument:
    parameter = prototype.inputs[index]
    dynamic = parameter.kind is ParameterKind.DYNAMIC
    alias = ""
    in_place = prototype.in_place
    if parameter.name in in_place:
        alias = f"({chr(ord('a') + in_place.index(parameter.name) % 26)}!)"
    text, kind = (
        f"Tensor{alias}{'[]' if dynamic else ''}",
        AclnnArgumentKind.TENSOR_LIST if dynamic else AclnnArgumentKind.TENSOR,
    )
    if number is not None:
        text, kind = _NUMBERS[number]
    if parameter.kind is ParameterKind.OPTIONAL:
        # Only trailing arguments have a default.
        trailing = all(p.kind is ParameterKind.OPTIONAL for p in prototype.inputs[index:])
        text += f"? {name}{'=None' if trailing else ''}"
    else:
        text += f" {name}"
    return GeneratedArgument(name, parameter, kind, text)


def _attr(prototype: OpPrototype, attr: Attr, name: str, *, as_torchs: bool) -> GeneratedArgument:
    if attr.type not in ATTR_KINDS:
        raise EagerError(
            f"{prototype.op_type}: attr {attr.name} has type {attr.type.value}, which aclnn functions do not take; they take "
            f"{', '.join(t.value for t in ATTR_KINDS)}"
        )
    type_, kind = ATTR_KINDS[attr.type]
    if as_torchs:
        kind = AclnnArgumentKind.DTYPE
        if not attr.required and attr.default_known and attr.default not in _GE_NUMBERS:
            raise EagerError(
                f"{prototype.op_type}: attr {attr.name} is used as a dtype, but its default {attr.default!r} is not a "
                "dtype of GE, so its "
                f"values have a meaning of their own: give GE's own numbers (arguments={{{attr.name!r}: "
                f"({attr.name!r}, int)}}, or dtypes = {attr.name}: ge in operators.ini)"
            )
    if attr.required or not attr.default_known:
        return GeneratedArgument(name, attr, kind, f"{type_} {name}", None, True)
    default = _default(attr, kind)
    shown = schema_literal(kind, default)
    if shown is None:
        return GeneratedArgument(name, attr, kind, f"{type_}? {name}=None", default, True)
    return GeneratedArgument(name, attr, kind, f"{type_} {name}={shown}", None, True)


def default_of(argument: GeneratedArgument) -> AttrValue:
    """Return the default of an attr's argument, as its kernel takes it; ``None`` for inputs and required attrs."""
    attr = argument.parameter
    if not isinstance(attr, Attr) or attr.required or not attr.default_known:
        return None
    return _default(attr, argument.kind)


def _default(attr: Attr, kind: AclnnArgumentKind) -> AttrValue:
    """Return the default as the kernel takes it: dtypes as numbers, a missing default as the type's empty value."""
    value = attr.default
    if kind is AclnnArgumentKind.DTYPE:
        return torch_number(DataType(value) if isinstance(value, int) else DataType.UNDEFINED)
    if attr.type in (AttrType.LIST_INT, AttrType.LIST_FLOAT, AttrType.LIST_BOOL, AttrType.LIST_TYPE):
        items = value if isinstance(value, tuple) else ()
        return tuple(torch_number(v) if isinstance(v, DataType) else v for v in items)
    if value is None:
        return {AttrType.INT: 0, AttrType.FLOAT: 0.0, AttrType.BOOL: False}.get(attr.type, "")
    return bool(value) if attr.type is AttrType.BOOL else value


def schema_literal(kind: AclnnArgumentKind, value: AttrValue) -> str | None:
    """Return the schema text of a default, or ``None`` if schemas cannot express it."""
    if isinstance(value, tuple):
        items = [schema_literal(kind, item) for item in value]
        return None if None in items else f"[{', '.join(item for item in items if item is not None)}]"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float) and kind in (AclnnArgumentKind.FLOAT, AclnnArgumentKind.FLOATS):
        return repr(float(value)) if math.isfinite(value) else None
    if isinstance(value, float) and kind is AclnnArgumentKind.SCALAR and math.isfinite(value):
        return repr(value)
    if isinstance(value, int):
        return str(int(value)) if abs(value) < 2**63 else None
    if isinstance(value, str):
        return f'"{value}"' if _PLAIN_STRING.match(value) else None
    return None

"""Prototype → torch operator schema: the signature that an operator without hand-written C++ gets. No torch.

Inputs come first, in the prototype's order, then the attrs as keyword-only arguments with the prototype's defaults. An
output that is an input is written in place: the argument is ``Tensor(a!)`` and is not returned, which is the form that
``torch.compile`` can functionalise for operators of any library.
"""

from __future__ import annotations

import enum
import keyword
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ascend_graph.aclnn import Value
from ascend_graph.binding.dtype_ints import Numbers
from ascend_graph.binding.dtypes import torch_number
from ascend_graph.binding.errors import EagerError
from ascend_graph.prototypes import Attr, AttrType, AttrValue, DataType, OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.naming import snake_case


class Kind(enum.IntEnum):
    """What an aclnn parameter is made from; the numbers are those of ``Kind`` in csrc/eager/kernel.cpp."""

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
    #: Host memory for one number, which goes into an output afterwards.
    HOST_OUTPUT = 15
    #: An aclScalarList made from numbers.
    SCALARS = 16


#: Per attr type that aclnn functions take: the schema's type and the kind of parameter. A dtype is an ``int``, as in
#: torch_npu's newer operators: callers pass a ``torch.dtype`` or, for a dtype that torch does not have, torch_npu's
#: number of it, which ``ScalarType`` would cut.
ATTR_KINDS = MappingProxyType(
    {
        AttrType.INT: ("int", Kind.INT),
        AttrType.FLOAT: ("float", Kind.FLOAT),
        AttrType.BOOL: ("bool", Kind.BOOL),
        AttrType.STRING: ("str", Kind.STRING),
        AttrType.TYPE: ("int", Kind.DTYPE),
        AttrType.LIST_INT: ("int[]", Kind.INTS),
        AttrType.LIST_FLOAT: ("float[]", Kind.FLOATS),
        AttrType.LIST_BOOL: ("bool[]", Kind.BOOLS),
        AttrType.LIST_TYPE: ("int[]", Kind.DTYPES),
    }
)

_GE_NUMBERS = frozenset(map(int, DataType))

#: What the language of torch's schemas keeps for itself (Python's keywords but for a few): a name gets an underscore.
_RESERVED = frozenset(keyword.kwlist) - {
    "async",
    "await",
    "except",
    "finally",
    "from",
    "lambda",
    "nonlocal",
    "try",
    "yield",
}

_PLAIN_STRING = re.compile(r"[A-Za-z0-9_ .,:;/+*=<>()\[\]{}-]*\Z")


@dataclass(frozen=True, slots=True)
class SchemaArgument:
    """One argument of a schema and the input or attr of the prototype that it feeds."""

    name: str
    parameter: Parameter | Attr
    kind: Kind
    #: The schema's text for the argument, e.g. ``int axis=-1``.
    text: str
    #: What ``None`` stands for: an attr's default that a schema cannot express.
    default: AttrValue = None
    #: Whether it is keyword-only; such arguments come last.
    keyword: bool = False

    @property
    def is_input(self) -> bool:
        """Whether it is an input; one whose values the function takes is no tensor."""
        return isinstance(self.parameter, Parameter)

    @property
    def is_null(self) -> bool:
        """Whether it is no input and None as its default, which the function gets as null."""
        return not self.is_input and self.default is None and self.text.endswith("=None")

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor or a list of tensors."""
        return self.kind in (Kind.TENSOR, Kind.TENSOR_LIST)


@dataclass(frozen=True, slots=True)
class OperatorSchema:
    """A schema made from a prototype, or from an aclnn function and what would be its prototype.

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
    arguments: tuple[SchemaArgument, ...]
    #: The outputs that are returned: those that are not inputs.
    returns: tuple[Parameter, ...]
    #: The ``Int`` attrs that are dtypes.
    dtype_ints: Mapping[str, Numbers] = field(default_factory=dict, hash=False)
    #: The schema as its author wrote it, where one did; it has no namespace.
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

    @property
    def aclnn_name(self) -> str:
        """The aclnn function, ``aclnn<OpType>``."""
        return f"aclnn{self.prototype.op_type}"


def operator_schema(
    prototype: OpPrototype,
    name: str | None = None,
    dtype_ints: Mapping[str, Numbers] | None = None,
    numbers: Mapping[str, Value] | None = None,
) -> OperatorSchema:
    """The schema of the operator that calls ``aclnn<OpType>``.

    Args:
        prototype: The operator.
        name: Its name in torch; the op type in snake case by default, with ``_op`` behind it where that is a keyword.
        dtype_ints: The ``Int`` attrs that are dtypes (:func:`~ascend_graph.binding.dtype_ints.dtype_ints`).
        numbers: The inputs whose values the function takes on the host, as a number or a list of numbers.

    Raises:
        EagerError: The prototype has something that aclnn functions do not take: an attr of an unsupported type, a
            subgraph, a name that no schema can have; or a dtype's default that is none.
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
        made = _attr(prototype, attr, _unique(op_type, attr.name, taken), as_torchs=as_torchs)
        arguments.append(replace(made, keyword=True))
    returns = tuple(p for p in prototype.outputs if p.name not in prototype.in_place)
    for output in returns:
        _check_name(op_type, output.name)
    if name is None:
        name = snake_case(op_type)
        name = f"{name}_op" if keyword.iskeyword(name) else name
    return OperatorSchema(name, prototype, tuple(arguments), returns, dict(dtype_ints or {}))


def _check_name(op_type: str, name: str) -> str:
    if not (name.isascii() and name.isidentifier()):
        raise EagerError(f"{op_type}: {name!r} cannot be the name of an argument: it is no ASCII identifier")
    return name


def plain_name(name: str) -> str:
    """A name as schemas may have it: with an underscore behind a word that they keep for themselves."""
    return f"{name}_" if name in _RESERVED else name


def _unique(op_type: str, name: str, taken: set[str]) -> str:
    """A name may be an input's and an attr's at once; the second gets an underscore."""
    unique = plain_name(_check_name(op_type, name))
    while unique in taken:
        unique += "_"
    taken.add(unique)
    return unique


def _tensor_type(parameter: Parameter) -> str:
    return "Tensor[]" if parameter.kind is ParameterKind.DYNAMIC else "Tensor"


_NUMBERS = {
    Value.INTS: ("int[]", Kind.INTS),
    Value.FLOATS: ("float[]", Kind.FLOATS),
    Value.BOOLS: ("bool[]", Kind.BOOLS),
    Value.SCALAR: ("Scalar", Kind.SCALAR),
    Value.SCALAR_LIST: ("Scalar[]", Kind.SCALARS),
}


def _input(prototype: OpPrototype, index: int, name: str, number: Value | None = None) -> SchemaArgument:
    parameter = prototype.inputs[index]
    dynamic = parameter.kind is ParameterKind.DYNAMIC
    alias = ""
    if parameter.name in prototype.in_place:
        alias = f"({chr(ord('a') + prototype.in_place.index(parameter.name) % 26)}!)"
    text, kind = f"Tensor{alias}{'[]' if dynamic else ''}", Kind.TENSOR_LIST if dynamic else Kind.TENSOR
    if number is not None:
        text, kind = _NUMBERS[number]
    if parameter.kind is ParameterKind.OPTIONAL:
        # Only trailing arguments have a default.
        trailing = all(p.kind is ParameterKind.OPTIONAL for p in prototype.inputs[index:])
        text += f"? {name}{'=None' if trailing else ''}"
    else:
        text += f" {name}"
    return SchemaArgument(name, parameter, kind, text)


def _attr(prototype: OpPrototype, attr: Attr, name: str, *, as_torchs: bool) -> SchemaArgument:
    if attr.type not in ATTR_KINDS:
        raise EagerError(
            f"{prototype.op_type}: attr {attr.name} has type {attr.type.value}, which aclnn functions do not take; they take "
            f"{', '.join(t.value for t in ATTR_KINDS)}"
        )
    type_, kind = ATTR_KINDS[attr.type]
    if as_torchs:
        kind = Kind.DTYPE
        if not attr.required and attr.default_known and attr.default not in _GE_NUMBERS:
            raise EagerError(
                f"{prototype.op_type}: attr {attr.name} is used as a dtype, but its default {attr.default!r} is none of GE's, so its "
                f"values have a meaning of their own: callers have to give GE's own numbers (arguments={{{attr.name!r}: "
                f"({attr.name!r}, int)}}, or dtypes = {attr.name}: ge in operators.ini)"
            )
    if attr.required or not attr.default_known:
        return SchemaArgument(name, attr, kind, f"{type_} {name}")
    default = _default(attr, kind)
    shown = schema_literal(kind, default)
    if shown is None:
        return SchemaArgument(name, attr, kind, f"{type_}? {name}=None", default)
    return SchemaArgument(name, attr, kind, f"{type_} {name}={shown}", None)


def default_of(argument: SchemaArgument) -> AttrValue:
    """The default of an attr's argument, as its kernel takes it; ``None`` for inputs and required attrs."""
    attr = argument.parameter
    if not isinstance(attr, Attr) or attr.required or not attr.default_known:
        return None
    return _default(attr, argument.kind)


def _default(attr: Attr, kind: Kind) -> AttrValue:
    """The default as the kernel takes it: dtypes as numbers, no default as the empty value of the type."""
    value = attr.default
    if kind is Kind.DTYPE:
        return torch_number(DataType(value) if isinstance(value, int) else DataType.UNDEFINED)
    if attr.type in (AttrType.LIST_INT, AttrType.LIST_FLOAT, AttrType.LIST_BOOL, AttrType.LIST_TYPE):
        items = value if isinstance(value, tuple) else ()
        return tuple(torch_number(v) if isinstance(v, DataType) else v for v in items)
    if value is None:
        return {AttrType.INT: 0, AttrType.FLOAT: 0.0, AttrType.BOOL: False}.get(attr.type, "")
    return bool(value) if attr.type is AttrType.BOOL else value


def schema_literal(kind: Kind, value: AttrValue) -> str | None:
    """The default in a schema, or ``None`` where schemas have no text for it."""
    if isinstance(value, tuple):
        items = [schema_literal(kind, item) for item in value]
        return None if None in items else f"[{', '.join(item for item in items if item is not None)}]"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float) and kind in (Kind.FLOAT, Kind.FLOATS):
        return repr(float(value)) if math.isfinite(value) else None
    if isinstance(value, float) and kind is Kind.SCALAR and math.isfinite(value):
        return repr(value)
    if isinstance(value, int):
        return str(int(value)) if abs(value) < 2**63 else None
    if isinstance(value, str):
        return f'"{value}"' if _PLAIN_STRING.match(value) else None
    return None

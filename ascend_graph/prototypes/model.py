"""A REG_OP prototype as an immutable value."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from ascend_graph.prototypes.dtypes import DataType


class ParameterKind(enum.Enum):
    """How often an input or output occurs in one node."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    DYNAMIC = "dynamic"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One input or output of a prototype."""

    name: str
    kind: ParameterKind = ParameterKind.REQUIRED
    #: Allowed dtypes in the order of the source; empty when the source does not say or was not understood.
    dtypes: tuple[DataType, ...] = ()
    #: The type argument as the source writes it, e.g. ``TensorType({DT_FLOAT16, DT_FLOAT})``.
    type_text: str = ""
    #: The DATATYPE symbol that ties this parameter to others, e.g. ``T``.
    symbol: str | None = None


class AttrType(enum.Enum):
    """The attr types of REG_OP, by their name in the macro."""

    INT = "Int"
    FLOAT = "Float"
    BOOL = "Bool"
    STRING = "String"
    TYPE = "Type"
    TENSOR = "Tensor"
    BYTES = "Bytes"
    NAMED_ATTRS = "NamedAttrs"
    LIST_INT = "ListInt"
    LIST_FLOAT = "ListFloat"
    LIST_BOOL = "ListBool"
    LIST_STRING = "ListString"
    LIST_TYPE = "ListType"
    LIST_TENSOR = "ListTensor"
    LIST_LIST_INT = "ListListInt"
    LIST_NAMED_ATTRS = "ListNamedAttrs"


#: The Python value of an attr; ``DataType`` for Type attrs.
AttrValue = int | float | bool | str | bytes | DataType | tuple["AttrValue", ...] | None


@dataclass(frozen=True, slots=True)
class Attr:
    """One attr of a prototype. ``default`` has a meaning only where ``required`` is False."""

    name: str
    type: AttrType
    required: bool
    default: AttrValue = None


@dataclass(frozen=True, slots=True)
class OpPrototype:
    """One REG_OP. Inputs, attrs and outputs each keep the order of the source."""

    op_type: str
    inputs: tuple[Parameter, ...] = ()
    attrs: tuple[Attr, ...] = ()
    outputs: tuple[Parameter, ...] = ()
    doc: str = ""
    file: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)

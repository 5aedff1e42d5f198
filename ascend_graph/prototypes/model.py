"""Immutable model of REG_OP prototypes."""

from __future__ import annotations

import ctypes
import enum
from dataclasses import dataclass, field

from ascend_graph.prototypes.dtypes import DataType


class ParameterKind(enum.Enum):
    """Number of times an input or output occurs in one node: once, at most once, or any."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    DYNAMIC = "dynamic"


class PassedAs(enum.Enum):
    """Form in which an aclnn function takes an input."""

    TENSOR = "tensor"
    #: The values, as an array of integers, floats or bools (``ValueDepend``).
    VALUES = "values"
    SCALAR = "scalar"
    SCALAR_LIST = "scalar list"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One input or output of a prototype."""

    name: str
    kind: ParameterKind = ParameterKind.REQUIRED
    #: Allowed dtypes in the order of the source; empty if the source gives none or was not understood.
    dtypes: tuple[DataType, ...] = ()
    #: The type argument as the source writes it, e.g. ``TensorType({DT_FLOAT16, DT_FLOAT})``, without comments and
    #: needless blanks. The other fields hold its meaning, so equality ignores it.
    type_text: str = field(default="", compare=False)
    #: The DATATYPE symbol that this parameter shares with others, e.g. ``T``.
    symbol: str | None = None
    #: The symbols of ``Promote({"T1", "T2"})``, whose promoted dtype this parameter has.
    promote: tuple[str, ...] = ()
    #: True if the type is a ``ListTensorType``: the tensors of a dynamic parameter may differ in dtype.
    list_type: bool = False
    #: The undeclared names in the type, in the order of the source.
    unknown_types: tuple[str, ...] = ()
    #: The form in which its aclnn function takes it, from an OpDef. REG_OP cannot express it.
    passed_as: PassedAs = field(default=PassedAs.TENSOR, compare=False)
    #: True if an OpDef says what the memory of this output holds before its kernel starts (``InitValue``).
    initialized: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class DataTypeSymbol:
    """One ``DATATYPE(T, …)``: a name for a dtype that several parameters share."""

    name: str
    dtypes: tuple[DataType, ...] = ()
    type_text: str = field(default="", compare=False)
    promote: tuple[str, ...] = ()
    list_type: bool = False
    unknown_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subgraph:
    """One ``GRAPH`` (REQUIRED) or ``DYNAMIC_GRAPH`` (DYNAMIC) of a control-flow op."""

    name: str
    kind: ParameterKind = ParameterKind.REQUIRED


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
    LIST_LIST_FLOAT = "ListListFloat"
    LIST_NAMED_ATTRS = "ListNamedAttrs"


#: The Python value of an attr; ``DataType`` for Type attrs, None for an empty Tensor or NamedAttrs.
AttrValue = int | float | bool | str | bytes | DataType | tuple["AttrValue", ...] | None


@dataclass(frozen=True, slots=True)
class Attr:
    """One attr of a prototype. ``default`` has a meaning only if ``required`` is False."""

    name: str
    type: AttrType
    required: bool
    default: AttrValue = None
    #: The default as the source writes it, e.g. ``static_cast<float>(0.8)``.
    default_text: str = field(default="", compare=False)
    #: False if the default in the source is not a known constant (a C++ variable, say); ``default`` is then None.
    default_known: bool = True

    @property
    def held_default(self) -> AttrValue:
        """Default as a kernel has it: a float is one of 32 bits.

        >>> Attr("eps", AttrType.FLOAT, False, 0.1).held_default
        0.10000000149011612
        """
        return _held(self.default)


def _held(value: AttrValue) -> AttrValue:
    if isinstance(value, tuple):
        return tuple(map(_held, value))
    return ctypes.c_float(value).value if isinstance(value, float) else value


@dataclass(frozen=True, slots=True)
class OpPrototype:
    """One REG_OP. Inputs, attrs and outputs each keep the order of the source.

    Prototypes are equal if they declare the same op; their documentation and source position do not matter.
    """

    op_type: str
    inputs: tuple[Parameter, ...] = ()
    attrs: tuple[Attr, ...] = ()
    outputs: tuple[Parameter, ...] = ()
    doc: str = field(default="", compare=False)
    file: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)
    symbols: tuple[DataTypeSymbol, ...] = ()
    graphs: tuple[Subgraph, ...] = ()

    @property
    def in_place(self) -> tuple[str, ...]:
        """Names that are both an input and an output: GE writes the output over that input.

        >>> from ascend_graph.prototypes import parse_text
        >>> parse_text('''
        ... REG_OP(Assign)
        ...     .INPUT(ref, TensorType::ALL())
        ...     .INPUT(value, TensorType::ALL())
        ...     .OUTPUT(ref, TensorType::ALL())
        ...     .OP_END_FACTORY_REG(Assign)
        ... ''').prototypes[0].in_place
        ('ref',)
        """
        inputs = {parameter.name for parameter in self.inputs}
        return tuple(parameter.name for parameter in self.outputs if parameter.name in inputs)

    @property
    def place(self) -> str:
        """Position of the definition as ``file:line``, for messages."""
        return f"{self.file or '<text>'}:{self.line}"

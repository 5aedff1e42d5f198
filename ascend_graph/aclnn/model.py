"""Immutable model of an aclnn function as its header declares it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace


class Direction(enum.Enum):
    """Direction of a parameter as the header states it: read, written, or both."""

    IN = "in"
    OUT = "out"
    #: Read and written: the ``…Ref`` parameters.
    INOUT = "inout"


class ValueKind(enum.Enum):
    """Kind of a parameter's value."""

    TENSOR = "a tensor"
    TENSOR_LIST = "a list of tensors"
    SCALAR = "a scalar"
    SCALAR_LIST = "a list of scalars"
    INTS = "a list of ints"
    FLOATS = "a list of floats"
    BOOLS = "a list of bools"
    INT = "an int"
    FLOAT = "a float"
    BOOL = "a bool"
    STRING = "a string"
    DTYPE = "a dtype"
    #: Host memory that the function writes: ``int64_t *``, ``aclIntArray **``.
    HOST_OUTPUT = "host memory that is written"
    #: A type that we cannot call with.
    OTHER = "of another type"


@dataclass(frozen=True, slots=True)
class CType:
    """C type of a parameter, without ``const`` of the value itself."""

    #: The name of the innermost type, ``aclTensor`` or ``unsigned long``.
    base: str
    pointers: int = 0
    #: True if the pointee is const.
    const: bool = False

    def __str__(self) -> str:
        """Return the type as C writes it.

        >>> str(CType("aclTensor", 1, True)), str(CType("int64_t"))
        ('const aclTensor *', 'int64_t')
        """
        return f"{'const ' if self.const else ''}{self.base}{' ' + '*' * self.pointers if self.pointers else ''}"

    @property
    def value(self) -> ValueKind:
        """Kind of a value of this type."""
        if self.pointers == 0:
            return _VALUES.get(self.base, ValueKind.OTHER)
        if self.pointers == 1 and self.base in _OBJECTS:
            return _OBJECTS[self.base]
        if self.pointers == 1 and self.base == "char":
            return ValueKind.STRING
        pointee = self.pointers == 1 and self.base in _VALUES
        if not self.const and (pointee or (self.pointers == 2 and self.base in _ARRAYS)):
            return ValueKind.HOST_OUTPUT
        return ValueKind.OTHER

    @property
    def width(self) -> int:
        """Bytes of a number or a bool of this type; 0 for any other."""
        return _WIDTHS.get(self.base, 0) if self.pointers == 0 else 0

    @property
    def canonical(self) -> CType:
        """Same type under its canonical name."""
        return replace(self, base=_CANONICAL.get(self.base, self.base))

    @property
    def pointee(self) -> CType:
        """Type that this pointer points to."""
        return CType(self.base, self.pointers - 1)


_OBJECTS = {
    "aclTensor": ValueKind.TENSOR,
    "aclTensorList": ValueKind.TENSOR_LIST,
    "aclScalar": ValueKind.SCALAR,
    "aclScalarList": ValueKind.SCALAR_LIST,
    "aclIntArray": ValueKind.INTS,
    "aclFloatArray": ValueKind.FLOATS,
    "aclBoolArray": ValueKind.BOOLS,
}
_ARRAYS = frozenset({"aclIntArray", "aclFloatArray", "aclBoolArray", "int64_t", "uint64_t", "float", "bool"})
#: Widths in LP64, the data model of all systems that CANN runs on.
_WIDTHS = {
    **{f"{sign}int{bits}_t": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{"signed char": 1, "unsigned char": 1, "short": 2, "unsigned short": 2, "int": 4, "unsigned int": 4},
    **{"long": 8, "unsigned long": 8, "long long": 8, "unsigned long long": 8, "size_t": 8},
    **{"float": 4, "double": 8, "bool": 1, "aclDataType": 4},
}
_CANONICAL = {
    **{"signed char": "int8_t", "unsigned char": "uint8_t", "short": "int16_t", "unsigned short": "uint16_t"},
    **{
        "int": "int32_t",
        "unsigned int": "uint32_t",
        "long": "int64_t",
        "unsigned long": "uint64_t",
        "size_t": "uint64_t",
    },
    **{"long long": "int64_t", "unsigned long long": "uint64_t"},
}
_VALUES = dict.fromkeys(_WIDTHS, ValueKind.INT) | {
    "float": ValueKind.FLOAT,
    "double": ValueKind.FLOAT,
    "bool": ValueKind.BOOL,
    "aclDataType": ValueKind.DTYPE,
}


@dataclass(frozen=True, slots=True)
class AclnnParameter:
    """One parameter of an aclnn function."""

    name: str
    type: CType
    direction: Direction = Direction.IN
    #: True if it may be null, or has a default.
    optional: bool = False
    #: The default argument as the header writes it; empty without one.
    default: str = ""

    @property
    def value(self) -> ValueKind:
        """Kind of the parameter's value."""
        return self.type.value

    def __str__(self) -> str:
        """Return the parameter as C declares it."""
        text = str(self.type)
        return f"{text}{'' if text.endswith('*') else ' '}{self.name}"


@dataclass(frozen=True, slots=True)
class AclnnFunction:
    """The two C functions ``<name>GetWorkspaceSize`` and ``<name>``.

    Functions are equal if their declarations are, in whatever file. ``parameters`` excludes ``workspaceSize`` and
    ``executor``, which end every first phase.
    """

    name: str
    parameters: tuple[AclnnParameter, ...] = ()
    #: True if the header also declares the second phase.
    has_second_phase: bool = field(default=True, compare=False)
    doc: str = field(default="", compare=False)
    file: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)

    @property
    def place(self) -> str:
        """Position of the declaration as ``file:line``, for messages."""
        return f"{self.file or '<text>'}:{self.line}"

    def parameter(self, name: str) -> AclnnParameter | None:
        """Return the parameter of that name, or None."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    def agrees_with(self, other: AclnnFunction) -> bool:
        """Return whether both declarations describe the same call.

        Case and underscores in names, and ``const``, make no difference.
        """
        return len(self.parameters) == len(other.parameters) and all(
            a.direction is b.direction
            and a.name.replace("_", "").lower() == b.name.replace("_", "").lower()
            and replace(a.type.canonical, const=False) == replace(b.type.canonical, const=False)
            for a, b in zip(self.parameters, other.parameters, strict=True)
        )

    def __str__(self) -> str:
        """Return the first phase without its last two parameters.

        >>> print(AclnnFunction("aclnnAbs", (AclnnParameter("self", CType("aclTensor", 1, True)),)))
        aclnnAbs(const aclTensor *self)
        """
        return f"{self.name}({', '.join(map(str, self.parameters))})"

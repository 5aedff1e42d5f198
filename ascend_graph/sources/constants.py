"""C++ numbers: the type of a constant, and the effect of conversions and operators on it.

A number without its type says too little: ``~0u`` is 4294967295 and ``~0`` is -1, ``(int32_t)0xFFFFFFFF`` is -1 and
``0xFFFFFFFF`` is not. The model is the one of CANN's platforms, LP64 with a signed ``char``.

Source: ISO C++17, [conv], [expr.arith.conv], [lex.icon].
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from ascend_graph.errors import AscendGraphError


class ConstantError(AscendGraphError):
    """An operation that C++ does not define, or whose result is not a number."""


@dataclass(frozen=True, slots=True)
class CppType:
    """An arithmetic type; in an expression, the type of higher rank wins."""

    name: str
    bits: int
    rank: int
    signed: bool = True
    floating: bool = False

    @property
    def lowest(self) -> int:
        """Least value of an integer type."""
        return -(1 << self.bits - 1) if self.signed else 0

    @property
    def highest(self) -> int:
        """Greatest value of an integer type."""
        return (1 << (self.bits - 1 if self.signed else self.bits)) - 1


BOOL = CppType("bool", 1, 0, signed=False)
CHAR = CppType("char", 8, 1)
UCHAR = CppType("unsigned char", 8, 1, signed=False)
SHORT = CppType("short", 16, 2)
USHORT = CppType("unsigned short", 16, 2, signed=False)
INT = CppType("int", 32, 3)
UINT = CppType("unsigned int", 32, 3, signed=False)
LONG = CppType("long", 64, 4)
ULONG = CppType("unsigned long", 64, 4, signed=False)
#: The type of a decimal literal too large for every standard type; only ``-9223372036854775808`` needs it.
_WIDE = CppType("__int128", 128, 5)
FLOAT = CppType("float", 32, 6, floating=True)
DOUBLE = CppType("double", 64, 7, floating=True)

#: Each type by the names that headers use for it.
CPP_TYPES: dict[str, CppType] = {
    "bool": BOOL, "OpBool": BOOL,
    "char": CHAR, "signed char": CHAR, "int8_t": CHAR, "unsigned char": UCHAR, "uint8_t": UCHAR,
    "short": SHORT, "int16_t": SHORT, "unsigned short": USHORT, "uint16_t": USHORT,
    "int": INT, "signed": INT, "int32_t": INT, "unsigned": UINT, "uint32_t": UINT,
    "long": LONG, "int64_t": LONG, "ssize_t": LONG, "ptrdiff_t": LONG, "intptr_t": LONG, "OpInt": LONG,
    "unsigned long": ULONG, "uint64_t": ULONG, "size_t": ULONG, "uintptr_t": ULONG,
    "float": FLOAT, "float32_t": FLOAT, "OpFloat": FLOAT, "double": DOUBLE, "float64_t": DOUBLE,
}  # fmt: skip


def type_named(words: str) -> CppType | None:
    """Return the arithmetic type that a declaration spells in any way, or None for another type.

    >>> type_named("static constexpr unsigned long long").name, type_named("std::int8_t").name
    ('unsigned long', 'char')
    """
    names = [name for word in words.split() if (name := word.rpartition("::")[2]) not in _SPECIFIERS]
    if len(names) == 1:
        return CPP_TYPES.get(names[0])
    if not names or not set(names) <= {"unsigned", "signed", "long", "short", "int", "char", "double"}:
        return None
    if "double" in names:
        return DOUBLE
    base = next((word for word in ("char", "short", "long") if word in names), "int")
    return CPP_TYPES[("unsigned " + base).removesuffix(" int") if "unsigned" in names else base]


_SPECIFIERS = frozenset({"const", "constexpr", "static", "inline", "volatile", "extern"})


@dataclass(frozen=True, slots=True)
class Number:
    """A constant of arithmetic type; a ``float`` may be any double that rounds to it, so 0.8f reads 0.8."""

    value: int | float
    type: CppType


def exact(number: Number) -> int | float:
    """Return the value of a number, with a float rounded to its own precision."""
    return _rounded(float(number.value)) if number.type is FLOAT else number.value


def _rounded(value: float) -> float:
    try:
        (result,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(result)


def convert(number: Number, target: CppType) -> Number:
    """Convert a number as ``static_cast<target>(number)`` does.

    Raises:
        ConstantError: the integer type cannot hold the floating value, which C++ leaves undefined.
    """
    if target is number.type:
        return number
    if target.floating:
        value = float(exact(number))
        return Number(value if target is DOUBLE or not math.isinf(_rounded(value)) else _rounded(value), target)
    if target is BOOL:
        return Number(int(number.value != 0), BOOL)
    if isinstance(number.value, float):
        if not math.isfinite(number.value) or not target.lowest <= int(number.value) <= target.highest:
            raise ConstantError(f"{number.value!r} must fit into {target.name}")
        return Number(int(number.value), target)
    if number.type is _WIDE and not target.lowest <= number.value <= target.highest:
        raise ConstantError(f"{number.value} must fit into {target.name}")
    value = number.value & (1 << target.bits) - 1
    return Number(value - (1 << target.bits) if target.signed and value > target.highest else value, target)


def integer_literal(value: int, suffix: str, *, decimal: bool) -> Number:
    """Return the number that an integer literal with this value and suffix denotes.

    Raises:
        ConstantError: no type can hold it.
    """
    suffix = suffix.lower()
    unsigned = "u" in suffix
    types = [t for t in (INT, UINT, LONG, ULONG) if not ("l" in suffix or "z" in suffix) or t.bits == 64]
    types = [t for t in types if not t.signed] if unsigned else [t for t in types if t.signed or not decimal]
    for candidate in types:
        if value <= candidate.highest:
            return Number(value, candidate)
    if decimal and value <= ULONG.highest:
        return Number(value, _WIDE)
    raise ConstantError(
        f"{value if value < 1 << 128 else 'a number of so many digits'} does not fit into 64 bits; write a smaller "
        "number"
    )


def _promoted(number: Number) -> Number:
    return convert(number, INT) if number.type.rank < INT.rank else number


def unary(symbol: str, operand: Number) -> Number:
    """Apply ``!``, ``~``, ``-`` or ``+`` to a number.

    Raises:
        ConstantError: the operator is not defined for it, or the result does not fit.
    """
    if symbol == "!":
        return Number(int(not operand.value), BOOL)
    number = _promoted(operand)
    if symbol == "+":
        return number
    if symbol == "-":
        return _fitted(-number.value, number.type)
    if isinstance(number.value, float):
        raise ConstantError("'~' needs an integer")
    return _fitted(~number.value, number.type)


def binary(symbol: str, left: Number, right: Number) -> Number:
    """Apply an arithmetic, bitwise or relational operator to two numbers, after C++'s conversions.

    Raises:
        ConstantError: the operator is not defined for them, or the result does not fit.
    """
    left, right = _promoted(left), _promoted(right)
    if symbol in ("<<", ">>"):
        return _shifted(symbol, left, right)
    common = max((left, right), key=lambda number: (number.type.rank, not number.type.signed)).type
    a, b = exact(convert(left, common)), exact(convert(right, common))
    if symbol in _RELATIONS:
        return Number(int(_RELATIONS[symbol](a, b)), BOOL)
    if common.floating:
        if symbol not in _FLOATING:
            raise ConstantError(f"{symbol!r} needs integers")
        if symbol == "/" and b == 0:
            raise ConstantError("division by zero in '/' or '%'; write another divisor")
        return _fitted(_FLOATING[symbol](float(a), float(b)), common)
    if symbol in ("/", "%"):
        if b == 0:
            raise ConstantError("division by zero in '/' or '%'; write another divisor")
        quotient = abs(int(a)) // abs(int(b))  # C++ rounds toward zero
        quotient = quotient if (a < 0) == (b < 0) else -quotient
        return _fitted(quotient if symbol == "/" else int(a) - int(b) * quotient, common)
    return _fitted(_INTEGRAL[symbol](int(a), int(b)), common)


_RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_FLOATING: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
_INTEGRAL: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "|": operator.or_, "&": operator.and_, "^": operator.xor,
}  # fmt: skip


def _shifted(symbol: str, left: Number, right: Number) -> Number:
    if isinstance(left.value, float) or isinstance(right.value, float):
        raise ConstantError(f"{symbol!r} needs integers")
    if not 0 <= right.value < left.type.bits:
        raise ConstantError(f"a shift of {left.type.name} must be from 0 to {left.type.bits - 1}")
    return _fitted(left.value << right.value if symbol == "<<" else left.value >> right.value, left.type)


def _fitted(value: int | float, kind: CppType) -> Number:
    if isinstance(value, float):
        return Number(_rounded(value) if kind is FLOAT else value, kind)
    if kind.signed and not kind.lowest <= value <= kind.highest:
        raise ConstantError(f"{value} must fit into {kind.name}")
    return Number(value & kind.highest if not kind.signed else value, kind)


def round_to_float32(text: str) -> float:
    """Return a double that rounds to exactly the float of a decimal literal with an f suffix.

    The shortest decimal is kept if possible (``1e-5f`` gives 1e-05), because rounding it to float again gives the same
    bits. The float's own value is returned only where the path through double would round twice.
    """
    value = float(text)
    rounded = _rounded(value)
    if rounded == value or math.isinf(value) or math.isinf(rounded):
        return rounded
    (bits,) = struct.unpack("<I", struct.pack("<f", abs(rounded)))
    for neighbor_bits in (bits - 1, bits + 1):
        if not 0 <= neighbor_bits < 0x7F800000:
            continue
        (neighbor,) = struct.unpack("<f", struct.pack("<I", neighbor_bits))
        middle = (Fraction(abs(rounded)) + Fraction(neighbor)) / 2
        if middle == Fraction(value):  # double landed on the tie that the decimal does not have
            decimal = Fraction(text)
            if decimal != middle:
                closest = min((abs(rounded), neighbor), key=lambda candidate: abs(Fraction(candidate) - decimal))
                return float(closest)
    return value

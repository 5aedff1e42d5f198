"""The default of an attr: a C++ constant expression → a Python value of the attr's type.

Only constants are computed, by this module's own reader: nothing from a file is ever evaluated as Python.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes.dtypes import DTYPE_BY_GE_NAME, DTYPE_SYNONYMS, DataType
from ascend_graph.prototypes.model import AttrType, AttrValue

#: Brackets nested deeper than this are no default of an attr.
MAX_DEPTH = 32

_INT64 = (-(2**63), 2**63 - 1)
_UINT64_MAX = 2**64 - 1


class LiteralError(AscendGraphError):
    """An expression that is no constant; ``offset`` is the place in its text."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<number>0[xX][0-9a-fA-F']*(?:\.[0-9a-fA-F]*)?(?:[pP][+-]?\d+)?[uUlLzZfF]*
        | 0[bB][01']+[uUlLzZ]*
        | (?:\d[\d']*\.?[\d']*|\.\d[\d']*)(?:[eE][+-]?\d+)?[uUlLzZfF]*)
    | (?P<string>(?:u8|u|U|L)?"(?:[^"\\]|\\.)*")
    | (?P<character>(?:u8|u|U|L)?'(?:[^'\\]|\\.)*')
    | (?P<name>[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*)
    | (?P<operator><<|>>|::|[-+*/%|&^~!(){}\[\],<>])
    """,
    re.VERBOSE | re.DOTALL,
)

_FLOAT_SUFFIXED = re.compile(r"[fF]$")

_CONSTANTS: dict[str, object] = {
    "true": True,
    "false": False,
    "True": True,
    "False": False,
    "nullptr": None,
    "UNKNOWN_DIM": -1,
    "UNKNOWN_DIM_NUM": -2,
    "UNKNOWN_SHAPE": (-1,),
    "UNKNOWN_RANK": (-2,),
    "DT_MAX": len(DataType) + 1,
    "INFINITY": math.inf,
    "HUGE_VALF": math.inf,
    "NAN": math.nan,
    "FLT_MAX": float.fromhex("0x1.fffffep+127"),
    "FLT_MIN": float.fromhex("0x1p-126"),
    "FLT_EPSILON": float.fromhex("0x1p-23"),
    "DBL_MAX": float.fromhex("0x1.fffffffffffffp+1023"),
    "DBL_EPSILON": float.fromhex("0x1p-52"),
    "INT_MAX": 2**31 - 1,
    "INT_MIN": -(2**31),
    "UINT_MAX": 2**32 - 1,
    "LONG_MAX": 2**63 - 1,
    "LONG_MIN": -(2**63),
    "LLONG_MAX": 2**63 - 1,
    "LLONG_MIN": -(2**63),
    **{f"INT{bits}_MAX": 2 ** (bits - 1) - 1 for bits in (8, 16, 32, 64)},
    **{f"INT{bits}_MIN": -(2 ** (bits - 1)) for bits in (8, 16, 32, 64)},
    **{f"UINT{bits}_MAX": 2**bits - 1 for bits in (8, 16, 32, 64)},
}
_LIMITS = {
    "float": ("FLT_MAX", "FLT_MIN", -float.fromhex("0x1.fffffep+127")),
    "double": ("DBL_MAX", None, -float.fromhex("0x1.fffffffffffffp+1023")),
    "int": ("INT_MAX", "INT_MIN", None),
    "long": ("LONG_MAX", "LONG_MIN", None),
    **{f"int{bits}_t": (f"INT{bits}_MAX", f"INT{bits}_MIN", None) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": (f"UINT{bits}_MAX", None, None) for bits in (8, 16, 32, 64)},
}
_INTEGER_TYPES = frozenset({"int", "long", "short", "char", "unsigned", "signed", "size_t", "OpInt"}) | {
    f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_FLOAT_TYPES = frozenset({"float", "double", "float32_t", "float64_t", "OpFloat"})
_EMPTY_OBJECTS = frozenset({"Tensor", "OpTensor", "NamedAttrs", "OpNamedAttrs", "GeTensor"})
_TEXT_TYPES = frozenset({"string", "AscendString", "OpString", "OpAscendString"})
_VECTOR_TYPES = frozenset({"vector", "Buffer", "OpBytes"})

_ESCAPE = re.compile(r"\\(\r?\n|x[0-9a-fA-F]+|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_SIMPLE_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "e": "\x1b",
}


def _unescape(match: re.Match[str]) -> str:
    body = match.group(1)
    if body[0] in "\r\n":
        return ""
    if body[0] in "01234567":
        return chr(int(body, 8) & 0xFF)
    if body[0] == "x" and len(body) > 1:
        return chr(int(body[1:], 16) & 0xFF)
    if body[0] in "uU" and len(body) > 1:
        code = int(body[1:], 16)
        return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
    return _SIMPLE_ESCAPES.get(body, body)


def unquote(literal: str) -> str:
    """The value of one C++ string or character literal."""
    body = literal[literal.index(literal[-1]) + 1 : -1]
    return _ESCAPE.sub(_unescape, body) if "\\" in body else body


def round_to_float32(text: str) -> float:
    """The value of a decimal literal with an f suffix, as a double that rounds to exactly that float.

    The shortest decimal is kept where it can be (``1e-5f`` gives 1e-05), because rounding it to float again gives the
    same bits; only where the way through double would round twice is the float's own value returned.
    """
    value = float(text)
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        return math.inf
    if rounded == value or math.isinf(value):
        return value
    (bits,) = struct.unpack("<I", struct.pack("<f", abs(rounded)))
    for neighbour_bits in (bits - 1, bits + 1):
        if not 0 <= neighbour_bits < 0x7F800000:
            continue
        (neighbour,) = struct.unpack("<f", struct.pack("<I", neighbour_bits))
        middle = (Fraction(abs(rounded)) + Fraction(neighbour)) / 2
        if middle == Fraction(value):  # double landed on the tie that the decimal does not have
            exact = Fraction(text)
            if exact != middle:
                closest = min((abs(rounded), neighbour), key=lambda candidate: abs(Fraction(candidate) - exact))
                return float(closest)
    return value


class _Float32(float):
    """A float literal with an f suffix: it was rounded to float once, and stays float in arithmetic."""


class _Reader:
    """A recursive-descent reader of constant expressions."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str, int]] = []
        self.index = 0
        self.depth = 0
        offset = 0
        while offset < len(text):
            match = _TOKEN.match(text, offset)
            if match is None:
                raise LiteralError(f"{text[offset]!r} was not understood", offset)
            kind = match.lastgroup or ""
            if kind != "space":
                self.tokens.append((kind, match.group(), offset))
            offset = match.end()
        self.end = len(text)

    def read(self) -> object:
        value = self.expression(0)
        if self.index < len(self.tokens):
            raise LiteralError(f"{self.peek()!r} was not expected here", self.offset())
        return value

    def peek(self) -> str:
        return self.tokens[self.index][1] if self.index < len(self.tokens) else ""

    def offset(self) -> int:
        return self.tokens[self.index][2] if self.index < len(self.tokens) else self.end

    def take(self, expected: str) -> None:
        if self.peek() != expected:
            raise LiteralError(f"{expected!r} was expected, not {self.peek() or 'the end'!r}", self.offset())
        self.index += 1

    def expression(self, lowest: int) -> object:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise LiteralError(f"brackets or operators are nested deeper than {MAX_DEPTH}", self.offset())
        value = self.unary()
        while True:
            operator, offset = self.peek(), self.offset()
            strength = _STRENGTH.get(operator, -1)
            if strength < lowest or strength < 0:
                break
            self.index += 1
            value = _binary(operator, value, self.expression(strength + 1), offset)
        self.depth -= 1
        return value

    def unary(self) -> object:
        signs: list[tuple[str, int]] = []
        while self.peek() in ("-", "+", "~", "!"):
            signs.append((self.peek(), self.offset()))
            self.index += 1
        value = self.primary()
        for sign, offset in reversed(signs):
            value = _unary(sign, value, offset)
        return value

    def primary(self) -> object:
        if self.index >= len(self.tokens):
            raise LiteralError("the expression ends too early", self.end)
        kind, token, offset = self.tokens[self.index]
        self.index += 1
        if kind == "number":
            return _number(token, offset)
        if kind == "string":
            parts = [unquote(token)]
            while self.index < len(self.tokens) and self.tokens[self.index][0] == "string":
                parts.append(unquote(self.tokens[self.index][1]))
                self.index += 1
            return "".join(parts)
        if kind == "character":
            return _Character(unquote(token))
        if kind == "name":
            return self.named(re.sub(r"\s", "", token), offset)
        if token in "{[":
            return self.items("}" if token == "{" else "]")
        if token == "(":
            # (float)0.5 is a cast, (0.5) is not.
            if self.index + 1 < len(self.tokens) and self.tokens[self.index + 1][1] == ")":
                name = self.peek().rpartition("::")[2]
                if name in _INTEGER_TYPES or name in _FLOAT_TYPES or name == "bool":
                    self.index += 2
                    return _cast(name, self.unary(), offset)
            value = self.expression(0)
            self.take(")")
            return value
        raise LiteralError(f"{token!r} was not expected here", offset)

    def items(self, closing: str) -> tuple[object, ...]:
        values: list[object] = []
        while self.peek() != closing:
            values.append(self.expression(0))
            if self.peek() != closing:
                self.take(",")
        self.take(closing)
        return tuple(values)

    def template_argument(self) -> str:
        self.take("<")
        words: list[str] = []
        depth = 1
        while depth:
            token = self.peek()
            if not token or self.tokens[self.index][0] not in ("name", "operator"):
                raise LiteralError("a type was expected", self.offset())
            depth += token.count("<") - token.count(">")
            if depth > 0:
                words.append(token)
            self.index += 1
        return " ".join(words)

    def named(self, qualified: str, offset: int) -> object:
        name = qualified.rpartition("::")[2]
        if name in ("static_cast", "const_cast", "reinterpret_cast"):
            target = self.template_argument()
            self.take("(")
            value = self.expression(0)
            self.take(")")
            return _cast(target.rpartition("::")[2].split()[-1] if target else "", value, offset)
        if name == "numeric_limits":
            return self.limit(offset)
        if self.peek() == "<" and name in _VECTOR_TYPES:
            self.template_argument()
        if self.peek() in ("(", "{"):
            return self.constructed(name, offset)
        if name in DTYPE_BY_GE_NAME:
            return DTYPE_BY_GE_NAME[name]
        if name in DTYPE_SYNONYMS:
            return DTYPE_SYNONYMS[name]
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        raise LiteralError(f"{qualified} is no constant that is known here", offset)

    def constructed(self, name: str, offset: int) -> object:
        opening = self.peek()
        self.index += 1
        values = self.items(")" if opening == "(" else "}")
        if name in _EMPTY_OBJECTS and not values:
            return None
        if name in _TEXT_TYPES and len(values) <= 1:
            return values[0] if values else ""
        if name in _VECTOR_TYPES or name.startswith("OpList"):
            if opening == "(" and len(values) == 1 and isinstance(values[0], tuple):
                return values[0]
            if opening == "{" or not values:
                return values
        if len(values) == 1 and (name in _INTEGER_TYPES or name in _FLOAT_TYPES or name in ("bool", "OpBool")):
            return _cast(name, values[0], offset)
        raise LiteralError(
            f"{name}{opening}…{')' if opening == '(' else '}'} is no constant that is known here", offset
        )

    def limit(self, offset: int) -> object:
        target = self.template_argument().rpartition("::")[2]
        limits = _LIMITS.get(target)
        self.take("::")
        which = self.peek()
        self.index += 1
        self.take("(")
        self.take(")")
        if limits is not None:
            highest, lowest, float_lowest = limits
            if which == "max":
                return _CONSTANTS[highest]
            if which == "min":
                return _CONSTANTS[lowest] if lowest else 0
            if which == "lowest":
                return float_lowest if float_lowest is not None else _CONSTANTS[lowest] if lowest else 0
            if which == "infinity" and float_lowest is not None:
                return math.inf
        raise LiteralError(f"numeric_limits<{target}>::{which}() is not known here", offset)


class _Character(str):
    """A character literal: an integer to C++, but found where strings are meant."""

    __slots__ = ()


_STRENGTH = {"|": 0, "^": 1, "&": 2, "<<": 3, ">>": 3, "+": 4, "-": 4, "*": 5, "/": 5, "%": 5}


def _as_number(value: object, offset: int) -> int | float:
    if isinstance(value, _Character) and len(value) == 1:
        return ord(value)
    if isinstance(value, bool | DataType):
        return int(value)
    if isinstance(value, int | float):
        return value
    raise LiteralError("a number was expected here", offset)


def _unary(operator: str, operand: object, offset: int) -> object:
    value = _as_number(operand, offset)
    if operator == "!":
        return not value
    if operator == "~":
        if isinstance(value, float):
            raise LiteralError("'~' needs an integer", offset)
        return ~value
    if operator == "-":
        return type(value)(-value) if isinstance(value, _Float32) else -value
    return value


def _binary(operator: str, left_operand: object, right_operand: object, offset: int) -> object:
    left, right = _as_number(left_operand, offset), _as_number(right_operand, offset)
    is_float = isinstance(left, float) or isinstance(right, float)
    single = is_float and not any(type(value) is float for value in (left, right))
    if is_float and operator not in ("+", "-", "*", "/"):
        raise LiteralError(f"{operator!r} needs integers", offset)
    if operator in ("/", "%") and right == 0:
        raise LiteralError("division by zero", offset)
    result: int | float
    try:
        if operator == "+":
            result = left + right
        elif operator == "-":
            result = left - right
        elif operator == "*":
            result = left * right
        elif is_float:
            result = left / right
        else:
            result = _integer(operator, int(left), int(right), offset)
    except OverflowError:
        raise LiteralError("the result is too large", offset) from None
    if single:  # float op float is computed in float
        return _Float32(round_to_float32(repr(float(result))))
    if not is_float and not _INT64[0] <= result <= _UINT64_MAX:
        raise LiteralError("the result does not fit into 64 bits", offset)
    return result


def _integer(operator: str, left: int, right: int, offset: int) -> int:
    if operator in ("/", "%"):  # C++ rounds towards zero
        quotient = abs(left) // abs(right)
        quotient = quotient if (left < 0) == (right < 0) else -quotient
        return quotient if operator == "/" else left - right * quotient
    if operator in ("<<", ">>"):
        if not 0 <= right < 64:
            raise LiteralError("a shift must be from 0 to 63", offset)
        return left << right if operator == "<<" else left >> right
    return {"|": left | right, "&": left & right, "^": left ^ right}[operator]


def _number(token: str, offset: int) -> int | float:
    text = token.replace("'", "")
    is_hex = text[:2] in ("0x", "0X")
    is_float = (
        ("." in text or "p" in text or "P" in text) if is_hex else bool(re.search(r"[.eE]|[fF]$", text[1:] or ""))
    )
    if text.startswith("."):
        is_float = True
    try:
        if is_float:
            single = bool(_FLOAT_SUFFIXED.search(text)) and (not is_hex or "p" in text.lower())
            digits = text.rstrip("fFlL")
            if is_hex:
                return float.fromhex(digits)
            return _Float32(round_to_float32(digits)) if single else float(digits)
        digits = text.rstrip("uUlLzZ")
        if is_hex:
            value = int(digits, 16)
        elif digits[:2] in ("0b", "0B"):
            value = int(digits, 2)
        elif len(digits) > 1 and digits[0] == "0":
            value = int(digits, 8)
        elif len(digits) > 30:
            raise LiteralError(f"{token[:30]}… does not fit into 64 bits", offset)
        else:
            value = int(digits)
    except (ValueError, OverflowError):
        raise LiteralError(f"{token[:40]} is no number", offset) from None
    if value > _UINT64_MAX:
        raise LiteralError(f"{token[:40]} does not fit into 64 bits", offset)
    return value


def _cast(target: str, value: object, offset: int) -> object:
    if target in _FLOAT_TYPES:
        return float(_as_number(value, offset))
    if target in ("bool", "OpBool"):
        return bool(_as_number(value, offset))
    if target in _INTEGER_TYPES:
        number = _as_number(value, offset)
        if isinstance(number, float) and not math.isfinite(number):
            raise LiteralError("an infinite number has no integer value", offset)
        return int(number)
    if target == "DataType":
        return _data_type(value)
    raise LiteralError(f"a cast to {target} is not known here", offset)


def _data_type(value: object) -> DataType:
    if isinstance(value, DataType):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return DataType(value)
        except ValueError:
            pass
    raise LiteralError(f"{value!r} is no ge::DataType")


def _int(value: object) -> int:
    number = _as_number(value, 0)
    if isinstance(number, float):
        if not number.is_integer():
            raise LiteralError(f"{number!r} is no integer")
        number = int(number)
    if not _INT64[0] <= number <= _INT64[1]:
        raise LiteralError(f"{number} does not fit into a signed 64-bit integer")
    return int(number)


def _float(value: object) -> float:
    return float(_as_number(value, 0))


def _bool(value: object) -> bool:
    return bool(_as_number(value, 0))


def _string(value: object) -> str:
    if isinstance(value, str):
        return str(value)
    raise LiteralError(f"a string was expected, not {value!r}")


def _tuple(value: object) -> tuple[object, ...]:
    if isinstance(value, tuple):
        return value
    raise LiteralError(f"a list in braces was expected, not {value!r}")


def _bytes(value: object) -> bytes:
    if isinstance(value, str):
        return value.encode()
    try:
        return bytes(_int(item) for item in _tuple(value))
    except ValueError:
        raise LiteralError("a byte must be from 0 to 255") from None


def _nothing(value: object) -> None:
    if value is not None and value != ():
        raise LiteralError(f"only an empty object can be a default here, not {value!r}")


_SCALARS: dict[AttrType, Callable[[object], AttrValue]] = {
    AttrType.INT: _int,
    AttrType.FLOAT: _float,
    AttrType.BOOL: _bool,
    AttrType.STRING: _string,
    AttrType.TYPE: _data_type,
    AttrType.TENSOR: _nothing,
    AttrType.BYTES: _bytes,
    AttrType.NAMED_ATTRS: _nothing,
}
_ELEMENTS = {
    AttrType.LIST_INT: AttrType.INT,
    AttrType.LIST_FLOAT: AttrType.FLOAT,
    AttrType.LIST_BOOL: AttrType.BOOL,
    AttrType.LIST_STRING: AttrType.STRING,
    AttrType.LIST_TYPE: AttrType.TYPE,
    AttrType.LIST_TENSOR: AttrType.TENSOR,
    AttrType.LIST_LIST_INT: AttrType.LIST_INT,
    AttrType.LIST_LIST_FLOAT: AttrType.LIST_FLOAT,
    AttrType.LIST_NAMED_ATTRS: AttrType.NAMED_ATTRS,
}
_EMPTY: dict[AttrType, AttrValue] = {
    AttrType.INT: 0,
    AttrType.FLOAT: 0.0,
    AttrType.BOOL: False,
    AttrType.STRING: "",
    AttrType.TYPE: DataType.FLOAT,
    AttrType.BYTES: b"",
    AttrType.TENSOR: None,
    AttrType.NAMED_ATTRS: None,
}


def coerce(attr_type: AttrType, value: object) -> AttrValue:
    """``value`` as the attr type has it, by C++'s rules of initialisation.

    Raises:
        LiteralError: the value has no meaning for that type.
    """
    element = _ELEMENTS.get(attr_type)
    if element is not None:
        return tuple(coerce(element, item) for item in _tuple(value))
    if value == () and attr_type in _EMPTY:  # `{}` is the value-initialised object
        return _EMPTY[attr_type]
    if isinstance(value, tuple) and len(value) == 1 and attr_type is not AttrType.BYTES:
        value = value[0]
    return _SCALARS[attr_type](value)


@lru_cache(maxsize=4096)
def _read_default(attr_type: AttrType, text: str) -> AttrValue:
    return coerce(attr_type, _Reader(text).read())


def read_default(attr_type: AttrType, text: str) -> AttrValue:
    """Read the default of an attr.

    >>> read_default(AttrType.FLOAT, "static_cast<float>(0.8)")
    0.8
    >>> read_default(AttrType.LIST_LIST_INT, "{{1, 2}, {}}")
    ((1, 2), ())
    >>> read_default(AttrType.LIST_INT, "ge::UNKNOWN_RANK")
    (-2,)

    Raises:
        LiteralError: the text is no constant, or none of that type.
    """
    if not text.strip():
        element = _ELEMENTS.get(attr_type)
        return () if element is not None else _EMPTY[attr_type]
    return _read_default(attr_type, text)

"""The default of an attr: a C++ constant expression → a Python value of the attr's type.

Only constants are computed, by this module's own reader: nothing from a file is ever evaluated as Python. What C++ makes
of numbers is in ``constants``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes.dtypes import DTYPE_BY_GE_NAME, DTYPE_SYNONYMS, DataType
from ascend_graph.prototypes.model import AttrType, AttrValue
from ascend_graph.sources.constants import (
    BOOL,
    CHAR,
    CPP_TYPES,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    UINT,
    ULONG,
    ConstantError,
    Number,
    binary,
    convert,
    integer_literal,
    round_to_float32,
    type_named,
    unary,
)

#: Brackets nested deeper than this are no default of an attr.
MAX_DEPTH = 32
#: What was read of longer texts is not kept.
_LONGEST_CACHED = 256


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
    | (?P<operator><<|>>|::|[=!<>]=|&&|\|\||[-+*/%|&^~!(){}\[\],<>?:])
    """,
    re.VERBOSE | re.DOTALL,
)

_FLT_MAX, _FLT_MIN = float.fromhex("0x1.fffffep+127"), float.fromhex("0x1p-126")
_DBL_MAX, _DBL_MIN = float.fromhex("0x1.fffffffffffffp+1023"), float.fromhex("0x1p-1022")

_CONSTANTS: dict[str, object] = {
    "true": Number(1, BOOL),
    "false": Number(0, BOOL),
    "True": Number(1, BOOL),
    "False": Number(0, BOOL),
    "nullptr": None,
    "UNKNOWN_DIM": Number(-1, LONG),
    "UNKNOWN_DIM_NUM": Number(-2, LONG),
    "UNKNOWN_SHAPE": (Number(-1, LONG),),
    "UNKNOWN_RANK": (Number(-2, LONG),),
    "DT_MAX": Number(len(DataType) + 1, INT),
    "INFINITY": Number(math.inf, FLOAT),
    "HUGE_VALF": Number(math.inf, FLOAT),
    "HUGE_VAL": Number(math.inf, DOUBLE),
    "NAN": Number(math.nan, FLOAT),
    "FLT_MAX": Number(_FLT_MAX, FLOAT),
    "FLT_MIN": Number(_FLT_MIN, FLOAT),
    "FLT_EPSILON": Number(float.fromhex("0x1p-23"), FLOAT),
    "DBL_MAX": Number(_DBL_MAX, DOUBLE),
    "DBL_MIN": Number(_DBL_MIN, DOUBLE),
    "DBL_EPSILON": Number(float.fromhex("0x1p-52"), DOUBLE),
    **{
        f"{name}_{end}": Number(value, kind)
        for name, kind in (("INT", INT), ("LONG", LONG), ("LLONG", LONG))
        for end, value in (("MIN", kind.lowest), ("MAX", kind.highest))
    },
    **{f"{name}_MAX": Number(kind.highest, kind) for name, kind in (("UINT", UINT), ("ULONG", ULONG), ("SIZE", ULONG))},
    # Of types narrower than int the macros are ints.
    **{f"INT{bits}_MAX": integer_literal(2 ** (bits - 1) - 1, "", decimal=True) for bits in (8, 16, 32, 64)},
    **{f"INT{bits}_MIN": Number(-(2 ** (bits - 1)), INT if bits <= 32 else LONG) for bits in (8, 16, 32, 64)},
    **{f"UINT{bits}_MAX": Number(2**bits - 1, {32: UINT, 64: ULONG}.get(bits, INT)) for bits in (8, 16, 32, 64)},
}
_EMPTY_OBJECTS = frozenset({"Tensor", "OpTensor", "NamedAttrs", "OpNamedAttrs", "GeTensor"})
_TEXT_TYPES = frozenset({"string", "AscendString", "OpString", "OpAscendString", "string_view"})
_VECTOR_TYPES = frozenset({"vector", "Buffer", "OpBytes", "initializer_list"})

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


def _unescape(match: re.Match[str]) -> bytes:
    body = match.group(1)
    if body[0] in "\r\n":
        return b""
    if body[0] in "01234567":
        return bytes([int(body, 8) & 0xFF])
    if body[0] == "x" and len(body) > 1:
        return bytes([int(body[1:][-2:], 16)])
    if body[0] in "uU" and len(body) > 1:
        code = int(body[1:], 16)
        character = chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
    else:
        character = _SIMPLE_ESCAPES.get(body, body)
    return character.encode(errors="surrogatepass")


def unquote(literal: str) -> bytes:
    """The bytes of one C++ string or character literal, in UTF-8 as compilers have it.

    >>> unquote(r'"\\xe4\\xb8\\xad"').decode()
    '中'
    >>> unquote(r'"\\xb"')
    b'\\x0b'
    """
    body = literal[literal.index(literal[-1]) + 1 : -1]
    parts: list[bytes] = []
    end = 0
    for match in _ESCAPE.finditer(body):
        parts += [body[end : match.start()].encode(errors="surrogatepass"), _unescape(match)]
        end = match.end()
    parts.append(body[end:].encode(errors="surrogatepass"))
    return b"".join(parts)


@dataclass(frozen=True, slots=True)
class _Character:
    """A character literal: an integer to C++, but found where strings are meant."""

    text: bytes

    def number(self) -> Number | None:
        return convert(Number(self.text[0], INT), CHAR) if len(self.text) == 1 else None


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

    def expression(self, lowest: int = 0) -> object:
        self.enter()
        value = self.unary()
        while True:
            operator, offset = self.peek(), self.offset()
            strength = _STRENGTH.get(operator, -1)
            if strength < lowest or strength < 0:
                break
            self.index += 1
            if operator == "?":
                value = self.choice(value, offset)
            else:
                value = _binary(operator, value, self.expression(strength + 1), offset)
        self.depth -= 1
        return value

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise LiteralError(f"brackets or operators are nested deeper than {MAX_DEPTH}", self.offset())

    def choice(self, condition: object, offset: int) -> object:
        chosen = self.expression()
        self.take(":")
        other = self.expression()
        return chosen if _as_number(condition, offset).value else other

    def unary(self) -> object:
        signs: list[tuple[str, int]] = []
        while self.peek() in ("-", "+", "~", "!"):
            signs.append((self.peek(), self.offset()))
            self.index += 1
        value = self.primary()
        for sign, offset in reversed(signs):
            value = _defined(offset, unary, sign, _as_number(value, offset))
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
            return b"".join(parts)
        if kind == "character":
            return _Character(unquote(token))
        if kind == "name":
            return self.named(re.sub(r"\s", "", token), offset)
        if token in "{[":
            return self.items("}" if token == "{" else "]")
        if token == "(":
            # (float)0.5 and (unsigned char)0x1ff are casts, (0.5) is not.
            closing = next((i for i in range(self.index, len(self.tokens)) if self.tokens[i][0] != "name"), self.index)
            words = " ".join(token for _, token, _ in self.tokens[self.index : closing])
            if closing < len(self.tokens) and self.tokens[closing][1] == ")" and type_named(words) is not None:
                self.index = closing + 1
                self.enter()
                value = _cast(words, self.unary(), offset)
                self.depth -= 1
                return value
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
            return _cast(target, value, offset)
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
            return values[0] if values else b""
        if name in _VECTOR_TYPES or name.startswith("OpList"):
            if opening == "(" and len(values) == 1 and isinstance(values[0], tuple):
                return values[0]
            if opening == "{" or not values:
                return values
        if name in CPP_TYPES and len(values) <= 1:
            return _cast(name, values[0], offset) if values else Number(0, CPP_TYPES[name])
        raise LiteralError(
            f"{name}{opening}…{')' if opening == '(' else '}'} is no constant that is known here", offset
        )

    def limit(self, offset: int) -> object:
        target = self.template_argument()
        self.take("::")
        which = self.peek()
        self.index += 1
        self.take("(")
        self.take(")")
        kind = type_named(target)
        if kind is FLOAT or kind is DOUBLE:
            highest, least = (_FLT_MAX, _FLT_MIN) if kind is FLOAT else (_DBL_MAX, _DBL_MIN)
            values: dict[str, float] = {
                "max": highest, "min": least, "lowest": -highest, "infinity": math.inf, "quiet_NaN": math.nan,
                "epsilon": 2.0**-23 if kind is FLOAT else 2.0**-52,
            }  # fmt: skip
        else:
            values = {} if kind is None else {"max": kind.highest, "min": kind.lowest, "lowest": kind.lowest}
        if kind is None or which not in values:
            raise LiteralError(f"numeric_limits<{target}>::{which}() is not known here", offset)
        return Number(values[which], kind)


_LEVELS = ("?", "||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %")
_STRENGTH = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators.split()}


def _as_number(value: object, offset: int) -> Number:
    if isinstance(value, Number):
        return value
    if isinstance(value, _Character):
        number = value.number()
        if number is not None:
            return number
    if isinstance(value, DataType):
        return Number(int(value), INT)
    raise LiteralError("a number was expected here", offset)


def _defined(offset: int, operation: Callable[..., Number], *operands: object) -> Number:
    """The result of an operation, its failure as one at this place."""
    try:
        return operation(*operands)
    except ConstantError as error:
        raise LiteralError(str(error), offset) from None


def _binary(operator: str, left_operand: object, right_operand: object, offset: int) -> object:
    left, right = _as_number(left_operand, offset), _as_number(right_operand, offset)
    if operator in ("&&", "||"):
        both, either = left.value and right.value, left.value or right.value
        return Number(int(bool(both if operator == "&&" else either)), BOOL)
    return _defined(offset, binary, operator, left, right)


_FLOATING = re.compile(r"0[xX][^pP]*[.pP]|(?!0[xXbB])(?:[^.eE]*[.eE]|[^.]*[fF]\Z)")
_SUFFIX = re.compile(r"[uUlLzZ]*\Z")


def _number(token: str, offset: int) -> Number:
    text = token.replace("'", "")
    try:
        if _FLOATING.match(text):
            is_hex = text[:2] in ("0x", "0X")
            digits = text.rstrip("fFlL")
            if is_hex:
                return Number(float.fromhex(digits), FLOAT if text[-1] in "fF" else DOUBLE)
            return Number(round_to_float32(digits), FLOAT) if text[-1] in "fF" else Number(float(digits), DOUBLE)
        suffix = _SUFFIX.search(text).group()  # type: ignore[union-attr]  # it matches the empty end
        digits = text[: len(text) - len(suffix)]
        if len(digits) > 80:
            raise LiteralError(f"{token[:30]}… does not fit into 64 bits", offset)
        base = {"0x": 16, "0b": 2}.get(digits[:2].lower(), 8 if digits[0] == "0" and len(digits) > 1 else 10)
        return integer_literal(int(digits, base), suffix, decimal=base == 10)
    except (ValueError, OverflowError):
        raise LiteralError(f"{token[:40]} is no number", offset) from None
    except ConstantError as error:
        raise LiteralError(str(error), offset) from None


def _cast(target: str, value: object, offset: int) -> object:
    kind = type_named(target)
    if kind is not None:
        return _defined(offset, convert, _as_number(value, offset), kind)
    if target.rpartition("::")[2] == "DataType":
        return _data_type(value)
    raise LiteralError(f"a cast to {target} is not known here", offset)


def _data_type(value: object) -> DataType:
    if isinstance(value, DataType):
        return value
    if isinstance(value, Number) and isinstance(value.value, int) and value.type is not BOOL:
        try:
            return DataType(value.value)
        except ValueError:
            pass
    raise LiteralError(f"{_shown(value)} is no ge::DataType")


def _shown(value: object) -> str:
    if isinstance(value, Number):
        return repr(value.value)
    return repr(value.text if isinstance(value, _Character) else value)


def _int(value: object) -> int:
    number = _as_number(value, 0)
    if isinstance(number.value, float) and not number.value.is_integer():
        raise LiteralError(f"{number.value!r} is no integer")
    return int(_defined(0, convert, number, LONG).value)


def _float(value: object) -> float:
    return float(_as_number(value, 0).value)


def _bool(value: object) -> bool:
    return bool(_as_number(value, 0).value)


def _string(value: object) -> str:
    text = value.text if isinstance(value, _Character) else value
    if not isinstance(text, bytes):
        raise LiteralError(f"a string was expected, not {_shown(value)}")
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise LiteralError(f"the string {text[:40]!r} is no UTF-8") from None


def _tuple(value: object) -> tuple[object, ...]:
    if isinstance(value, tuple):
        return value
    raise LiteralError(f"a list in braces was expected, not {_shown(value)}")


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return bytes(_int(item) for item in _tuple(value))
    except ValueError:
        raise LiteralError("a byte must be from 0 to 255") from None


def _nothing(value: object) -> None:
    if value is not None and value != ():
        raise LiteralError(f"only an empty object can be a default here, not {_shown(value)}")


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


def _read(attr_type: AttrType, text: str) -> AttrValue:
    return coerce(attr_type, _Reader(text).read())


_read_cached = lru_cache(maxsize=4096)(_read)


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
    return _read_cached(attr_type, text) if len(text) <= _LONGEST_CACHED else _read(attr_type, text)

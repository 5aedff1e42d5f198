"""Reader of C++ default expressions as Python values."""

from __future__ import annotations

import math
import re

from ascend_graph.prototypes.dtypes import DTYPE_BY_GE_NAME, DTYPE_SYNONYMS, DataType
from ascend_graph.prototypes.literal_values import (
    DBL_MAX,
    DBL_MIN,
    FLT_MAX,
    FLT_MIN,
    Character,
    LiteralError,
    apply_binary,
    as_number,
    cast_value,
    parse_number,
    require_value,
    unquote,
)
from ascend_graph.sources.constants import (
    BOOL,
    CPP_TYPES,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    UINT,
    ULONG,
    Number,
    integer_literal,
    type_named,
    unary,
)

#: Maximum nesting of brackets in the default of an attr.
MAX_DEPTH = 32


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
    "FLT_MAX": Number(FLT_MAX, FLOAT),
    "FLT_MIN": Number(FLT_MIN, FLOAT),
    "FLT_EPSILON": Number(float.fromhex("0x1p-23"), FLOAT),
    "DBL_MAX": Number(DBL_MAX, DOUBLE),
    "DBL_MIN": Number(DBL_MIN, DOUBLE),
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


class LiteralReader:
    """A recursive-descent reader of constant expressions."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str, int]] = []
        self.index = 0
        self.depth = 0
        offset = 0
        while offset < len(text):
            match = _TOKEN.match(text, offset)
            if match is None:
                raise LiteralError(f"{text[offset]!r} was not understood; write a literal", offset)
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
                value = apply_binary(operator, value, self.expression(strength + 1), offset)
        self.depth -= 1
        return value

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise LiteralError(
                f"brackets or operators are nested deeper than {MAX_DEPTH}; simplify the expression", self.offset()
            )

    def choice(self, condition: object, offset: int) -> object:
        chosen = self.expression()
        self.take(":")
        other = self.expression()
        return chosen if as_number(condition, offset).value else other

    def unary(self) -> object:
        signs: list[tuple[str, int]] = []
        while self.peek() in ("-", "+", "~", "!"):
            signs.append((self.peek(), self.offset()))
            self.index += 1
        value = self.primary()
        for sign, offset in reversed(signs):
            value = require_value(offset, unary, sign, as_number(value, offset))
        return value

    def primary(self) -> object:
        if self.index >= len(self.tokens):
            raise LiteralError("the expression ends too early; expected a value", self.end)
        kind, token, offset = self.tokens[self.index]
        self.index += 1
        if kind == "number":
            return parse_number(token, offset)
        if kind == "string":
            parts = [unquote(token)]
            while self.index < len(self.tokens) and self.tokens[self.index][0] == "string":
                parts.append(unquote(self.tokens[self.index][1]))
                self.index += 1
            return b"".join(parts)
        if kind == "character":
            return Character(unquote(token))
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
                value = cast_value(words, self.unary(), offset)
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
            return cast_value(target, value, offset)
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
        raise LiteralError(f"{qualified} is not a constant that is known here", offset)

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
            return cast_value(name, values[0], offset) if values else Number(0, CPP_TYPES[name])
        raise LiteralError(
            f"{name}{opening}…{')' if opening == '(' else '}'} is not a constant that is known here", offset
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
            highest, least = (FLT_MAX, FLT_MIN) if kind is FLOAT else (DBL_MAX, DBL_MIN)
            values: dict[str, float] = {
                "max": highest, "min": least, "lowest": -highest, "infinity": math.inf, "quiet_NaN": math.nan,
                "epsilon": 2.0**-23 if kind is FLOAT else 2.0**-52,
            }  # fmt: skip
        else:
            values = {} if kind is None else {"max": kind.highest, "min": kind.lowest, "lowest": kind.lowest}
        if kind is None or which not in values:
            raise LiteralError(f"numeric_limits<{target}>::{which}() is not known here; write the number", offset)
        return Number(values[which], kind)


_LEVELS = ("?", "||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %")


_STRENGTH = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators.split()}

"""Values of C++ expressions: numbers, characters, casts and operations on them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes.dtypes import DataType
from ascend_graph.sources.constants import (
    BOOL,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    ConstantError,
    Number,
    binary,
    convert,
    integer_literal,
    round_to_float32,
    type_named,
)


class LiteralError(AscendGraphError):
    """An expression that is not a known constant; ``offset`` is the position in its text."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


FLT_MAX, FLT_MIN = float.fromhex("0x1.fffffep+127"), float.fromhex("0x1p-126")


DBL_MAX, DBL_MIN = float.fromhex("0x1.fffffffffffffp+1023"), float.fromhex("0x1p-1022")


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
    """Return the bytes of one C++ string or character literal, in UTF-8 like compilers.

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
class Character:
    """A character literal: an integer to C++, but headers also use it for a string."""

    text: bytes

    def number(self) -> Number | None:
        return convert(Number(self.text[0], INT), CHAR) if len(self.text) == 1 else None


def as_number(value: object, offset: int) -> Number:
    if isinstance(value, Number):
        return value
    if isinstance(value, Character):
        number = value.number()
        if number is not None:
            return number
    if isinstance(value, DataType):
        return Number(int(value), INT)
    raise LiteralError("a number was expected here", offset)


def require_value(offset: int, operation: Callable[..., Number], *operands: object) -> Number:
    """Run an operation; turn its ``ConstantError`` into a ``LiteralError`` at ``offset``."""
    try:
        return operation(*operands)
    except ConstantError as error:
        raise LiteralError(str(error), offset) from None


def apply_binary(operator: str, left_operand: object, right_operand: object, offset: int) -> object:
    left, right = as_number(left_operand, offset), as_number(right_operand, offset)
    if operator in ("&&", "||"):
        both, either = left.value and right.value, left.value or right.value
        return Number(int(bool(both if operator == "&&" else either)), BOOL)
    return require_value(offset, binary, operator, left, right)


_FLOATING = re.compile(r"0[xX][^pP]*[.pP]|(?!0[xXbB])(?:[^.eE]*[.eE]|[^.]*[fF]\Z)")


_SUFFIX = re.compile(r"[uUlLzZ]*\Z")


def parse_number(token: str, offset: int) -> Number:
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
            raise LiteralError(f"{token[:30]}… does not fit into 64 bits; write a smaller number", offset)
        base = {"0x": 16, "0b": 2}.get(digits[:2].lower(), 8 if digits[0] == "0" and len(digits) > 1 else 10)
        return integer_literal(int(digits, base), suffix, decimal=base == 10)
    except (ValueError, OverflowError):
        raise LiteralError(f"{token[:40]} is not a number; write one", offset) from None
    except ConstantError as error:
        raise LiteralError(str(error), offset) from None


def cast_value(target: str, value: object, offset: int) -> object:
    kind = type_named(target)
    if kind is not None:
        return require_value(offset, convert, as_number(value, offset), kind)
    if target.rpartition("::")[2] == "DataType":
        return data_type_of(value)
    raise LiteralError(f"a cast to {target} is not known here; write the value without it", offset)


def data_type_of(value: object) -> DataType:
    if isinstance(value, DataType):
        return value
    if isinstance(value, Number) and isinstance(value.value, int) and value.type is not BOOL:
        try:
            return DataType(value.value)
        except ValueError:
            pass
    raise LiteralError(f"{shown(value)} is not a ge::DataType; write one, such as DT_FLOAT")


def shown(value: object) -> str:
    if isinstance(value, Number):
        return repr(value.value)
    return repr(value.text if isinstance(value, Character) else value)

"""Three-valued evaluation of ``#if`` conditions: true, false or undecided.

A header is read alone, so a name that it does not define may be defined by whoever includes it. Such a condition is
undecided; ``as_alone`` is the result that a compiler gets from this header and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ascend_graph.sources.constants import LONG, ULONG, ConstantError, Number, binary, integer_literal, unary
from ascend_graph.sources.constants import convert as converted

#: Conditions nested deeper than this, or with more tokens (those of their macros included), are undecided.
MAX_DEPTH = 32
MAX_WORDS = 2048

_TOKEN = re.compile(
    r"(?P<number>(?:0[xX][0-9a-fA-F']+|0[bB][01']+|\d[\d']*))(?P<suffix>[uUlLzZ]*)(?![\w.])"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<operator><<|>>|[=!<>]=|&&|\|\||[-+*/%|&^~!()<>?:,])|(?P<space>\s+)|(?P<other>.)",
    re.DOTALL,
)
_LEVELS = ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %")
_STRENGTH = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators.split()}

#: The text a macro stands for; "" if it is defined as nothing, False if it is known to be undefined, and None if the
#: name is unknown.
Lookup = Callable[[str], "str | bool | None"]


@dataclass(frozen=True, slots=True)
class Condition:
    """The value of an ``#if``; ``decided`` is None if it depends on something outside the file."""

    decided: bool | None
    #: The value with every unknown name undefined.
    as_alone: bool


ALWAYS = Condition(True, True)
_LITERALS = {"0": Condition(False, False), "1": ALWAYS, "false": Condition(False, False), "true": ALWAYS}


def defined(name: str, lookup: Lookup) -> Condition:
    """Evaluate ``#ifdef name``."""
    found = lookup(name)
    return Condition(None if found is None else found is not False, found is not None and found is not False)


def opposite(condition: Condition) -> Condition:
    """Return the ``#ifndef`` condition for an ``#ifdef`` condition."""
    return Condition(None if condition.decided is None else not condition.decided, not condition.as_alone)


def evaluate(text: str, lookup: Lookup) -> Condition:
    """Evaluate ``#if text``.

    >>> nothing = lambda name: None
    >>> evaluate("!1 || (0u)", nothing).decided, evaluate("defined(A) && 0", nothing).decided
    (False, False)
    >>> evaluate("defined(A) || B > 2", nothing)
    Condition(decided=None, as_alone=False)
    """
    if text in _LITERALS:
        return _LITERALS[text]
    if text.isidentifier() and lookup(text) is None:
        return Condition(None, False)
    values = []
    for alone in (False, True):
        try:
            value = _Reader(text, lookup, alone, [MAX_WORDS]).read()
        except (_UndecidedError, ConstantError):
            value = None
        values.append(None if value is None else bool(value.value))
    return Condition(values[0], bool(values[1]))


class _UndecidedError(Exception):
    """A condition that cannot be computed."""


class _Reader:
    """A recursive-descent reader; an unknown value is None."""

    def __init__(self, text: str, lookup: Lookup, alone: bool, words: list[int], depth: int = 0) -> None:
        self.tokens: list[re.Match[str]] = []
        for match in _TOKEN.finditer(text):
            if words[0] <= 0:
                raise _UndecidedError
            if match.lastgroup != "space":
                self.tokens.append(match)
                words[0] -= 1
        self.words = words
        self.index = 0
        self.lookup = lookup
        self.alone = alone
        self.depth = depth

    def read(self) -> Number | None:
        value = self.expression(0)
        if self.index < len(self.tokens):
            raise _UndecidedError
        return value

    def peek(self) -> str:
        return self.tokens[self.index].group() if self.index < len(self.tokens) else ""

    def take(self, expected: str) -> None:
        if self.peek() != expected:
            raise _UndecidedError
        self.index += 1

    def expression(self, lowest: int) -> Number | None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _UndecidedError
        value = self.operand()
        while True:
            operator = self.peek()
            if operator == "?" and lowest == 0:
                self.index += 1
                chosen = self.expression(0)
                self.take(":")
                other = self.expression(0)
                value = None if value is None else chosen if value.value else other
                continue
            strength = _STRENGTH.get(operator, -1)
            if strength < lowest:
                break
            self.index += 1
            value = _combined(operator, value, self.expression(strength + 1))
        self.depth -= 1
        return value

    def operand(self) -> Number | None:
        signs = []
        while self.peek() in ("!", "-", "+", "~"):
            signs.append(self.peek())
            self.index += 1
        value = self.primary()
        for sign in reversed(signs):
            value = None if value is None else _wide(unary(sign, value))
        return value

    def primary(self) -> Number | None:
        if self.index >= len(self.tokens):
            raise _UndecidedError
        token = self.tokens[self.index]
        self.index += 1
        if token.lastgroup == "suffix":
            digits = token["number"].replace("'", "")
            base = {"0x": 16, "0b": 2}.get(digits[:2].lower(), 8 if digits[0] == "0" else 10)
            try:
                return _wide(integer_literal(int(digits, base), token["suffix"], decimal=base == 10))
            except ValueError:
                raise _UndecidedError from None
        if token.group() == "(":
            value = self.expression(0)
            self.take(")")
            return value
        if token.lastgroup == "name":
            return self.name(token.group())
        raise _UndecidedError

    def name(self, name: str) -> Number | None:
        if name == "defined":
            brackets = self.peek() == "("
            self.index += brackets
            asked = self.peek()
            self.index += 1
            if brackets:
                self.take(")")
            found = self.lookup(asked)
            if found is None and not self.alone:
                return None
            return Number(int(found is not None and found is not False), LONG)
        if name in ("true", "false"):
            return Number(int(name == "true"), LONG)
        is_call = self.peek() == "("
        if is_call:
            self.skip_call()
        body = self.lookup(name)
        if body is None or body is False or is_call:
            return None if (body is None or is_call) and not self.alone else Number(0, LONG)
        if self.depth >= MAX_DEPTH:
            raise _UndecidedError
        return _Reader(str(body), self.lookup, self.alone, self.words, self.depth + 1).read()

    def skip_call(self) -> None:
        depth = 0
        while self.index < len(self.tokens):
            token = self.peek()
            self.index += 1
            depth += (token == "(") - (token == ")")
            if depth == 0:
                return
        raise _UndecidedError


def _wide(number: Number) -> Number:
    """Convert a number to the widest type of its signedness, as the preprocessor does."""
    return converted(number, LONG if number.type.signed else ULONG)


def _combined(operator: str, left: Number | None, right: Number | None) -> Number | None:
    if operator in ("&&", "||"):
        decisive = operator == "||"  # one true side decides ||, one false side &&
        if any(side is not None and bool(side.value) is decisive for side in (left, right)):
            return Number(int(decisive), LONG)
        return None if left is None or right is None else Number(int(not decisive), LONG)
    return None if left is None or right is None else _wide(binary(operator, left, right))

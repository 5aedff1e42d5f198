"""Tokens of a relation's text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ascend_graph.shapes.errors import RelationError
from ascend_graph.shapes.parsing.grammar import KEYWORDS
from ascend_graph.shapes.parsing.hints import hint

MAX_LENGTH = 16384


MAX_INTEGER = 2**63 - 1


_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
      | (?P<integer>[0-9][0-9_]*)
      | (?P<name>[^\W\d]\w*)
      | (?P<string>"(?:[^"\\\n]|\\["\\])*"|'(?:[^'\\\n]|\\['\\])*')
      | (?P<symbol>->|\.\.\.|//|==|!=|<=|>=|[][(){},:@*+\-%<>=])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    at: int


def tokens_of(source: str) -> list[Token]:
    if len(source) > MAX_LENGTH:
        raise RelationError(f"a shape relation may have {MAX_LENGTH} characters, this one has {len(source)}")
    found: list[Token] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise RelationError(
                f"{source[at]!r} does not belong to the language of shape relations{hint(source, at) or '; leave it out'}",
                source,
                at,
            )
        kind = match.lastgroup or ""
        if kind == "integer":
            _check_integer(match.group(), source, at)
        if kind != "space":
            text = match.group()
            found.append(Token("keyword" if text in KEYWORDS else kind, text, at))
        at = match.end()
    found.append(Token("end", "the end", len(source)))
    return found


def _check_integer(text: str, source: str, at: int) -> None:
    if not re.fullmatch(r"[0-9]+(?:_[0-9]+)*", text):
        raise RelationError(f"{text[:40]} is not an integer: '_' may stand only between digits", source, at)
    if len(text.replace("_", "").lstrip("0")) > 19 or int(text) > MAX_INTEGER:
        raise RelationError(f"an integer is at most 2**63 - 1, got {text[:40]}", source, at)

"""Structures of a C++ file, as far as functions assign their members one by one."""

from __future__ import annotations

import ast
import re

from ascend_graph.adoption.cpp.expressions import DEFAULT, RECORD, STRUCTURE, expression
from ascend_graph.adoption.cpp.functions import close_of, split

_STRUCT = re.compile(r"\bstruct\s+(?P<name>[A-Za-z_]\w*)\s*\{")
_MEMBER = re.compile(
    r"(?P<type>(?:const\s+)?[A-Za-z_][\w:]*(?:\s*<[\w:,<>\s*]*>)?)\s+(?P<name>[A-Za-z_]\w*)"
    r"\s*(?:=(?P<value>.+)|\{(?P<braced>.*)\})?",
    re.DOTALL,
)
_LONGEST = 4000


def structures(code: str) -> dict[str, ast.expr]:
    """Return the structures of a file that have members alone, each as a call with what their members are at first."""
    found: dict[str, list[ast.expr]] = {}
    for match in _STRUCT.finditer(code):
        close = close_of(code, match.end() - 1)
        body = code[match.end() : close] if 0 < close - match.end() <= _LONGEST else ""
        members = _members(body)
        if members:
            found.setdefault(STRUCTURE + match["name"], []).append(ast.Call(ast.Name(RECORD), [], members))
    return {name: given[0] for name, given in found.items() if len({ast.dump(one) for one in given}) == 1}


def _members(body: str) -> list[ast.keyword]:
    """Return the members with their values; none if there is a method, or a part that is not understood."""
    found = []
    for part in split(body, ";"):
        if not part.strip():
            continue
        member = _MEMBER.fullmatch(part.strip())
        if member is None:
            return []
        value: ast.expr = ast.Call(ast.Name(DEFAULT), [ast.Constant(member["type"])], [])
        if member["value"] or (member["braced"] or "").strip():
            value = expression(member["value"] or member["braced"])
        elif member["braced"] is not None:
            value = ast.Constant(0)
        found.append(ast.keyword(member["name"], value))
    return found

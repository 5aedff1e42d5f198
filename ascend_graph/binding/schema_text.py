"""Reader of torch schemas as text, without torch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from ascend_graph.binding.op_schema import ArgumentKind, OpSchema, SchemaArgument, SchemaReturn
from ascend_graph.errors import AscendGraphError

#: Maximum length of a schema; the longest of PyTorch has about 1,500 characters.
MAX_SCHEMA = 65536

_NAME = re.compile(
    r"\s*(?:(?P<namespace>[A-Za-z_]\w*)\s*::\s*)?(?P<name>[A-Za-z_]\w*)(?:\s*\.\s*(?P<overload>\w+))?\s*"
)
_TYPE = re.compile(r"\s*(?P<base>[A-Za-z_][\w.]*)\s*(?P<alias>\([^()]*\)|!)?\s*(?P<rest>(?:\?|\[\s*\d*\s*\]|\s)*)")
_ALIAS = re.compile(r"\(\s*(?P<sets>[\w|*\s]*?)\s*(?P<write>!)?\s*(?:->[^()]*)?\)")
_KINDS = {kind.value: kind for kind in ArgumentKind} | {"number": ArgumentKind.SCALAR, "SymInt": ArgumentKind.INT}


class SchemaTextError(AscendGraphError, ValueError):
    """Text that is not a torch schema."""


def parse_schema(text: str, namespace: str = "") -> OpSchema:
    """Return a schema, as ``torch.library.Library.define`` takes it, as a value.

    Args:
        text: The schema, with or without a namespace.
        namespace: The namespace of a name that has none.

    Raises:
        SchemaTextError: The text is not a schema; the message shows where.

    >>> schema = parse_schema("scale(Tensor(a!) x, *, float by=2.0) -> Tensor(a!)", "mine")
    >>> schema.qualified_name, [(a.name, a.type_text, a.default) for a in schema.arguments]
    ('mine::scale', [('x', 'Tensor(a!)', None), ('by', 'float', 2.0)])
    >>> schema.returns[0].alias_of
    'x'
    """
    if len(text) > MAX_SCHEMA:
        raise SchemaTextError(f"schema: {len(text):,} characters; expected at most {MAX_SCHEMA:,}")
    head = _NAME.match(text)
    if head is None or not text.startswith("(", head.end()):
        raise SchemaTextError(f"schema {_shown(text)}: expected name(arguments) -> returns")
    close = _closing(text, head.end())
    arguments = tuple(_arguments(text[head.end() + 1 : close], text))
    owners = dict(_aliases(text[head.end() + 1 : close], arguments))
    tail = text[close + 1 :].strip()
    if not tail.startswith("->"):
        raise SchemaTextError(f"schema {_shown(text)}: expected -> and the returns after the arguments")
    returns = tuple(_returns(tail[2:].strip(), owners, text))
    space = head["namespace"] or namespace
    name = f"{space}::{head['name']}" if space else head["name"]
    overload = head["overload"] or ""
    return OpSchema(name, "" if overload == "default" else overload, arguments, returns, " ".join(text.split()))


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= 80 else text[:79] + "…")


def _outside_strings(text: str, start: int = 0) -> Iterator[tuple[int, str, int]]:
    """Yield position, character and the number of open brackets after it, of what is in no string."""
    depth, quote = 0, ""
    for position in range(start, len(text)):
        character = text[position]
        if quote:
            quote = "" if character == quote and text[position - 1] != "\\" else quote
        elif character in "\"'":
            quote = character
        else:
            depth += (character in "([") - (character in ")]")
            yield position, character, depth


def _closing(text: str, start: int) -> int:
    for position, character, depth in _outside_strings(text, start):
        if character in ")]" and depth == 0:
            return position
    raise SchemaTextError(f"schema {_shown(text)}: expected ')' for the '(' at character {start + 1}")


def _pieces(text: str) -> Iterator[str]:
    """Yield the parts between commas that are in no bracket and no string."""
    start = 0
    for position, character, depth in _outside_strings(text):
        if character == "," and depth == 0:
            yield text[start:position].strip()
            start = position + 1
    if text[start:].strip():
        yield text[start:].strip()


def _type(text: str, whole: str) -> tuple[ArgumentKind, int, bool, bool, str, bool, str]:
    match = _TYPE.match(text)
    if match is None:
        raise SchemaTextError(f"schema {_shown(whole)}: {text.strip()!r} must begin with a type, such as Tensor x")
    optional, depth, optional_elements = False, 0, False
    for mark in re.findall(r"\?|\[\s*\d*\s*\]", match["rest"]):
        if mark == "?":
            optional = True
        else:
            depth += 1
            optional_elements |= optional
            optional = False
    alias = match["alias"] or ""
    found = _ALIAS.fullmatch(alias)
    sets, write = (found["sets"], bool(found["write"])) if found else ("", alias == "!")
    kind = _KINDS.get(match["base"], ArgumentKind.OTHER)
    return kind, depth, optional, optional_elements, sets.strip(), write, text[match.end() :].strip()


def _arguments(text: str, whole: str) -> Iterator[SchemaArgument]:
    kwarg_only = False
    names = set()
    for piece in _pieces(text):
        if piece == "*":
            kwarg_only = True
            continue
        kind, depth, optional, elements, _, write, rest = _type(piece, whole)
        name, equals, default = (part.strip() for part in rest.partition("="))
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or (equals and not default):
            raise SchemaTextError(f"schema {_shown(whole)}: {piece!r} is not an argument; expected type name[=default]")
        if name in names:
            raise SchemaTextError(f"schema {_shown(whole)}: two arguments are called {name}; rename one")
        names.add(name)
        value = _default(default) if equals else None
        value = float(value) if kind is ArgumentKind.FLOAT and type(value) is int else value
        yield SchemaArgument(name, kind, depth, optional, bool(equals), value, kwarg_only, write, elements)


def _default(text: str) -> Any:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text  # the name of a reduction, a layout or a dtype
    return tuple(value) if isinstance(value, list) else value


def _aliases(text: str, arguments: tuple[SchemaArgument, ...]) -> Iterator[tuple[str, str]]:
    pieces = [piece for piece in _pieces(text) if piece != "*"]
    for piece, argument in zip(pieces, arguments, strict=True):
        for one in _type(piece, text)[4].split("|"):
            if one.strip() and one.strip() != "*":
                yield one.strip(), argument.name


def _returns(text: str, owners: dict[str, str], whole: str) -> Iterator[SchemaReturn]:
    if text.startswith("("):
        close = _closing(text, 0)
        if text[close + 1 :].strip():
            raise SchemaTextError(f"schema {_shown(whole)}: {text[close + 1 :].strip()!r} after the returns; remove it")
        text = text[1:close]
    elif not text:
        raise SchemaTextError(f"schema {_shown(whole)}: expected the returns after ->, or ()")
    for piece in _pieces(text):
        kind, depth, _, _, sets, _, name = _type(piece, whole)
        if name and not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise SchemaTextError(f"schema {_shown(whole)}: {piece!r} is not a return; expected type [name]")
        owner = next((owners[one.strip()] for one in sets.split("|") if one.strip() in owners), None)
        yield SchemaReturn(name, kind, depth, owner)

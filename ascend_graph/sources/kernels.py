"""Ascend C kernels in preprocessed text: the functions marked ``__global__``, and the helpers to find them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

#: Definition of ``__global__`` while a source is preprocessed, so that kernels can be found in the result.
GLOBAL_MARK = "__ascendc_global__"

# Literals are matched so that what is inside them is not looked at.
LITERAL = (
    r'R"(?P<raw>[^()\\\s]{0,16})\((?:.|\n)*?\)(?P=raw)"|"(?:\\(?:.|\n)|[^"\\\n])*"|\b\d[\w\']*|\'(?:\\.|[^\'\\\n])+\''
)
_MARKED = re.compile(LITERAL + rf"|(?P<open>[{{}}])|(?P<namespace>\bnamespace\b)|(?P<mark>\b{GLOBAL_MARK}\b)")
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")
_OPENING, _CLOSING = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class SourceParameter:
    """A kernel's parameter: its type as written and its name."""

    type: str
    name: str

    @property
    def is_pointer(self) -> bool:
        """True if the parameter is a pointer."""
        return self.type.endswith("*")

    @property
    def is_number(self) -> bool:
        """True if the parameter is a number passed by value."""
        return all(word in _NUMBERS for word in self.type.replace("const", "").split())


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function marked ``__global__``: its name with its namespaces, and its parameters."""

    name: str
    namespace: str
    parameters: tuple[SourceParameter, ...]


_NUMBERS = frozenset(
    {
        "bool",
        "char",
        "short",
        "int",
        "long",
        "unsigned",
        "signed",
        "float",
        "double",
        "size_t",
        "half",
        "int8_t",
        "int16_t",
        "int32_t",
        "int64_t",
        "uint8_t",
        "uint16_t",
        "uint32_t",
        "uint64_t",
    }
)


def matching(text: str, start: int, stop: str) -> int:
    """Return the position of ``stop`` at bracket depth 0 from ``start`` on, or -1."""
    depth = 0
    position = start
    while position < len(text):
        literal = re.compile(LITERAL).match(text, position)
        if literal:
            position = literal.end()
            continue
        if depth == 0 and text.startswith(stop, position):
            return position
        if text[position] in _OPENING:
            depth += 1
        elif text[position] in _CLOSING:
            depth -= 1
            if depth < 0:
                return -1
        position += 1
    return -1


def skip_attributes(text: str, position: int) -> int:
    """Return the position after the attributes that begin at ``position``."""
    attribute = re.compile(r"\s*(?:__attribute__\s*\(|(\[\[.*?\]\]))")
    while (match := attribute.match(text, position)) is not None:
        end = match.end() if match[1] else matching(text, match.end(), ")") + 1
        if end == 0:
            break
        position = end
    return position


def split_at_commas(text: str) -> list[str]:
    """Split a list of C++ parameters or arguments at its own commas.

    >>> split_at_commas("int a, pair<int, int> b")
    ['int a', ' pair<int, int> b']
    """
    depth = start = 0
    pieces = []
    for position, character in enumerate(text):
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth == 0:
            pieces.append(text[start:position])
            start = position + 1
    return [*pieces, text[start:]]


def _parameters(text: str) -> Iterator[SourceParameter]:
    for index, piece in enumerate(split_at_commas(text)):
        words = " ".join(_ATTRIBUTE.sub(" ", piece.partition("=")[0]).replace("*", " * ").split())
        if words in ("", "void"):
            continue
        match = re.fullmatch(r"(?P<type>.*[\s*&>])(?P<name>[A-Za-z_]\w*)", words)
        unnamed = match is None or match["name"] in _NUMBERS
        kind = words if unnamed or match is None else match["type"].strip()
        name = f"argument{index}" if unnamed or match is None else match["name"]
        yield SourceParameter(kind.replace(" *", "*"), name)


def find_kernels(text: str, *, templates: bool = False) -> tuple[Kernel, ...]:
    """Return the kernels defined in preprocessed ``text``, with ``templates`` those that are function templates, too.

    >>> find_kernels('extern "C" __ascendc_global__ void add(uint8_t * x, uint32_t n) {}')[0].parameters
    (SourceParameter(type='uint8_t*', name='x'), SourceParameter(type='uint32_t', name='n'))
    """
    kernels: list[Kernel] = []
    namespaces: list[str | None] = []  # one entry for every open brace
    opened: str | None = None
    for found in _MARKED.finditer(text):
        if found["namespace"]:
            named = re.compile(r"namespace\s+([\w:]+)\s*\{").match(text, found.start())
            opened = named[1] if named else None
        elif found["open"] == "{":
            namespaces.append(opened)
            opened = None
        elif found["open"] == "}":
            if namespaces:
                namespaces.pop()
        elif found["mark"]:
            start = max(text.rfind(stop, 0, found.start()) for stop in (";", "}", "{")) + 1
            head = re.sub(r"^#.*$", "", text[start : found.start()], flags=re.MULTILINE)
            match = re.compile(r"[^(){};]*?\b(\w+)\s*\(").match(text, skip_attributes(text, found.end()))
            if match is None or (not templates and re.search(r"\btemplate\s*<", head)):
                continue
            close = matching(text, match.end(), ")")
            if close < 0 or text[close + 1 :].lstrip()[:1] != "{":
                continue  # a declaration
            namespace = "::".join(name for name in namespaces if name)
            kernels.append(Kernel(match[1], namespace, tuple(_parameters(text[match.end() : close]))))
    return tuple(kernels)

"""Macros that contain REG_OP, or calls of one, replaced by what they stand for.

Some headers define many ops of one form by a macro of their own. Only such macros are replaced, those used in types and
defaults are looked up where they occur: so the code of nearly every file stays as it is.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass

#: Macros may name each other this often in a row.
MAX_DEPTH = 8
#: A file may grow this much; what is beyond it is not replaced.
MAX_GROWTH = 4 * 1024 * 1024

_BRACKET = re.compile(r"""[(),]|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'""", re.DOTALL)
_OPENING = re.compile(r"\s*\(")
_BODY_TOKEN = re.compile(r'\s*##\s*|#\s*(?P<text>[A-Za-z_]\w*)|[A-Za-z_]\w*|"[^"\\\n]*(?:\\.[^"\\\n]*)*"', re.DOTALL)
_DEFINES_OPS = re.compile(r"\bREG_OP\b|\bOP_END_FACTORY_REG\b|\A\s*\.\s*[A-Z_]+\s*\(")


@dataclass(frozen=True, slots=True)
class Macro:
    """One ``#define``, in force from ``offset`` on; ``parameters`` is None for a macro without arguments."""

    offset: int
    parameters: tuple[str, ...] | None
    body: str

    @property
    def defines_ops(self) -> bool:
        """Whether the body holds a REG_OP or calls of one."""
        return _DEFINES_OPS.search(self.body) is not None


def in_force(definitions: Sequence[Macro], offset: int) -> Macro | None:
    """Of a macro's definitions in order, the last one before ``offset``."""
    index = bisect.bisect_right(definitions, offset, key=lambda macro: macro.offset)
    return definitions[index - 1] if index else None


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of expanded code, and where it comes from: the same text, or one use of a macro."""

    start: int
    origin: int
    is_copy: bool


def expand(code: str, macros: dict[str, list[Macro]]) -> tuple[str, list[Piece]]:
    """The code with macros that define ops replaced, and the pieces it is made of."""
    names = {name for name, found in macros.items() if any(macro.defines_ops for macro in found)}
    for _ in range(MAX_DEPTH):  # and those whose bodies use these
        using = {
            name
            for name, found in macros.items()
            if name not in names and any(set(re.findall(r"[A-Za-z_]\w*", macro.body)) & names for macro in found)
        }
        if not using:
            break
        names |= using
    names -= {"REG_OP"}
    pieces = [Piece(0, 0, True)]
    if not names:
        return code, pieces
    expander = _Expander(macros, names)
    parts: list[str] = []
    length = position = 0
    budget = MAX_GROWTH
    for match in expander.use.finditer(code):
        if match.start() < position:
            continue
        text, end = expander.replaced(code, match, match.start(), MAX_DEPTH)
        if expander.is_broken:
            break
        if text is None or len(text) > budget:
            continue
        budget -= len(text)
        parts += [code[position : match.start()], text]
        length += match.start() - position
        pieces.append(Piece(length, match.start(), False))
        length += len(text)
        position = end
        pieces.append(Piece(length, position, True))
    parts.append(code[position:])
    return "".join(parts), pieces


class _Expander:
    """The replacing of the macros that define ops."""

    def __init__(self, macros: dict[str, list[Macro]], names: set[str]) -> None:
        self.macros = macros
        self.use = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
        #: Whether a use has no closing bracket: what is meant from there on cannot be told.
        self.is_broken = False

    def replaced(self, code: str, use: re.Match[str], offset: int, depth: int) -> tuple[str | None, int]:
        """What a use of a macro stands for, and where the use ends; None if it is no use."""
        macro = in_force(self.macros[use.group()], offset)
        end = use.end()
        if macro is None or depth == 0:
            return None, end
        text = macro.body
        if macro.parameters is not None:
            arguments, end = self.arguments(code, end)
            if arguments is None:
                return None, end
            text = _substituted(macro, arguments)
        parts: list[str] = []
        position = size = 0
        for match in self.use.finditer(text):
            if match.start() < position or match.group() == use.group():
                continue
            inner, inner_end = self.replaced(text, match, offset, depth - 1)
            if inner is None or size + len(inner) > MAX_GROWTH:
                continue
            size += len(inner)
            parts += [text[position : match.start()], inner]
            position = inner_end
        parts.append(text[position:])
        return "".join(parts), end

    def arguments(self, code: str, position: int) -> tuple[list[str] | None, int]:
        """The arguments in the brackets at ``position``, and where these end."""
        opening = _OPENING.match(code, position)
        if opening is None:
            return None, position
        arguments: list[str] = []
        start, depth = opening.end(), 1
        for match in _BRACKET.finditer(code, start):
            bracket = match.group()
            if bracket == "(":
                depth += 1
            elif bracket == ")":
                depth -= 1
                if depth == 0:
                    arguments.append(code[start : match.start()].strip())
                    return arguments, match.end()
            elif bracket == "," and depth == 1:
                arguments.append(code[start : match.start()].strip())
                start = match.end()
        self.is_broken = True
        return None, position


def _substituted(macro: Macro, arguments: list[str]) -> str:
    parameters = macro.parameters or ()
    values = dict(zip(parameters, arguments, strict=False))
    if parameters and parameters[-1] == "...":
        values["__VA_ARGS__"] = ", ".join(arguments[len(parameters) - 1 :])

    def replaced(match: re.Match[str]) -> str:
        token = match.group()
        if token.strip() == "##":
            return ""
        if match.group("text"):
            value = values.get(match.group("text"))
            return token if value is None else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return values.get(token, token)

    return _BODY_TOKEN.sub(replaced, macro.body)

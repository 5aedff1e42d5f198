"""Names that stand for text: the macros of a file and its constants, and the replacing of them.

Only what readers need is replaced: macros that define ops, before the file is read; names in types and defaults, where
these stand. So the code of nearly every file stays as it is. All replacing in one file shares one ``Budget``: a few
hundred bytes of macros can stand for more text than any machine holds.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field

from ascend_graph.sources.constants import type_named

#: Macros may name each other this often in a row.
MAX_DEPTH = 64
#: The replacing of macros in one file may read and write so many characters, besides four times the file's own.
WORK_LIMIT = 4 * 1024 * 1024
#: What each use of a macro costs at least, in characters.
_USE = 64
#: So many definitions of one name are looked at for one use.
_MOST_CANDIDATES = 64
#: One constant's value is no longer than this.
MAX_CONSTANT = 16384

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_BRACKET = re.compile(r"""[(),]|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|'[^'\\\n]*(?:\\.[^'\\\n]*)*'?""", re.DOTALL)
_OPENING = re.compile(r"\s*\(")
_BODY_TOKEN = re.compile(r'\s*##\s*|#\s*(?P<text>[A-Za-z_]\w*)|[A-Za-z_]\w*|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?', re.DOTALL)
_WORD = re.compile(r'[A-Za-z_]\w*|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?', re.DOTALL)
_DEFINES_OPS = re.compile(r"\bREG_OP\b|\bOP_END_FACTORY_REG\b|\A\s*\.\s*[A-Z_]+\s*\(|GetWorkspaceSize\s*\(")


class WorkLimitError(Exception):
    """The replacing of macros goes on for too long; ``offset`` is the place in the file where it was given up."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"the macros here stand for too much text (over {WORK_LIMIT:,} characters)")
        self.offset = offset


class Budget:
    """How much work the reading of one file may still make."""

    def __init__(self, size: int) -> None:
        self.left = WORK_LIMIT + 4 * size

    def spend(self, characters: int, offset: int) -> None:
        """Account for reading or writing so many characters.

        Raises:
            WorkLimitError: nothing is left.
        """
        self.left -= characters
        if self.left < 0:
            raise WorkLimitError(offset)


@dataclass(slots=True)
class Branch:
    """A part of the file that is compiled only under a condition which the file does not decide."""

    start: int
    #: Whether a compiler takes it that is given the file alone.
    as_alone: bool
    end: int = -1


@dataclass(frozen=True, slots=True)
class Macro:
    """One ``#define``, in force from ``offset`` on; ``parameters`` is None for a macro without arguments."""

    offset: int
    parameters: tuple[str, ...] | None
    #: None is ``#undef``.
    body: str | None
    #: The innermost undecided branch it stands in.
    branch: Branch | None = field(default=None, compare=False)

    @property
    def defines_ops(self) -> bool:
        """Whether the body holds a REG_OP or calls of one."""
        return self.body is not None and _DEFINES_OPS.search(self.body) is not None

    def holds_at(self, offset: int) -> bool:
        """Whether it is in force at a place behind it for sure, unless something replaces it."""
        return self.branch is None or self.branch.end < 0 or offset < self.branch.end


def in_force(definitions: Sequence[Macro], offset: int) -> tuple[Macro | None, bool]:
    """Of a name's definitions in order the one that holds at ``offset``, and whether that depends on an undecided condition.

    Behind an undecided branch its definition competes with those before it; the one is taken that a compiler takes which
    is given the file alone.
    """
    candidates: list[Macro] = []
    index = bisect.bisect_right(definitions, offset, key=lambda macro: macro.offset)
    for macro in reversed(definitions[max(0, index - _MOST_CANDIDATES) : index]):
        candidates.append(macro)
        if macro.holds_at(offset):
            break
    if not candidates:
        return None, False
    chosen = next(
        (macro for macro in candidates if macro.holds_at(offset) or (macro.branch and macro.branch.as_alone)),
        candidates[0],
    )
    return chosen, any((macro.parameters, macro.body) != (chosen.parameters, chosen.body) for macro in candidates)


#: The macro that a name stands for at a place of the file.
Lookup = Callable[[str, int], "Macro | None"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of expanded code, and where it comes from: the same text, or one use of a macro."""

    start: int
    origin: int
    is_copy: bool


def op_defining(macros: dict[str, list[Macro]]) -> frozenset[str]:
    """The macros whose bodies define ops, or use a macro that does."""
    users: dict[str, set[str]] = {}
    found: list[str] = []
    for name, definitions in macros.items():
        for macro in definitions:
            for used in _IDENTIFIER.findall(macro.body or ""):
                users.setdefault(used, set()).add(name)
        if any(macro.defines_ops for macro in definitions):
            found.append(name)
    names = set(found)
    while found:
        for user in users.get(found.pop(), ()):
            if user not in names:
                names.add(user)
                found.append(user)
    return frozenset(names - {"REG_OP"})


class Expander:
    """The replacing of names in texts of one file."""

    def __init__(self, lookup: Lookup, budget: Budget) -> None:
        self.lookup = lookup
        self.budget = budget
        #: Whether a use has no closing bracket: what is meant from there on cannot be told.
        self.is_broken = False

    def code(self, code: str, names: Container[str]) -> tuple[str, list[Piece]]:
        """The code of the file with these macros replaced, and the pieces it is made of.

        Raises:
            WorkLimitError: they stand for too much.
        """
        pieces = [Piece(0, 0, True)]
        parts: list[str] = []
        length = position = 0
        for match in _WORD.finditer(code):
            start = match.start()
            if start < position or match.group() not in names:
                continue
            text, end = self._use(code, match, start, names, ())
            if self.is_broken:
                break
            if text is None:
                continue
            parts += [code[position:start], text]
            length += start - position
            pieces.append(Piece(length, start, False))
            length += len(text)
            position = end
            pieces.append(Piece(length, position, True))
        parts.append(code[position:])
        return "".join(parts), pieces

    def text(self, text: str, place: int, names: Container[str], active: tuple[str, ...] = ()) -> str:
        """A text that stands at ``place``, with these names replaced, and those in what they stand for.

        Raises:
            WorkLimitError: they stand for too much.
        """
        self.budget.spend(_USE + len(text), place)
        parts: list[str] = []
        position = 0
        for match in _WORD.finditer(text):
            name = match.group()
            if match.start() < position or name not in names or name in active:
                continue
            inner, end = self._use(text, match, place, names, active)
            if inner is not None:
                parts += [text[position : match.start()], inner]
                position = end
        if not parts:
            return text
        parts.append(text[position:])
        return "".join(parts)

    def _use(
        self, text: str, use: re.Match[str], place: int, names: Container[str], active: tuple[str, ...]
    ) -> tuple[str | None, int]:
        """What one use of a macro stands for, and where the use ends; None if it is no use."""
        name, end = use.group(), use.end()
        macro = self.lookup(name, place)
        if macro is None or macro.body is None or len(active) >= MAX_DEPTH:
            return None, end
        body = macro.body
        if macro.parameters is not None:
            arguments, end = self._arguments(text, end, place)
            if arguments is None:
                return None, end
            body = _substituted(macro.parameters, body, arguments, self.budget, place)
        return self.text(body, place, names, (*active, name)), end

    def _arguments(self, text: str, position: int, place: int) -> tuple[list[str] | None, int]:
        """The arguments in the brackets at ``position``, and where these end."""
        opening = _OPENING.match(text, position)
        if opening is None:
            return None, position
        arguments: list[str] = []
        start, depth = opening.end(), 1
        for match in _BRACKET.finditer(text, start):
            bracket = match.group()
            if bracket == "(":
                depth += 1
            elif bracket == ")":
                depth -= 1
                if depth == 0:
                    arguments.append(text[start : match.start()].strip())
                    self.budget.spend(match.end() - position, place)
                    return arguments, match.end()
            elif bracket == "," and depth == 1:
                arguments.append(text[start : match.start()].strip())
                start = match.end()
        self.budget.spend(len(text) - position, place)
        self.is_broken = True
        return None, position


def _substituted(parameters: tuple[str, ...], body: str, arguments: list[str], budget: Budget, place: int) -> str:
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
        value = values.get(token, token)
        budget.spend(len(value), place)
        return value

    return _BODY_TOKEN.sub(replaced, body)


_CONSTANT = re.compile(r"\b(?:const(?:expr)?\b|vector\s*<)")
_DELIMITER = re.compile(r"[={;()&#]")
_LONGEST_HEAD = 300
_LAST_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_TYPE = re.compile(r"[\w\s:<>,*]*[\s>*]\Z")


def constants(code: str) -> Iterator[tuple[str, Macro]]:
    """The constants that a file declares: ``static constexpr float EPSILON = 1e-8f;``, ``std::vector<T> types = {…};``.

    Each is a macro that stands for its value, converted to the declared type where that is a type of numbers.
    """
    done = 0
    for match in _CONSTANT.finditer(code):
        if match.start() < done:
            continue
        delimiter = _DELIMITER.search(code, match.end(), match.start() + _LONGEST_HEAD)
        if delimiter is None or delimiter.group() not in "={":
            continue
        head = code[match.start() : delimiter.start()].rstrip()
        head = head[: head.rfind("[")].rstrip() if head.endswith("]") else head
        name = _LAST_NAME.search(head)
        if name is None or not _TYPE.match(head, 0, name.start()):
            continue
        declared = head[: name.start()]
        begin = delimiter.start() + (delimiter.group() == "=")
        end = code.find(";", begin, begin + MAX_CONSTANT)
        if end < 0:
            continue
        done = end
        value = code[begin:end].strip()
        if value.startswith("="):  # a comparison, no declaration
            continue
        if not value.startswith("{"):
            value = f"static_cast<{declared.strip()}>({value})" if type_named(declared) else f"({value})"
        yield name.group(), Macro(match.start(), None, value)

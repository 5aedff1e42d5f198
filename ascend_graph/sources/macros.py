"""Names that stand for text: the macros and constants of a file, and their expansion.

Only what readers need is expanded: macros that define ops, before the file is read, and names in types and defaults,
in place. So the code of nearly every file stays as it is. All expansion in one file shares one ``Budget``: a few
hundred bytes of macros can stand for more text than any machine holds.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ascend_graph.sources.constants import type_named

#: Maximum nesting of macros that use each other.
MAX_DEPTH = 64
#: Characters that macro expansion in one file may read and write, in addition to four times the file's own.
WORK_LIMIT = 4 * 1024 * 1024
#: Minimum cost of each use of a macro, in characters.
_USE = 64
#: Maximum number of definitions of one name that are checked for one use.
_MOST_CANDIDATES = 64
#: Maximum length of a constant's value.
MAX_CONSTANT = 16384

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_BRACKET = re.compile(r"""[(),]|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|'[^'\\\n]*(?:\\.[^'\\\n]*)*'?""", re.DOTALL)
_OPENING = re.compile(r"\s*\(")
_BODY_TOKEN = re.compile(r'\s*##\s*|#\s*(?P<text>[A-Za-z_]\w*)|[A-Za-z_]\w*|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?', re.DOTALL)
_WORD = re.compile(r'[A-Za-z_]\w*|"[^"\\\n]*(?:\\.[^"\\\n]*)*"?', re.DOTALL)
_DEFINES_OPS = re.compile(r"\bREG_OP\b|\bOP_END_FACTORY_REG\b|\A\s*\.\s*[A-Z_]+\s*\(|GetWorkspaceSize\s*\(")


class WorkLimitError(Exception):
    """Macro expansion that exceeds its limit; ``offset`` is the position in the file where it stopped."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"the macros here stand for too much text (over {WORK_LIMIT:,} characters)")
        self.offset = offset


class Budget:
    """Remaining work for reading one file."""

    def __init__(self, size: int) -> None:
        self.left = WORK_LIMIT + 4 * size

    def spend(self, characters: int, offset: int) -> None:
        """Account for reading or writing ``characters`` characters.

        Raises:
            WorkLimitError: The budget is used up.
        """
        self.left -= characters
        if self.left < 0:
            raise WorkLimitError(offset)


@dataclass(slots=True)
class Branch:
    """A part of the file under a condition that the file does not decide."""

    start: int
    #: True if a compiler that is given only this file takes it.
    as_alone: bool
    end: int = -1


@dataclass(frozen=True, slots=True)
class Macro:
    """One ``#define``, in force from ``offset`` on; ``parameters`` is None for a macro without arguments."""

    offset: int
    parameters: tuple[str, ...] | None
    #: None means ``#undef``.
    body: str | None
    #: The innermost undecided branch around it.
    branch: Branch | None = field(default=None, compare=False)

    @property
    def defines_ops(self) -> bool:
        """True if the body contains a REG_OP or some of its calls."""
        return self.body is not None and _DEFINES_OPS.search(self.body) is not None

    def holds_at(self, offset: int) -> bool:
        """Return whether the macro is certainly in force at a later offset, unless something replaces it."""
        return self.branch is None or self.branch.end < 0 or offset < self.branch.end


def in_force(definitions: Sequence[Macro], offset: int) -> tuple[Macro | None, bool]:
    """Return the definition in force at ``offset``, and whether that depends on an undecided condition.

    ``definitions`` are those of one name, in order. After an undecided branch, its definition competes with the earlier
    ones. The winner is the one that a compiler takes when it is given only this file.
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


#: The macro that a name stands for at a position of the file.
Lookup = Callable[[str, int], "Macro | None"]


@dataclass(frozen=True, slots=True)
class ExpandedSegment:
    """A segment of expanded code and its origin: unchanged text, or one use of a macro."""

    start: int
    origin: int
    is_copy: bool


def op_defining(macros: dict[str, list[Macro]]) -> frozenset[str]:
    """Return the macros whose bodies define ops, or use a macro that does."""
    return defining(macros, lambda macro: macro.defines_ops) - {"REG_OP"}


def used_by(macros: dict[str, list[Macro]], names: Iterable[str]) -> frozenset[str]:
    """Return macros with all macros that their bodies use."""
    found = set(names)
    todo = list(found)
    while todo:
        bodies = [macro.body or "" for macro in macros.get(todo.pop(), ())]
        new = {word for body in bodies for word in _IDENTIFIER.findall(body) if word in macros} - found
        found |= new
        todo += new
    return frozenset(found)


def defining(macros: dict[str, list[Macro]], marks: Callable[[Macro], bool]) -> frozenset[str]:
    """Return the macros with a mark in their bodies, and those that use one."""
    users: dict[str, set[str]] = {}
    found: list[str] = []
    for name, definitions in macros.items():
        for macro in definitions:
            for used in _IDENTIFIER.findall(macro.body or ""):
                users.setdefault(used, set()).add(name)
        if any(map(marks, definitions)):
            found.append(name)
    names = set(found)
    while found:
        for user in users.get(found.pop(), ()):
            if user not in names:
                names.add(user)
                found.append(user)
    return frozenset(names)


class Expander:
    """Macro expansion in texts of one file."""

    def __init__(self, lookup: Lookup, budget: Budget) -> None:
        self.lookup = lookup
        self.budget = budget
        #: True if a use has no closing bracket: everything after it is ambiguous.
        self.is_broken = False

    def code(self, code: str, names: Container[str]) -> tuple[str, list[ExpandedSegment]]:
        """Return the code of the file with these macros expanded, and its segments.

        Raises:
            WorkLimitError: the expansion is too long.
        """
        pieces = [ExpandedSegment(0, 0, True)]
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
            pieces.append(ExpandedSegment(length, start, False))
            length += len(text)
            position = end
            pieces.append(ExpandedSegment(length, position, True))
        parts.append(code[position:])
        return "".join(parts), pieces

    def text(self, text: str, place: int, names: Container[str], active: tuple[str, ...] = ()) -> str:
        """Return a text at ``place`` with these names expanded, recursively.

        Raises:
            WorkLimitError: the expansion is too long.
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
        """Return the expansion of one use of a macro (None if it is not a use), and the offset of its end."""
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
        """Return the arguments in the brackets at ``position`` (None if incomplete), and the offset of their end."""
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
    """Yield the constants that a file declares, as ``static constexpr float EPSILON = 1e-8f;``.

    ``std::vector<T> types = {…};`` is another form.

    Each is a macro that stands for its value, converted to the declared type if that is arithmetic.
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

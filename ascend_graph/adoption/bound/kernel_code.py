"""Functions and classes of a kernel's code: which function a call runs, by the class of the variable that it is a method of."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ascend_graph.adoption.cpp.functions import CppParameter, close_of, parameters_of, split

#: Begin and end of a part of the code.
Span = tuple[int, int]

_DEFINED = re.compile(r"(?<![\w.>:])(?:(?P<owner>\w+)\s*(?:<[^<>;{}()]*>)?\s*::\s*)?(?P<name>[A-Za-z_]\w*)\s*\(")
_CLASS = re.compile(
    r"\b(?:class|struct)\s+(?P<name>\w+)\s*(?:<[^;{}()]*>\s*)?(?:final\s*)?(?::(?P<bases>[^;{}()]*))?\{"
)
_BASE = re.compile(r"(?:\b(?:public|protected|private|virtual)\s+)*(?:\w+\s*::\s*)*(\w+)")
_ALIAS = re.compile(r"\busing\s+(\w+)\s*=\s*(?:typename\s+)?(?:\w+\s*::\s*)*(\w+)\s*(?:<[^;{}]*>)?\s*;")
_TYPEDEF = re.compile(r"\btypedef\s+(?:\w+\s*::\s*)*(\w+)\s*(?:<[^;{}]*>)?\s+(\w+)\s*;")
#: What stands between a type and the name of a variable.
_BETWEEN = " \t\r\n\f\v*&"
_CONST = re.compile(r"(?:\A|\W)const\Z")
#: What makes a name the end of another one, or a member.
_PART_OF = re.compile(r"(?:[\w.]|->)\Z")
#: Qualifiers in front of a type.
_QUALIFIER = re.compile(r"\b(?:const|constexpr|static|typename|volatile|mutable|register|__\w+__)\s*\Z")
_NOT_FUNCTIONS = frozenset(
    {"if", "for", "while", "switch", "catch", "return", "sizeof", "decltype", "alignas", "defined"}
)
_NOT_TYPES = frozenset(
    {"return", "delete", "new", "else", "throw", "case", "goto", "typename", "using", "public", "private"}
)
_LONGEST_NAME = 400


@dataclass(frozen=True, slots=True)
class DeviceFunction:
    """A function of a kernel's code: its parameters, its class, and where it is."""

    name: str
    parameters: tuple[CppParameter, ...]
    #: The class, or the namespace that qualifies a definition; empty for a function without one.
    owner: str
    #: From the name to the end.
    whole: Span
    body: Span

    def takes(self, count: int) -> bool:
        """Return whether a call with a number of arguments can be one of this function."""
        required = sum(not one.default for one in self.parameters)
        return required <= count <= len(self.parameters)


@dataclass(frozen=True, slots=True)
class NamedCallee:
    """The function that a call names: ``function``, ``qualifier::function`` or a method of ``path``."""

    function: str
    qualifier: str = ""
    #: Variables and members whose method it is, outermost first; one that is not followed is empty.
    path: tuple[str, ...] = ()
    #: Position of the first character of the name.
    start: int = 0


class KernelCode:
    """Code of a kernel, with its functions and classes; ``macros`` name classes."""

    def __init__(self, code: str, macros: Mapping[str, str]) -> None:
        self.code = code
        self.classes: dict[str, list[Span]] = {}
        self.bases: dict[str, set[str]] = {}
        for match in _CLASS.finditer(code):
            span = match.end(), close_of(code, match.end() - 1)
            self.classes.setdefault(match["name"], []).append(span)
            named = {found[1] for part in split(match["bases"] or "") if (found := _BASE.match(part.strip()))}
            self.bases.setdefault(match["name"], set()).update(named)
        self.aliases = dict(macros) | {match[1]: match[2] for match in _ALIAS.finditer(code)}
        self.aliases |= {match[2]: match[1] for match in _TYPEDEF.finditer(code)}
        self.functions: dict[str, list[DeviceFunction]] = {}
        for one in self._defined():
            self.functions.setdefault(one.name, []).append(one)
        self._all = sorted((one for some in self.functions.values() for one in some), key=lambda one: one.whole)
        self._types: dict[int, str] = {}
        self._named: dict[str, list[Span]] = {}
        #: The furthest end of each function and those in front of it.
        self._ends = list(itertools.accumulate((one.whole[1] for one in self._all), max))

    def _defined(self) -> Iterator[DeviceFunction]:
        spans = [(name, *span) for name, found in self.classes.items() for span in found]
        for match in _DEFINED.finditer(self.code):
            if match["name"] in _NOT_FUNCTIONS:
                continue
            close = close_of(self.code, match.end() - 1)
            after = self.code[close + 1 : close + 800] if close > 0 else ""
            opened = re.match(r"\s*(?:(?:const|noexcept|override|final)\b\s*)*(?P<inits>:(?!:)[^;]*?)?\{", after)
            if opened is None:
                continue
            start = close + opened.end()
            if opened["inits"]:
                # Members may be made with braces: n{n}, m(m) {.
                while self.code[start] == "{" and re.search(r"[\w>]\s*\Z", self.code[close + 1 : start]):
                    end = close_of(self.code, start)
                    following = re.match(r"\}\s*(?:,[^;{}]*)?\{", self.code[end : end + 400]) if end > 0 else None
                    if following is None:
                        break
                    start = end + following.end() - 1
            inside = [(end - begin, name) for name, begin, end in spans if begin <= match.start() < end]
            owner = self.class_of(match["owner"]) if match["owner"] else (min(inside)[1] if inside else "")
            end = close_of(self.code, start)
            parameters = parameters_of(self.code[match.end() : close])
            yield DeviceFunction(match["name"], parameters, owner, (match.start(), end), (close + 1, end))

    def enclosing(self, position: int) -> DeviceFunction | None:
        """Return the innermost function that a position is in."""
        number = bisect.bisect_right(self._all, position, key=lambda one: one.whole[0])
        while number and self._ends[number - 1] > position:
            number -= 1
            if self._all[number].whole[1] > position:
                return self._all[number]
        return None

    def family(self, name: str) -> list[str]:
        """Return a class and its bases that are in the code, nearest first; empty if it is not a class of the code."""
        found: list[str] = []
        pending = [self.class_of(name)]
        while pending:
            one = pending.pop(0)
            if one in self.classes and one not in found:
                found.append(one)
                pending += [self.class_of(base) for base in sorted(self.bases.get(one, ()))]
        return found

    def class_of(self, name: str) -> str:
        """Return the class that a name, maybe an alias, stands for."""
        for _ in range(4):
            if name in self.classes or name not in self.aliases:
                break
            name = self.aliases[name]
        return name

    def callee(self, opened: int) -> NamedCallee | None:
        """Return the function that is called with the bracket at a position; None if there is no name in front of it."""
        end = self._before_angles(opened)
        name = self._word_before(end)
        if not name:
            return None
        start = self.code.rindex(name, 0, end)
        before = self.code[max(0, start - 4) : start].rstrip()
        if before.endswith("::"):
            left = self.code.rindex("::", 0, start)
            return NamedCallee(name, self._word_before(self._before_angles(left)), (), start)
        path: list[str] = []
        place = start
        while (mark := re.search(r"(?:\.|->)\s*(?:template\s+)?\Z", self.code[max(0, place - 20) : place])) is not None:
            left = place - len(mark.group())
            while self._ends_with("]", left):
                left = self._opening_before(left, "[", "]")
            word = self._word_before(left) if left >= 0 else ""
            path.insert(0, word)
            if not word:
                break
            place = self.code.rindex(word, 0, left)
        return NamedCallee(name, "", tuple(path), start)

    def _before_angles(self, end: int) -> int:
        """Return the position in front of template arguments that end at a position."""
        text = self.code[max(0, end - _LONGEST_NAME) : end].rstrip()
        at = max(0, end - _LONGEST_NAME) + len(text)
        if not text.endswith(">") or text.endswith("->"):
            return at
        depth = 0
        for place in range(at - 1, max(-1, at - _LONGEST_NAME), -1):
            depth += {">": 1, "<": -1}.get(self.code[place], 0)
            if self.code[place] in ";{}" or depth == 0:
                return place if depth == 0 else at
        return at

    def _ends_with(self, mark: str, end: int) -> bool:
        """Return whether a mark stands in front of a position, and maybe of spaces."""
        return self.code[max(0, end - _LONGEST_NAME) : end].rstrip().endswith(mark)

    def _opening_before(self, end: int, opening: str, closing: str) -> int:
        """Return the position of the bracket that is closed in front of a position, or -1."""
        depth = 0
        for place in range(end - 1, max(-1, end - _LONGEST_NAME), -1):
            depth += (self.code[place] == closing) - (self.code[place] == opening)
            if depth == 0 and not self.code[place].isspace():
                return place
        return -1

    def _word_before(self, end: int) -> str:
        text = self.code[max(0, end - _LONGEST_NAME) : end].rstrip()
        start = len(text)
        while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
            start -= 1
        return text[start:].lstrip("0123456789")

    def called(self, callee: NamedCallee, count: int) -> list[DeviceFunction]:
        """Return the functions that a call with so many arguments may run; none if its class is not certain."""
        found = [one for one in self.functions.get(callee.function, ()) if one.takes(count)]
        here = self.enclosing(callee.start)
        if callee.path:
            return self._methods(found, self._class_of_path(callee.path, callee.start, here))
        if callee.qualifier:
            if self.class_of(callee.qualifier) in self.classes:
                return self._methods(found, callee.qualifier)
            return [one for one in found if one.owner not in self.classes]
        own = self._methods(found, here.owner) if here is not None else []
        constructed = self._constructed(callee, count)
        return own or [one for one in found if one.owner not in self.classes] or constructed

    def declared_kind(self, callee: NamedCallee) -> str:
        """Return the class of the variable that ``Class one(x)`` declares; empty if nothing is declared."""
        return "" if callee.path else self.class_of(self._word_before(self._before_angles(callee.start)))

    def _constructed(self, callee: NamedCallee, count: int) -> list[DeviceFunction]:
        """Return the constructors of ``Class(x)`` and ``Class one(x)``."""
        kind = self._word_before(self._before_angles(callee.start))
        name = next((self.class_of(one) for one in (callee.function, kind) if self.class_of(one) in self.classes), "")
        return [one for one in self.functions.get(name, ()) if one.owner == name and one.takes(count)] if name else []

    def _methods(self, found: list[DeviceFunction], name: str) -> list[DeviceFunction]:
        for one in self.family(name):
            own = [function for function in found if function.owner == one]
            if own:
                return own
        return []

    def _class_of_path(self, path: tuple[str, ...], position: int, here: DeviceFunction | None) -> str:
        """Return the class of what ``one.member`` is, by the declarations; empty if it is not certain."""
        owner = here.owner if here is not None else ""
        kind = ""
        for number, name in enumerate(path):
            if name == "this" and number == 0:
                kind = owner
            elif number == 0:
                kind = self.declared_in(name, here.whole[0], position) if here is not None else ""
                kind = kind or self._member(name, owner)
            else:
                kind = self._member(name, kind)
            if not kind:
                return ""
        return kind

    def _member(self, name: str, owner: str) -> str:
        """Return the type of a member of a class, or of its bases; empty if it is not certain."""
        found = {
            kind
            for one in self.family(owner)
            for begin, end in self.classes[one]
            if (kind := self.declared_in(name, begin, end, outside=owner != ""))
        }
        return found.pop() if len(found) == 1 else ""

    def declared_in(self, name: str, start: int, position: int, *, outside: bool = False) -> str:
        """Return the type of the last declaration of a name in front of a position, in a block that the position is in.

        With ``outside`` the declaration is a member: one that is in no function.
        """
        found = ""
        if name not in self._named:
            pattern = re.compile(rf"{re.escape(name)}\s*(?=[;,)({{=\[])")  # begins with the name, which is found fast
            found_at = (match.span() for match in pattern.finditer(self.code))
            self._named[name] = [one for one in found_at if not _PART_OF.search(self.code[max(0, one[0] - 2) : one[0]])]
        first = bisect.bisect_left(self._named[name], (start, 0))
        for place, end in itertools.islice(self._named[name], first, None):
            if end > position:
                break
            kind = self._type_before(place)
            if not kind or kind in _NOT_TYPES:
                continue
            inner = self.enclosing(place)
            if outside:
                if inner is not None and inner.whole[0] >= start:
                    continue
            elif inner is not None and place >= inner.body[0] and self.end_of_block(place) < position:
                continue
            found = kind if kind != "auto" else self._made_type(end)
            if kind == "auto" and not found:
                found = "auto"
        return found

    def _type_before(self, place: int) -> str:
        """Return the type that a declaration has in front of its name; empty if it is not a declaration."""
        if place not in self._types:
            self._types[place] = self._read_type_before(place)
        return self._types[place]

    def _read_type_before(self, place: int) -> str:
        text = self.code[max(0, place - _LONGEST_NAME) : place]
        kind = text.rstrip(_BETWEEN)
        while _CONST.search(kind[-6:]):
            kind = kind[:-5].rstrip(_BETWEEN)
        end = self._before_angles(place - len(text) + len(kind))
        name = self._word_before(end) if kind != text else ""
        if not name:
            return ""
        start = self.code.rindex(name, 0, end)
        while self._ends_with("::", start):
            left = self._before_angles(self.code.rindex("::", 0, start))
            outer = self._word_before(left)
            if not outer:
                break
            start = self.code.rindex(outer, 0, left)
        before = self.code[max(0, start - 60) : start]
        while (qualifier := _QUALIFIER.search(before)) is not None:
            before = before[: qualifier.start()]
        before = before.rstrip()
        return name if not before or before[-1] in ";{}(,:>" else ""

    def _made_type(self, position: int) -> str:
        """Return the class that ``auto one = Class<…>(…)`` makes; empty if it is not one."""
        found = re.match(
            r"\s*=\s*(?:\w+\s*::\s*)*(\w+)\s*(?:<[^;{}()]*>)?\s*[({]", self.code[position : position + 300]
        )
        name = self.class_of(found[1]) if found else ""
        return name if name in self.classes else ""

    def end_of_block(self, position: int) -> int:
        """Return the end of the block that a position stands in, or that of the code."""
        depth = 0
        for place in re.compile(r"[{}]").finditer(self.code, position):
            depth += 1 if place.group() == "{" else -1
            if depth < 0:
                return place.start()
        return len(self.code)

    def spans_of(self, owner: str) -> tuple[Span, ...]:
        """Return where the members of a class may be named: in it, its bases and what is made from it."""
        related = {one for one in self.classes if owner in self.family(one)} | {*self.family(owner)}
        bodies = [span for one in related for span in self.classes[one]]
        bodies += [one.whole for one in self._all if one.owner in related]
        found: list[Span] = []
        for span in sorted(bodies, key=lambda one: (one[0], -one[1])):
            if not found or span[0] >= found[-1][1]:
                found.append(span)
        return tuple(found)

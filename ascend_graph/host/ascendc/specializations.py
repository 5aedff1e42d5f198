"""Explicit specializations inside classes, which the device's compiler takes and g++ before version 14 refuses.

A member function template with specializations becomes one that calls overloads, which a tag selects:

    template <int N> struct Case {};                                    template <int N> void run(int x);
    template <int N> void run(int x) { return run_case(Case<N>{}, x); }   template <> void run<2>(int x) { … }
    template <int N> void run_case(Case<N>, int x);
    void run_case(Case<2>, int x) { … }

A member class template gets one more parameter, so that its specializations are partial ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ascend_graph.sources.kernels import LITERAL, matching, split_at_commas

_SCOPES = re.compile(LITERAL + r"|(?P<brace>[{}])|(?P<special>\btemplate\s*<\s*>)")
_CLASS = re.compile(r"(?:template\b.*)?\b(?:class|struct|union)\b(?:(?!\bclass\b|\bstruct\b)[^=])*", re.DOTALL)
_PARENTHESES = re.compile(r"\([^()]*\)")
_ANGLES = re.compile(r"<[^<>]*>")
_MARKER = re.compile(r"^#.*$", re.MULTILINE)
_TEMPLATE = re.compile(r"\btemplate\s*(?=<)")
_CLASS_NAME = re.compile(
    r"\s*(?:class|struct|union)\b(?:\s*\[\[.*?\]\]|\s*__attribute__\s*\(\(.*?\)\)\s*\))?\s*(\w+)\s*"
)
_FUNCTION_NAME = re.compile(r"(operator\s*(?:\(\s*\)|\[\s*\]|[-+*/%^&|~!=<>,]+|\w+)|\w+)\s*$")
#: Last word of a parameter that is a part of its type.
_TYPE_WORDS = frozenset(
    {"const", "volatile", "int", "long", "short", "char", "unsigned", "signed", "float", "double", "bool"}
)


@dataclass(frozen=True, slots=True)
class _Member:
    """Template that a class declares, by positions in the text."""

    #: Of ``template``, and after its parameters.
    start: int
    head: int
    #: Its parameters, as written.
    parameters: str
    name: str
    name_start: int
    #: After the name and, of a specialization, its arguments.
    name_end: int
    arguments: str
    #: Parentheses of a function; -1 for a class.
    opening: int = -1
    closing: int = -1
    #: Of the ``;`` or ``{`` after its declaration.
    end: int = -1

    @property
    def is_special(self) -> bool:
        return not self.parameters.strip()


@dataclass(slots=True)
class _Edits:
    """Replacements of parts of a text, which keep its number of lines."""

    text: str
    parts: list[tuple[int, int, str]] = field(default_factory=list)

    def insert(self, position: int, new: str) -> None:
        self.parts.append((position, position, new))

    def replace(self, start: int, end: int, new: str) -> None:
        self.parts.append((start, end, new + "\n" * self.text.count("\n", start, end)))

    def applied(self) -> str:
        made, done = [], 0
        for start, end, new in sorted(self.parts, key=lambda part: part[:2]):
            made += [self.text[done:start], new]
            done = end
        return "".join([*made, self.text[done:]])


def outside_of_classes(text: str) -> str:
    """Return preprocessed text whose explicit specializations inside classes are overloads and partial specializations.

    A specialization whose template is not in the same class, or in a form that is not known, stays as it is.

    >>> print(outside_of_classes("struct S { template <int N> int f(); template <> int f<2>() { return 2; } };"))
    struct S { template <int N> struct ascend_graph_case_0 {}; template <int N> int f() { return \
ascend_graph_special_0(ascend_graph_case_0<N>{}); } template <int N> int ascend_graph_special_0(ascend_graph_case_0<N>);  \
int ascend_graph_special_0(ascend_graph_case_0<2>) { return 2; } };
    """
    edits = _Edits(text)
    number = 0
    for begin, end in _classes(text):
        members = list(_templates(text, begin, end))
        for name in dict.fromkeys(member.name for member in members if member.is_special):
            same = [member for member in members if member.name == name]
            if all(member.opening < 0 for member in same):
                _rewrite_class(edits, same)
            else:
                number = _rewrite_functions(edits, same, number)
    return edits.applied()


def _classes(text: str) -> Iterator[tuple[int, int]]:
    """Yield the bodies of classes that have explicit specializations, by the positions of their braces."""
    opened: list[tuple[int, bool]] = []
    found: dict[int, None] = {}
    for token in _SCOPES.finditer(text):
        if token["brace"] == "{":
            start = max(text.rfind(stop, 0, token.start()) for stop in (";", "}", "{")) + 1
            opened.append((token.start(), _is_class(text[start : token.start()])))
        elif token["brace"] and opened:
            begin, _ = opened.pop()
            if begin in found:
                yield begin, token.start()
        elif token["special"] and opened and opened[-1][1]:
            found[opened[-1][0]] = None


def _is_class(head: str) -> bool:
    """Return whether what stands before a brace begins a class, not a function or an enumeration."""
    head = _MARKER.sub("", head)
    while (shorter := _ANGLES.sub(" ", _PARENTHESES.sub(" () ", head))) != head and len(shorter) < len(head):
        head = shorter
    words = re.sub(r"\b(?:alignas|__attribute__|__declspec|decltype)\s*\(\)", " ", head)
    return _CLASS.fullmatch(words.strip()) is not None and "(" not in words and not re.search(r"\benum\b", words)


def _templates(text: str, begin: int, end: int) -> Iterator[_Member]:
    """Yield the templates that a class declares itself."""
    position = begin + 1
    while position < end:
        token = re.compile(LITERAL + r"|(?P<open>[({\[])|(?P<template>\btemplate\s*(?=<))").search(text, position, end)
        if token is None:
            return
        if token["open"]:
            position = matching(text, token.end(), {"(": ")", "{": "}", "[": "]"}[token["open"]]) + 1
            if position == 0:
                return
        elif token["template"] is None:
            position = token.end()
        else:
            member = _template(text, token.start(), token.end())
            position = token.end() if member is None else member.end
            if member is not None:
                yield member


def _template(text: str, start: int, opening: int) -> _Member | None:
    """Return the template that begins at ``start``, whose parameters open at ``opening``, if its form is known."""
    head = _after_angles(text, opening)
    if head < 0 or _TEMPLATE.match(text, _after_blanks(text, head)):
        return None
    parameters = text[opening + 1 : head - 1]
    named = _CLASS_NAME.match(text, head)
    if named is not None:
        after = named.end(1)
        arguments, name_end = _arguments(text, after)
        stop = re.compile(r"[{;(]").search(text, name_end)
        if stop is not None and stop[0] != "(" and (stop[0] == "{" or not text[name_end : stop.start()].strip()):
            return _Member(start, head, parameters, named[1], named.start(1), name_end, arguments, end=stop.start())
    return _function(text, start, head, parameters)


def _function(text: str, start: int, head: int, parameters: str) -> _Member | None:
    """Return a function template: its name is before the last parentheses of its declaration."""
    position, opening = head, -1
    while (token := re.compile(r"[({;=]").search(text, position)) is not None and token[0] == "(":
        close = matching(text, token.end(), ")")
        if close < 0:
            return None
        said = text[head : token.start()].rstrip()
        if not said.endswith(("operator", "noexcept", "__attribute__", "decltype", "alignas", "requires")):
            opening, closing = token.start(), close
        position = close + 1
    if token is None or opening < 0 or token[0] == "=":
        return None
    name_end = head + len(text[head:opening].rstrip())
    arguments, before = "", name_end
    if text[name_end - 1] == ">" and not re.search(r"operator\s*[-<>=]+$", text[head:name_end]):
        before = _before_angles(text, name_end)
        arguments = text[before + 1 : name_end - 1]
    name = _FUNCTION_NAME.search(text, head, before)
    if name is None:
        return None
    return _Member(
        *(start, head, parameters, re.sub(r"\s", "", name[1]), name.start(1)),
        *(name_end, arguments, opening, closing, token.start()),
    )


def _rewrite_functions(edits: _Edits, members: Sequence[_Member], number: int) -> int:
    """Rewrite the specializations of function templates of one name, and return the next number for names."""
    text = edits.text
    primaries = [member for member in members if not member.is_special and member.opening >= 0]
    for primary in primaries:
        declared = _function_parameters(text, primary)
        arguments = _template_arguments(primary.parameters)
        specials = [
            member
            for member in members
            if member.is_special
            and member.opening >= 0
            and len(_function_parameters(text, member)) == len(declared)
            and len(_split(member.arguments)) <= len(arguments)
        ]
        named = [_named(parameter, place) for place, parameter in enumerate(declared)]
        if not specials or not arguments or "#" in primary.parameters or any(one is None for one in named):
            continue
        case, special = f"ascend_graph_case_{number}", f"ascend_graph_special_{number}"
        number += 1
        pairs = [one for one in named if one is not None]
        passed = "".join(f", static_cast<decltype({name})&&>({name})" for _, name in pairs)
        tag = f"{case}<{', '.join(arguments)}>"
        template = f"template <{_flat(primary.parameters)}>"
        tail = _flat(text[primary.closing + 1 : primary.end])
        edits.insert(
            primary.start,
            f"{template} struct {case} {{}}; {template} {_flat(text[primary.head : primary.name_start])} "
            f"{_flat(text[primary.name_start : primary.name_end])}({', '.join(one for one, _ in pairs)}){tail and ' ' + tail} "
            f"{{ return {special}({tag}{{}}{passed}); }} ",
        )
        # A specialization does not repeat that its template is static.
        static = "static " if re.search(r"\bstatic\b", text[primary.head : primary.name_start]) else ""
        for member in (primary, *specials):
            own = tag if member is primary else f"{case}<{_flat(member.arguments)}>"
            if member is not primary:
                edits.replace(member.start, member.head, static)
            edits.replace(member.name_start, member.name_end, special)
            if declared:
                edits.insert(member.opening + 1, f"{own}, ")
            else:
                edits.replace(member.opening + 1, member.closing, own)
    return number


def _function_parameters(text: str, member: _Member) -> list[str]:
    found = _split(text[member.opening + 1 : member.closing])
    return [] if found == ["void"] else found


def _rewrite_class(edits: _Edits, members: Sequence[_Member]) -> None:
    """Give a class template one more parameter, which its explicit specializations leave open."""
    primaries = [member for member in members if not member.is_special and not member.arguments]
    specials = [member for member in members if member.is_special]
    counts = {len(_split(primary.parameters)) for primary in primaries}
    if len(counts) != 1 or any("..." in primary.parameters for primary in primaries):
        return
    if any(len(_split(member.arguments)) not in counts for member in specials):
        return
    for place, primary in enumerate(primaries):
        edits.insert(primary.head - 1, f", typename ascend_graph_case{'' if place else ' = void'}")
    for member in specials:
        edits.replace(member.start, member.head, "template <typename ascend_graph_case>")
        edits.insert(member.name_end - 1, ", ascend_graph_case")


def _after_angles(text: str, opening: int) -> int:
    """Return the position after the ``>`` of the ``<`` at ``opening``, or -1."""
    depth, position = 0, opening
    while position < len(text):
        character = text[position]
        if character in "([{":
            position = matching(text, position + 1, {"(": ")", "[": "]", "{": "}"}[character])
            if position < 0:
                return -1
        depth += (character == "<") - (character == ">" and text[position - 1] != "-")
        position += 1
        if depth == 0:
            return position
        if character == ";":
            return -1
    return -1


def _before_angles(text: str, end: int) -> int:
    """Return the position of the ``<`` of the ``>`` just before ``end``."""
    depth = parentheses = 0
    for position in range(end - 1, -1, -1):
        parentheses += {")": 1, "(": -1}.get(text[position], 0)
        if parentheses == 0:
            depth += {">": 1, "<": -1}.get(text[position], 0)
            if depth == 0:
                return position
    return 0


def _arguments(text: str, position: int) -> tuple[str, int]:
    """Return template arguments and the position after them, if there are any."""
    opening = _after_blanks(text, position)
    if not text.startswith("<", opening):
        return "", position
    end = _after_angles(text, opening)
    return (text[opening + 1 : end - 1], end) if end > 0 else ("", position)


def _after_blanks(text: str, position: int) -> int:
    found = re.compile(r"\S").search(text, position)
    return len(text) if found is None else found.start()


def _split(text: str) -> list[str]:
    """Split a list of parameters or arguments at its commas."""
    stripped = [_flat(one) for one in split_at_commas(text)]
    return [] if stripped == [""] else stripped


def _template_arguments(parameters: str) -> list[str]:
    """Return the names of template parameters as arguments; empty if one has none."""
    found = []
    for parameter in _split(parameters):
        name = re.search(r"(\.\.\.\s*)?\b([A-Za-z_]\w*)$", _without_default(parameter))
        if name is None or name[2] in ("typename", "class", "auto", *_TYPE_WORDS):
            return []
        found.append(name[2] + ("..." if name[1] else ""))
    return found


def _named(parameter: str, place: int) -> tuple[str, str] | None:
    """Return a function parameter with a name, and the name; None for a form that is not known."""
    plain = _without_default(parameter)
    if "(" in plain or "[" in plain or "..." in plain:
        return None
    name = re.search(r"(?<![:\w])([A-Za-z_]\w*)$", plain)
    before = plain[: name.start()].strip() if name is not None else ""
    if (
        name is not None
        and name[1] not in _TYPE_WORDS
        and re.sub(r"\b(?:const|volatile|typename)\b", "", before).strip()
    ):
        return parameter, name[1]
    made = f"ascend_graph_{place}"
    default = parameter[len(plain) :]
    return f"{plain} {made}{default}", made


def _without_default(parameter: str) -> str:
    depth = 0
    for position, character in enumerate(parameter):
        depth += (character in "([{<") - (character in ")]}>")
        if character == "=" and depth == 0:
            return parameter[:position].rstrip()
    return parameter


def _flat(text: str) -> str:
    """Return text in one line, without markers of the preprocessor."""
    return " ".join(_MARKER.sub("", text).split())

"""String comparisons in C++ code: the mode values that a tiling function knows."""

from __future__ import annotations

import re

_STRING = r'"((?:\\.|[^"\\\n])*)"'
#: Strings, characters and comments: matching all three keeps one from being found inside another.
_TOKEN = re.compile(rf"{_STRING}|'(?:\\.|[^'\\\n])*'|//[^\n]*|/\*.*?\*/", re.DOTALL)
_PLACE = re.compile(r"\x00(\d+)\x00")
#: A string next to ==, in a comparing call, or among the elements of a table.
_COMPARED = (
    re.compile(r"[=!]=\s*(?:[\w:]+\s*[({]\s*)?\x00(\d+)\x00"),
    re.compile(r"\x00(\d+)\x00\s*(?:[)}]\s*)?[=!]="),
    re.compile(r"\b(?:str(?:n?case)?n?cmp|AscendString|compare|count|find|contains|at)\s*\([^;{}]*?\x00(\d+)\x00"),
)
_TABLE = re.compile(
    r"\b(?:(?:unordered_)?(?:map|set)|vector|array|initializer_list)\s*<[^;={}]*(?:string\w*|String|char\s*\*)[^;={}]*>[^;()]*?"
    r"[={]([^;]*);"
)
_VALUE = re.compile(r"[\w.+-]{1,32}")
#: Upper bound on the strings returned: of more, most are not attr values.
_MOST = 64


def compared_texts(source: str) -> tuple[str, ...]:
    """Return the strings that C++ code compares something with, in order; no sentences and no paths.

    >>> compared_texts('if (strcmp(mode, "sum") == 0) {} // or "mean"')
    ('sum',)
    >>> compared_texts('static const std::map<std::string, int> MODES = {{"a", 0}, {"b", 1}}; Log("no mode");')
    ('a', 'b')
    """
    strings: list[str] = []

    def place(token: re.Match[str]) -> str:
        if token[1] is None:
            return " "
        strings.append(token[1])
        return f"\0{len(strings) - 1}\0"

    code = _TOKEN.sub(place, source)
    found = {int(match[1]) for pattern in _COMPARED for match in pattern.finditer(code)}
    found |= {int(match[1]) for table in _TABLE.finditer(code) for match in _PLACE.finditer(table[1])}
    texts = (strings[number] for number in sorted(found))
    return tuple(dict.fromkeys(text for text in texts if _VALUE.fullmatch(text)))[:_MOST]

"""``constexpr`` constructors that set members in their bodies, which the device's compiler takes and g++ takes as C++20 only.

As C++17 each member needs an initializer. C++20 is no way out for a source with aggregates that declare constructors.
"""

from __future__ import annotations

import re

#: g++'s message with the place of the constructor and the name of the member.
_UNINITIALIZED = re.compile(
    r"^(?P<file>[^\n]*?):(?P<line>\d+):\d+: error: member \W[^\n]*?::(?P<member>\w+)\W must be initialized by mem-initializer",
    re.MULTILINE,
)
_MARKER = re.compile(r'^# (\d+) "((?:[^"\\\n]|\\.)*)".*$', re.MULTILINE)
#: Declaration of a member without an initializer, from the start of its statement on.
_DECLARATION = (
    r"(?:[;{{}}:]|^)\s*(?!(?:return|delete|throw|goto|using|typedef|else|co_return)\b)"
    r"[A-Za-z_][\w:<>,\s*&]*[\s*&>]{}\s*(?:\[[^\][;{{}}]*\]\s*)*(?=;)"
)


def with_initializers(text: str, said: str) -> str:
    """Return preprocessed text with an initializer for each member that g++ says is without one.

    >>> text = '# 1 "a.h"\\nstruct A { constexpr A(int n) { x[0] = n; } int f() { return x[0]; } int x[2]; };\\nint x[3];\\n'
    >>> said = "a.h:1:12: error: member 'A::x' must be initialized by mem-initializer in 'constexpr' constructor"
    >>> print(with_initializers(text, said), end="")
    # 1 "a.h"
    struct A { constexpr A(int n) { x[0] = n; } int f() { return x[0]; } int x[2]{}; };
    int x[3];
    """
    for found in dict.fromkeys(one.groups() for one in _UNINITIALIZED.finditer(said)):
        file, line, member = found
        start = _position(text, file, int(line))
        declared = re.compile(_DECLARATION.format(member), re.MULTILINE).search(text, max(start, 0))
        if start >= 0 and declared is not None:
            text = f"{text[: declared.end()]}{{}}{text[declared.end() :]}"
    return text


def _position(text: str, file: str, line: int) -> int:
    """Return the position of a line of a file in preprocessed text, or -1."""
    markers = list(_MARKER.finditer(text))
    for marker, following in zip(markers, [*markers[1:], None], strict=True):
        end = len(text) if following is None else following.start()
        position, number = marker.end() + 1, int(marker[1])
        if marker[2] != file or not number <= line <= number + text.count("\n", position, end):
            continue
        for _ in range(line - number):
            position = text.index("\n", position) + 1
        return position
    return -1

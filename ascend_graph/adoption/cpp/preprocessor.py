"""Conditions of the preprocessor around a part of a source."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product
from math import prod

_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b[ \t]*(.*?)[ \t]*$", re.MULTILINE)
#: Maximum number of choices that are read.
_MAX_VARIANTS = 8


@lru_cache(maxsize=4)
def _directives(text: str) -> tuple[re.Match[str], ...]:
    """Return the directives of a text, which are asked for once a definition."""
    return tuple(_DIRECTIVE.finditer(text))


def conditions_at(text: str, offset: int) -> tuple[str, ...]:
    """Return the conditions of the preprocessor around an offset, without include guards."""
    stack: list[list[str]] = []
    for match in _directives(text):
        if match.start() >= offset:
            break
        word, rest = match[1], match[2]
        if word in ("if", "ifdef", "ifndef"):
            guard = word == "ifndef" and re.compile(rf"\s*#\s*define\s+{re.escape(rest)}\b").match(text, match.end())
            written = {"ifdef": f"defined({rest})", "ifndef": f"!defined({rest})"}.get(word, rest)
            stack.append([] if guard else [written])
        elif stack and word in ("elif", "else") and stack[-1]:
            stack[-1] = [f"not ({stack[-1][0].removeprefix('not ')})" if word == "else" else rest]
        elif stack and word == "endif":
            stack.pop()
    return tuple(" ".join(one[0].split()) for one in stack if one)


def variants_of(text: list[str], code: list[str], first: int, last: int) -> tuple[str, ...]:
    """Return the code of lines for each choice of the preprocessor's conditions; empty if there are too many.

    Args:
        text: All lines of the file, with directives.
        code: The same lines without comments and directives.
        first: The first of the lines, from 1.
        last: The last of them.
    """
    groups: list[int] = []
    stack: list[tuple[int, int]] = []
    owners: list[tuple[tuple[int, int], ...]] = []
    for number in range(first, last + 1):
        match = _DIRECTIVE.match(text[number - 1])
        if match is not None:
            if match[1] in ("if", "ifdef", "ifndef"):
                stack.append((len(groups), 0))
                groups.append(2)
            elif not stack:
                return ()
            elif match[1] == "endif":
                stack.pop()
            else:
                group, branch = stack.pop()
                stack.append((group, branch + 1))
                groups[group] = max(groups[group], branch + 2)
        owners.append(tuple(stack))
    if stack or prod(groups) > _MAX_VARIANTS:
        return ()
    return tuple(
        "\n".join(
            code[first - 1 + n] if all(chosen[group] == branch for group, branch in owner) else ""
            for n, owner in enumerate(owners)
        )
        for chosen in product(*map(range, groups))
    )

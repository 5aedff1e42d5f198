"""Hints on other notations in a relation: arrows, questions, the operators of Python and C."""

from __future__ import annotations

import re

from ascend_graph.shapes.dtypes import CATEGORY

#: Pattern of the text before a fault, pattern of the text at it, and the line to write; groups are of the second.
_HINTS = tuple(
    (re.compile(rf"(?:{before})\Z", re.DOTALL), re.compile(at), text)
    for before, at, text in (
        (r"", r"→|⇒|=>|-+>", "write '->' between inputs and outputs"),
        (r"\w\s*(?:\[.*?\])?\s*", r"\?", "an input that may be absent has no mark, the prototype says so: leave '?' out"),
        (r"", r"/", "sizes are integers: write a // b, which rounds down, or ceildiv(a, b)"),
        (r"[0-9]", r"\.[0-9]", "sizes are integers: write n * 5 // 2 for n * 2.5"),
        (r"\b(?:torch|np|numpy)\s*", r"\.(\w+)", "write the name alone: {0}"),
        (r"\w\s*", r"\.\w+", "sizes have names in brackets, x[m, n]; write rank(x) and numel(x) for dimensions and elements"),
        (r"", r"&&?", "write 'and'"),
        (r"", r"\|\|?", "write 'or'"),
        (r"", r"!(?!=)", "write 'not'"),
        (r"", r";", "write ',' between tensors, and 'where' before conditions"),
        (r"", r"\^", "write n * n for a power"),
        (r"\*\s*", r"\*", "write n * n for a power"),
        (r"\[[^\]]*\*\s*", r"[\],]", "dimensions that belong together have a name: write *s, or '...' if they broadcast"),
        (r"(?:\A|->|,)\s*", r"\(", "each tensor has its name in the prototype: write x[m, k], w[k, n] -> y[m, n]"),
        (r"[0-9]\s*", r"(\w+)", "write the product with '*': 2 * {0}"),
        (r",\s*", r"where\b", "write no ',' before 'where'"),
        (r"\]\s*", rf"({'|'.join(CATEGORY)})\b", "write ':' before a dtype: y[n]: {0}"),
        (r"\]\s*", r"(\w+)\s*(?:\[|like\b)", "write ',' between tensors: …, {0}[…]"),
        (r",\s*", r"\s*\Z", "leave out the last ','"),
        (r"\A[^>]*", r"\s*\Z", "write the outputs behind the inputs: x[m, k], w[k, n] -> y[m, n]"),
    )
)  # fmt: skip


def hint(source: str, at: int) -> str:
    """Return what to write instead of the text at an offset, after a semicolon; empty if nothing is known.

    Example:
        >>> hint("x[n] -> y[n/2]", 11)
        '; sizes are integers: write a // b, which rounds down, or ceildiv(a, b)'
    """
    before, rest = source[:at], source[at:]
    for earlier, pattern, text in _HINTS:
        if (found := pattern.match(rest)) and earlier.search(before):
            return f"; {text.format(*found.groups())}"
    return ""

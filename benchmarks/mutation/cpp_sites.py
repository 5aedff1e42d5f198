"""Faults of C++ sources, found by their text: conditions of ``if`` and values that are returned."""

from __future__ import annotations

import re

from benchmarks.mutation.sites import Site

#: What the planted text calls; ``HEADER`` defines it.
ASK = "ascend_graph_planted_fault"
#: Stands before the first line of a planted file. A fault's number comes from the environment when a process first asks;
#: with ``AG_REACHED``, a file that holds one byte for each fault, what is asked is noted there.
HEADER = r"""
#ifndef ASCEND_GRAPH_PLANTED_FAULT
#define ASCEND_GRAPH_PLANTED_FAULT
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
inline unsigned char* ascend_graph_planted_notes() {
    const char* path = getenv("AG_REACHED");
    const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return nullptr;
    void* notes = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return notes == MAP_FAILED ? nullptr : static_cast<unsigned char*>(notes);
}
inline bool ascend_graph_planted_fault(int number) {
    static const int active = getenv("AG_FAULT") ? atoi(getenv("AG_FAULT")) : 0;
    static unsigned char* const notes = ascend_graph_planted_notes();
    if (notes) notes[number] = 1;
    return number == active;
}
#endif
"""

_OPERATORS = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ",
              " && ": " || ", " || ": " && "}  # fmt: skip
_ARITHMETIC = {" + ": " - ", " - ": " + ", " * ": " + ", " / ": " * ", " % ": " / "}


class _CppSite(Site):
    def planted(self, number: int) -> str:
        return f"({ASK}({number}) ? {self.wrong} : {self.right})"


def _closing(text: str, opening: int) -> int:
    """Return the place behind the bracket that closes the one at a place, or -1."""
    depth = 0
    for place in range(opening, min(len(text), opening + 600)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    return -1


def _can_run_alone(text: str, place: int) -> bool:
    """Return whether a place is ordinary code: of no macro, comment, raw string or function that a compiler evaluates."""
    start = text.rfind("\n", 0, place) + 1
    end = text.find("\n", place)
    line = text[start:end]
    function = text[max(text.rfind("\n\n", 0, place), text.rfind("\n}", 0, place), 0) : place]
    return not (
        line.rstrip().endswith("\\")
        or line.lstrip().startswith(("//", "#", "*"))
        or "//" in text[start:place]
        or 'R"' in function
        or "constexpr" in function
        or "consteval" in function
        or "#define" in function
    )


def sites(text: str) -> list[Site]:
    """Return the faults that a file's text can have.

    Example:
        >>> [(site.right, site.wrong) for site in sites("int f(int a) {\\n  if (a < 3) return a + 1;\\n  return 0;\\n}\\n")]
        [('(bool(a < 3))', '(bool(a <= 3))'), ('(a + 1)', '(a - 1)')]
    """
    found: list[Site] = []

    def add(start: int, end: int, right: str, wrong: str, kind: str) -> None:
        found.append(_CppSite(start, end, right, wrong, kind, text.count("\n", 0, start) + 1))

    for match in re.finditer(r"\b(?:if|while) \(", text):
        opening = match.end() - 1
        closing = _closing(text, opening)
        condition = text[opening + 1 : closing - 1]
        declares = re.search(r"[^=!<>]=[^=]|;", condition)
        if closing < 0 or declares or "//" in condition or not _can_run_alone(text, match.start()):
            continue
        operators = [op for op in _OPERATORS for _ in range(condition.count(op))]
        wrong = condition.replace(operators[0], _OPERATORS[operators[0]]) if len(operators) == 1 else f"!({condition})"
        add(opening + 1, closing - 1, f"(bool({condition}))", f"(bool({wrong}))", "condition")
    for match in re.finditer(r"\breturn ([^;{}\"?]+);", text):
        value = match[1]
        operators = [op for op in _ARITHMETIC for _ in range(value.count(op))]
        if len(operators) == 1 and "//" not in value and _can_run_alone(text, match.start()):
            wrong = value.replace(operators[0], _ARITHMETIC[operators[0]])
            add(match.start(1), match.end(1), f"({value})", f"({wrong})", "return")
    return sorted(found)


def planted(text: str, chosen: dict[int, Site]) -> str:
    """Return the text with the numbered faults."""
    for number, site in sorted(chosen.items(), key=lambda item: -item[1].start):
        text = text[: site.start] + site.planted(number) + text[site.end :]
    return HEADER + text

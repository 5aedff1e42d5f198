"""Findings and tallies of comparisons, as values to pass between processes."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class FuzzFinding:
    """Difference of a mode from the CPU: kind (``raises``, ``died``, ``value of outputs``, …) and message."""

    item: str
    mode: str
    kind: str
    message: str

    def key(self) -> tuple[str, str, str]:
        """Return what stays the same while a program shrinks: mode, kind and, for an error, the pattern of its text."""
        return self.mode, self.kind, pattern_of(self.message) if self.kind == "raises" else ""


def pattern_of(message: str) -> str:
    """Return the first line of an error without the numbers and names that belong to one program."""
    first = next((line for line in message.splitlines() if line.strip()), "")
    first = re.sub(r"\b[a-z]+_?\d[\w.]*|\d+", "#", first)
    return re.sub(r"[\[(][#,\s*-]*[\])]", "#", first)[:120]


@dataclass
class FuzzTally:
    """Tally of the results of some programs or operators."""

    items: int = 0
    #: Kind of item: ``program``, ``operator`` or ``woven``.
    kind: str = "program"
    comparisons: int = 0
    findings: list[FuzzFinding] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)

    def add(self, other: FuzzTally) -> None:
        """Add another tally to this one."""
        self.items += other.items
        self.comparisons += other.comparisons
        self.findings += other.findings
        self.refused += other.refused
        self.known += other.known

"""Diagnostics of a reader about a source: errors lose an op, warnings leave it usable."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

#: Upper bound on the characters shown of a source line, around the position of the diagnostic.
_SHOWN = 120


class Severity(enum.Enum):
    """Severity of a diagnostic: an ERROR lost part of the source, a WARNING kept everything usable."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One diagnostic for one position of a source; line and column count from 1, 0 means the whole file."""

    severity: Severity
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    source_line: str = ""
    #: The op that the diagnostic is about, if known.
    op_type: str = ""

    def __str__(self) -> str:
        """Return ``file:line:column: severity: message``, then the source line and a caret."""
        place = f"{self.file or '<text>'}:{self.line}:{self.column}" if self.line else self.file or "<text>"
        head = f"{place}: {self.severity.value}: {self.message}"
        if not self.source_line.strip():
            return head
        start = max(0, self.column - 1 - _SHOWN // 2)
        shown = self.source_line[start : start + _SHOWN].replace("\t", " ")
        shown = "".join(character if character.isprintable() else "?" for character in shown)
        return f"{head}\n    {shown}\n    {' ' * (self.column - 1 - start)}^"

    def as_json(self) -> dict[str, Any]:
        """Return the diagnostic as the JSON of the command line."""
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "severity": self.severity.value,
            "message": self.message,
        }


class Diagnosed:
    """Base of results of reading: values with the diagnostics about their source."""

    __slots__ = ()
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """Diagnostics of severity ERROR: each means that something was lost."""
        return tuple(diagnostic for diagnostic in self.diagnostics if diagnostic.severity is Severity.ERROR)

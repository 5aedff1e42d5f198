"""What a reader has to say about a source: errors that lose an op, warnings that leave it usable."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

#: A line of source is shown up to this many characters around the place meant.
_SHOWN = 120


class Severity(enum.Enum):
    """An ERROR means that something of the source was lost; after a WARNING everything usable was kept."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One remark about one place of a source; line and column count from 1, 0 means the file as a whole."""

    severity: Severity
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    source_line: str = ""
    #: The op the remark is about, where one is known.
    op_type: str = ""

    def __str__(self) -> str:
        """``file:line:column: severity: message``, then the source line and a caret."""
        place = f"{self.file or '<text>'}:{self.line}:{self.column}" if self.line else self.file or "<text>"
        head = f"{place}: {self.severity.value}: {self.message}"
        if not self.source_line.strip():
            return head
        start = max(0, self.column - 1 - _SHOWN // 2)
        shown = self.source_line[start : start + _SHOWN].replace("\t", " ")
        shown = "".join(character if character.isprintable() else "?" for character in shown)
        return f"{head}\n    {shown}\n    {' ' * (self.column - 1 - start)}^"

    def as_json(self) -> dict[str, Any]:
        """The diagnostic as the command line's JSON has it."""
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "severity": self.severity.value,
            "message": self.message,
        }

"""Findings of ``doctor``: one line for each checked subject."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """Finding about one subject: the result, whether something has to be done, and the line that fixes it."""

    subject: str
    text: str
    is_wrong: bool = False
    #: Line for a shell or a program, or advice if no such line exists.
    fix: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as JSON-compatible values."""
        return {"subject": self.subject, "text": self.text, "is_wrong": self.is_wrong, "fix": self.fix}

"""What an examination says: one line for each thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was looked at, what was found, whether something has to be done, and the line that does it."""

    subject: str
    text: str
    is_wrong: bool = False
    #: A line for a shell or a program, or what to do where there is none.
    mend: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The finding as values that JSON has."""
        return {"subject": self.subject, "text": self.text, "is_wrong": self.is_wrong, "mend": self.mend}

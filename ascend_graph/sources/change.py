"""What changed between two versions of something that callers use."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Effect(enum.Enum):
    """What a change does to code written for the old version."""

    #: A call that was right fails or means something else, or a node that was right is refused.
    BREAKS = "breaks"
    #: Calls keep working; what they compute by default may differ.
    CHANGES = "changes"
    #: Everything that worked works the same.
    EXTENDS = "extends"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference of one op or aclnn function."""

    #: The op type, or the function's name.
    op_type: str
    effect: Effect
    text: str

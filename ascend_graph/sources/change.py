"""Differences between two versions of something that callers use."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Effect(enum.Enum):
    """Effects of a change on code written for the old version."""

    #: A valid call fails or means something else, or a valid node is rejected.
    BREAKS = "breaks"
    #: Calls keep working; what they compute by default may differ.
    CHANGES = "changes"
    #: Everything that worked works the same.
    EXTENDS = "extends"


@dataclass(frozen=True, slots=True)
class SourceChange:
    """One difference of one op or aclnn function."""

    #: The op type, or the function's name.
    op_type: str
    effect: Effect
    text: str

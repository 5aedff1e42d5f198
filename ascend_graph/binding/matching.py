"""Pairs that neither side could have otherwise: how every side of the binding is matched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

Target = TypeVar("Target")


def only_pairs(possible: Mapping[int, Sequence[Target]]) -> Iterator[tuple[int, Target]]:
    """Of what each position could be: the pairs where it could be nothing else, and no other position could be that.

    >>> list(only_pairs({0: ["x"], 1: ["y", "z"], 2: ["w"], 3: ["w"]}))
    [(0, 'x')]
    """
    for position, found in possible.items():
        if len(found) == 1 and not any(found[0] in theirs for n, theirs in possible.items() if n != position):
            yield position, found[0]

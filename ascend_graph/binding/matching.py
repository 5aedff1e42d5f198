"""Unambiguous pairs of names, for every side of a binding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

Target = TypeVar("Target", bound=Hashable)


def only_pairs(possible: Mapping[int, Sequence[Target]]) -> Iterator[tuple[int, Target]]:
    """Yield the (position, candidate) pairs that are unambiguous in both directions.

    >>> list(only_pairs({0: ["x"], 1: ["y", "z"], 2: ["w"], 3: ["w"]}))
    [(0, 'x')]
    """
    count = Counter(target for found in possible.values() for target in found)
    for position, found in possible.items():
        if len(found) == 1 and count[found[0]] == 1:
            yield position, found[0]


def only_readings(
    positions: Collection[int],
    targets: Sequence[Target],
    reads: Callable[[int, Target], bool],
    open_: Collection[int],
    is_free: Callable[[Target], bool],
) -> tuple[list[tuple[int, Target]], dict[int, list[Target]]]:
    """Pair names that are the same without case or an ending, if the pair is unambiguous.

    A name that already has a partner, for a better reason, remains a reading of the others: if ``x`` is ``x``, then
    ``x_ref`` does not become ``xOptional``.

    Args:
        positions: All names of one side.
        targets: All names of the other side.
        reads: Tells whether a position and a target may be the same.
        open_: The positions without a partner.
        is_free: Tells whether a target is without a partner.

    Returns:
        The pairs, and all readings of each position that stays open although a target is free for it.

    >>> def same(position, target):
    ...     return target.startswith("x")
    >>> only_readings([0], ["x"], same, [0], lambda target: True)
    ([(0, 'x')], {})
    >>> only_readings([0], ["x", "xRef"], same, [0], lambda target: target != "x")
    ([], {0: ['x', 'xRef']})
    """
    readings = {position: [target for target in targets if reads(position, target)] for position in positions}
    pairs: list[tuple[int, Target]] = []
    doubtful: dict[int, list[Target]] = {}
    for position in open_:
        found = readings[position]
        if not any(is_free(target) for target in found):
            continue
        others = any(found[0] in theirs for n, theirs in readings.items() if n != position)
        if len(found) == 1 and not others:
            pairs.append((position, found[0]))
        else:
            doubtful[position] = found
    return pairs, doubtful


def either_reading(readings: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return the message that lists the possible readings of each name.

    >>> either_reading([("x_ref", ["x", "xOptional"])])
    'x_ref may be x or xOptional: these names are the same but for case, underscores or an ending'
    """
    said = ", ".join(f"{name} may be {' or '.join(dict.fromkeys(targets))}" for name, targets in readings)
    return f"{said}: these names are the same but for case, underscores or an ending"

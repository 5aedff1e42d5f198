"""Maps that a function looks values up in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ascend_graph.adoption.interpreter.conditions import choice, combined, compared, negated, truth
from ascend_graph.adoption.interpreter.sizes import SizesIterator
from ascend_graph.adoption.interpreter.values import UNDEFINED, UNKNOWN, Choice, Sizes


@dataclass(frozen=True, slots=True)
class MapEntry:
    """Result of ``map.find(key)``."""

    pairs: tuple[tuple[Any, Any], ...]
    key: Any


def pairs_of(value: Any) -> tuple[tuple[Any, Any], ...] | None:
    """Return the keys and values of a map that is written as a list of pairs, or None."""
    if not isinstance(value, Sizes) or not value.items:
        return None
    pairs = [tuple(one.items) for one in value.items if isinstance(one, Sizes) and len(one.items) == 2]
    return tuple((a, b) for a, b in pairs) if len(pairs) == len(value.items) else None


def found_value(entry: MapEntry) -> Any:
    """Return the value that a map holds for a key; a key that it does not hold is an error of the function."""
    key = entry.key
    if isinstance(key, Choice):
        return choice(
            key.condition,
            found_value(MapEntry(entry.pairs, key.then)),
            found_value(MapEntry(entry.pairs, key.otherwise)),
        )
    made: Any = UNDEFINED
    for one, value in reversed(entry.pairs):
        made = choice(compared("==", key, one), value, made)
    return UNKNOWN if made == UNDEFINED else made


def is_held(entry: MapEntry) -> Any:
    """Return whether a map holds a key, as a condition."""
    key = entry.key
    if isinstance(key, Choice):
        then, otherwise = (is_held(MapEntry(entry.pairs, one)) for one in (key.then, key.otherwise))
        return truth(choice(key.condition, then, otherwise))
    return combined("or", [compared("==", key, one) for one, _ in entry.pairs])


def map_method(owner: Any, name: str, arguments: list[Any]) -> Any | None:
    """Return the result of a method of a map; None if it is not one."""
    if len(arguments) != 1 or name not in ("find", "at", "count", "contains"):
        return None
    pairs = pairs_of(owner)
    if pairs is None:
        return None
    entry = MapEntry(pairs, arguments[0])
    if name == "find":
        return entry
    return found_value(entry) if name == "at" else is_held(entry)


def map_compared(operator: str, left: Any, right: Any) -> Any | None:
    """Return ``found != map.end()`` as a condition; None if it is another comparison."""
    if isinstance(right, MapEntry):
        left, right = right, left
    if not isinstance(left, MapEntry) or not isinstance(right, SizesIterator) or not right.is_end:
        return None
    if pairs_of(right.sizes) != left.pairs or operator not in ("==", "!="):
        return UNKNOWN
    held = is_held(left)
    return held if operator == "!=" else negated(held)

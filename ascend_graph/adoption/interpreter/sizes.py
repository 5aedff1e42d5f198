"""Shapes of the interpreter: their items, parts, lengths and iterators; one that is not certain is unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ascend_graph.adoption.interpreter.conditions import choice, operation
from ascend_graph.adoption.interpreter.values import (
    UNKNOWN,
    ArgumentValue,
    Assembled,
    Choice,
    Constant,
    Element,
    Input,
    Operation,
    Property,
    Several,
    SizeRun,
    Sizes,
    SizeValue,
    Slice,
    is_known,
)


@dataclass(frozen=True, slots=True)
class SizesIterator:
    """Iterator over sizes: their begin or their end."""

    sizes: Sizes
    #: Number of items after the begin, or before the end.
    offset: Any
    is_end: bool


def length(value: Any) -> Any:
    """Return the number of items."""
    if isinstance(value, Sizes):
        slices = [one for one in value.items if isinstance(one, Slice)]
        if not slices:
            return Constant(len(value.items))
        if len(value.items) == 1 and value.items[0] == Slice(slices[0].tensor):
            return Property(slices[0].tensor, "rank")
        return UNKNOWN
    return Property(value.name, "len") if isinstance(value, Input | ArgumentValue) else UNKNOWN


def item_of(owner: Any, index: Any) -> Any:
    """Return an item of sizes, a tuple, a list argument or an attr by its index."""
    if isinstance(owner, Choice):
        return choice(owner.condition, item_of(owner.then, index), item_of(owner.otherwise, index))
    number = index.value if isinstance(index, Constant) else None
    if isinstance(owner, Input) and isinstance(number, int) and number >= 0:
        return Element(owner.name, number)
    if isinstance(owner, Several) and isinstance(number, int) and -len(owner.items) <= number < len(owner.items):
        return owner.items[number]
    if isinstance(owner, ArgumentValue) and isinstance(number, int):
        return Operation("item", (owner, Constant(number)))
    if not isinstance(owner, Sizes):
        return UNKNOWN
    items = owner.items
    if number is None:
        # x.size(x.dim() - 1) is x.size(-1).
        if len(items) == 1 and isinstance(items[0], Slice) and items[0] == Slice(items[0].tensor):
            back = from_end(index, items[0].tensor)
            if back is not None:
                return SizeValue(items[0].tensor, back)
            if isinstance(index, Choice):
                return choice(index.condition, item_of(owner, index.then), item_of(owner, index.otherwise))
            if isinstance(index, ArgumentValue | Operation) and is_known(index):
                return Operation("size", (Input(items[0].tensor), index))
        return UNKNOWN
    if not isinstance(number, int) or isinstance(number, bool):
        return UNKNOWN
    if not any(isinstance(one, Slice) for one in items):
        return items[number] if -len(items) <= number < len(items) else UNKNOWN
    position = number if number >= 0 else len(items) + number
    if number >= 0:
        for n, one in enumerate(items):
            if isinstance(one, Slice):
                if one.stop is not None and one.stop >= 0 and one.start + number - n >= one.stop:
                    return UNKNOWN
                return SizeValue(one.tensor, one.start + number - n) if one.start >= 0 else UNKNOWN
            if n == position:
                return one
    else:
        for n, one in enumerate(reversed(items)):
            if isinstance(one, Slice):
                end = 0 if one.stop is None else one.stop
                return SizeValue(one.tensor, end + number + n) if end <= 0 else UNKNOWN
            if n == -number - 1:
                return one
    return UNKNOWN


def whole_of(value: Any) -> str | None:
    """Return the argument whose whole shape a value is, or None."""
    only = value.items[0] if isinstance(value, Sizes) and len(value.items) == 1 else None
    return only.tensor if isinstance(only, Slice) and only == Slice(only.tensor) else None


def from_end(index: Any, tensor: str) -> int | None:
    """Return the negative axis that ``x.dim() - n`` is, or None."""
    if isinstance(index, Operation) and index.operator == "-":
        left, right = index.operands
        if left == Property(tensor, "rank") and isinstance(right, Constant) and isinstance(right.value, int):
            return -right.value if right.value > 0 else None
    return None


def range_of(tensor: str, first: Any, last: Any) -> tuple[Any, ...] | None:
    """Return the sizes of an argument from one axis to another, or None."""
    start = first.value if isinstance(first, Constant) else from_end(first, tensor)
    if last == Property(tensor, "rank"):
        stop = None
    else:
        stop = last.value if isinstance(last, Constant) else from_end(last, tensor)
        if stop is None:
            return None
    if not isinstance(start, int) or isinstance(start, bool):
        return None
    if isinstance(stop, int) and stop >= 0 and start >= 0:
        return tuple(SizeValue(tensor, n) for n in range(start, stop)) if stop - start <= 16 else None
    return (Slice(tensor, start, stop),)


def cut(owner: Sizes, lower: Any, upper: Any) -> Any:
    """Return a part of a shape, as Python slices it."""
    bounds: list[int | None] = []
    for one in (lower, upper):
        if one is None or (isinstance(one, Constant) and one.value is None):
            bounds.append(None)
        elif isinstance(one, Constant) and isinstance(one.value, int):
            bounds.append(one.value)
        elif len(owner.items) == 1 and isinstance(owner.items[0], Slice):
            back = from_end(one, owner.items[0].tensor)
            if back is None:
                return UNKNOWN
            bounds.append(back)
        else:
            return UNKNOWN
    low, high = bounds
    if not any(isinstance(one, Slice) for one in owner.items):
        return Sizes(owner.items[low:high])
    only = owner.items[0] if len(owner.items) == 1 else None
    if not isinstance(only, Slice) or only != Slice(only.tensor):
        return UNKNOWN
    start = low or 0
    if high is not None and start >= 0 and high >= 0:
        return Sizes(tuple(SizeValue(only.tensor, n) for n in range(start, min(high, start + 17))))
    if start < 0:
        stop = high if high is not None else 0
        return Sizes(tuple(SizeValue(only.tensor, n) for n in range(start, stop))) if stop <= 0 else UNKNOWN
    return Sizes((Slice(only.tensor, start, high),))


def sliced(owner: Sizes, arguments: list[Any]) -> Any:
    """Return ``sizes.slice(start, count)``."""
    if not arguments or not all(isinstance(one, Constant) for one in arguments):
        return UNKNOWN
    start = arguments[0]
    stop = Constant(start.value + arguments[1].value) if len(arguments) > 1 else None
    return cut(owner, start, stop)


def between(begin: SizesIterator, end: SizesIterator) -> Any:
    """Return the sizes between two iterators of them."""
    whole = whole_of(begin.sizes)
    if begin.is_end or begin.sizes != end.sizes:
        return UNKNOWN
    if end.is_end:
        # The numbers of an iterator are plain while nothing was added to it.
        skipped, left = (one if isinstance(one, Constant) else Constant(one) for one in (begin.offset, end.offset))
        if not all(type(one.value) is int and one.value >= 0 for one in (skipped, left)):
            return UNKNOWN
        return cut(begin.sizes, skipped, Constant(-left.value) if left.value else None)
    if begin.offset != 0:
        return UNKNOWN
    return (
        Assembled((SizeRun(whole, Constant(0), end.offset),)) if whole is not None and is_known(end.offset) else UNKNOWN
    )


def unpacked(value: Any, count: int) -> tuple[Any, ...]:
    """Return the values of an assignment to several names."""
    if isinstance(value, Several) and len(value.items) == count:
        return value.items
    if isinstance(value, Sizes):
        if not any(isinstance(one, Slice) for one in value.items):
            return value.items if len(value.items) == count else (UNKNOWN,) * count
        if len(value.items) == 1 and value.items[0] == Slice(value.items[0].tensor):
            return tuple(SizeValue(value.items[0].tensor, n) for n in range(count))
    return (UNKNOWN,) * count


def joined(parts: list[Any]) -> Any:
    """Return sizes that are given one by one as a shape."""
    items: list[Any] = []
    for one in parts:
        if isinstance(one, Sizes):
            items += one.items
        elif isinstance(one, Constant | ArgumentValue | SizeValue | Property | Operation | Choice):
            items.append(one)
        else:
            return UNKNOWN
    return Sizes(tuple(items))


def number_of_items(sizes: Any) -> Any:
    """Return the number of items of a tensor of these sizes."""
    factors = _factors(sizes) if isinstance(sizes, Sizes) else None
    return UNKNOWN if factors is None else _product(factors)


def with_inferred_size(sizes: Sizes, before: Sizes) -> Any:
    """Return the sizes of a tensor with ``before`` that gets the shape ``sizes``, of which one may be -1."""
    places = [n for n, one in enumerate(sizes.items) if one == Constant(-1)]
    if not places:
        return sizes
    items, factors = list(sizes.items), _factors(before)
    divisors = _factors(Sizes((*items[: places[0]], *items[places[0] + 1 :])))
    if len(places) > 1 or factors is None or divisors is None:
        return UNKNOWN
    for one in list(divisors):
        if one in factors:
            factors.remove(one)
            divisors.remove(one)
    number = _product(factors)
    items[places[0]] = operation("//", number, _product(divisors)) if divisors else number
    return Sizes(tuple(items))


def _factors(sizes: Sizes) -> list[Any] | None:
    """Return the numbers whose product is the number of items; None if that is not certain."""
    found: list[Any] = []
    for one in sizes.items:
        if isinstance(one, Slice):
            if one != Slice(one.tensor):
                return None
            found.append(Property(one.tensor, "numel"))
        elif isinstance(one, Operation) and one.operator == "*":
            inner = _factors(Sizes(one.operands))
            if inner is None:
                return None
            found += inner
        elif one != Constant(1):
            found.append(one)
    return found if all(map(is_known, found)) else None


def _product(factors: list[Any]) -> Any:
    made: Any = Constant(1)
    for number, one in enumerate(factors):
        made = one if number == 0 else operation("*", made, one)
    return made

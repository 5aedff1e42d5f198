"""Runtime operations of compiled relations on sizes: arithmetic, broadcasting, axis placement, and display.

Sizes are ints or anything that computes like them. Symbolic integers are recognized by their methods, so this module
does not import torch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ascend_graph.shapes.dtypes import PromotionOperand
from ascend_graph.shapes.errors import ShapeError

Check = Callable[[Any, Callable[[], str]], None]
Decide = Callable[[Any], bool]


def broadcast(a: Sequence[Any], b: Sequence[Any], check: Check, decide: Decide) -> tuple[Any, ...]:
    """Return the common shape of two shapes, aligned at the right; a size of 1 stretches."""
    if len(a) < len(b):
        a, b = b, a
    offset = len(a) - len(b)
    result = list(a)
    for position, y in enumerate(b):
        x = result[offset + position]
        if x is y or (x == y) is True or decide(y == 1):
            continue
        if not decide(x == 1):
            message = f"{show_shape(a)} and {show_shape(b)} do not broadcast: {x} and {y} differ and neither is 1"
            check(x == y, partial(str, message))
            # A known size says more than a symbolic one.
            if y.__class__ is not int:
                continue
        result[offset + position] = y
    return tuple(result)


def whole(number: Any) -> int | None:
    """Return a number as an int, or None if it is not an integer.

    A symbolic number gives its value; the traced graph then holds only for that value, and has a guard for it.
    """
    try:
        return operator.index(number)
    except TypeError:
        return None


#: Limit of numbers: 63 bits and a sign, as in C++. Without a limit, repeated squaring would not end.
MAX_NUMBER = 2**63 - 1


def within(number: Any, shown: object) -> Any:
    """Return ``number``, or raise ``ShapeError`` if it is beyond 64 bits.

    A symbolic number is checked by its value for the traced sizes.
    """
    # Asking a symbolic number itself would be a guard for every operation.
    known = number if number.__class__ is int else getattr(getattr(number, "node", None), "hint", None)
    if known.__class__ is int and not -MAX_NUMBER <= known <= MAX_NUMBER:
        raise ShapeError(f"{shown} must fit into 64 bits: {known if abs(known) < 2**128 else 'a larger number'}")
    return number


def product(sizes: Sequence[Any], shown: object = "a product") -> Any:
    """Return the product of all sizes, 1 for an empty list."""
    result: Any = 1
    for size in sizes:
        result = within(result * size, shown)
    return result


def total(sizes: Sequence[Any], shown: object = "a sum") -> Any:
    """Return the sum of all sizes, 0 for an empty list."""
    result: Any = 0
    for size in sizes:
        result = within(size if result.__class__ is int and result == 0 else result + size, shown)
    return result


def extreme(function: str, values: Sequence[Any]) -> Any:
    """Return ``min`` or ``max`` of the values without branching on symbolic integers."""
    method = f"__sym_{function}__"
    best = values[0]
    for value in values[1:]:
        if hasattr(best, method):
            best = getattr(best, method)(value)
        elif hasattr(value, method):
            best = getattr(value, method)(best)
        else:
            best = min(best, value) if function == "min" else max(best, value)
    return best


def among(value: Any, items: Any) -> Any:
    """Return whether ``value`` equals one of ``items``; a symbolic integer gives one condition, not a branch each."""
    if value.__class__ is int or not hasattr(value, "__sym_min__"):
        return value in items
    holds: Any = False
    for item in items:
        holds = (value == item) | holds
    return holds


def negated(condition: Any) -> Any:
    """Return ``not condition``, symbolic if the condition is."""
    return condition.__sym_not__() if hasattr(condition, "__sym_not__") else not condition


def item_of(items: Sequence[Any], at: int, shown: object) -> Any:
    """Return an element of the list ``shown``; a negative position counts from the end."""
    if not -len(items) <= at < len(items):
        needed = at + 1 if at >= 0 else -at
        raise ShapeError(
            f"{shown} has {len(items)} element(s), so {at} is out of range: {show(items)}; expected at least {needed}"
        )
    return items[at]


def part_of(items: Sequence[Any], start: int, stop: int, shown: object) -> tuple[Any, ...]:
    """Return the part of a list from ``start`` up to ``stop``; negative positions count from the end."""
    count = len(items)
    first, last = (at + count if at < 0 else at for at in (start, stop))
    if not 0 <= first <= last <= count:
        raise ShapeError(
            f"{shown} is from {start} to {stop} of {count} element(s): {show(items)}; both must be between {-count} and "
            f"{count}, the end not before the start"
        )
    return tuple(items[first:last])


def position_of(items: Sequence[Any], wanted: Any, shown: object) -> int:
    """Return the first position of a number in a list."""
    if wanted not in items:
        raise ShapeError(f"{shown}: {show(items)} must hold {wanted}")
    return items.index(wanted)


def reshape(
    source: Sequence[Any], wanted: Sequence[Any], shown: str, check: Check, decide: Decide = bool
) -> tuple[Any, ...]:
    """Return the wanted sizes, with -1 replaced so that the number of elements stays that of ``source``."""
    for size in wanted:
        if isinstance(size, bool) or decide(size < -1):
            raise ShapeError(f"{shown}: {show(size)} must be a size, 0 or more, or -1: {show(list(wanted))}")
    unknown = [n for n, size in enumerate(wanted) if decide(size == -1)]
    if len(unknown) > 1:
        raise ShapeError(f"{shown}: only one size may be -1, got {list(wanted)}")
    rest = product([size for n, size in enumerate(wanted) if n not in unknown], shown)
    elements = product(source, shown)
    if not unknown:
        fits = elements == rest
    else:
        if rest.__class__ is int and rest == 0:
            raise ShapeError(f"{shown}: -1 next to a size of 0 means nothing: {list(wanted)}. Give all sizes")
        fits = elements % rest == 0
    if fits is not True:
        check(fits, lambda: f"{shown}: {elements} elements do not fill {list(wanted)}")
    return tuple([elements // rest if n in unknown else size for n, size in enumerate(wanted)])


def axes_of(axes: Sequence[Any], many: bool, rank: int, shown: str) -> tuple[int, ...]:
    """Return the axes of a list, counted from 0; exactly one unless ``many``."""
    if not many and len(axes) != 1:
        raise ShapeError(f"{shown}: expected one axis for one dimension, got {list(axes)}")
    found = []
    for given in axes:
        axis = None if isinstance(given, bool) else whole(given)
        if axis is None:
            raise ShapeError(f"{shown}: an axis must be an integer, got {show(given)}")
        if not -rank <= axis < rank:
            raise ShapeError(
                f"{shown}: axis {axis} is out of range; with {rank} dimension(s) it is from {-rank} to {rank - 1}"
            )
        found.append(axis % rank)
    return tuple(found)


def operand_of(value: Any) -> PromotionOperand[Any]:
    """Return the promotion operand of an input, or of the first in a list of inputs."""
    if isinstance(value, list | tuple):
        value = value[0]
    return PromotionOperand(value.dtype, len(value.shape) > 0)


def show_shape(sizes: Sequence[Any]) -> str:
    return f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"


def show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"

"""Layouts of strided tensors in one memory: their overlap, and the place of a view once its base is compact.

Sizes may be symbolic. Conditions on them go to ``holds``, which evaluates them. ``bool`` guards on the answer; a
function that answers False for unknown conditions makes no guard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

#: Integer, possibly symbolic.
Int = Any
#: Function that evaluates a condition over such integers.
Holds = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes, strides and offset of a tensor, in elements of its memory."""

    size: tuple[Int, ...]
    stride: tuple[Int, ...]
    offset: Int

    def steps(self, holds: Holds) -> list[tuple[Int, Int]]:
        """Return size and stride of the dimensions along which the tensor moves."""
        return [(n, s) for n, s in zip(self.size, self.stride, strict=True) if not holds(n == 1) and not holds(s == 0)]

    def last(self, holds: Holds) -> Int:
        """Return the position of the last element."""
        return self.offset + sum((n - 1) * s for n, s in self.steps(holds))


def layout_of(tensor: Any) -> Layout:
    """Return the layout of a tensor."""
    return Layout(tuple(tensor.size()), tuple(tensor.stride()), tensor.storage_offset())


def traced_layout(tensor: Any) -> Layout | None:
    """Return the layout of a tensor for the sizes that it was traced with; None if one of them is of data."""
    layout = layout_of(tensor)
    numbers = [getattr(n, "node", n) for n in (*layout.size, *layout.stride, layout.offset)]
    known = [getattr(n, "hint", n) for n in numbers]
    rank = len(layout.size)
    return None if None in known else Layout(tuple(known[:rank]), tuple(known[rank:-1]), known[-1])


def compact_strides(size: Sequence[Int]) -> tuple[Int, ...]:
    """Return the strides of a contiguous tensor.

    >>> compact_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for n in reversed(size):
        strides.append(step)
        step = step * n
    return tuple(reversed(strides))


# ------------------------------------------------------------------------------------------------------------- overlap


def are_apart(a: Layout, b: Layout, holds: Holds) -> bool:
    """Return whether two tensors in one memory are known to share no element.

    Halves of columns interleave in memory and share no element; overlapping windows do:

    >>> left, right = Layout((4, 3), (6, 1), 0), Layout((4, 3), (6, 1), 3)
    >>> are_apart(left, right, bool), are_apart(left, Layout((4, 3), (6, 1), 2), bool)
    (True, False)

    So they do where the whole begins within a row of the memory:

    >>> are_apart(Layout((4, 3), (6, 1), 3), Layout((4, 3), (6, 1), 6), bool)
    True
    """
    if _are_apart(a, b, holds):
        return True
    for first, other in ((a, b), (b, a)):
        if holds(first.offset <= other.offset):
            a, b = (Layout(one.size, one.stride, one.offset - first.offset) for one in (a, b))
            return _are_apart(a, b, holds)
    return False


def _are_apart(a: Layout, b: Layout, holds: Holds) -> bool:
    """Return whether two tensors share no element in the grid that their strides make from the memory's start."""
    if any(holds(n == 0) for layout in (a, b) for n in layout.size):
        return True
    if holds(a.last(holds) < b.offset) or holds(b.last(holds) < a.offset):
        return True
    strides = _descending([s for layout in (a, b) for _, s in layout.steps(holds)], holds)
    if not strides or any(not holds(s % inner == 0) for s, inner in pairwise(strides)):
        return False
    smallest = strides[-1]
    if holds(a.offset % smallest != b.offset % smallest):
        return True
    if not holds(a.offset % smallest == b.offset % smallest):
        return False
    ranges = [_ranges(layout, strides, holds) for layout in (a, b)]
    if None in ranges:
        return False
    return any(
        holds(first + extent < other) or holds(other + other_extent < first)
        for (first, extent), (other, other_extent) in zip(*ranges, strict=True)
    )


def _ranges(layout: Layout, strides: Sequence[Int], holds: Holds) -> list[tuple[Int, Int]] | None:
    """Return first index and extent of a tensor in the grid of these strides; None if it leaves a row."""
    found, rest = [], layout.offset
    for n, stride in enumerate(strides):
        first, rest = rest // stride, rest % stride
        extent: Int = 0
        for size, step in layout.steps(holds):
            if holds(step == stride):
                extent = extent + (size - 1)
        if n and not holds((first + extent) * stride < strides[n - 1]):
            return None
        found.append((first, extent))
    return found


def _descending(values: Sequence[Int], holds: Holds) -> list[Int]:
    """Return the values without repetitions, the largest first, as far as their order is known."""

    def order(a: Int, b: Int) -> int:
        return -1 if holds(a > b) else 1

    kept: list[Int] = []
    for value in sorted(values, key=cmp_to_key(order)):
        if not kept or not holds(kept[-1] == value):
            kept.append(value)
    return kept


# ------------------------------------------------------------------------------------------------- views of compact bases


def in_compact(base: Layout, view: Layout, holds: Holds) -> Layout | None:
    """Return the layout of a view once its base is contiguous at offset 0; None if it is unknown.

    The second row of columns 2 to 5 of an 8 by 8 matrix:

    >>> in_compact(Layout((4, 4), (8, 1), 2), Layout((4,), (1,), 10), bool)
    Layout(size=(4,), stride=(1,), offset=4)
    """
    axes = _axes(base, holds)
    if axes is None:
        return None
    firsts = _digits(view.offset - base.offset, axes, holds)
    steps = [
        (0,) * len(axes) if holds(n == 1) else _digits(s, axes, holds)
        for n, s in zip(view.size, view.stride, strict=True)
    ]
    if firsts is None or None in steps:
        return None
    for axis, (size, _, _) in enumerate(axes):
        reach = firsts[axis] + sum(digits[axis] * (n - 1) for n, digits in zip(view.size, steps, strict=True))  # type: ignore[index]
        if not holds(reach < size):
            return None
    inner = [compact for _, _, compact in axes]
    strides = tuple(sum(d * c for d, c in zip(digits, inner, strict=True)) for digits in steps)  # type: ignore[arg-type]
    return Layout(view.size, strides, sum(d * c for d, c in zip(firsts, inner, strict=True)))


def _axes(base: Layout, holds: Holds) -> list[tuple[Int, Int, Int]] | None:
    """Return size, stride and compact stride of a base's dimensions, outermost first, with adjacent ones merged.

    None if elements of the base share memory, or its strides are not known to nest.
    """
    dims = [
        (n, s, c)
        for n, s, c in zip(base.size, base.stride, compact_strides(base.size), strict=True)
        if not holds(n == 1)
    ]

    def order(a: tuple[Int, Int, Int], b: tuple[Int, Int, Int]) -> int:
        return -1 if holds(a[1] > b[1]) else 1

    dims.sort(key=cmp_to_key(order))
    axes: list[tuple[Int, Int, Int]] = []
    for n, s, c in dims:
        if holds(s == 0):
            return None
        if axes:
            size, stride, compact = axes[-1]
            if holds(stride == s * n) and holds(compact == c * n):
                axes[-1] = (size * n, s, c)
                continue
            if not holds(stride >= s * n):
                return None
        axes.append((n, s, c))
    return axes


def _digits(value: Int, axes: Sequence[tuple[Int, Int, Int]], holds: Holds) -> tuple[Int, ...] | None:
    """Return the steps along each axis that make a distance in memory, or None."""
    digits = []
    for _, stride, _ in axes:
        digits.append(value // stride)
        value = value % stride
    return tuple(digits) if holds(value == 0) else None

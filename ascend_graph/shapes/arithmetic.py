"""What a compiled relation does with sizes when it runs: computing, broadcasting, placing axes; and showing them.

Sizes are ints or anything that computes like them. Symbolic integers are told by their methods, so that nothing here
imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ascend_graph.shapes.dtypes import Operand
from ascend_graph.shapes.errors import ShapeError
from ascend_graph.shapes.syntax import Expr

Check = Callable[[Any, Callable[[], str]], None]
Decide = Callable[[Any], bool]


def broadcast(a: Sequence[Any], b: Sequence[Any], check: Check, decide: Decide) -> tuple[Any, ...]:
    """The common shape of two, aligned at the right, where a size of 1 stretches."""
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


def product(sizes: Sequence[Any]) -> Any:
    """The product of all sizes; 1 for none."""
    result: Any = 1
    for size in sizes:
        result = result * size
    return result


def extreme(function: str, values: Sequence[Any]) -> Any:
    """``min`` or ``max`` that does not branch on symbolic integers."""
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
    """Whether ``value`` equals one of ``items``: for a symbolic integer one condition, not a branch per item."""
    if value.__class__ is int or not hasattr(value, "__sym_min__"):
        return value in items
    holds: Any = False
    for item in items:
        holds = (value == item) | holds
    return holds


def negated(condition: Any) -> Any:
    """``not condition``, symbolic if the condition is."""
    return condition.__sym_not__() if hasattr(condition, "__sym_not__") else not condition


def position_of(items: Any, wanted: Any, node: Expr) -> int:
    if not isinstance(items, list | tuple) or wanted not in items:
        raise ShapeError(f"{node}: {show(items)} does not hold {wanted}")
    return items.index(wanted)


def reshape(source: Sequence[Any], wanted: Sequence[Any], shown: str) -> tuple[Any, ...]:
    unknown = [n for n, size in enumerate(wanted) if size.__class__ is int and size == -1]
    if not unknown:
        return tuple(wanted)
    if len(unknown) > 1:
        raise ShapeError(f"{shown}: only one size may be -1, got {list(wanted)}")
    rest = product([size for n, size in enumerate(wanted) if n != unknown[0]])
    if rest.__class__ is int and rest == 0:
        raise ShapeError(f"{shown}: -1 beside a size of 0 means nothing: {list(wanted)}")
    total = product(source)
    if total.__class__ is int and rest.__class__ is int and total % rest:
        raise ShapeError(f"{shown}: {total} elements do not fill {list(wanted)}")
    return tuple(total // rest if n == unknown[0] else size for n, size in enumerate(wanted))


def axes_of(value: Any, many: bool, rank: int, shown: str) -> tuple[int, ...]:
    """The axes that an attr names, from 0; one unless ``many``."""
    axes = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not many and len(axes) != 1:
        raise ShapeError(f"{shown}: one dimension has one axis, got {list(axes)}")
    for axis in axes:
        if isinstance(axis, bool) or not isinstance(axis, int):
            raise ShapeError(f"{shown}: an axis is an integer, got {show(axis)}")
        if not -rank <= axis < rank:
            raise ShapeError(
                f"{shown}: there is no axis {axis}; with {rank} dimension(s) it is from {-rank} to {rank - 1}"
            )
    return tuple([axis % rank for axis in axes])


def operand_of(value: Any) -> Operand[Any]:
    """The operand that an input, or the first of a list of inputs, is in a promotion."""
    if isinstance(value, list | tuple):
        value = value[0]
    return Operand(value.dtype, len(value.shape) > 0)


def show_shape(sizes: Sequence[Any]) -> str:
    return f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"


def show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"

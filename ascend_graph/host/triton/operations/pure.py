"""Table of the operations that compute results from their operands alone.

Values are arrays whose first dimension is that of programs: the programs of a grid that run together, or 1 where all of
them have the same value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ascend_graph.host.triton.elements import Array, kept_dtype, rounding
from ascend_graph.host.triton.ir import IrOperation

#: Function of operands that returns the result, or a tuple of results.
Function = Callable[..., Any]

#: What makes the function of an operation from its attributes and types, by the operation's name.
PURE: dict[str, Callable[[IrOperation], Function]] = {}


def pure(*names: str) -> Callable[[Callable[[IrOperation], Function]], Callable[[IrOperation], Function]]:
    """Register what makes the functions of some operations."""

    def register(make: Callable[[IrOperation], Function]) -> Callable[[IrOperation], Function]:
        PURE.update(dict.fromkeys(names, make))
        return make

    return register


def elementwise(name: str, function: Callable[..., Array]) -> None:
    """Register a function of elements; its result is rounded to the operation's result type."""
    PURE[name] = lambda operation: rounded(function, operation.result_type.element)


def rounded(function: Callable[..., Array], element: str) -> Function:
    """Return the function with its result in an element type."""
    rounds, dtype = rounding(element), kept_dtype(element)
    if rounds is not None:
        return lambda *operands: rounds(function(*operands))
    return lambda *operands: function(*operands).astype(dtype, copy=False)

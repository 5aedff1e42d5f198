"""Errors and warnings of bindings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from ascend_graph.errors import AscendGraphError


class BindingError(AscendGraphError, ValueError):
    """Mismatch or ambiguity between the two sides of a binding."""


class BindingWarning(UserWarning):
    """Open question in a complete binding that may change a graph's result; it gives the line to write."""


class CannMismatchError(BindingError):
    """Mismatch with the installed CANN or operator package: it declares a function with other parameters."""


class CannMismatchWarning(UserWarning):
    """Difference from the installed CANN or operator package: it defines an op unlike the bound prototype."""


class EagerError(AscendGraphError):
    """Prototype that cannot become an eager operator."""


def columns(left: Sequence[str], right: Sequence[str]) -> str:
    """Return two sides next to each other, line by line.

    >>> print(columns(["x", "alpha"], ["self"]))
      x      │ self
      alpha  │
    """
    width = max(map(len, left))
    return "\n".join(f"  {a:<{width}}  │ {b}".rstrip() for a, b in zip_longest(left, right, fillvalue=""))

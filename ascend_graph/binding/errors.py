"""What a binding may be refused with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from ascend_graph.errors import AscendGraphError


class BindingError(AscendGraphError, ValueError):
    """What is to be bound does not fit, or fits in more than one way."""


class BindingWarning(UserWarning):
    """A binding is complete, but leaves something unsaid that may change what a graph computes; it says what to write."""


class CannMismatchError(BindingError):
    """The installed CANN, or operator package, declares a function with other parameters than it is called with."""


class CannMismatchWarning(UserWarning):
    """The installed CANN, or operator package, defines an op otherwise than the prototype that an operator is bound to."""


class EagerError(AscendGraphError):
    """A prototype cannot become an eager operator."""


def columns(left: Sequence[str], right: Sequence[str]) -> str:
    """Two sides that do not fit, line by line.

    >>> print(columns(["x", "alpha"], ["self"]))
      x      │ self
      alpha  │
    """
    width = max(map(len, left))
    return "\n".join(f"  {a:<{width}}  │ {b}".rstrip() for a, b in zip_longest(left, right, fillvalue=""))

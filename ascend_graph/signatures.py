"""Signatures of functions that authors pass: what cannot be called as it will be, found before the first call."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any


def misfit(function: Any, positional: Sequence[str], keywords: Iterable[str] = ()) -> str | None:
    """Return why a function cannot be called so, or None if it can, or if it is of C and does not tell its parameters.

    Args:
        function: The function.
        positional: Names of the arguments that are passed by position.
        keywords: Names of those that are passed by keyword.

    Example:
        >>> misfit(lambda x, *, eps: x, ["x"], ["eps"])
        >>> misfit(lambda x: x, ["x"], ["eps"])
        "(x): got an unexpected keyword argument 'eps'"
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*positional, **dict.fromkeys(keywords))
    except TypeError as error:
        return f"{signature}: {error}"
    return None


def parameter_names(function: Any) -> tuple[str, ...]:
    """Return the names of a function's parameters, none if it is of C and does not tell them.

    >>> parameter_names(lambda x, *, meta_outputs: x)
    ('x', 'meta_outputs')
    """
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()

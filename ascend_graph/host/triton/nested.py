"""Triton kernels that a Python kernel of an operator package launches: part of its work, on the memory that it sees.

The tensors of such a kernel are CPU tensors that show device memory.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_state = threading.local()


def is_nested() -> bool:
    """Return whether this thread runs a Python kernel."""
    return getattr(_state, "depth", 0) > 0


@contextmanager
def python_kernel() -> Iterator[None]:
    """Let launches of Triton kernels be part of the Python kernel that the block runs."""
    _state.depth = getattr(_state, "depth", 0) + 1
    try:
        yield
    finally:
        _state.depth -= 1

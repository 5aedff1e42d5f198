"""Triton kernels that a Python kernel of an operator package launches: part of its work, on the memory that it sees.

The tensors of such a kernel are CPU tensors that show device memory.
"""

from __future__ import annotations

import threading

_state = threading.local()


def is_nested() -> bool:
    """Return whether this thread runs a Python kernel."""
    return getattr(_state, "depth", 0) > 0


class PythonKernelCall:
    """Let launches of Triton kernels be part of the Python kernel that the block runs."""

    def __enter__(self) -> None:
        _state.depth = getattr(_state, "depth", 0) + 1

    def __exit__(self, *error: object) -> None:
        _state.depth -= 1

"""The check of a kernel's pipes, switched on for some launches of this process."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Callable, Iterator

from ascend_graph.environment import toolkit_directory

#: Choices of ``ascendcHostCheckPipes`` in csrc/ascendc/runtime/pipes.cpp.
_AS_STARTED, _WAITS = 0, 1


@contextlib.contextmanager
def pipes_checked() -> Iterator[Callable[[], int]]:
    """Let kernels in Ascend C end where one pipe does not wait for another, within the context.

    Unlike ``--pipes`` it lets kernels read local memory that nothing wrote: they may compute more lanes than they use. What
    was launched before must have ended: synchronize the device first.

    Yields:
        A function that returns how many kernels were launched, and so checked, within the context.

    >>> with pipes_checked() as launches:
    ...     launches()
    0
    """
    runtime = _runtime()
    if runtime is None:
        yield lambda: 0
        return
    before = runtime.ascendcHostCheckedLaunches()
    runtime.ascendcHostCheckPipes(_WAITS)
    try:
        yield lambda: int(runtime.ascendcHostCheckedLaunches() - before)
    finally:
        runtime.ascendcHostCheckPipes(_AS_STARTED)


def _runtime() -> ctypes.CDLL | None:
    """Return the runtime of kernels; None in a process that has loaded no kernel."""
    try:
        return _loaded()
    except OSError:
        return None


@functools.cache
def _loaded() -> ctypes.CDLL:
    library = toolkit_directory() / "lib64" / "libascendc_runtime.so"
    runtime = ctypes.CDLL(str(library), mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    runtime.ascendcHostCheckPipes.argtypes = [ctypes.c_int]
    runtime.ascendcHostCheckedLaunches.restype = ctypes.c_uint64
    return runtime

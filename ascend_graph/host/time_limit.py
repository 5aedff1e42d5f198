"""Time limit of Python kernels: an exception in the running thread ends a kernel that exceeds it."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import TypeVar

from ascend_graph.environment import TIMEOUT_VARIABLE, HostRuntimeError, kernel_timeout

_T = TypeVar("_T")


class _TimeLimit(BaseException):
    """Interruption of a kernel that takes too long; a BaseException, because a kernel may catch Exception."""


def within_limit(what: str, function: Callable[[], _T]) -> _T:
    """Return ``function()``, interrupted if it takes longer than ``ASCEND_GRAPH_KERNEL_TIMEOUT``.

    Only bytecode can be interrupted, not a call into C code that does not return.

    Raises:
        HostRuntimeError: the call was interrupted; the message begins with ``what``.
    """
    seconds = kernel_timeout(os.environ)
    if seconds is None:
        return function()
    ended = threading.Event()
    thread = threading.get_ident()
    watch = threading.Thread(target=_watch, args=(thread, seconds, ended), daemon=True)
    try:
        watch.start()
        try:
            return function()
        finally:
            ended.set()
            watch.join()
    except _TimeLimit:
        ended.set()
        raise HostRuntimeError(f"{what} did not end in {seconds:g} seconds, the limit of {TIMEOUT_VARIABLE}") from None


def _watch(thread: int, seconds: float, ended: threading.Event) -> None:
    if ended.wait(seconds):
        return
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    raise_in(ctypes.c_ulong(thread), ctypes.py_object(_TimeLimit))
    while not ended.wait(1):  # it was caught, or the thread is still in C code
        raise_in(ctypes.c_ulong(thread), ctypes.py_object(_TimeLimit))

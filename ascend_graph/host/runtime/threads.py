"""Lock that lets one thread at a time into TorchAir's GE executors.

A compiled graph of TorchAir keeps the tensors of a call in members of its executor. The executor's C++ code runs
without the GIL and without a lock; the Python code that compiles at the first call has no lock either. Two threads in
one graph exchange their inputs, or end the process. GE's interface cannot serialize these calls: it is entered after,
and left before, the racy section. So the host runtime takes a lock where TorchAir's Python code calls a graph. When a
thread has to wait, it says so once: on a device nothing makes it wait.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

# Reentrant: a kernel written in Python may call a compiled function.
_lock = threading.RLock()


def _one_at_a_time(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not _lock.acquire(blocking=False):
            _tell()
            _lock.acquire()
        try:
            return function(*args, **kwargs)
        finally:
            _lock.release()

    return call


@functools.cache  # once in a process
def _tell() -> None:
    print(
        "ascend_graph: two threads call GE graphs at once; the host runtime lets in one at a time, because TorchAir's "
        "executors are not safe for threads. On a device nothing does: hold a lock of your own there",
        file=sys.stderr,
    )


def guard_graphs(module: ModuleType) -> Iterator[None]:
    """Let one thread at a time into the graphs of ``torchair._ge_concrete_graph.fx2ge_converter``."""
    yield
    graph = module.GeConcreteGraph
    graph.__call__ = _one_at_a_time(graph.__call__)


def guard_generated_code(module: ModuleType) -> Iterator[None]:
    """Let one thread at a time into the graphs that ``torchair.npu_fx_compiler`` keeps as code, and its patching."""
    yield
    module.add_npu_patch = _one_at_a_time(module.add_npu_patch)  # type: ignore[attr-defined]
    make = module._compile_py_code

    @functools.wraps(make)
    def compile_code(*args: Any, **kwargs: Any) -> Any:
        made = make(*args, **kwargs)
        if hasattr(made, "ge_graph"):  # a graph that is kept as code, by cache_compile
            made.kernel = _one_at_a_time(made.kernel)
        return made

    module._compile_py_code = compile_code  # type: ignore[attr-defined]

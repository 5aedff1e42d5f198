"""One thread at a time in TorchAir's GE executors.

A compiled graph of TorchAir keeps the tensors of a call in members of its executor, whose C++ code runs without the GIL and
without a lock; the Python code that compiles at the first call has none either. Two threads in one graph exchange their
inputs, or end the process. Nothing of this can be told from within GE's interface, which such a call reaches too late and
leaves too early. So the host runtime takes a lock where TorchAir's Python code calls a graph, and says so once when it makes
a thread wait: on a device nobody does.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
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


def _guard_graphs(module: ModuleType) -> None:
    graph = module.GeConcreteGraph
    graph.__call__ = _one_at_a_time(graph.__call__)


def _guard_generated_code(module: ModuleType) -> None:
    make = module._compile_py_code

    @functools.wraps(make)
    def compile_code(*args: Any, **kwargs: Any) -> Any:
        made = make(*args, **kwargs)
        if hasattr(made, "ge_graph"):  # a graph that is kept as code, by cache_compile
            made.kernel = _one_at_a_time(made.kernel)
        return made

    module._compile_py_code = compile_code  # type: ignore[attr-defined]


_GUARDS: dict[str, Callable[[ModuleType], None]] = {
    "torchair._ge_concrete_graph.fx2ge_converter": _guard_graphs,
    "torchair.npu_fx_compiler": _guard_generated_code,
}


class _Loader(importlib.abc.Loader):
    """Another loader, and a guard for the module that it makes."""

    def __init__(self, loader: importlib.abc.Loader, guard: Callable[[ModuleType], None]) -> None:
        self._loader, self._guard = loader, guard

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._guard(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that are to be guarded, as the other finders do."""

    def __init__(self) -> None:
        self._missing = dict(_GUARDS)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        guard = self._missing.pop(fullname, None)
        if guard is None:
            return None
        spec = importlib.util.find_spec(fullname)  # not by this finder, which has forgotten the name
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, guard)
        return spec


def install() -> None:
    """Guard TorchAir's graphs, whether it is imported already or later. A second call does nothing."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    finder = _Finder()
    for name in _GUARDS:
        if name in sys.modules:
            finder._missing.pop(name)(sys.modules[name])
    sys.meta_path.insert(0, finder)

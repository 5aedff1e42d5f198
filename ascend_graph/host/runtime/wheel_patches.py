"""Patches of the wheels' Python code, applied as it is imported; nothing is changed on disk."""

from __future__ import annotations

import atexit
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from ascend_graph.host.runtime.shutdown import settle
from ascend_graph.host.runtime.signal_handlers import keep_handlers
from ascend_graph.host.runtime.threads import guard_generated_code, guard_graphs

#: Generator that runs around the code of a module: before it, and after it.
_Patch = Callable[[ModuleType], Iterator[None]]

_PATCHES: dict[str, _Patch] = {
    "torchair._ge_concrete_graph.fx2ge_converter": guard_graphs,
    "torchair.npu_fx_compiler": guard_generated_code,
    "torchair.core._backend": keep_handlers,
    "torch_npu.dynamo.npugraph_ex": keep_handlers,  # "npugraph_ex" is a stand-in that imports it
}


class _Loader(importlib.abc.Loader):
    """Loader that wraps another one and patches the module that it makes."""

    def __init__(self, loader: importlib.abc.Loader, patch: _Patch) -> None:
        self._loader, self._patch = loader, contextmanager(patch)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        with self._patch(module):
            self._loader.exec_module(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _Finder(importlib.abc.MetaPathFinder):
    """Finder of the modules to be patched, as the other finders find them."""

    def __init__(self) -> None:
        self._missing = dict(_PATCHES)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        patch = self._missing.pop(fullname, None)
        if patch is None:
            return None
        spec = importlib.util.find_spec(fullname)  # not by this finder, which has forgotten the name
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, patch)
        return spec


def install() -> None:
    """Patch the modules imported already, and the others on import; register ``settle`` to run at exit.

    A second call does nothing.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    atexit.register(settle)
    finder = _Finder()
    for name in _PATCHES:
        if name in sys.modules:
            with contextmanager(finder._missing.pop(name))(sys.modules[name]):
                pass
    sys.meta_path.insert(0, finder)

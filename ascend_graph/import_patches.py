"""Patches of other packages' Python modules, applied as these are imported; nothing is changed on disk."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

#: Generator that runs around the code of a module: before it, and after it.
Patch = Callable[[ModuleType], Iterator[None]]


class _Loader(importlib.abc.Loader):
    """Loader that wraps another one and patches the module that it makes."""

    def __init__(self, loader: importlib.abc.Loader, patch: Patch) -> None:
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

    def __init__(self, patches: Mapping[str, Patch]) -> None:
        self._patches = dict(patches)

    def has(self, patches: Mapping[str, Patch]) -> bool:
        return self._patches == dict(patches)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        patch = self._patches.get(fullname)
        if patch is None:
            return None
        # Each time that the module is loaded: a stand-in for its package may load it twice. The finders behind this one
        # alone: another of this class may patch the same module, and each would ask the other.
        behind = sys.meta_path[sys.meta_path.index(self) + 1 if self in sys.meta_path else 0 :]
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in behind)), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, patch)
        return spec

    def patch_imported(self) -> None:
        """Patch the modules that are imported already."""
        for name in self._patches:
            if name in sys.modules:
                with contextmanager(self._patches[name])(sys.modules[name]):
                    pass


def patch_modules(patches: Mapping[str, Patch]) -> bool:
    """Patch the modules imported already, and the others on import; return False if that was done before."""
    if any(isinstance(finder, _Finder) and finder.has(patches) for finder in sys.meta_path):
        return False
    finder = _Finder(patches)
    finder.patch_imported()
    sys.meta_path.insert(0, finder)
    return True

"""Module names of the release before, which documents and generated projects have: they work for one more, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:  # importing importlib.abc takes 40 ms, twice as long as the rest of the package
    Loader, MetaPathFinder = type("Loader", (), {}), type("MetaPathFinder", (), {})

#: Former name of a module → the module that has its public names now.
FORMER_NAMES = {
    "ascend_graph.binding.installed": "ascend_graph.binding.calls.installed",
    "ascend_graph.checks.doctor": "ascend_graph.doctor",
    "ascend_graph.checks.picture": "ascend_graph.pictures",
    "ascend_graph.checks.selftest": "ascend_graph.selftest",
    "ascend_graph.codegen.eager_project": "ascend_graph.codegen.eager_library.project",
    "ascend_graph.gradients": "ascend_graph.autograd",
    "ascend_graph.host.lint": "ascend_graph.host",
    "ascend_graph.host.ops": "ascend_graph.host.kernels",
    "ascend_graph.host.package": "ascend_graph.host",
    "ascend_graph.host.project": "ascend_graph.host",
}


class FormerNames(MetaPathFinder, Loader):
    """Import of a module by its former name: another module object, with the names of today's."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return a spec for a former name, with a DeprecationWarning that has the new one; None for other names."""
        if name not in FORMER_NAMES:
            return None
        warnings.warn(f"{name} is deprecated: import {FORMER_NAMES[name]}", DeprecationWarning, stacklevel=2)
        return ModuleSpec(name, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return None: an ordinary module is made."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Let the module look its names up in today's module."""
        today = import_module(FORMER_NAMES[module.__name__])
        module.__dict__["__getattr__"] = lambda name: getattr(today, name)

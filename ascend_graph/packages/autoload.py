"""Operators of installed wheels, loaded with PyTorch. Imports no torch.

A wheel names its operators by an entry point of the group ``ascend_graph.operators``: a module whose import registers
them, or a function. ``import torch`` calls :func:`autoload` (PyTorch's entry point group ``torch.backends``), so a
spawned process has the operators without an import of its own. Nothing here raises: PyTorch could not be imported then.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import warnings
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from ascend_graph.environment import TRITON_VARIABLE

#: Entry point group of operators.
GROUP = "ascend_graph.operators"
#: Variable that switches the loading off if it is 0.
AUTOLOAD_VARIABLE = "ASCEND_GRAPH_AUTOLOAD"

_lock = threading.RLock()
#: Entry points that were loaded, by what they say; an error is said once.
_done: dict[str, str] = {}
#: Entry points that had to wait: their module, or one of this package, was being imported.
postponed: set[str] = set()


class OperatorsWarning(UserWarning):
    """Warning of a distribution whose operators cannot be loaded."""


def autoload() -> None:
    """Load the operators of installed distributions, while PyTorch is imported.

    Nothing happens without torch_npu, where ``ASCEND_GRAPH_AUTOLOAD`` is 0, or in a build by setuptools.
    """
    with contextlib.suppress(Exception):
        if hook := os.environ.get(TRITON_VARIABLE):
            import_module(hook).install()
    if os.environ.get(AUTOLOAD_VARIABLE, "1") == "0" or _builds_a_distribution():
        return
    # Other entry points of PyTorch must go on whatever is wrong here.
    with contextlib.suppress(Exception):
        if "torch_npu" not in sys.modules and find_spec("torch_npu") is None:
            return
        if operator_entry_points():
            try:
                # PyTorch calls its entry points in any order; operators need the device.
                import_module("torch_npu")
            except Exception:  # PyTorch tells it: torch_npu has an entry point of its own
                return
            load_operators()
        from ascend_graph.packages.missing import explain_missing_operators

        explain_missing_operators()


def _builds_a_distribution() -> bool:
    """Return whether setuptools builds in this process: entry points may be those of the sources, before they are compiled."""
    program = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    return Path(program).name == "setup.py" or "setuptools.build_meta" in sys.modules


def operator_entry_points() -> tuple[EntryPoint, ...]:
    """Return the entry points of operators in the installed distributions."""
    return tuple(entry_points(group=GROUP))


def load_operators() -> dict[str, str]:
    """Load the operators of all installed distributions that were not loaded before.

    ``import torch`` does it, unless ``TORCH_DEVICE_BACKEND_AUTOLOAD`` or ``ASCEND_GRAPH_AUTOLOAD`` is 0, or torch_npu was
    imported before torch. Call it then.

    Returns:
        The error by entry point, empty for one that was loaded.

    Warns:
        OperatorsWarning: A distribution's operators cannot be loaded; one warning each.

    >>> import ascend_graph
    >>> ascend_graph.load_operators()
    {}
    """
    with _lock:
        for entry in operator_entry_points():
            key = f"{entry.name} = {entry.value}"
            if key in _done:
                continue
            if _is_being_imported(entry.module) or _uses_what_is_being_imported():
                postponed.add(key)
                continue
            postponed.discard(key)
            _done[key] = ""
            try:
                loaded = entry.load()
                if callable(loaded):
                    loaded()
            except (Exception, SystemExit) as error:
                _done[key] = f"{type(error).__name__}: {error}"
                _warn(entry, key, error)
        return dict(_done)


def load_postponed() -> None:
    """Load the entry points that had to wait for an import, if it has ended."""
    if postponed:
        load_operators()


def load_errors(keys: set[str]) -> list[tuple[str, str]]:
    """Return the errors of entry points that could not be loaded."""
    return [(key, _done[key]) for key in sorted(keys) if _done.get(key)]


def _is_being_imported(module: str) -> bool:
    """Return whether a module or its package is half imported: then its import came first, and imports PyTorch."""
    names = module.split(".")
    loaded = (sys.modules.get(".".join(names[: n + 1])) for n in range(len(names)))
    return any(getattr(getattr(one, "__spec__", None), "_initializing", False) for one in loaded)


def _uses_what_is_being_imported() -> bool:
    """Return whether a module of this package is half imported: it imports PyTorch, and operators are registered with it."""
    here = [module for name, module in list(sys.modules.items()) if name.startswith("ascend_graph.")]
    return any(getattr(getattr(one, "__spec__", None), "_initializing", False) for one in here)


def _warn(entry: EntryPoint, key: str, error: BaseException) -> None:
    owner = "a distribution" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
    message = (
        f"{owner}: its operators are not loaded, as its entry point {key} of {GROUP} failed with {type(error).__name__}: {error}. "
        f"Correct or uninstall it; {AUTOLOAD_VARIABLE}=0 loads none"
    )
    try:
        warnings.warn(message, OperatorsWarning, stacklevel=4)
    except Warning:  # made an error by a filter, which would end the import of PyTorch
        print(f"ascend_graph: {message}", file=sys.stderr)

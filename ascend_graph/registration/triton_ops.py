"""Operators of ``torch.library.triton_op`` that a prototype stands for: GE graphs have one node for each call.

PyTorch puts the launches of such an operator in graphs in the place of its calls. GE has no node for a launch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch._library import simple_registry
from torch._library.custom_ops import OPDEFS
from torch._subclasses.functional_tensor import FunctionalTensorMode


def _rules(overload: Any) -> dict[type, Callable[..., Any]]:
    rules: dict[type, Callable[..., Any]] = simple_registry.singleton.find(overload.name()).torch_dispatch_rules._data
    return rules


def is_triton_op(overload: Any) -> bool:
    """Return whether ``torch.library.triton_op`` made the operator, so that graphs have its launches."""
    definition = OPDEFS.get(overload.name())
    rule = None if definition is None else definition._torch_dispatch_fns.get(FunctionalTensorMode)
    return rule is not None and rule.__module__ == "torch._library.triton"


@dataclass(slots=True)
class WholeCalls:
    """Handle of a Triton operator whose calls graphs keep."""

    overload: Any
    _launches: Callable[..., Any] | None

    def remove(self) -> None:
        """Let graphs have the launches again. A second call does nothing."""
        if self._launches is not None:
            _rules(self.overload)[FunctionalTensorMode] = self._launches
            self._launches = None


def keep_whole(overload: Any) -> WholeCalls:
    """Make graphs keep the calls of a Triton operator in the place of its launches."""

    def whole(mode: Any, op: Any, types: Any, args: Any, kwargs: Any) -> Any:
        writing = overload.python_key_table.get(FunctionalTensorMode)
        return mode.__torch_dispatch__(op, types, args, kwargs) if writing is None else writing(mode, *args, **kwargs)

    rules = _rules(overload)
    launches = rules[FunctionalTensorMode]
    rules[FunctionalTensorMode] = whole
    return WholeCalls(overload, launches)

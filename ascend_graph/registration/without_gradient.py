"""What stands in a traced backward graph for an operator without a gradient.

``torch.compile`` traces forward and backward together, also where only forward is called. There the node that csrc/eager's
``WithoutGradient`` puts into the graph becomes a call of ``ascend_graph::no_gradient``, which fails when it runs, or when a
GE graph is made with it, and says which operator has no gradient.
"""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from ascend_graph.errors import AscendGraphError
from ascend_graph.registration.torchair import existing_converter, register_converter


class NoGradientError(AscendGraphError, RuntimeError):
    """An operator without a gradient is differentiated."""


_library = torch.library.Library("ascend_graph", "DEF")
_library.define("no_gradient(Tensor grad, SymInt[] size, str message) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))


def _raise(grad: torch.Tensor, size: Any, message: str) -> NoReturn:
    raise NoGradientError(message)


def _convert(grad: Any, size: Any, message: str, meta_outputs: Any = None) -> NoReturn:
    raise NoGradientError(message)


def _of_that_size(grad: torch.Tensor, size: Any, message: str) -> torch.Tensor:
    return grad.new_empty(size)


_library.impl("no_gradient", _raise, "CompositeExplicitAutograd")
torch.library.register_fake("ascend_graph::no_gradient", _of_that_size, lib=_library)


def say_so_in_graphs() -> None:
    """Have TorchAir refuse a backward graph with such an operator with its message; a second call does nothing."""
    overload = torch.ops.ascend_graph.no_gradient.default
    if existing_converter(overload) is None:
        register_converter(overload, _convert)

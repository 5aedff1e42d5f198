"""Placeholder in a traced backward graph for an operator without a gradient.

``torch.compile`` traces forward and backward together, even if only forward is called. The node that csrc/eager's
``NoGradient`` puts into the graph becomes a call of ``ascend_graph::no_gradient``. That call fails when it runs,
or when a GE graph is made with it, and its message names the operator without a gradient.
"""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from ascend_graph.autograd.formulas import Formula
from ascend_graph.dispatch.torchair import register_converter
from ascend_graph.errors import AscendGraphError


class NoGradientError(AscendGraphError, RuntimeError):
    """Error of differentiating an operator without a gradient."""


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
    """Make TorchAir refuse a backward graph with such an operator, with its message. A second call does nothing."""
    overload = torch.ops.ascend_graph.no_gradient.default
    if not hasattr(overload, "_ge_converter"):
        register_converter(overload, _convert, own=True)


def refused_backward(overload: Any) -> Formula:
    """Return a gradient that raises, for an operator that has a tangent alone."""
    message = (
        f"{overload.name()} has no gradient, but one is asked for: give it one with backward= where it is registered, next to "
        "forward=, or call it under torch.no_grad()"
    )

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any, keyword_only_inputs: Any = None) -> None:
        ctx.sizes = [tensor.shape if isinstance(tensor, torch.Tensor) else None for tensor in inputs]

    def backward(ctx: Any, *grads: Any) -> Any:
        grad = next(g for g in grads if isinstance(g, torch.Tensor))
        # Raises when it runs: a compiler traces it also where only forward is called.
        late = torch.ops.ascend_graph.no_gradient
        return tuple(None if size is None else late(grad, size, message) for size in ctx.sizes)

    return Formula(backward, setup_context)

"""Context ``ctx`` of a formula in forward mode, with the attributes and methods of ``torch.autograd.Function``'s."""

from __future__ import annotations

from typing import Any, NoReturn

import torch


class ForwardContext:
    """Context ``ctx`` without a backward graph. Formulas set attributes on it, as on PyTorch's."""

    def __init__(self, needs_input_grad: tuple[Any, ...], *, differentiates_gradient: bool) -> None:
        self._differentiates_gradient = differentiates_gradient
        #: True for each positional argument, and each item of a list, that has a tangent.
        self.needs_input_grad = needs_input_grad
        #: True if tensors without a tangent get zeros.
        self.materializes = True
        self._for_backward: tuple[Any, ...] = ()
        self._for_forward: tuple[Any, ...] | None = None
        self._constant: tuple[torch.Tensor, ...] = ()

    def save_for_backward(self, *tensors: torch.Tensor | None) -> None:
        """Save tensors for a gradient, and for a tangent if :meth:`save_for_forward` is not called."""
        self._for_backward = tensors

    def save_for_forward(self, *tensors: torch.Tensor | None) -> None:
        """Save tensors for a tangent."""
        self._for_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """Tensors saved for the formula that is called."""
        if self._differentiates_gradient or self._for_forward is None:
            return self._for_backward
        return self._for_forward

    def mark_non_differentiable(self, *outputs: torch.Tensor) -> None:
        """Mark outputs as constant."""
        self._constant = outputs

    def is_constant(self, output: torch.Tensor) -> bool:
        """Return whether an output is marked as constant."""
        return any(output is one for one in self._constant)

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether tensors without a tangent get zeros, or None."""
        self.materializes = value

    def mark_dirty(self, *tensors: torch.Tensor) -> NoReturn:
        """Raise, for such operators write to none of their arguments."""
        raise RuntimeError(
            "mark_dirty: operators with backward= or forward= must not write to their arguments; return new tensors"
        )

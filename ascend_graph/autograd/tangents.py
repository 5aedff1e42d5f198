"""Tangents of an operator in forward mode: from its author's function, or derived from its gradient."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._functorch.eager_transforms import enable_inplace_requires_grad

from ascend_graph.autograd import GradientError
from ascend_graph.autograd.formulas import (
    Formula,
    Slots,
    flat_gradients,
    flatten,
    flatten_optional,
    full_arguments,
    listed,
    rebuild,
    set_up,
)
from ascend_graph.autograd.forward_context import ForwardContext
from ascend_graph.eager.library import loaded


class ForwardModeError(GradientError, NotImplementedError):
    """Error of a tangent that cannot be derived from the gradient."""


_DETACHED = "a gradient that it returns does not depend on those that it is given"


def has_tangent(tensors: Sequence[torch.Tensor]) -> bool:
    """Return whether a tensor carries a tangent, at the only level of forward mode."""
    library = loaded()
    if library is not None:
        return bool(library.has_tangent(tensors))
    return any(torch._VF._unpack_dual(tensor, level=0)[1] is not None for tensor in tensors)


def with_tangents(output: Any, tangents: Sequence[Any]) -> Any:
    """Return an operator's output with the tangents of its tensors."""
    values = listed(output)
    slots, tensors = flatten(values)
    duals = [t if v is None else torch._VF._make_dual(t, v, level=0) for t, v in zip(tensors, tangents, strict=True)]
    rebuilt = rebuild(values, slots, duals)
    return rebuilt if isinstance(output, tuple) else rebuilt[0]


def _differentiable(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


@dataclass(frozen=True, slots=True)
class Tangents:
    """Tangents of an operator's outputs."""

    overload: Any
    backward: Formula
    tangent: Formula | None

    def of(
        self, primals: tuple[Any, ...], kwargs: dict[str, Any], output: Any, slots: Slots, tangents: tuple[Any, ...]
    ) -> list[Any]:
        """Return the tangents of the output's tensors, None for zero.

        Args:
            primals: The positional arguments without their tangents.
            kwargs: The others.
            output: The operator's output for them.
            slots: The slots of tensors among ``primals``.
            tangents: Their tangents, None for a tensor without one.
        """
        # With the arguments that the dispatcher leaves out, which have their defaults.
        primals, _ = full_arguments(self.overload, primals, kwargs)
        left_out = [None] * (len(primals) - len(slots))
        slots, tangents = (*slots, *left_out), (*tangents, *left_out)
        needed = rebuild([False] * len(slots), slots, [t is not None for t in flatten_optional(tangents, slots)])
        formula = self.tangent or self.backward
        ctx = ForwardContext(needed, differentiates_gradient=self.tangent is None)
        set_up(self.overload, formula, ctx, primals, kwargs, output)
        values = listed(output)
        output_slots, tensors = flatten(values)
        if self.tangent is None:
            return self.derived(ctx, values, output_slots, tensors, slots, tangents)
        return self.given(self.tangent, ctx, primals, output_slots, tensors, slots, tangents)

    def given(
        self,
        formula: Formula,
        ctx: ForwardContext,
        primals: tuple[Any, ...],
        output_slots: Slots,
        tensors: Sequence[torch.Tensor],
        slots: Slots,
        tangents: tuple[Any, ...],
    ) -> list[Any]:
        """Return the tangents of the output tensors from the author's function, checked."""
        flat = [
            torch.zeros_like(p) if t is None and ctx.materializes and _differentiable(p) else t
            for p, t in zip(flatten(primals)[1], flatten_optional(tangents, slots), strict=True)
        ]
        made = formula.function(ctx, *rebuild([None] * len(slots), slots, flat))
        said = list(made) if isinstance(made, tuple | list) else [made]
        if len(output_slots) == 1 and isinstance(output_slots[0], tuple) and isinstance(made, list):
            said = [made]
        if len(said) != len(output_slots):
            raise self.refuse(
                f"returned {len(said)} value(s); expected one for each of the {len(output_slots)} outputs"
            )
        found: list[Any] = []
        for n, (slot, value) in enumerate(zip(output_slots, said, strict=True)):
            if isinstance(slot, tuple):
                parts = [None] * len(slot) if value is None else value
                if not isinstance(parts, list | tuple) or len(parts) != len(slot):
                    raise self.refuse(
                        f"returned {value!r} for output {n}; expected a list of {len(slot)} tangents, or None"
                    )
                found += [part for part, number in zip(parts, slot, strict=True) if number is not None]
            elif slot is not None:
                found.append(value)
            elif value is not None:
                raise self.refuse(f"returned a tangent of output {n}, which is absent; expected None")
        for tensor, tangent in zip(tensors, found, strict=True):
            self.check(tensor, tangent)
        return found

    def check(self, tensor: torch.Tensor, tangent: Any) -> None:
        if tangent is None:
            return
        if not isinstance(tangent, torch.Tensor):
            raise self.refuse(f"returned {tangent!r}; expected a tensor, or None for a tangent of zero")
        if not _differentiable(tensor):
            raise self.refuse(f"returned a tangent of an output of {tensor.dtype}; expected None")
        if (tangent.shape, tangent.dtype, tangent.device) != (tensor.shape, tensor.dtype, tensor.device):
            raise self.refuse(
                f"returned {tangent.dtype}{list(tangent.shape)} on {tangent.device} as the tangent of an output "
                f"{tensor.dtype}{list(tensor.shape)} on {tensor.device}; expected the same"
            )

    def refuse(self, what: str) -> GradientError:
        return GradientError(f"the tangent (forward=) of {self.overload.name()} {what}")

    def derived(
        self,
        ctx: ForwardContext,
        values: tuple[Any, ...],
        output_slots: Slots,
        tensors: Sequence[torch.Tensor],
        slots: Slots,
        tangents: tuple[Any, ...],
    ) -> list[Any]:
        """Derive the tangents by differentiating the gradient, which is linear in the gradients of the outputs.

        ``torch.autograd.functional.jvp`` does the same. The result is right wherever a second derivative is.
        """
        in_transform = torch._C._are_functorch_transforms_active()
        # A transform records by itself, and where it is asked to: in backward functions with create_graph.
        create_graph = torch.is_grad_enabled() or in_transform
        with torch.enable_grad():
            grads: list[Any] = [torch.zeros_like(tensor) for tensor in tensors]
            wanted = [n for n, t in enumerate(tensors) if _differentiable(t) and not ctx.is_constant(t)]
            with enable_inplace_requires_grad(True) if in_transform else contextlib.nullcontext():
                for n, zeros in enumerate(grads):
                    grads[n] = zeros.requires_grad_() if n in wanted else zeros if ctx.materializes else None
            made = self.backward.function(ctx, *rebuild(values, output_slots, grads))
            pairs = [
                (self.like(gradient, tangent), tangent)
                for gradient, tangent in zip(
                    flat_gradients(self.overload, slots, made), flatten_optional(tangents, slots), strict=True
                )
                if gradient is not None and tangent is not None
            ]
        found: list[Any] = [None] * len(tensors)
        if not pairs or not wanted:
            return found
        try:
            derivatives = torch.autograd.grad(
                [gradient for gradient, _ in pairs],
                [grads[n] for n in wanted],
                [tangent for _, tangent in pairs],
                create_graph=create_graph,
                allow_unused=True,
            )
        except RuntimeError as error:
            raise self.underivable(str(error).splitlines()[0]) from error
        if all(derivative is None for derivative in derivatives):
            raise self.underivable(_DETACHED)
        for n, derivative in zip(wanted, derivatives, strict=True):
            found[n] = derivative
        return found

    def like(self, gradient: torch.Tensor, tangent: torch.Tensor) -> torch.Tensor:
        """Return the gradient in the shape and dtype of its argument, as autograd's engine does."""
        if not gradient.requires_grad:
            raise self.underivable(_DETACHED)
        if gradient.shape != tangent.shape:
            gradient = gradient.sum_to_size(tangent.shape)
        return gradient if gradient.dtype == tangent.dtype else gradient.to(tangent.dtype)

    def underivable(self, why: str) -> ForwardModeError:
        return ForwardModeError(
            f"{self.overload.name()}: forward-mode differentiation asks for a tangent, which is derived by differentiating the "
            f"gradient, and that cannot be: {why}. Give the operator forward=, a function (ctx, *tangents), where it is registered"
        )

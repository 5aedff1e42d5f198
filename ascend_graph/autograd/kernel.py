"""Autograd kernel of an operator with a gradient: backward, forward mode, and the transforms of ``torch.func``.

The kernel of ``torch.library.register_autograd`` is refused by ``torch.func`` and skipped by forward mode, without a
tangent. In this one a function of autograd's records a single level, as ATen's kernels do: the dispatcher comes back
for each transform.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._functorch.utils import enable_single_level_autograd_function, unwrap_dead_wrappers
from torch.autograd.forward_ad import _set_fwd_grad_enabled
from torch.autograd.function import _SingleLevelFunction

from ascend_graph.autograd.formulas import (
    Formula,
    Function,
    Slots,
    flat_gradients,
    flatten,
    full_arguments,
    listed,
    rebuild,
    set_up,
)
from ascend_graph.autograd.tangents import Tangents, has_tangent, with_tangents


def autograd_kernel(overload: Any, backward: Formula, tangent: Formula | None) -> Function:
    """Return an operator's kernel for the dispatch key Autograd, to be registered with its keyset.

    Args:
        overload: The operator, which writes to none of its arguments.
        backward: Its gradient.
        tangent: Its tangent; None if it is derived from the gradient.
    """
    recorded = _recorded(overload, backward)

    def kernel(keyset: Any, /, *args: Any, **kwargs: Any) -> Any:
        slots, tensors = flatten(args)
        if not torch._C._are_functorch_transforms_active():
            tensors = list(unwrap_dead_wrappers(tuple(tensors)))
        call = _Call(keyset, rebuild(args, slots, [None] * len(tensors)), kwargs, slots)
        if has_tangent(tensors):
            unpacked = [torch._VF._unpack_dual(tensor, level=0) for tensor in tensors]
            primals = [primal for primal, _ in unpacked]
            call.tangents = functools.partial(
                Tangents(overload, backward, tangent).of,
                rebuild(args, slots, primals),
                kwargs,
                slots=slots,
                tangents=rebuild(args, slots, [dual for _, dual in unpacked]),
            )
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            made = _apply(recorded, call, *tensors)
            return call.output(made)
        with torch._C._AutoDispatchBelowAutograd():
            output = call.run(overload, tensors if call.tangents is None else primals)
        return output if call.tangents is None else with_tangents(output, call.tangents(output))

    return kernel


# ------------------------------------------------------------------------------------------------------------- backward


@dataclass(slots=True)
class _Call:
    """Recorded call without its tensors, which a graph keeps only if the gradient needs them."""

    keyset: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    slots: Slots
    #: Outputs without their tensors, the slots of those, and whether there are several outputs.
    outputs: tuple[Any, ...] = ()
    output_slots: Slots = ()
    several: bool = False
    #: Tangents of the output's tensors, given the output; None if no argument has one, and once they are computed.
    tangents: Function | None = None

    def run(self, overload: Any, tensors: Sequence[torch.Tensor]) -> Any:
        """Call the operator's kernel below autograd."""
        args = rebuild(self.args, self.slots, tensors)
        return overload._handle.redispatch_boxed(self.keyset & torch._C._after_autograd_keyset, *args, **self.kwargs)

    def output(self, tensors: Sequence[Any]) -> Any:
        """Rebuild the operator's output from the tensors that the Function returned."""
        made = rebuild(self.outputs, self.output_slots, tensors)
        return made if self.several else made[0]


def _recorded(overload: Any, gradient: Formula) -> Any:
    """Return the operator as what ``torch.autograd.Function`` is for a single level, a function of its tensors."""

    def forward(ctx: Any, call: _Call, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        with _modes_of_the_caller(), torch._C._AutoDispatchBelowAutograd():
            output = call.run(overload, tensors)
        positional, _ = full_arguments(overload, call.args, call.kwargs)
        slots = (*call.slots, *[None] * (len(positional) - len(call.slots)))
        needed = ctx.needs_input_grad[1:]
        ctx.needs_input_grad = rebuild([False] * len(slots), slots, needed)
        set_up(overload, gradient, ctx, rebuild(call.args, call.slots, tensors), call.kwargs, output)
        values = listed(output)
        call.several = isinstance(output, tuple)
        call.output_slots, made = flatten(values)
        call.outputs = rebuild(values, call.output_slots, [None] * len(made))
        ctx.ascend_graph_tangents = call.tangents and functools.partial(call.tangents, output)
        call.tangents = None
        ctx.ascend_graph_slots = slots, call.outputs, call.output_slots
        ctx.ascend_graph_zeros = [(t.shape, {"dtype": t.dtype, "device": t.device}) for t in made]
        torch.autograd.function.FunctionCtx.set_materialize_grads(ctx, False)
        return tuple(made)

    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        slots, outputs, output_slots = ctx.ascend_graph_slots
        if getattr(ctx, "ascend_graph_materializes", True):
            grads = _materialized(grads, ctx.ascend_graph_zeros)
        made = gradient.function(ctx, *rebuild(outputs, output_slots, grads))
        return (None, *flat_gradients(overload, slots, made))

    def jvp(ctx: Any, *_: Any) -> tuple[Any, ...]:
        # Here the outputs have their history, and what the gradient needs is not saved yet: it is with its tangents,
        # so that the backward pass can be differentiated in forward mode.
        found, ctx.ascend_graph_tangents = ctx.ascend_graph_tangents, None
        return tuple(found())

    def set_materialize_grads(ctx: Any, value: bool) -> None:
        ctx.ascend_graph_materializes = value

    def key_of_compiled_autograd(ctx: Any) -> tuple[int]:
        return (ctx._autograd_function_id,)

    functions: dict[str, Any] = {"forward": forward, "backward": backward, "jvp": jvp}
    functions["_compiled_autograd_key"] = key_of_compiled_autograd
    name = f"GradientOf_{overload.name().replace('::', '_').replace('.', '_')}"
    # Not a torch.autograd.Function: its apply would hand the call to functorch, which the dispatcher does already.
    made: Any = type(name, (_SingleLevelFunction,), {key: staticmethod(value) for key, value in functions.items()})
    made._backward_cls.set_materialize_grads = set_materialize_grads
    return made


def _materialized(grads: Sequence[Any], zeros: Sequence[tuple[Any, dict[str, Any]]]) -> tuple[Any, ...]:
    """Return zeros for the outputs without a gradient.

    They are made from another gradient: npugraph_ex evaluates nodes that read no tensor when it compiles, and PyTorch's
    own ``zeros`` is one.
    """
    other = next((grad for grad in grads if grad is not None), None)
    make = torch.zeros if other is None else other.new_zeros
    return tuple([make(z[0], **z[1]) if grad is None else grad for grad, z in zip(grads, zeros, strict=True)])


def _apply(function: Any, *args: Any) -> Any:
    """Record one level."""
    if not torch._C._are_functorch_transforms_active():
        return function.apply(*args)
    with enable_single_level_autograd_function():
        return function.apply(*args)


@contextlib.contextmanager
def _modes_of_the_caller() -> Iterator[None]:
    """Enable differentiation within a Function, for transforms below it differentiate there."""
    if not torch._C._are_functorch_transforms_active():
        yield
        return
    with torch.enable_grad(), _set_fwd_grad_enabled(True):
        yield

"""Inputs of GE graphs whose memory does not have their values: conjugated, negated and zero tensors.

PyTorch conjugates and negates by a bit of the tensor, and a zero tensor of forward mode has no memory. TorchAir gives GE the
address alone. Captures run PyTorch's own kernels, which see the bit.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from ascend_graph.registration.conversion.wrapped_graph import WrappedGraph


def is_lazy(value: Any) -> bool:
    """Return whether a tensor's memory does not have its values."""
    return isinstance(value, torch.Tensor) and bool(value.is_conj() or value.is_neg() or value._is_zerotensor())


def may_be_lazy(node: fx.Node) -> bool:
    """Return whether an input of a forward graph with registered operators may be given a lazy tensor."""
    return is_lazy(node.meta.get("val")) or _traces_zero_tensors()


def with_plain_inputs(graph: fx.Graph, compiled: Any, *, registered: bool) -> Any:
    """Return a compiled graph that takes lazy inputs; the same one if none can be lazy.

    Forward graphs are compiled anew for other bits, for dynamo guards on them. Gradients from outside may have any.

    Args:
        graph: The graph that was compiled.
        compiled: The result.
        registered: True if it calls a registered operator. A gradient's graph does not say whether its forward graph does.
    """
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    tensors = [n for n, node in enumerate(inputs) if isinstance(node.meta.get("val"), torch.Tensor)]
    places = [
        n for n in tensors if (registered and may_be_lazy(inputs[n])) or str(inputs[n].target).startswith("tangents_")
    ]
    if not places:
        return compiled
    written = {node.args[0] for node in graph.nodes if node.target is torch.ops.aten.copy_.default}
    return PlainInputs(compiled, places, frozenset(n for n in places if inputs[n] in written))


def _traces_zero_tensors() -> bool:
    """Return whether the program is traced with a zero tensor; its fake tensor does not say so."""
    context = torch._guards.TracingContext.try_get()
    if context is None or context.fake_mode is None:
        return False
    traced = context.fake_mode.fake_tensor_converter.meta_converter.describer.lookup_tensor
    return any(tensor._is_zerotensor() for tensor in traced)


class PlainInputs(WrappedGraph):
    """Compiled graph that is called with plain copies of its lazy inputs, which are written back."""

    def __init__(self, compiled: Any, places: list[int], written: frozenset[int]) -> None:
        super().__init__(compiled, places, written)
        self._places, self._written = places, written

    def __call__(self, *inputs: Any) -> Any:
        # TorchAir copies others to contiguous memory itself, by operators that see the bit.
        lazy = [n for n in self._places if is_lazy(inputs[n]) and inputs[n].is_contiguous()]
        if not lazy:
            return self._compiled(*inputs)
        given = list(inputs)
        for n in lazy:
            given[n] = _plain(inputs[n])
        results = self._compiled(*given)
        for n in self._written.intersection(lazy):
            inputs[n].copy_(given[n])
        return results


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy without bits at the same offset, from which graphs make their views."""
    offset = tensor.storage_offset()
    room = tensor.new_empty(offset + tensor.numel())
    return room.as_strided(tensor.size(), tensor.stride(), offset).copy_(tensor)

"""Inputs of captures whose parts are written by their place in memory: each call gets them at the offset of the trace.

PyTorch makes such a part by the offset of the tensor that the program was traced with, and compiles nothing anew for a tensor
with another one: ``op_(x[:, ::2])`` for each layer of a cache, ``x = cache[layer]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ascend_graph.registration.conversion.wrapped_graph import WrappedGraph


class AtTracedOffsets(WrappedGraph):
    """Compiled graph that is called with other tensors of the same elements, whose offsets are those of the trace.

    Args:
        compiled: A graph.
        offsets: The offsets of the trace, in elements, by the position of the input.
    """

    def __init__(self, compiled: Any, offsets: Mapping[int, int]) -> None:
        super().__init__(compiled, dict(offsets))
        self._offsets = offsets

    def __call__(self, *inputs: Any) -> Any:
        given = list(inputs)
        for n, offset in self._offsets.items():
            if inputs[n].storage_offset() != offset:
                given[n] = _at_offset(inputs[n], offset)
        return self._compiled(*given)


def _at_offset(tensor: torch.Tensor, offset: int) -> torch.Tensor:
    """Return a tensor of the same elements in the same memory, which is counted from elsewhere and not kept alive."""
    from torch_npu import _C

    size, width = tensor.untyped_storage().nbytes(), tensor.element_size()
    moved = (tensor.storage_offset() - offset) * width
    start = tensor.untyped_storage().data_ptr() + moved
    storage = _C._construct_storage_from_data_pointer(start, tensor.device, size - moved)
    return tensor.new_empty(0).set_(storage, offset, tensor.size(), tensor.stride())

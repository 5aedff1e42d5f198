"""Inputs of captures on the CPU: operators read them while a graph is captured, and replays use what they read then.

TorchAir copies the inputs of a call to the memory of the capture, but for parameters and buffers: it captures anew for another
address of one, and takes its values to be the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from ascend_graph.errors import AscendGraphError
from ascend_graph.registration.conversion.wrapped_graph import WrappedGraph


class HostInputError(AscendGraphError):
    """Error of an input on the CPU that changed since a graph was captured."""


#: Copies: the stream makes those between the CPU and the device in every replay, which takes pinned memory.
_COPIES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy.default, torch.ops.aten.copy_.default)


def host_inputs(graph: fx.Graph) -> dict[int, str]:
    """Return the names of inputs on the CPU that operators of a graph read, by their position."""
    return {
        n: node.name
        for n, node in enumerate(graph.find_nodes(op="placeholder"))
        if _on_host(node) and not all(_crosses(user) for user in node.users)
    }


def _on_host(node: fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and (value.device.type, value.layout) == ("cpu", torch.strided)


def _crosses(node: fx.Node) -> bool:
    """Return whether a node copies between the CPU and the device."""
    return node.target in _COPIES and not all(map(_on_host, (node, *node.all_input_nodes)))


class SameHostInputs(WrappedGraph):
    """Compiled graph that refuses a call where an input on the CPU changed in place since the first call with its address.

    Args:
        compiled: A graph.
        inputs: The names of these inputs, by their position.
    """

    def __init__(self, compiled: Any, inputs: Mapping[int, str]) -> None:
        super().__init__(compiled, dict(inputs))
        self._inputs = inputs
        self._first: dict[tuple[int, int], torch.Tensor] = {}

    def __call__(self, *inputs: Any) -> Any:
        for n, name in self._inputs.items():
            place = n, inputs[n].data_ptr()
            if place not in self._first:
                self._first[place] = inputs[n].detach().clone()
            elif not _same(self._first[place], inputs[n]):
                raise HostInputError(
                    f"{name}, an input on the CPU of size {list(inputs[n].shape)}: it has other values than in the first call, which replays of the "
                    "capture go on with; expected the same values in every call. Keep it on the NPU, or pass the numbers as arguments"
                )
        return self._compiled(*inputs)


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two tensors have the same elements, byte by byte: NaN is the same as NaN."""
    return a.shape == b.shape and torch.equal(_bytes(a), _bytes(b))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach().resolve_conj().resolve_neg()
    return plain.contiguous().reshape(-1).view(torch.uint8)

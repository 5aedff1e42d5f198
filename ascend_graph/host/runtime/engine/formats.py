"""Graph inputs and frozen parameters in blocked formats such as FRACTAL_NZ; a step of the graph reorders them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ascend_graph.host.bridge import bridge
from ascend_graph.host.kernels import HostKernel
from ascend_graph.host.runtime.engine.model import IN_BLOCKS

if TYPE_CHECKING:
    from torchair._ge_concrete_graph.ge_ir_pb2 import OpDef


@dataclass(frozen=True, slots=True)
class Blocks:
    """Format in which memory holds a tensor of these sizes."""

    format: int
    sizes: tuple[int, ...]

    def kernel(self) -> HostKernel:
        """Return a kernel that copies memory's contents to an ordered tensor."""

        def ordered(kept: torch.Tensor) -> torch.Tensor:
            return bridge().unblocked(kept, self.format, list(self.sizes))  # type: ignore[no-any-return]

        return HostKernel("TransData", ordered, ("src",), frozenset())


def blocks_of_input(description: Any) -> Blocks | None:
    """Return the format in which memory holds a graph input, by TorchAir's description; None for plain order."""
    return _blocks(description.attr, "format_for_int", description.shape.dim)


def blocks_of_parameter(op: OpDef) -> Blocks | None:
    """Return the format in which memory holds a frozen parameter; None for plain order."""
    return _blocks(op.attr, "storage_format", ())


def _blocks(attrs: Mapping[str, Any], name: str, sizes: Sequence[int]) -> Blocks | None:
    if name not in attrs or attrs[name].i not in IN_BLOCKS:
        return None
    original = attrs["origin_shape"].list.i if "origin_shape" in attrs else sizes
    return Blocks(attrs[name].i, tuple(original))

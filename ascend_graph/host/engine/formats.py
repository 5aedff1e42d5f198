"""Graph inputs and frozen parameters that memory holds in blocks, FRACTAL_NZ and its kin: a step of the graph puts them in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ascend_graph.host.bridge import bridge
from ascend_graph.host.engine.model import IN_BLOCKS
from ascend_graph.host.ops import HostKernel

if TYPE_CHECKING:
    from torchair._ge_concrete_graph.ge_ir_pb2 import OpDef


@dataclass(frozen=True, slots=True)
class Blocks:
    """How memory holds a tensor of these sizes."""

    format: int
    sizes: tuple[int, ...]

    def kernel(self) -> HostKernel:
        """From what memory holds to the tensor, by a copy."""

        def ordered(kept: torch.Tensor) -> torch.Tensor:
            return bridge().unblocked(kept, self.format, list(self.sizes))  # type: ignore[no-any-return]

        return HostKernel("TransData", ordered, ("src",), frozenset())


def blocks_of_input(description: Any) -> Blocks | None:
    """How the memory of a graph input holds it, by the description that TorchAir writes; None for the order of its sizes."""
    return _blocks(description.attr, "format_for_int", description.shape.dim)


def blocks_of_parameter(op: OpDef) -> Blocks | None:
    """The same of a frozen parameter."""
    return _blocks(op.attr, "storage_format", ())


def _blocks(attrs: Mapping[str, Any], name: str, sizes: Sequence[int]) -> Blocks | None:
    if name not in attrs or attrs[name].i not in IN_BLOCKS:
        return None
    original = attrs["origin_shape"].list.i if "origin_shape" in attrs else sizes
    return Blocks(attrs[name].i, tuple(original))

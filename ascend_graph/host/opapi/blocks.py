"""Arguments of aclnn functions that memory holds in blocks: FRACTAL_NZ and its kin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ascend_graph.host.bridge import bridge

#: Of aclFormat's numbers, those that functions of the table take, with their names.
FORMATS = {29: "FRACTAL_NZ"}


@dataclass(frozen=True, slots=True)
class Blocked:
    """An aclTensor whose memory is ``kept``; the bridge makes it."""

    #: What memory holds, [..., columns of blocks, rows of blocks, 16, 32 bytes] of FRACTAL_NZ.
    kept: torch.Tensor
    #: aclFormat's number.
    format: int
    #: The view that the caller has, of the whole tensor.
    sizes: list[int]
    strides: list[int]
    #: Of the tensor that memory holds.
    whole: list[int]

    def ordered(self) -> torch.Tensor:
        """The view, of numbers that are copied from memory as it is now."""
        return bridge().unblocked(self.kept, self.format, self.whole).as_strided(self.sizes, self.strides)  # type: ignore[no-any-return]

    def like(self) -> torch.Tensor:
        """A tensor like the view, of any numbers."""
        return torch.empty_strided(self.sizes, self.strides, dtype=self.kept.dtype, device="cpu")


def ordered(value: Any) -> Any:
    """An argument with what is in blocks in the order of its sizes."""
    if isinstance(value, list):
        return [ordered(item) for item in value]
    return value.ordered() if isinstance(value, Blocked) else value


def like(value: Any) -> Any:
    """An argument with tensors of any numbers in the place of those in blocks."""
    if isinstance(value, list):
        return [like(item) for item in value]
    return value.like() if isinstance(value, Blocked) else value


def blocked_in(value: Any) -> list[Blocked]:
    """What of an argument is in blocks."""
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, Blocked)]

"""Arguments of aclnn functions in blocked formats: FRACTAL_NZ and similar ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ascend_graph.host.bridge import bridge

#: Numbers and names of the aclFormats that functions of the table take.
FORMATS = {29: "FRACTAL_NZ"}


@dataclass(frozen=True, slots=True)
class Blocked:
    """Tensor of a call in a blocked format: an aclTensor whose memory is ``kept``; the bridge makes it."""

    #: Memory's contents, for FRACTAL_NZ [..., columns of blocks, rows of blocks, 16, 32 bytes].
    kept: torch.Tensor
    #: Number in aclFormat.
    format: int
    #: The caller's view of the whole tensor.
    sizes: list[int]
    strides: list[int]
    #: Sizes of the tensor that memory holds.
    whole: list[int]

    def ordered(self) -> torch.Tensor:
        """Return the view, with numbers copied from memory as it is now."""
        return bridge().unblocked(self.kept, self.format, self.whole).as_strided(self.sizes, self.strides)  # type: ignore[no-any-return]

    def like(self) -> torch.Tensor:
        """Return an uninitialized tensor like the view."""
        return torch.empty_strided(self.sizes, self.strides, dtype=self.kept.dtype, device="cpu")


def ordered(value: Any) -> Any:
    """Return an argument with tensors in blocks reordered by their sizes."""
    if isinstance(value, list):
        return [ordered(item) for item in value]
    return value.ordered() if isinstance(value, Blocked) else value


def like(value: Any) -> Any:
    """Return an argument with uninitialized tensors instead of those in blocks."""
    if isinstance(value, list):
        return [like(item) for item in value]
    return value.like() if isinstance(value, Blocked) else value


def blocked_in(value: Any) -> list[Blocked]:
    """Return the tensors of an argument that are in blocks."""
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, Blocked)]

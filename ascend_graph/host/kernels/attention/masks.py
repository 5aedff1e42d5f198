"""Masks of the keys that queries attend to, and the modes for which one mask stands for all sizes."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ascend_graph.host.kernels.checks import check_choice, check_covers

T = torch.Tensor

UNBOUNDED = 2147483647


@dataclass(frozen=True, slots=True)
class Sparsity:
    """Selection of the keys that a query attends to."""

    mask: T | None
    mode: int
    before: int
    after: int
    #: True for queries alone in their sequence and without a rotated part; documents give modes no effect on them.
    is_single: bool = False

    def __post_init__(self) -> None:
        check_choice("sparse_mode", self.mode, 0, 1, 2, 3, 4)
        if self.mode and self.mask is None:
            raise ValueError(f"sparse_mode {self.mode} needs atten_mask")
        if self.mode == 4 and self.before + self.after < 0:
            raise ValueError(
                f"pre_tokens {self.before} and next_tokens {self.after}: the band is empty; expected a sum of 0 or more"
            )

    def masked(self, batch: int, queries: int, keys: int) -> T | None:
        """Return the mask of keys hidden from a sequence's queries, [queries, keys], or None if none are."""
        if self.mask is None:
            return None
        if self.mode in (2, 3, 4):
            check_triangle(self.mask, self.mode)
        if self.mode in (0, 1):
            masked = self._given(batch, queries, keys)
            if self.mode == 0 and queries > 1:
                masked = masked | _outside(queries, keys, 0, self.before, self.after, masked.device)
            return masked
        if queries == 1 and keys and self.mode == 3:
            return None
        shift = keys - queries if self.mode in (3, 4) else 0
        before, after = (self.before, self.after) if self.mode == 4 else (UNBOUNDED, 0)
        masked = _outside(queries, keys, shift, before, after, self.mask.device)
        if self.is_single and bool(masked.any()):
            raise ValueError(
                f"sparse_mode {self.mode} would hide keys from the only query of a sequence, and documents give it no effect there: "
                "write sparse_mode 0, with an atten_mask of [batch, keys] where keys are hidden"
            )
        return masked

    def _given(self, batch: int, queries: int, keys: int) -> T:
        assert self.mask is not None
        mask = self.mask
        if mask.dim() == 2 and queries == 1 and mask.size(0) != 1:  # [batch, keys]
            mask = mask[batch % mask.size(0)].unsqueeze(0)
        while mask.dim() > 2:
            mask = mask[batch if mask.size(0) > 1 else 0]
        check_covers("atten_mask", mask, queries, keys)
        return mask[:queries, :keys].bool()


def check_triangle(mask: T, mode: int, rows: int = 2048) -> None:
    """Refuse a mask with a size other than that of masks for all sizes.

    Raises:
        ValueError: the size is another.
    """
    if mask.shape[-2:] != (rows, 2048) or mask.numel() != rows * 2048:
        raise ValueError(f"atten_mask of shape {tuple(mask.shape)}: sparse_mode {mode} needs ({rows}, 2048)")


def _outside(queries: int, keys: int, shift: int, before: int, after: int, device: torch.device) -> T:
    distance = torch.arange(keys, device=device) - torch.arange(queries, device=device).unsqueeze(1) - shift
    return (distance > after) | (distance < -before)

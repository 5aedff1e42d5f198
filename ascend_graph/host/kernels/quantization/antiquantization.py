"""Dequantization of integer keys and values, by scales and offsets whose shape the mode defines."""

from __future__ import annotations

from dataclasses import dataclass

import torch

T = torch.Tensor

_MODES = {0: "channel", 1: "token", 2: "head", 3: "token and head"}


@dataclass(frozen=True, slots=True)
class Dequantizer:
    """Scales and offsets of the keys or the values; without a scale, the tensors are floats already."""

    scale: T | None = None
    offset: T | None = None
    mode: int = 0
    #: Name in messages; ``{}`` is scale or offset.
    name: str = "antiquant_{}"

    def check(self, what: str, x: T, batch: int | None, heads: int, tokens: int, width: int, in_pages: bool) -> None:
        """Refuse scales and offsets that do not fit the tensors.

        Args:
            what: ``key`` or ``value``.
            x: these, in any layout.
            batch: the number of sequences, or None if the shape does not tell it.
            heads: of the keys.
            tokens: the number of tokens of a sequence that there is room for.
            width: the dimension of a head.
            in_pages: whether scales of tokens may be for more of them than there is room for.

        Raises:
            ValueError: with the name, the shape and what is expected.
        """
        if (self.scale is None) is not x.dtype.is_floating_point:
            given = "absent" if self.scale is None else "given"
            raise ValueError(
                f"{what} is {x.dtype} and {self.name.format('scale')} {given}; integers need it, floats have none"
            )
        if self.scale is None:
            return
        if self.mode not in _MODES:
            known = ", ".join(f"{number} ({name})" for number, name in _MODES.items())
            raise ValueError(f"antiquant mode {self.mode} is not supported; {known} are")
        shape = tuple(self.scale.shape)
        by_mode: dict[int, list[tuple[int | None, ...]]] = {
            0: [(1,), (heads * width,), (heads, width), (heads, 1, width)],
            1: [(batch, tokens)],
            2: [(heads,)],
            3: [(batch, heads, tokens)],
        }
        valid = by_mode[self.mode]
        by_token, room = self.mode in (1, 3), shape[-1] if shape else 0
        if by_token and in_pages and room >= tokens:
            valid = [(*sizes[:-1], room) for sizes in valid]
        if not any(_matches(shape, sizes) for sizes in valid):
            shown = " or ".join(
                f"[{', '.join('_' if size is None else str(size) for size in sizes)}]" for sizes in valid
            )
            raise ValueError(
                f"{self.name.format('scale')} of shape {shape} is not valid; expected {shown}, as mode {self.mode}, by "
                f"{_MODES[self.mode]}, has it" + (", or more tokens" if by_token and in_pages else "")
            )
        if self.offset is not None and tuple(self.offset.shape) != shape:
            raise ValueError(
                f"{self.name.format('offset')} of shape {tuple(self.offset.shape)} must have the shape of the scale, "
                f"{shape}"
            )

    def __call__(self, x: T, batch: int) -> T:
        """Return one sequence, [heads, length, dimension], as floats."""
        if self.scale is None:
            return x.float()
        offset = 0 if self.offset is None else self._laid_out(self.offset, x, batch)
        return (x.float() + offset) * self._laid_out(self.scale, x, batch)

    def _laid_out(self, values: T, x: T, batch: int) -> T:
        heads, length, width = x.shape
        values = values.float()
        if self.mode == 0:  # by channel, or one for all
            return values if values.numel() == 1 else values.reshape(heads, 1, width)
        if self.mode == 1:  # by token
            return values.reshape(-1, values.size(-1))[batch, :length].reshape(1, length, 1)
        if self.mode == 2:  # by head
            return values.reshape(heads, 1, 1)
        return values.reshape(-1, heads, values.size(-1))[batch, :, :length].unsqueeze(-1)  # by token and head


def _matches(shape: tuple[int, ...], sizes: tuple[int | None, ...]) -> bool:
    """Return whether a shape ends with these sizes, all dimensions before being one; None is any size."""
    more = len(shape) - len(sizes)
    if more < 0 or any(size != 1 for size in shape[:more]):
        return False
    return all(wanted in (None, size) for wanted, size in zip(sizes, shape[more:], strict=True))


def joint_dequantizers(scale: T | None, offset: T | None, mode: int) -> tuple[Dequantizer, Dequantizer]:
    """Split parameters with the keys' part first, then the values', into two dequantizers.

    Raises:
        ValueError: a parameter does not have two parts.
    """
    for name, values in (("scale", scale), ("offset", offset)):
        if values is not None and (values.dim() == 0 or values.size(0) != 2):
            raise ValueError(
                f"antiquant_{name} of shape {tuple(values.shape)} is not valid; expected [2, …], for keys and values"
            )

    def part(number: int) -> Dequantizer:
        own = [None if both is None else both[number].reshape(both.shape[1:] or (1,)) for both in (scale, offset)]
        return Dequantizer(own[0], own[1], mode, f"antiquant_{{}}[{number}]")

    return part(0), part(1)

"""What deformable convolutions compute before their product: the image at points that are moved, and the gradient.

https://gitcode.com/Ascend/op-plugin, docs of torch_npu.npu_deformable_conv2d, has the formulas, and its tests the order of what the
channels of ``offsets`` mean: to the right, downwards and a factor, of each group of channels and each place in the filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from ascend_graph.host.ops.registry import host_kernel

T = torch.Tensor


@dataclass(frozen=True, slots=True)
class _Sampling:
    """Points of an image: those of each group of channels follow each other by rows of places, filters' rows, places and filters' columns."""

    image: T  # [batch, groups, height * width, channels of a group]
    height: int
    width: int
    x: T  # [batch, groups, points], as what follows
    y: T
    factor: T
    points: tuple[int, int, int, int]  # rows, the filter's rows, columns, the filter's columns

    @classmethod
    def of(
        cls,
        image: T,
        offsets: T,
        strides: Sequence[int],
        pads: Sequence[int],
        ksize: Sequence[int],
        dilations: Sequence[int],
        groups: int,
        data_format: str,
        modulated: bool,
    ) -> _Sampling:
        if data_format != "NHWC" or not modulated:
            raise ValueError(f"data_format {data_format!r} (NHWC), modulated {modulated} (True): no other is supported")
        if image.dim() != 4 or offsets.dim() != 4 or image.size(0) != offsets.size(0):
            raise ValueError(
                f"x {tuple(image.shape)}, offsets {tuple(offsets.shape)}: [batch, height, width, channels]"
            )
        batch, height, width, channels = image.shape
        _, rows, columns, _ = offsets.shape
        down, across = ksize
        if groups <= 0 or channels % groups or offsets.size(3) != 3 * groups * down * across:
            raise ValueError(
                f"deformable_groups {groups}, ksize {list(ksize)}: x has {channels} channels, a multiple, and offsets "
                f"{offsets.size(3)}, where {3 * groups * down * across} are expected"
            )
        parts = offsets.float().reshape(batch, rows, columns, 3, groups, down, across).permute(3, 0, 4, 1, 5, 2, 6)
        top = _places(rows, strides[1], -pads[0], down, dilations[1], image.device)[:, :, None, None]
        left = _places(columns, strides[2], -pads[2], across, dilations[2], image.device)
        x, y, factor = (part.flatten(2) for part in (parts[0] + left, parts[1] + top, parts[2]))
        pixels = image.float().reshape(batch, height * width, groups, -1).transpose(1, 2)
        return cls(pixels, height, width, x, y, factor, (rows, down, columns, across))

    def corners(self) -> Iterator[tuple[T, T, T, int, int]]:
        """Of the four neighbours of each point their places, how near they are along each axis (0 outside), and the signs of these."""
        for below in (0, 1):
            for right in (0, 1):
                row, column = self.y.floor() + below, self.x.floor() + right
                inside = (row >= 0) & (row < self.height) & (column >= 0) & (column < self.width)
                place = row.clamp(0, self.height - 1) * self.width + column.clamp(0, self.width - 1)
                near = [1 - (a - b).abs() for a, b in ((self.y, row), (self.x, column))]
                yield (
                    torch.where(inside, place, 0).long(),
                    torch.where(inside, near[0], 0),
                    torch.where(inside, near[1], 0),
                    2 * below - 1,
                    2 * right - 1,
                )

    def at(self, places: T) -> T:
        """The image's numbers at places, [batch, groups, points, channels of a group]."""
        return self.image.gather(2, self.wide(places))

    def wide(self, places: T) -> T:
        """Places for each channel of a group."""
        return places.unsqueeze(-1).expand(-1, -1, -1, self.image.size(-1))

    def values(self) -> T:
        """The image between its points, [batch, groups, points, channels of a group]; zeros outside."""
        found = torch.zeros_like(self.wide(self.x))
        for places, near_y, near_x, _, _ in self.corners():
            found = found + self.at(places) * (near_y * near_x).unsqueeze(-1)
        return found


def _places(count: int, stride: int, start: int, size: int, dilation: int, device: torch.device) -> T:
    """Where the filter's numbers are, [places, size]."""
    return start + stride * torch.arange(count, device=device)[:, None] + dilation * torch.arange(size, device=device)


@host_kernel("DeformableOffsets", other_inputs=[("X", "offsets")])
def deformable_offsets(
    x: T,
    offsets: T,
    *,
    strides: list[int],
    pads: list[int],
    ksize: list[int],
    dilations: list[int] = [1, 1, 1, 1],
    data_format: str = "NCHW",
    deformable_groups: int = 1,
    modulated: bool = True,
) -> T:
    """The image at the moved points, with their factors: a filter's worth of numbers for each place of the result."""
    sampling = _Sampling.of(x, offsets, strides, pads, ksize, dilations, deformable_groups, data_format, modulated)
    rows, down, columns, across = sampling.points
    y = (sampling.values() * sampling.factor.unsqueeze(-1)).unflatten(2, (rows * down, columns * across))
    laid_out: T = y.permute(0, 2, 3, 1, 4).flatten(3)
    return laid_out.to(x.dtype)


@host_kernel("DeformableOffsetsGrad", other_inputs=[("grad", "X", "offsets")])
def deformable_offsets_grad(
    grad: T,
    x: T,
    offsets: T,
    *,
    strides: list[int],
    pads: list[int],
    ksize: list[int],
    dilations: list[int] = [1, 1, 1, 1],
    data_format: str = "NCHW",
    deformable_groups: int = 1,
    modulated: bool = True,
) -> tuple[T, T]:
    """By the image and by the offsets."""
    sampling = _Sampling.of(x, offsets, strides, pads, ksize, dilations, deformable_groups, data_format, modulated)
    rows, down, columns, across = sampling.points
    if grad.shape != (x.size(0), rows * down, columns * across, x.size(3)):
        raise ValueError(f"grad of shape {tuple(grad.shape)} is not that of the result")
    given = grad.float().unflatten(3, (deformable_groups, -1)).permute(0, 3, 1, 2, 4).flatten(2, 3)
    scaled = given * sampling.factor.unsqueeze(-1)
    by_image = torch.zeros_like(sampling.image)
    by_y, by_x = torch.zeros_like(sampling.y), torch.zeros_like(sampling.x)
    for places, near_y, near_x, sign_y, sign_x in sampling.corners():
        by_image.scatter_add_(2, sampling.wide(places), scaled * (near_y * near_x).unsqueeze(-1))
        share = (scaled * sampling.at(places)).sum(-1)
        by_y, by_x = by_y + sign_y * near_x * share, by_x + sign_x * near_y * share
    by_factor = (given * sampling.values()).sum(-1)
    parts = torch.stack([by_x, by_y, by_factor]).unflatten(3, sampling.points)
    by_offsets = parts.permute(1, 3, 5, 0, 2, 4, 6).flatten(3)
    return by_image.transpose(1, 2).reshape(x.shape).to(x.dtype), by_offsets.to(offsets.dtype)

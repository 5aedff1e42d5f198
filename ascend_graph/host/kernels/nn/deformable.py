"""Sampling of deformable convolutions: the image at moved points, and its gradient.

https://gitcode.com/Ascend/op-plugin, docs of torch_npu.npu_deformable_conv2d, has the formulas. Its tests have the
order of the channels of ``offsets``: to the right, downwards and a factor, of each group of channels and each position
in the filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ascend_graph.host.kernels.checks import check_choice, check_shape
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


@dataclass(frozen=True, slots=True)
class _Sampling:
    """Sampling points of an image, grouped by channels.

    Points of a group follow each other by output rows, filter rows, output columns and filter columns.
    """

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
        check_choice("data_format", data_format, "NHWC")
        check_choice("modulated", modulated, True)
        if image.dim() != 4 or offsets.dim() != 4 or image.size(0) != offsets.size(0):
            raise ValueError(
                f"x {tuple(image.shape)}, offsets {tuple(offsets.shape)}: expected [batch, height, width, channels] "
                "with one batch for both"
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
        """Yield the four neighbors of each point: positions, weights along each axis and their signs.

        Weights are 0 outside the image; the signs are those of the weights' derivatives.
        """
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
        """Gather the image's values at positions, [batch, groups, points, channels of a group]."""
        return self.image.gather(2, self.wide(places))

    def wide(self, places: T) -> T:
        """Expand positions to each channel of a group."""
        return places.unsqueeze(-1).expand(-1, -1, -1, self.image.size(-1))

    def values(self) -> T:
        """Interpolate the image, [batch, groups, points, channels of a group]; zeros outside."""
        found = torch.zeros_like(self.wide(self.x))
        for places, near_y, near_x, _, _ in self.corners():
            found = found + self.at(places) * (near_y * near_x).unsqueeze(-1)
        return found


def _places(count: int, stride: int, start: int, size: int, dilation: int, device: torch.device) -> T:
    """Return the coordinates of the filter's elements, [places, size]."""
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
    """Sample the image at the moved points and multiply by their factors, a filter's size for each output position."""
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
    """Return the gradients of the image and of the offsets."""
    sampling = _Sampling.of(x, offsets, strides, pads, ksize, dilations, deformable_groups, data_format, modulated)
    rows, down, columns, across = sampling.points
    check_shape("grad", grad, (x.size(0), rows * down, columns * across, x.size(3)), why="the shape of the result")
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


_MOST_POINTS, _MOST_NUMBERS = 2048, 65535


def _checked(
    input: T, weight: T, offset: T, lists: Sequence[Sequence[int]], groups: int, deformable_groups: int
) -> None:
    """Check sizes against the documents of aclnnDeformableConv2d and its gradient."""
    kernel_size, stride, padding, dilation = lists
    if [len(sizes) for sizes in lists] != [2, 4, 4, 4] or min(*kernel_size, *stride, *dilation) <= 0:
        raise ValueError(
            f"kernelSize, stride, padding, dilation {[*map(list, lists)]}: 2, 4, 4 and 4 numbers are expected"
        )
    if any(number != 1 for sizes in (stride, dilation) for number in sizes[:2]):
        raise ValueError(
            f"stride {list(stride)}, dilation {list(dilation)}: expected 1 for batches and channels, the first two"
        )
    down, across = kernel_size
    if groups <= 0 or input.dim() != 4 or weight.shape != (weight.size(0), input.size(1) // groups, down, across):
        raise ValueError(
            f"weight {tuple(weight.shape)} of input {tuple(input.shape)}, groups {groups}, kernelSize {list(kernel_size)}: [outC, inC / "
            "groups, height, width] is expected"
        )
    if input.size(1) % groups or weight.size(0) % groups or deformable_groups <= 0 or input.size(1) % deformable_groups:
        raise ValueError(f"groups {groups}, deformableGroups {deformable_groups}: channels must be multiples")
    if down * across > _MOST_POINTS or down * across * weight.size(1) > _MOST_NUMBERS:
        raise ValueError(
            f"weight {tuple(weight.shape)}: {_MOST_POINTS} places at most, {_MOST_NUMBERS} with channels of a group"
        )
    sizes = [
        (size + before + after - (step * (count - 1) + 1)) // stride_ + 1
        for size, before, after, step, count, stride_ in zip(
            input.shape[2:], padding[::2], padding[1::2], dilation[2:], kernel_size, stride[2:], strict=True
        )
    ]
    if min(sizes) <= 0 or list(offset.shape[2:]) != sizes:
        raise ValueError(f"offset {tuple(offset.shape)}: expected {sizes} as its last two sizes, those of the result")


def _last(x: T) -> T:
    """Move channels to the last dimension."""
    return x.permute(0, 2, 3, 1)


def _options(lists: Sequence[Sequence[int]], groups: int, modulated: bool) -> dict[str, Any]:
    """Return the attrs of the operators with channels last."""
    ksize, stride, padding, dilation = map(list, lists)
    steps, places = ([1, *sizes[2:], 1] for sizes in (stride, dilation))
    names = {"strides": steps, "pads": padding, "ksize": ksize, "dilations": places, "data_format": "NHWC"}
    return {**names, "deformable_groups": groups, "modulated": modulated}


@host_kernel("DeformableConv2d")
def deformable_conv2d(
    input: T,
    weight: T,
    offset: T,
    bias: T | None = None,
    *,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    deformable_groups: int,
    modulated: bool,
) -> tuple[T, T]:
    """Return the convolution, and the image at the moved points."""
    lists = (kernel_size, stride, padding, dilation)
    _checked(input, weight, offset, lists, groups, deformable_groups)
    sampled = deformable_offsets(_last(input), _last(offset), **_options(lists, deformable_groups, modulated))
    sampled = sampled.permute(0, 3, 1, 2).contiguous()
    of_bias = None if bias is None else bias.float()
    y = torch.nn.functional.conv2d(
        sampled.float(), weight.float(), of_bias, stride=(kernel_size[0], kernel_size[1]), groups=groups
    )
    return y.to(input.dtype), sampled


@host_kernel("DeformableConv2dBackward")
def deformable_conv2d_backward(
    input: T,
    grad_output: T,
    offset_out: T,
    weight: T,
    offset: T,
    *,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    deformable_groups: int,
    modulated: bool,
) -> tuple[T, T, T, T]:
    """Return the gradients of the image, the filter, the offsets and the bias."""
    lists = (kernel_size, stride, padding, dilation)
    _checked(input, weight, offset, lists, groups, deformable_groups)
    down, across = kernel_size
    rows, columns = offset.shape[2:]
    expected = {
        "gradOutput": (grad_output, (input.size(0), weight.size(0), rows, columns)),
        "offsetOut": (offset_out, (*input.shape[:2], rows * down, columns * across)),
    }
    for name, (tensor, shape) in expected.items():
        if tensor.shape != shape:
            raise ValueError(f"{name} of shape {tuple(tensor.shape)}: {list(shape)} is expected")
    by_sampled, by_weight, by_bias = torch.ops.aten.convolution_backward(
        grad_output.float(),
        offset_out.float(),
        weight.float(),
        [weight.size(0)],
        kernel_size,
        [0, 0],
        [1, 1],
        False,
        [0, 0],
        groups,
        [True, True, True],
    )
    by_image, by_offset = deformable_offsets_grad(
        _last(by_sampled), _last(input), _last(offset), **_options(lists, deformable_groups, modulated)
    )
    first = [x.permute(0, 3, 1, 2).contiguous() for x in (by_image, by_offset)]
    return first[0], by_weight.to(weight.dtype), first[1], by_bias.to(grad_output.dtype)

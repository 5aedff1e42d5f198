"""Deformable convolutions, point by point, and their gradients.

Documented: https://gitcode.com/Ascend/op-plugin, docs/zh/custom_APIs/torch_npu (npu_deformable_conv2d); the order of the offsets' channels,
and that neighbours outside of the image count as zeros: test/test_base_ops/test_deformable_conv2d.py there.
"""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
import torch.nn.functional as F
import torch_npu
from npu_ways import check

T = torch.Tensor

#: Of the image, of the places of the result, of the filter.
BATCH, CHANNELS, HEIGHT, WIDTH = 2, 4, 5, 6


def between(image: T, y: T, x: T) -> T:
    """The image, [channels, height, width], between its points; zeros outside."""
    top, left = math.floor(float(y.detach())), math.floor(float(x.detach()))
    found = torch.zeros(image.size(0))
    for row, column in product((top, top + 1), (left, left + 1)):
        if 0 <= row < image.size(1) and 0 <= column < image.size(2):
            found = found + image[:, row, column] * (1 - (y - row).abs()) * (1 - (x - column).abs())
    return found


def reference(
    x: T, weight: T, offset: T, bias: T | None, stride: list[int], padding: list[int], dilation: list[int], groups: int
) -> tuple[T, T]:
    """The convolution, and the image at the points that it takes."""
    (down, across), (rows, columns) = weight.shape[2:], offset.shape[2:]
    moves = offset.unflatten(1, (3, groups, down, across))
    lines = []
    for n in range(x.size(0)):
        parts = x[n].unflatten(0, (groups, -1))
        points = []
        for row, i, column, j in product(range(rows), range(down), range(columns), range(across)):
            values = []
            for g in range(groups):
                right, below, factor = moves[n, :, g, i, j, row, column]
                y = row * stride[0] - padding[0] + i * dilation[0] + below
                z = column * stride[1] - padding[2] + j * dilation[1] + right
                values.append(between(parts[g], y, z) * factor)
            points.append(torch.cat(values))
        lines.append(torch.stack(points, 1).reshape(-1, rows * down, columns * across))
    sampled = torch.stack(lines)
    return F.conv2d(sampled, weight, bias, stride=(down, across)), sampled


CASES = [
    # filter, stride, padding, dilation, groups of channels that move together
    ((3, 3), [1, 1], [1, 1, 1, 1], [1, 1], 1),
    ((2, 3), [2, 1], [0, 1, 2, 0], [1, 2], 2),
]


def drawn(
    case: tuple[tuple[int, int], list[int], list[int], list[int], int],
) -> tuple[list[T], dict[str, list[int] | int]]:
    (down, across), stride, padding, dilation, groups = case
    rows = (HEIGHT + padding[0] + padding[1] - (down - 1) * dilation[0] - 1) // stride[0] + 1
    columns = (WIDTH + padding[2] + padding[3] - (across - 1) * dilation[1] - 1) // stride[1] + 1
    tensors = [
        torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH),
        torch.randn(3, CHANNELS, down, across),
        2 * torch.randn(BATCH, 3 * groups * down * across, rows, columns),
        torch.randn(3),
    ]
    options: dict[str, list[int] | int] = {
        "kernel_size": [down, across], "stride": [1, 1, *stride], "padding": padding, "dilation": [1, 1, *dilation],
        "deformable_groups": groups,
    }  # fmt: skip
    return tensors, options


@pytest.mark.parametrize("case", CASES)
def test_deformable_conv2d(case: tuple[tuple[int, int], list[int], list[int], list[int], int]) -> None:
    tensors, options = drawn(case)
    _, stride, padding, dilation, groups = case
    check(
        lambda x, w, o, b: torch_npu.npu_deformable_conv2d(x, w, o, b, **options),
        tensors,
        reference(*tensors, stride, padding, dilation, groups),
        "eager",
    )


@pytest.mark.parametrize("case", CASES)
def test_gradients(case: tuple[tuple[int, int], list[int], list[int], list[int], int]) -> None:
    tensors, options = drawn(case)
    _, stride, padding, dilation, groups = case
    leaves = [t.clone().requires_grad_() for t in tensors]
    y, _ = reference(*leaves, stride, padding, dilation, groups)
    given = torch.randn_like(y)
    expected = torch.autograd.grad(y, leaves, given)

    def gradients(x: T, w: T, o: T, b: T, g: T) -> tuple[T, ...]:
        leaves = [t.detach().requires_grad_() for t in (x, w, o, b)]
        return torch.autograd.grad(torch_npu.npu_deformable_conv2d(*leaves, **options)[0], leaves, g)

    check(gradients, [*tensors, given], expected, "eager")


def test_offsets_without_factors_are_refused() -> None:
    (x, w, o, b), options = drawn(CASES[0])
    x, w, o, b = x.npu(), w.npu(), o[:, :18].npu(), b.npu()
    with pytest.raises(RuntimeError, match=r"modulated False \(True\)"):
        torch_npu.npu_deformable_conv2d(x, w, o, b, **options, modulated=False)

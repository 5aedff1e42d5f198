"""Deformable convolutions, point by point, and their gradients.

Documented: https://gitcode.com/Ascend/op-plugin, docs/zh/custom_APIs/torch_npu (npu_deformable_conv2d); the order of
the offsets' channels,
and that neighbors outside of the image count as zeros: test/test_base_ops/test_deformable_conv2d.py there.
"""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
import torch.nn.functional as F
import torch_npu
from operator_modes import ASCEND_950, check

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
    x: T,
    weight: T,
    offset: T,
    bias: T | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    filters: int = 1,
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
    return F.conv2d(sampled, weight, bias, stride=(down, across), groups=filters), sampled


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
        "kernel_size": [down, across],
        "stride": [1, 1, *stride],
        "padding": padding,
        "dilation": [1, 1, *dilation],
        "deformable_groups": groups,
    }
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
    with pytest.raises(RuntimeError, match=r"modulated False is not supported; expected True"):
        torch_npu.npu_deformable_conv2d(x, w, o, b, **options, modulated=False)


@ASCEND_950
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("groups", [1, 2])
def test_by_functions_of_newer_processors(
    case: tuple[tuple[int, int], list[int], list[int], list[int], int], groups: int
) -> None:
    """https://gitcode.com/cann/ops-nn, conv/deformable_conv2d/docs/aclnnDeformableConv2d.md and
    conv/convolution_backward/docs/aclnnDeformableConv2dBackward.md."""
    (x, w, o, b), options = drawn(case)
    _, stride, padding, dilation, moving = case
    w, b = torch.randn(4, CHANNELS // groups, *w.shape[2:]), torch.randn(4)
    options = {**options, "groups": groups}
    leaves = [t.clone().requires_grad_() for t in (x, w, o, b)]
    y, sampled = reference(*leaves, stride, padding, dilation, moving, groups)
    given = torch.randn_like(y)
    check(
        lambda x, w, o, b: torch_npu.npu_deformable_conv2d(x, w, o, b, **options),
        [x, w, o, b],
        [y.detach(), sampled.detach()],
        "eager captured npugraph_ex",
    )
    by_x, by_w, by_o, by_b = torch.autograd.grad(y, leaves, given)
    check(
        lambda x, g, s, w, o: torch_npu.npu_deformable_conv2dbk(x, g, s, w, o, **options),
        [x, given, sampled.detach(), w, o],
        [by_x, by_w, by_o, by_b],
        "eager captured",
    )


@ASCEND_950
def test_sizes_that_do_not_fit_are_refused() -> None:
    (x, w, o, b), options = drawn(CASES[0])
    x, w, o, b = (t.npu() for t in (x, w, o, b))
    for change, text in (
        ({"modulated": False}, r"modulated False is not supported; expected True"),
        ({"deformable_groups": 3}, "deformableGroups 3: channels must be multiples"),
        ({"padding": [0, 0, 0, 0]}, "as its last two sizes, those of the result"),
    ):
        with pytest.raises(RuntimeError, match=text):
            torch_npu.npu_deformable_conv2d(x, w, o, b, **{**options, **change})

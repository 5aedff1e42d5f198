"""torch_npu.npu_grouped_matmul: each group of rows with its own weight."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_npu
from operator_modes import check

T = torch.Tensor
ENDS = [3, 3, 7, 8]


def by_group(x: T, weights: list[T], sizes: list[int]) -> T:
    return torch.cat([part.double() @ w.double() for part, w in zip(x.split(sizes), weights, strict=True)])


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("stacked", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_rows_of_groups(kind: int, stacked: bool, dtype: torch.dtype) -> None:
    x, weights = torch.randn(8, 16).to(dtype), [torch.randn(16, 12).to(dtype) for _ in range(4)]
    sizes = torch.tensor(ENDS).diff(prepend=torch.tensor([0])).tolist()
    y = by_group(x, weights, sizes).to(dtype)
    given = [torch.stack(weights)] if stacked else weights
    modes = "eager captured ge npugraph_ex" if stacked and dtype is torch.float16 and kind == 0 else "eager captured"
    check(
        lambda x, w, g: torch_npu.npu_grouped_matmul(
            [x], w, group_list=g, split_item=3, group_type=0, group_list_type=kind
        )[0],
        [x, given, torch.tensor(ENDS if kind == 0 else sizes)],
        y,
        modes,
    )


def test_matrices_of_their_own() -> None:
    xs, ws = [torch.randn(n, 16).half() for n in (3, 5)], [torch.randn(16, n).half() for n in (8, 4)]
    bias = [torch.randn(n).half() for n in (8, 4)]
    expected = [(x.float() @ w.float() + b.float()).half() for x, w, b in zip(xs, ws, bias, strict=True)]
    check(
        lambda x, w, b: torch_npu.npu_grouped_matmul(x, w, bias=b, group_type=-1),
        [xs, ws, bias],
        expected,
        "eager captured",
    )


@pytest.mark.parametrize("bias", [False, True])
def test_quantized_rows(bias: bool) -> None:
    x, w = torch.randint(-100, 100, (8, 32)).to(torch.int8), torch.randint(-100, 100, (4, 32, 16)).to(torch.int8)
    scale, rows, sizes = torch.rand(4, 16).bfloat16(), torch.rand(8), torch.tensor([3, 0, 4, 1])
    added = torch.randint(-1000, 1000, (4, 16)).to(torch.int32)
    own = torch.arange(4).repeat_interleave(sizes)
    y = by_group(x, list(w), sizes.tolist()) + (added[own] if bias else 0)
    y = y * scale.double()[own] * rows.double().unsqueeze(1)

    def run(x: T, w: T, s: T, r: T, g: T, *b: T) -> T:
        options: dict[str, Any] = {"bias": [b[0]]} if b else {}
        return torch_npu.npu_grouped_matmul(
            [x],
            [w],
            scale=[s],
            per_token_scale=[r],
            group_list=g,
            split_item=3,
            group_type=0,
            group_list_type=1,
            output_dtype=torch.bfloat16,
            **options,
        )[0]

    check(run, [x, w, scale, rows, sizes, *([added] if bias else [])], y.bfloat16(), "eager captured")


def test_sums_of_groups() -> None:
    """group_type 2: as for the gradient of the weights."""
    x, w = torch.randn(8, 6).half(), torch.randn(8, 12).half()
    parts = zip(x.split([3, 0, 4, 1]), w.split([3, 0, 4, 1]), strict=True)
    y = torch.stack([a.float().t() @ b.float() for a, b in parts]).half()
    check(
        lambda x, w, g: torch_npu.npu_grouped_matmul([x.t()], [w], group_list=g, split_item=3, group_type=2)[0],
        [x, w, torch.tensor(ENDS)],
        y,
        "eager captured",
    )


@pytest.mark.parametrize("ends", [[3, 2, 7, 8], [3, 3, 7, 9]])
def test_groups_that_do_not_suit_are_refused(ends: list[int]) -> None:
    x, w = torch.randn(8, 16).half().npu(), torch.randn(4, 16, 12).half().npu()
    with pytest.raises(RuntimeError, match="group_list .* of type 0"):
        torch_npu.npu_grouped_matmul([x], [w], group_list=torch.tensor(ends).npu(), split_item=3, group_type=0)

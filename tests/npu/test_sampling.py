"""torch_npu.npu_top_k_top_p, a row at a time."""

from __future__ import annotations

import pytest
import torch
import torch_npu
from npu_ways import check

T = torch.Tensor


def filtered(row: T, k: int, p: float) -> T:
    """The k largest, and of these, from the least, those left out that make up no more than 1 - p."""
    order = sorted(range(row.numel()), key=lambda n: (float(row[n]), n))
    kept = [n for n in order if row[n] >= row[order[-k]]]
    weights = torch.softmax(row[kept].float(), 0)
    out, total = torch.full_like(row, -torch.inf), 0.0
    for place, n in enumerate(kept):
        total += float(weights[place])
        if total > 1 - p or place == len(kept) - 1:
            out[n] = row[n]
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_top_k_top_p(dtype: torch.dtype) -> None:
    logits, k, p = (
        torch.randn(4, 20).to(dtype),
        torch.tensor([1, 5, 20, 7], dtype=torch.int32),
        torch.tensor([0.9, 0.6, 0.5, 1.0]).to(dtype),
    )
    out = torch.stack([filtered(row, int(n), float(q)) for row, n, q in zip(logits, k, p, strict=True)])
    ways = "eager captured npugraph_ex" if dtype is torch.float32 else "eager captured"
    check(lambda x, p, k: torch_npu.npu_top_k_top_p(x, p, k), [logits, p, k], out, ways)


def test_a_k_out_of_range_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"k \[0, 3\]: each must be from 1 to 8"):
        torch_npu.npu_top_k_top_p(
            torch.randn(2, 8).npu(), torch.rand(2).npu(), torch.tensor([0, 3], dtype=torch.int32).npu()
        )

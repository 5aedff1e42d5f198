"""torch_npu.npu_top_k_top_p and npu_top_k_top_p_sample, a row at a time."""

from __future__ import annotations

import pytest
import torch
import torch_npu
from operator_modes import check, naming_what_is_lacking

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
    modes = "eager captured ge npugraph_ex" if dtype is torch.float32 else "eager captured"
    check(lambda x, p, k: torch_npu.npu_top_k_top_p(x, p, k), [logits, p, k], out, modes)


def test_a_k_out_of_range_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"k \[0, 3\]: each must be from 1 to 8"):
        torch_npu.npu_top_k_top_p(
            torch.randn(2, 8).npu(), torch.rand(2).npu(), torch.tensor([0, 3], dtype=torch.int32).npu()
        )


def sampled(row: T, k: int, p: float, least: float, q: T | None) -> tuple[int, list[int]]:
    """The token with the largest probability, over its exponential number, and the tokens that k, p and min_p leave."""
    order = sorted(range(row.numel()), key=lambda n: -float(row[n]))
    kept = order[:k] if 1 <= k <= row.numel() else order
    chances = dict(zip(kept, torch.softmax(row[kept].float(), 0).tolist(), strict=True))
    if p < 1:
        total, first = 0.0, []
        for n in kept:
            if total > p or (p <= 0 and first):
                break
            first.append(n)
            total += chances[n]
        kept = first
    if least > 0:
        kept = [n for n in kept if chances[n] >= min(least, 1.0) * chances[kept[0]]]
    numbers = [chances[n] / (1 if q is None else float(q[place]) + 1e-8) for place, n in enumerate(kept)]
    return kept[numbers.index(max(numbers))], kept


@pytest.mark.parametrize("with_q", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_top_k_top_p_sample(dtype: torch.dtype, with_q: bool) -> None:
    """Among the rows some without k, p or min_p, which are out of range there."""
    logits = torch.stack([torch.randperm(20) for _ in range(6)]).float() / 4
    logits = logits.to(dtype)
    k = torch.tensor([1, 5, 20, 7, 0, 4000], dtype=torch.int32)
    p, least = (
        torch.tensor([0.9, 0.6, 0.5, 1.0, 0.0, 1.0]).to(dtype),
        torch.tensor([0, 0.2, 0.3, 0.4, 0.1, 1.0]).to(dtype),
    )
    q = torch.empty(6, 20).exponential_() if with_q else None
    expected = [
        sampled(logits[n], int(k[n]), float(p[n]), float(least[n]), None if q is None else q[n]) for n in range(6)
    ]
    left = torch.full((6, 20), -torch.inf)
    for n, (_, kept) in enumerate(expected):
        left[n, kept] = logits[n, kept].float()

    def run(x: T, k: T, p: T, m: T, *q: T) -> list[T]:
        return torch_npu.npu_top_k_top_p_sample(
            x, k, p, q=q[0] if q else None, min_ps=m, is_need_logits=True, post_sample="qSample" if q else "None"
        )

    args = [logits, k, p, least, *([] if q is None else [q])]
    check(run, args, (torch.tensor([token for token, _ in expected]), left), "eager captured")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("rate", [1.0, 2.5])
@naming_what_is_lacking()
def test_sim_exponential(dtype: torch.dtype, rate: float) -> None:
    """https://gitcode.com/cann/ops-math, random/sim_thread_exponential (docs/aclnnSimThreadExponential.md): -ln(1 -
    u) / lambda."""
    generator = torch.Generator("npu").manual_seed(7)
    state = generator.get_state()
    given = torch.zeros(100, 400, dtype=dtype, device="npu")
    drawn = torch_npu.npu_sim_exponential_(given, lambd=rate, generator=generator)
    assert drawn.data_ptr() == given.data_ptr()
    numbers = drawn.cpu().double()
    assert bool((numbers >= 0).all())
    finite = numbers[torch.isfinite(numbers)]  # u = 1 has none
    assert finite.numel() >= numbers.numel() - 4
    ordered = finite.sort().values
    uniform = (torch.arange(1, ordered.numel() + 1) - 0.5) / ordered.numel()
    # The distance of Kolmogorov and Smirnov, which one in a million draws of 40,000 exceeds 2.7 / 200 by; steps of
    # bfloat16 add to it.
    assert float((1 - torch.exp(-ordered * rate) - uniform).abs().max()) < (
        0.016 if dtype is torch.bfloat16 else 0.0135
    )
    after = torch_npu.npu_sim_exponential_(given.clone(), lambd=rate, generator=generator)
    assert not torch.equal(after, drawn)
    generator.set_state(state)
    assert torch.equal(torch_npu.npu_sim_exponential_(given.clone(), lambd=rate, generator=generator), drawn)


@naming_what_is_lacking()
def test_what_sim_exponential_refuses() -> None:
    with pytest.raises(RuntimeError, match="lambd > 0"):
        torch_npu.npu_sim_exponential_(torch.zeros(4).npu(), lambd=0.0)
    with pytest.raises(RuntimeError, match="selfRef is INT32; expected FLOAT, FLOAT16, BF16"):
        torch_npu.npu_sim_exponential_(torch.zeros(4, dtype=torch.int32).npu())
    whole = torch.zeros(4).npu()
    assert float(torch_npu.npu_sim_exponential_(whole + 1, lambd=torch.inf).sum()) == 0

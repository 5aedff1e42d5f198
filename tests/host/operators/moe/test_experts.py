"""Mixtures of experts, as documented for torch_npu.npu_moe_…, a token at a time."""

from __future__ import annotations

import pytest
import torch
import torch_npu
from operator_modes import check

T = torch.Tensor
I32 = torch.int32


def best(scores: T, k: int) -> list[int]:
    """The k largest, of equal ones the first."""
    return sorted(range(scores.numel()), key=lambda n: (-float(scores[n]), n))[:k]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_moe_gating_top_k_softmax(dtype: torch.dtype) -> None:
    x, finished = torch.randn(5, 8).to(dtype), torch.tensor([False, True, False, False, True])
    softmax = torch.softmax(x.float(), -1)
    experts = torch.tensor([best(row, 3) for row in softmax])
    values = softmax.gather(1, experts).to(dtype)
    rows = torch.tensor([[row + 5 * column for column in range(3)] for row in range(5)])
    chosen = torch.where(finished.unsqueeze(1), 8, experts)
    modes = "eager captured ge npugraph_ex" if dtype is torch.float32 else "eager captured"
    check(
        lambda x, f: torch_npu.npu_moe_gating_top_k_softmax(x, f, 3),
        [x, finished],
        (values, chosen.to(I32), rows.to(I32)),
        modes,
    )


@pytest.mark.parametrize("norm_type", [0, 1])
@pytest.mark.parametrize("group_select_mode", [0, 1])
@pytest.mark.parametrize("groups", [1, 4])
def test_moe_gating_top_k(norm_type: int, group_select_mode: int, groups: int) -> None:
    x, bias, k, k_group = torch.randn(6, 16), torch.randn(16), 3, 2 if groups > 1 else 1
    normalized = torch.sigmoid(x) if norm_type else torch.softmax(x, -1)
    values, experts = torch.zeros(6, k), torch.zeros(6, k, dtype=I32)
    for row in range(6):
        scores = normalized[row] + bias
        by_group = scores.reshape(groups, -1)
        strength = by_group.max(-1).values if group_select_mode == 0 else by_group.sort().values[:, -2:].sum(-1)
        kept = best(strength, k_group)
        masked = torch.full((groups, 16 // groups), -torch.inf)
        masked[kept] = by_group[kept]
        experts[row] = torch.tensor(best(masked.flatten(), k))
        weights = normalized[row, experts[row].long()]
        values[row] = 2.5 * (weights / (weights.sum() + 1e-20) if norm_type == 1 else weights)
    check(
        lambda x, b: torch_npu.npu_moe_gating_top_k(
            x,
            k,
            bias=b,
            k_group=k_group,
            group_count=groups,
            group_select_mode=group_select_mode,
            norm_type=norm_type,
            routed_scaling_factor=2.5,
            out_flag=True,
        ),
        [x, bias],
        (values, experts, normalized),
        "eager captured ge npugraph_ex" if groups == 4 and norm_type and group_select_mode else "eager captured",
    )


@pytest.mark.parametrize(
    "change", [{"k": 9}, {"group_count": 3}, {"renorm": 1}, {"k": 5, "group_count": 4, "k_group": 1}]
)
def test_gating_that_is_documented_as_invalid_is_refused(change: dict[str, int]) -> None:
    with pytest.raises(RuntimeError, match=r"(k|renorm|group_count) \d"):
        torch_npu.npu_moe_gating_top_k(torch.randn(3, 8).npu(), **{"k": 2, **change})


def test_moe_init_routing() -> None:
    x, experts = torch.randn(4, 8), torch.tensor([[1, 0], [0, 2], [2, 1], [0, 1]], dtype=I32)
    rows = torch.tensor([[0, 4], [1, 5], [2, 6], [3, 7]], dtype=I32)
    order = sorted(range(8), key=lambda n: (int(experts.flatten()[n]), n))
    sources = rows.flatten()[order]
    places = torch.zeros(8, dtype=I32)
    places[sources.long()] = torch.arange(8, dtype=I32)
    check(
        lambda x, r, e: torch_npu.npu_moe_init_routing(x, r, e, 3),
        [x, rows, experts],
        (x[sources[:6].long() % 4], places, experts.flatten().sort().values),
    )


@pytest.mark.parametrize("quant_mode", [-1, 0, 1])
@pytest.mark.parametrize("row_idx_type", [0, 1])
@pytest.mark.parametrize("counts", [0, 1, 2])
def test_moe_init_routing_v2(quant_mode: int, row_idx_type: int, counts: int) -> None:
    """Of 8 experts those from 2 to 5 are here; the others' tokens go nowhere."""
    x, experts = torch.randn(5, 8), torch.randint(0, 8, (5, 3)).to(I32)
    scale = [torch.tensor([3.0])] if quant_mode == 0 else [torch.rand(4, 8) + 0.5] if quant_mode == 1 else []
    offset = [torch.tensor([1.0])] if quant_mode == 0 else []
    pairs = sorted((int(expert), n) for n, expert in enumerate(experts.flatten()) if 2 <= expert < 6)
    valid = len(pairs)
    rows, scales, places = torch.zeros(15, 8), torch.zeros(15), torch.full((15,), -1, dtype=I32)
    for place, (expert, n) in enumerate(pairs):
        rows[place] = x[n // 3]
        if quant_mode == 0:
            rows[place] = torch.round(rows[place] * 3 + 1).clamp(-128, 127)
        elif quant_mode == 1:
            rows[place] *= scale[0][expert - 2]
            scales[place] = rows[place].abs().max() / 127
            rows[place] = torch.round(rows[place] / scales[place])
        places[n] = place
    order = torch.tensor([n for _, n in pairs], dtype=I32)
    count = torch.tensor([sum(expert == e for expert, _ in pairs) for e in range(2, 6)])
    pairs_of_counts = [[e + 2, int(c)] for e, c in enumerate(count) if c]
    tokens = {0: count.cumsum(0), 1: count, 2: torch.tensor(pairs_of_counts + [[0, 0]] * (8 - len(pairs_of_counts)))}[
        counts
    ]

    def run(x: T, experts: T, *given: T) -> tuple[T, ...]:
        options = dict(zip(("scale", "offset"), given, strict=False))
        y, index, number, own = torch_npu.npu_moe_init_routing_v2(
            x,
            experts,
            **options,
            active_num=15,
            expert_num=8,
            expert_tokens_num_type=counts,
            expert_tokens_num_flag=True,
            quant_mode=quant_mode,
            active_expert_range=[2, 6],
            row_idx_type=row_idx_type,
        )
        return y[:valid], index[:valid] if row_idx_type else index, number, *([own[:valid]] if quant_mode == 1 else [])

    wanted = rows[:valid] if quant_mode == -1 else rows[:valid].to(torch.int8)
    expected = (wanted, order if row_idx_type else places, tokens, *([scales[:valid]] if quant_mode == 1 else []))
    check(run, [x, experts, *scale, *offset], expected, "eager captured")


def test_moe_init_routing_drops_what_exceeds_the_capacity() -> None:
    x, experts = torch.randn(5, 4), torch.tensor([[0, 1], [0, 1], [0, 2], [1, 2], [0, 2]], dtype=I32)
    rows, places = torch.zeros(3, 2, 4), torch.full((10,), -1, dtype=I32)
    used = [0, 0, 0]
    for n, expert in enumerate(experts.flatten().tolist()):
        if used[expert] < 2:
            rows[expert, used[expert]] = x[n // 2]
            places[n] = expert * 2 + used[expert]
            used[expert] += 1
    check(
        lambda x, e: torch_npu.npu_moe_init_routing_v2(
            x,
            e,
            active_num=10,
            expert_capacity=2,
            expert_num=3,
            drop_pad_mode=1,
            expert_tokens_num_type=1,
            expert_tokens_num_flag=True,
            quant_mode=-1,
            active_expert_range=[0, 3],
            row_idx_type=0,
        )[:2],
        [x, experts],
        (rows, places),
        "eager captured ge npugraph_ex",
    )


@pytest.mark.parametrize("mode", [0, 2])
def test_moe_finalize_routing(mode: int) -> None:
    rows, k, width = 4, 3, 8
    expanded, skips, bias = (
        torch.randn(rows * k, width),
        [torch.randn(rows, width) for _ in range(2)],
        torch.randn(6, width),
    )
    scales, places = torch.rand(rows, k), torch.randperm(rows * k).to(I32)
    experts = torch.randint(0, 6, (rows, k)).to(I32)
    out = skips[0] + skips[1]
    for i in range(rows):
        for j in range(k):
            place = places[j * rows + i] if mode == 0 else places[i * k + j]
            out[i] += scales[i, j] * (expanded[place] + bias[experts[i, j]])
    modes = "eager captured ge npugraph_ex" if mode == 0 else "eager captured"
    check(
        lambda x, a, b, bias, s, p, e: torch_npu.npu_moe_finalize_routing(x, a, b, bias, s, p, e, mode),
        [expanded, *skips, bias, scales, places, experts],
        out,
        modes,
    )


def test_moe_finalize_routing_without_bias_and_skips() -> None:
    expanded, scales, places = torch.randn(6, 4).half(), torch.rand(3, 2).half(), torch.randperm(6).to(I32)
    out = sum(scales[:, j, None].float() * expanded.float()[places.reshape(2, 3)[j].long()] for j in range(2))
    check(
        lambda x, s, p: torch_npu.npu_moe_finalize_routing(x, None, None, None, s, p, None),
        [expanded, scales, places],
        out.half(),
        "eager captured ge npugraph_ex",
    )


def test_moe_re_routing() -> None:
    counts = torch.tensor([[2, 1, 3], [1, 2, 1]])
    tokens, scales = torch.randn(10, 4).half(), torch.rand(10)
    owner = [(expert, rank) for rank in range(2) for expert in range(3) for _ in range(int(counts[rank, expert]))]
    order = torch.tensor(sorted(range(10), key=lambda n: (*owner[n], n)))
    check(
        lambda t, c, s: torch_npu.npu_moe_re_routing(t, c, per_token_scales=s),
        [tokens, counts, scales],
        (tokens[order], scales[order], order.to(I32), counts.sum(0)),
        "eager captured ge npugraph_ex",
    )


def test_moe_compute_expert_tokens() -> None:
    experts = torch.tensor([0, 0, 2, 2, 2, 3], dtype=I32)
    check(lambda e: torch_npu.npu_moe_compute_expert_tokens(e, 5), [experts], torch.tensor([2, 2, 5, 6, 6], dtype=I32))


def test_moe_token_permute_and_back() -> None:
    tokens, indices, probs, grad = (
        torch.randn(4, 8),
        torch.tensor([[1, 0], [0, 2], [2, 1], [0, 1]]),
        torch.rand(4, 2),
        torch.randn(4, 8),
    )

    def run(tokens: T, indices: T, probs: T, grad: T) -> tuple[T, ...]:
        tokens, probs = tokens.detach().requires_grad_(), probs.detach().requires_grad_()
        if tokens.device.type == "npu":
            permuted, places = torch_npu.npu_moe_token_permute(tokens, indices)
            y = torch_npu.npu_moe_token_unpermute(permuted * 2, places, probs)
        else:
            order = indices.flatten().argsort(stable=True)
            permuted, places = tokens[order // 2], order.argsort().to(I32)
            y = ((permuted * 2)[places.long()].reshape(4, 2, 8) * probs.unsqueeze(-1)).sum(1)
        return (permuted.detach(), places, y.detach(), *torch.autograd.grad(y, (tokens, probs), grad))

    inputs = [tokens, indices, probs, grad]
    expected = run(*inputs)
    check(run, inputs, expected, "eager captured")

    def forward(tokens: T, indices: T, probs: T) -> tuple[T, ...]:
        permuted, places = torch_npu.npu_moe_token_permute(tokens, indices)
        return permuted, places, torch_npu.npu_moe_token_unpermute(permuted * 2, places, probs)

    check(forward, inputs[:3], expected[:3], "ge npugraph_ex")


@pytest.mark.parametrize("renorm", [0, 1])
def test_moe_gating_top_k_softmax_v2(renorm: int) -> None:
    x = torch.randn(5, 8)
    experts = torch.tensor([best(row, 3) for row in x])
    softmax = torch.softmax(x, -1)
    values = torch.softmax(x.gather(1, experts), -1) if renorm else softmax.gather(1, experts)
    check(
        lambda x: torch_npu.npu_moe_gating_top_k_softmax_v2(x, k=3, renorm=renorm, output_softmax=not renorm),
        [x],
        (values, experts.to(I32), None if renorm else softmax),
        "eager captured npugraph_ex",
    )

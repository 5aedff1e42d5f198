"""Calls of the operators in vllm-ascend's package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch

from trials._wheel_calls import OperatorCall, Tensor, TriedOperator


def _add_rms_norm_bias() -> Iterable[OperatorCall]:
    for dtype in (torch.float16, torch.bfloat16):
        for shape in ((3, 64), (2, 40, 512)):
            x1, x2 = (torch.randn(shape).to(dtype) for _ in range(2))
            gamma, beta = (torch.randn(shape[-1:]).to(dtype) for _ in range(2))
            for bias in (beta, None):
                x = (x1.float() + x2.float()).to(dtype)
                rstd = (x.float().square().mean(-1, keepdim=True) + 1e-6).rsqrt()
                y = (x.float() * rstd * gamma.float()).to(dtype)
                y = y if bias is None else (y.float() + bias.float()).to(dtype)
                tolerance = 2e-3 if dtype == torch.float16 else 1e-2
                yield OperatorCall([x1, x2, gamma, bias], [y, rstd, x], {"epsilon": 1e-6}, (), tolerance)


def _gating() -> Iterable[OperatorCall]:
    """Yield a call with sigmoid, bias and groups, of which the best are chosen, and one with softmax."""
    rows, experts, groups, chosen_groups, k = 5, 256, 8, 4, 8
    x, bias = torch.randn(rows, experts), torch.randn(experts)
    scores = x.sigmoid()
    biased = (scores + bias).view(rows, groups, -1)
    best = biased.topk(2, -1).values.sum(-1).topk(chosen_groups, -1).indices
    chosen = torch.zeros(rows, groups, dtype=torch.bool).scatter_(1, best, True)
    index = biased.masked_fill(~chosen[..., None], float("-inf")).view(rows, experts).topk(k, -1).indices
    weights = scores.gather(1, index)
    y = weights / (weights.sum(-1, keepdim=True) + 1e-20) * 2.5
    attrs = {"k": k, "k_group": chosen_groups, "group_count": groups, "group_select_mode": 1, "renorm": 0, "norm_type": 1,
             "out_flag": False, "routed_scaling_factor": 2.5, "eps": 1e-20}  # fmt: skip
    yield OperatorCall([x, bias], [y, index.int(), None], attrs, (), 1e-5)
    softmax = x.softmax(-1)
    values, index = softmax.topk(k, -1)
    plain = attrs | {
        "k_group": 1,
        "group_count": 1,
        "group_select_mode": 0,
        "norm_type": 0,
        "routed_scaling_factor": 1.0,
    }
    yield OperatorCall([x, None], [values, index.int(), softmax], plain, (), 1e-5)


def _top_k_top_p() -> Iterable[OperatorCall]:
    for rows, words in ((2, 64), (3, 3000)):
        logits = torch.randn(rows, words)
        p, k = torch.rand(rows) * 0.5 + 0.4, torch.randint(2, 40, (rows,), dtype=torch.int32)
        ordered, index = logits.sort(-1)
        least = ordered.gather(1, (words - k.long())[:, None])
        ordered = ordered.masked_fill(ordered < least, float("-inf"))
        dropped = ordered.softmax(-1).cumsum(-1) <= 1 - p[:, None]
        dropped[:, -1] = False
        expected = torch.empty_like(logits).scatter_(1, index, ordered.masked_fill(dropped, float("-inf")))
        yield OperatorCall([logits, p, k], [expected], {}, [torch.zeros_like(logits)])


def _init_routing() -> Iterable[OperatorCall]:
    rows, width, experts, k = 6, 32, 8, 2
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.randn(rows, width).to(dtype)
        index = torch.stack([torch.randperm(experts)[:k] for _ in range(rows)]).int()
        order = index.flatten().argsort(stable=True)
        places = torch.empty_like(order).scatter_(0, order, torch.arange(rows * k))
        counts = torch.bincount(index.flatten(), minlength=experts)
        attrs = {"active": rows * k, "capacity": -1, "experts": experts, "drop": 0, "kind": 1, "flag": True, "quant": -1,
                 "range": [0, experts], "rows": 0}  # fmt: skip
        outputs = [torch.zeros(rows * k, width, dtype=dtype), torch.zeros(rows * k, dtype=torch.int32),
                   torch.zeros(experts, dtype=torch.int64), torch.zeros(rows * k)]  # fmt: skip
        expected = [x[order // k], places.int(), counts, None]
        yield OperatorCall([x, index, None, None], expected, attrs, outputs)


def _convolved(x: Tensor, weight: Tensor, states: Tensor, lengths: Sequence[int], known: Sequence[int]) -> Tensor:
    """Return a causal convolution of each sequence, and let ``states`` have its last rows."""
    width, parts = len(weight), []
    for number, part in enumerate(torch.split(x, list(lengths))):
        before = states[number] if known[number] else torch.zeros_like(states[number])
        rows = torch.cat([before, part])
        windows = rows.float().unfold(0, width, 1)
        parts.append(torch.nn.functional.silu((windows * weight.float().T).sum(-1)).to(x.dtype))
        states[number] = rows[-(width - 1) :]
    return torch.cat(parts)


def _causal_convolution() -> Iterable[OperatorCall]:
    for dtype in (torch.float16, torch.bfloat16):
        lengths, known, channels, width = [5, 1, 9], [0, 1, 1], 256, 4
        x, weight = torch.randn(sum(lengths), channels).to(dtype), torch.randn(width, channels).to(dtype)
        states = torch.randn(len(lengths), width - 1, channels).to(dtype)
        y = _convolved(x, weight, states.clone(), lengths, known)
        starts = [0, *torch.tensor(lengths).cumsum(0).tolist()]
        attrs = {"starts": starts, "places": [0, 1, 2], "known": known, "accepted": None, "activation": 1, "pad": -1,
                 "mode": 0}  # fmt: skip
        tolerance = 2e-3 if dtype == torch.float16 else 2e-2
        yield OperatorCall([x, weight, None, states], [y], attrs, [torch.zeros_like(x)], tolerance)


def _grouped() -> Iterable[OperatorCall]:
    """Yield calls whose list of groups has pairs of an expert and its rows."""
    rows, width, columns, experts = [3, 8, 20, 9], 64, 96, 4
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.randn(sum(rows), width).to(dtype)
        weight = torch.randn(experts, width, columns).to(dtype)
        groups = torch.tensor(list(enumerate(rows)))
        y = torch.cat([part.float() @ w.float() for part, w in zip(torch.split(x, rows), weight, strict=True)])
        yield OperatorCall([[x], [weight], groups], [y.to(dtype)], {"transpose_weight": False}, (), 1e-2)


#: Operators by op type.
OPERATORS: Mapping[str, TriedOperator] = {
    "AddRmsNormBias": TriedOperator(
        _add_rms_norm_bias,
        "x1[..., n], x2[..., n], gamma[n], beta[n] -> y[..., n]: x1, rstd[..., 1]: float32, x[..., n]: x1",
        tells_dtypes=False,
    ),
    "MoeGatingTopK": TriedOperator(
        _gating, "x[n, e] -> y[n, k]: x, expert_idx[n, k]: int32, out[n, e]: float32", tells_dtypes=False
    ),
    "ApplyTopKTopPCustom": TriedOperator(_top_k_top_p, writes=True),
    "MoeInitRoutingCustom": TriedOperator(_init_routing, writes=True),
    "CausalConv1d": TriedOperator(_causal_convolution, writes=True),
    "MoeGroupedMatmul": TriedOperator(_grouped, "x[i][m, k], weight[i][e, k, n] -> y[i][m, n]: x", tells_dtypes=False),
}

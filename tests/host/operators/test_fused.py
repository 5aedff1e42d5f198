"""Operators that fuse what language models do between their products, by the formulas of torch_npu's documentation
(docs/zh/custom_APIs/torch_npu of https://gitee.com/ascend/op-plugin, and the aclnn functions' own pages)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_npu
from operator_modes import ASCEND_950, ATLAS_A3, ATLAS_INFERENCE, check, listed
from test_plain import ALL, EAGER, of

T = torch.Tensor
npu = torch.ops.npu
I32, I64, I8, HALF = torch.int32, torch.int64, torch.int8, torch.float16
#: What torch_npu launches as a single operator, which no capture records.
SINGLE = "eager ge"
BOTH = "eager captured"
#: The wheel's converters of these are for other devices or dtypes; or what TorchAir compiles for them cannot hand over
#: outputs that the operator leaves undefined.
NO_GE = "eager captured npugraph_ex"


def i32(*values: Any) -> T:
    return torch.tensor(list(values), dtype=I32)


def rms(x: T, gamma: T, eps: float) -> T:
    wide = x.float()
    return wide / torch.sqrt((wide * wide).mean(-1, keepdim=True) + eps) * gamma.float()


def numbers(*shape: int) -> T:
    return torch.randint(-20, 20, shape).to(I8)


def by_rows(x: T, largest: float = 127) -> tuple[T, T]:
    scale = x.float().abs().max(-1).values / largest
    return torch.round(x.float() / scale.unsqueeze(-1)).to(I8), scale


def rounded(x: T) -> T:
    return torch.round(x).clamp(-128, 127).to(I8)


# Caches


def mla_cache(
    kv: T,
    gamma: T,
    cos: T,
    sin: T,
    index: T,
    k_cache: T,
    ckv_cache: T,
    *rest: Any,
    mode: str = "Norm",
    scales: tuple[T, T] | None = None,
) -> Any:
    """Token by token: the first part normalized, the rest rotated by pairs; each to its place."""
    size, k_cache, ckv_cache = gamma.numel(), k_cache.clone(), ckv_cache.clone()
    batch, _, length, _ = kv.shape
    for b in range(batch):
        for s in range(length):
            token = kv[b, 0, s].float()
            normal = rms(token[:size], gamma, 1e-5)
            pairs = token[size:].reshape(-1, 2)
            even, odd = pairs[:, 0], pairs[:, 1]
            c, d = cos[b, 0, s].float(), sin[b, 0, s].float()
            rope = torch.cat([even, odd]) * c + torch.cat([-odd, even]) * d
            if mode == "PA_BLK_BNSD":
                start = int(index.reshape(batch, -1)[b, s // k_cache.size(1)])
                place = -1 if start < 0 else start + s % k_cache.size(1)
            else:
                place = int(index[b, s]) if mode == "Norm" else int(index[b * length + s])
            if place < 0:
                continue
            for values, cache, scale in zip((rope, normal), (k_cache, ckv_cache), scales or (None, None), strict=True):
                y = values if scale is None else torch.round(values * scale).clamp(-128, 127)
                y = y.to(cache.dtype)
                if mode == "Norm":
                    cache[b, 0, place] = y
                elif mode == "PA_NZ":
                    block, last = cache.size(1), 32 // cache.element_size()
                    packed = cache.view(cache.size(0), -1, block, last)
                    packed[place // block, :, place % block] = y.reshape(-1, last)
                else:
                    cache[place // cache.size(1), place % cache.size(1), 0] = y
    return k_cache, ckv_cache


def mla_args(mode: str, dtype: torch.dtype = HALF) -> list[Any]:
    batch, length, size, rope = 2, 3, 512, 64
    kv, gamma = torch.randn(batch, 1, length, size + rope).half(), torch.rand(size).half()
    cos, sin = (torch.randn(batch, 1, length, rope).half() for _ in range(2))
    shapes = [(batch, 1, 8), (2, 32, 1)][mode != "Norm"]
    caches = [torch.randint(-9, 9, (*shapes, n)).to(dtype) for n in (rope, size)]
    index = {
        "Norm": torch.tensor([[2, 0, 7], [1, -1, 5]]),
        "PA_BLK_BNSD": torch.tensor([32, 0]),
    }.get(mode, torch.tensor([3, 40, 0, 63, -1, 17]))
    return [kv, gamma, cos, sin, index, *caches]


def gathered(k: T, v: T, tables: T, lengths: T, key: T, value: T) -> Any:
    key, value, row = key.clone(), value.clone(), 0
    for table, length in zip(tables.tolist(), lengths.tolist(), strict=True):
        for n in range(length):
            key[row], value[row] = k[table[n // k.size(1)], n % k.size(1)], v[table[n // k.size(1)], n % k.size(1)]
            row += 1
    return key, value


def gather_args() -> list[Any]:
    return [
        torch.randn(5, 4, 2, 16).half(),
        torch.randn(5, 4, 2, 16).half(),
        torch.tensor([[3, 1], [4, 0]], dtype=I32),
        i32(6, 3),
        torch.zeros(9, 2, 16).half(),
        torch.zeros(9, 2, 16).half(),
    ]


def to_slots(key: T, slots: T, cache: T) -> T:
    cache = cache.clone()
    for token, slot in zip(key, slots.tolist(), strict=True):
        cache[slot // cache.size(1), slot % cache.size(1)] = token
    return cache


def quantized_to(data: T, index: T, updates: T, scales: T) -> T:
    data = data.clone()
    for row, place in enumerate(index.tolist()):
        data[row, place : place + updates.size(1)] = rounded(updates[row].float() / scales.float())
    return data


# Experts


def permuted(tokens: T, routing: T, probs: T) -> Any:
    pairs = [(t, e) for e in range(routing.size(1)) for t in range(routing.size(0)) if routing[t, e]]
    order = sorted(range(len(pairs)), key=lambda n: pairs[n][0])
    return tokens[[t for t, _ in pairs]], torch.stack([probs[p] for p in pairs]), i32(*order)


ROUTING = torch.tensor([[1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1], [0, 0, 1, 1], [1, 1, 0, 0]], dtype=torch.bool)


def unpermuted(rows: T, places: T, routing: T, probs: T) -> T:
    chosen = [[e for e in range(4) if routing[t, e]] for t in range(5)]
    parts = rows[places.long()].reshape(5, 2, -1)
    return torch.stack([sum(parts[t, n] * probs[t, e] for n, e in enumerate(chosen[t])) for t in range(5)])


def places() -> T:
    return permuted(torch.zeros(5, 1), ROUTING, torch.zeros(5, 4))[2]


def gating(x: T, experts: T, norm_type: int) -> T:
    norm = torch.sigmoid(x) if norm_type else torch.softmax(x, -1)
    chosen = norm.gather(1, experts.long())
    return 2.5 * (chosen / (chosen.sum(-1, keepdim=True) + 1e-20) if norm_type else chosen)


def balanced(ids: T, table: T, scales: T, threshold: T, mask: T) -> Any:
    new, active = torch.zeros_like(ids), torch.zeros(ids.shape, dtype=torch.bool)
    for t in range(ids.size(0)):
        for k in range(ids.size(1)):
            row = table[int(ids[t, k])].tolist()
            new[t, k] = row[1 + 3 // math.ceil(4 / row[0])]
            active[t, k] = bool(mask[t]) and float(scales[t, k]) >= float(scales[t].sum() * threshold[k])
    return new, active


EPLB = torch.tensor([[1, 3, 0], [2, 1, 4], [2, 0, 2], [1, 5, 0]], dtype=I32)


def routed_and_quantized(x: T, experts: T) -> Any:
    order = sorted(range(experts.numel()), key=lambda n: (int(experts.reshape(-1)[n]), n))
    where = torch.zeros(len(order), dtype=I32)
    for place, n in enumerate(order):
        where[n] = place
    rows, scale = by_rows(x[[n // experts.size(1) for n in order]])
    counts = torch.bincount(experts.reshape(-1), minlength=4)
    return rows, where, counts.to(I32), None, scale


# Products


def ffn(x: T, w1: T, w2: T, b1: T, b2: T, act: Callable[[T], T], sizes: list[int]) -> T:
    rows, start = [], 0
    for e, size in enumerate(sizes):
        hidden = act(x[start : start + size].float() @ w1[e].float() + b1[e].float()).to(x.dtype)
        rows.append(hidden.float() @ w2[e].float() + b2[e].float())
        start += size
    return torch.cat(rows).to(x.dtype)


def ffn_of_halves(x: T, w1: T, w2: T) -> T:
    first, second = (x.float() @ w1.float()).chunk(2, -1)
    return ((F.silu(first) * second).half().float() @ w2.float()).half()


def quantized_product(x: T, w: T, scale: T) -> T:
    rows, own = by_rows(x)
    return (rows.float() @ w.float().t() * scale * own.unsqueeze(1)).half()


def rms_gradient(dy: T, x: T, w: T, scale: T) -> Any:
    dx, dw = of(lambda x, w: rms(x, w, 1e-6), 0, 1)(dy.float(), x.float(), w.float())
    return rounded(dx / scale), dw


def grouped_swiglu(x: T, w: T, ws: T, xs: T, sizes: list[int]) -> Any:
    parts, start = [], 0
    for e, size in enumerate(sizes):
        rows = slice(start, start + size)
        c = (x[rows].float() @ w[e].float()) * ws[e] * xs[rows].unsqueeze(1)
        gate, other = c.chunk(2, -1)
        parts.append(gate * torch.sigmoid(gate) * other)
        start += size
    return by_rows(torch.cat(parts))


def finalized(x: T, w: T, sizes: T, scale: T, per_token: T, shared: T, logit: T, index: T) -> T:
    y, start = torch.zeros(4, w.size(2)), 0
    y[1:3] += shared.float() * 0.5
    for e, size in enumerate(sizes.tolist()):
        for row in range(start, start + size):
            product = (x[row].float() @ w[e].float()) * scale[e] * per_token[row]
            y[int(index[row])] += product * logit[row]
        start += size
    return y


def summed(y: T, x: T, w: T, ends: list[int]) -> T:
    parts, start = [], 0
    for end in ends:
        parts.append(x[start:end].float().t() @ w[start:end].float())
        start = end
    return y + torch.cat(parts)


def lora(y: T, x: T, b: T, index: T, a: T) -> T:
    y = y.clone()
    for n, adapter in enumerate(index.tolist()):
        if adapter < b.size(0):
            y[n] += ((x[n].float() @ a[adapter, 0].float().t()) @ b[adapter, 0].float().t() * 2).to(y.dtype)
    return y


# Attention in parts


def merged(*parts: T) -> Any:
    lse, out = torch.stack(parts[:2]), torch.stack(parts[2:])
    weights = lse.exp() / lse.exp().sum(0)
    return (weights.unsqueeze(-1) * out).sum(0), lse.exp().sum(0).log()


def ring() -> list[T]:
    """Attention to two halves of the keys, as SBH, with maxima and sums eight times."""
    found = []
    q = torch.randn(2, 3, 5, 4)  # [batch, heads, length, size]
    for _ in range(2):
        k, v = torch.randn(2, 2, 3, 7, 4)
        scores = q @ k.transpose(-1, -2)
        top = scores.max(-1).values
        e = (scores - top.unsqueeze(-1)).exp()
        out = (e @ v) / e.sum(-1, keepdim=True)
        found += [
            out.permute(2, 0, 1, 3).reshape(5, 2, 12),
            top.unsqueeze(-1).repeat(1, 1, 1, 8),
            e.sum(-1, keepdim=True).repeat(1, 1, 1, 8),
        ]
    return found


def joined(o1: T, m1: T, s1: T, o2: T, m2: T, s2: T) -> Any:
    w1, w2 = s1 * m1.exp(), s2 * m2.exp()
    top = torch.maximum(m1, m2)
    factors = [(w / (w1 + w2))[..., 0].permute(2, 0, 1).unsqueeze(-1) for w in (w1, w2)]
    out = sum(o.reshape(5, 2, 3, 4) * f for o, f in zip((o1, o2), factors, strict=True))
    return out.reshape(5, 2, 12), top, (w1 + w2) / top.exp()


# Training


def adam_w(var: T, m: T, v: T, grad: T) -> Any:
    """torch.optim.AdamW's third step."""
    p = torch.nn.Parameter(var.clone())
    optimizer = torch.optim.AdamW([p], lr=0.1, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.01)
    optimizer.state[p] = {"step": torch.tensor(2.0), "exp_avg": m.clone(), "exp_avg_sq": v.clone()}
    p.grad = grad
    optimizer.step()
    return p.detach(), optimizer.state[p]["exp_avg"], optimizer.state[p]["exp_avg_sq"]


def adam(var: T, m: T, v: T, grad: T) -> Any:
    m, v = 0.9 * m + 0.1 * grad, 0.99 * v + 0.01 * grad * grad
    step = 0.1 * math.sqrt(1 - 0.99**3) / (1 - 0.9**3)
    return var - step * m / (v.sqrt() + 1e-8), m, v


def bert_adam(var: T, m: T, v: T, grad: T) -> Any:
    grad = grad * (1.0 / 4.0)  # of norm 4, cut to 1
    m, v = 0.9 * m + 0.1 * grad, 0.99 * v + 0.01 * grad * grad
    return var - 0.1 * (m / (v.sqrt() + 1e-6) + 0.01 * var), m, v


def in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(var: T, m: T, v: T, grad: T) -> Any:
        function(grad, [var, m, v])
        return var, m, v

    return run


def state() -> list[T]:
    return [torch.randn(3, 4), torch.randn(3, 4), torch.rand(3, 4), torch.randn(3, 4)]


def cross_entropy(x: T, target: T, weight: T, **options: Any) -> Any:
    loss = F.cross_entropy(x, target, weight, **options)
    return loss.reshape(-1) if options.get("reduction") != "none" else loss, F.log_softmax(x, -1)


def deep_norm(x: T, gx: T, beta: T, gamma: T) -> Any:
    total = 0.3 * x + gx
    return F.layer_norm(total, gamma.shape, gamma, beta, 1e-6)


def swish_norm(x: T, w: T, b: T) -> T:
    y = F.group_norm(x, 2, w, b)
    return y * torch.sigmoid(1.5 * y)


def statistics(x: T, groups: int) -> tuple[T, T]:
    parts = x.reshape(x.size(0), groups, -1)
    return parts.mean(-1), (parts.var(-1, unbiased=False) + 1e-5).rsqrt()


def causal(x: T, w: T, mask: T) -> T:
    y = torch.zeros_like(x)
    for s in range(x.size(0)):
        for k in range(3):
            if s - (2 - k) >= 0:
                y[s] = y[s] + w[k] * x[s - (2 - k)]
    return y * mask.t().unsqueeze(-1)


def part_of_vocabulary(x: T, w: T, target: T) -> Any:
    logits = x.float() @ w.float().t()
    top = logits.max(-1).values
    shifted = logits - top.unsqueeze(1)
    outside = [not 4 <= int(t) <= 9 for t in target]
    masked = torch.tensor([0 if o else int(t) - 4 for o, t in zip(outside, target, strict=True)])
    predicted = torch.stack([torch.tensor(0.0) if o else shifted[n, masked[n]] for n, o in enumerate(outside)])
    bits = outside + [True] * (-len(outside) % 8)
    packed = [int("".join("01"[b] for b in bits[n : n + 8]), 2) for n in range(0, len(bits), 8)]
    return top, shifted.exp().sum(-1), predicted, torch.tensor(packed, dtype=torch.uint8), masked, logits.to(x.dtype)


def loss_of_linear(grad: T, x: T, w: T, target: T) -> Any:
    x, w = x.float().requires_grad_(), w.float().requires_grad_()
    loss = F.cross_entropy(x @ w.t(), target, reduction="none")
    return [t.half() for t in torch.autograd.grad(loss, (x, w), grad)]


def linear_loss_backward(grad: T, x: T, w: T, target: T) -> Any:
    top, total, predicted, mask, masked, logits = npu.npu_fused_linear_online_max_sum(
        x, w, target, 0, w.size(0) - 1, True
    )
    _, softmax = npu.npu_fused_cross_entropy_loss_with_max_sum(top, total, predicted, vocab_parallel_logits=logits)
    return npu.npu_fused_linear_cross_entropy_loss_with_max_sum_backward(
        grad, x, w, mask, masked, 0.0, None, None, softmax
    )


def masked_scores(x: T, mask: T) -> T:
    return torch.softmax((x.float() * 0.5).masked_fill(mask, -10000), -1).to(x.dtype)


def clipped(x: T, count: T) -> T:
    gate, other = x[:, ::2].clamp(max=7), x[:, 1::2].clamp(-7, 7)
    y = gate * torch.sigmoid(1.702 * gate) * (other + 1)
    y[int(count.sum()) :] = 0
    return y


def advanced(tokens: T, sampled: T, positions: T, lengths: T, slots: T, tables: T) -> Any:
    tokens, positions, lengths, slots = (t.clone() for t in (tokens, positions, lengths, slots))
    for n in range(3):
        tokens[n], positions[n] = sampled[n, 0], lengths[n]
        slots[n] = tables[n, lengths[n] // 4] * 4 + lengths[n] % 4
        lengths[n] += 1
    return tokens, positions, lengths, slots


def advance(*args: T) -> Any:
    npu.npu_advance_step_flashattn(*args, 4, 3, 4)
    return args[0], args[2], args[3], args[4]


def rope_from_table(positions: T, q: T, k: T, table: T, sections: list[int], half: bool) -> Any:
    """Token by token, a pair of numbers after the other."""
    size = table.size(1) // 2
    angles = torch.zeros(q.size(0), 2, size)
    for token in range(q.size(0)):
        for n in range(size):
            kind = [i for i, s in enumerate(sections) for _ in range(s)][n] if sections else 0
            place = int(positions[kind, token] if sections else positions[token])
            angles[token, :, n] = table[place, [n, size + n]]

    def turned(x: T) -> T:
        y = x.float().reshape(x.size(0), -1, 16).clone()
        for n in range(size):
            a, b = (n, size + n) if half else (2 * n, 2 * n + 1)
            first, second = y[..., a].clone(), y[..., b].clone()
            cos, sin = angles[:, :1, n], angles[:, 1:, n]
            y[..., a], y[..., b] = first * cos - second * sin, second * cos + first * sin
        return y.reshape(x.shape).to(x.dtype)

    return turned(q), turned(k)


def table() -> T:
    angles = torch.rand(20, 8) * 6
    return torch.cat([angles.cos(), angles.sin()], -1)


def delta_rule(q: T, k: T, v: T, state: T, beta: T, lengths: T, places: T, accepted: T, g: T) -> Any:
    state, y, start = state.clone(), torch.zeros_like(v), 0
    for length, count in zip(lengths.tolist(), accepted.tolist(), strict=True):
        for head in range(v.size(1)):
            s = state[int(places[start + count - 1]), head].float()
            written = []
            for n in range(start, start + length):
                key, query = k[n, head // 2].float(), q[n, head // 2].float()
                s = torch.exp(g[n, head]) * s
                s = s + torch.outer(beta[n, head].float() * (v[n, head].float() - s @ key), key)
                y[n, head] = (s @ query * 0.25).to(y.dtype)
                written.append((int(places[n]), s.to(state.dtype)))
            for place, value in written:
                state[place, head] = value
        start += length
    return y, state


def delta_args() -> list[T]:
    return [
        torch.randn(5, 2, 16).bfloat16() / 4,
        torch.randn(5, 2, 16).bfloat16() / 4,
        torch.randn(5, 4, 8).bfloat16(),
        torch.randn(6, 4, 8, 16).bfloat16(),
        torch.rand(5, 4).bfloat16(),
        i32(3, 2),
        i32(4, 1, 0, 5, 2),
        i32(2, 1),
        -torch.rand(5, 4),
    ]


def recurrent(q: T, k: T, v: T, state: T, beta: T, lengths: T, places: T, accepted: T, g: T) -> Any:
    options = {"actual_seq_lengths": lengths, "ssm_state_indices": places, "num_accepted_tokens": accepted, "g": g}
    return npu.npu_recurrent_gated_delta_rule(q, k, v, state, beta=beta, scale=0.25, **options), state


def recurrent_functional(q: T, k: T, v: T, state: T, beta: T, lengths: T, places: T, accepted: T, g: T) -> Any:
    options = {"actual_seq_lengths": lengths, "ssm_state_indices": places, "num_accepted_tokens": accepted, "g": g}
    return npu.npu_recurrent_gated_delta_rule_functional(q, k, v, state, beta=beta, scale=0.25, **options)


def test_as_many_accepted_tokens_as_sequences() -> None:
    q, k, v, state, beta, lengths, places, accepted, g = (x.npu() for x in delta_args())
    with pytest.raises(RuntimeError, match=r"num_accepted_tokens has 1 elements; expected 2, one for each sequence"):
        recurrent(q, k, v, state, beta, lengths, places, accepted[:1].clone(), g)[0].cpu()


def sinkhorn(x: T) -> T:
    y = torch.softmax(x, -1) + 1e-6
    for n in range(39):
        y = y / (y.sum(-2 if n % 2 == 0 else -1, keepdim=True) + 1e-6)
    return y


def streams(x: T, res: T, out: T, post: T) -> T:
    y = torch.zeros_like(x)
    for a in range(4):
        for b in range(4):
            y[..., b, :] = y[..., b, :] + res[..., a, b, None] * x[..., a, :]
        y[..., a, :] = y[..., a, :] + post[..., a, None] * out
    return y


def stream_args() -> list[T]:
    return [torch.randn(1, 3, 4, 16).half(), torch.rand(1, 3, 4, 4), torch.randn(1, 3, 16).half(), torch.rand(1, 3, 4)]


def wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """In float32, the results in the dtypes of the arguments."""

    def run(*args: T) -> Any:
        results = listed(function(*(a.float() for a in args)))
        return [r.to(a.dtype) for r, a in zip(results, args, strict=False)]

    return run


def lines(caches: list[T], index: T, rows: T) -> list[T]:
    caches = [c.clone() for c in caches]
    for n, place in enumerate(index.tolist()):
        caches[n][:, place : place + 1] = rows[n]
    return caches


def attention_of(q: T, k: T, v: T) -> T:
    return torch.softmax(q @ k.transpose(-1, -2) * 0.25, -1) @ v


def attention_args() -> list[T]:
    return [torch.randn(2, 4, 3, 16), torch.randn(2, 4, 3, 16), torch.randn(2, 4, 5, 16), torch.randn(2, 4, 5, 16)]


def attention_gradients(name: str) -> Callable[..., Any]:
    def run(grad: T, q: T, k: T, v: T) -> Any:
        y, top, total = npu.npu_fusion_attention(q, k, v, 4, "BNSD", scale=0.25)[:3]
        function = getattr(npu, name)
        return function(q, k, v, grad, 4, "BNSD", softmax_max=top, softmax_sum=total, attention_in=y, scale_value=0.25)[
            :3
        ]

    return run


CASES: dict[str, tuple[Callable[..., Any], Callable[[], list[Any]], Callable[..., Any], str]] = {
    # Caches
    **{
        f"npu_kv_rmsnorm_rope_cache-{mode}": (
            lambda *a, m=mode: npu.npu_kv_rmsnorm_rope_cache(*a, cache_mode=m)[:2],
            lambda m=mode: mla_args(m),
            lambda *a, m=mode: mla_cache(*a, mode=m),
            ALL,
        )
        for mode in ("Norm", "PA", "PA_NZ", "PA_BLK_BNSD")
    },
    "npu_kv_rmsnorm_rope_cache-int8": (
        lambda *a: npu.npu_kv_rmsnorm_rope_cache(*a[:7], k_rope_scale=a[7], c_kv_scale=a[8], cache_mode="PA")[:2],
        lambda: [*mla_args("PA", I8), torch.rand(64) * 20, torch.rand(512) * 20],
        lambda *a: mla_cache(*a[:7], mode="PA", scales=(a[7], a[8])),
        ALL,
    ),
    "npu_kv_rmsnorm_rope_cache_v2": (
        lambda *a: (npu.npu_kv_rmsnorm_rope_cache_v2(*a, cache_mode="PA"), a[5], a[6])[1:],
        lambda: mla_args("PA"),
        lambda *a: mla_cache(*a, mode="PA"),
        ALL,
    ),
    "npu_kv_rmsnorm_rope_cache_v2_functional": (
        lambda *a: npu.npu_kv_rmsnorm_rope_cache_v2_functional(*a, cache_mode="PA")[2:],
        lambda: mla_args("PA"),
        lambda *a: mla_cache(*a, mode="PA"),
        ALL,
    ),
    "npu_gather_pa_kv_cache": (lambda *a: (npu.npu_gather_pa_kv_cache(*a), a[4], a[5])[1:], gather_args, gathered, ALL),
    "npu_gather_pa_kv_cache_functional": (
        lambda *a: npu.npu_gather_pa_kv_cache_functional(*a),
        gather_args,
        gathered,
        ALL,
    ),
    "npu_scatter_pa_cache": (
        lambda k, s, c: npu.npu_scatter_pa_cache(k, s, key_cache=c),
        lambda: [torch.randn(3, 2, 16).half(), i32(5, 0, 10), torch.randn(3, 4, 2, 16).half()],
        to_slots,
        BOTH,
    ),
    "npu_quant_scatter": (
        lambda x, n, u, s: npu.npu_quant_scatter(x, n, u, s, None, -2, -1),
        lambda: [numbers(2, 6, 32), i32(3, 0), torch.randn(2, 2, 32).half() * 9, torch.rand(32) + 0.5],
        quantized_to,
        ALL,
    ),
    "npu_quant_scatter_": (
        lambda x, n, u, s: npu.npu_quant_scatter_(x, n, u, s, None, -2, -1),
        lambda: [numbers(2, 6, 32), i32(3, 0), torch.randn(2, 2, 32).half() * 9, torch.rand(32) + 0.5],
        quantized_to,
        ALL,
    ),
    # Experts
    "npu_moe_token_permute_with_routing_map": (
        lambda x, r, p: npu.npu_moe_token_permute_with_routing_map(x, r, probs=p, num_out_tokens=10),
        lambda: [torch.randn(5, 8), ROUTING.clone(), torch.rand(5, 4)],
        permuted,
        ALL,
    ),
    "npu_moe_token_permute_with_routing_map_grad": (
        lambda g, p, n, r: npu.npu_moe_token_permute_with_routing_map_grad(g, p, n, r, 4, 5, False),
        lambda: [torch.randn(10, 8), torch.randn(10), places(), ROUTING.clone()],
        lambda g, p, n, r: (
            torch.autograd.functional.vjp(lambda x: permuted(x, r, torch.zeros(5, 4))[0], torch.zeros(5, 8), g)[1],
            torch.autograd.functional.vjp(lambda x: permuted(torch.zeros(5, 1), r, x)[1], torch.zeros(5, 4), p)[1],
        ),
        ALL,
    ),
    "npu_moe_token_unpermute_with_routing_map": (
        lambda x, n, r, p: npu.npu_moe_token_unpermute_with_routing_map(x, n, [5, 8], probs=p, routing_map=r),
        lambda: [torch.randn(10, 8), places(), ROUTING.clone(), torch.rand(5, 4)],
        unpermuted,
        ALL,
    ),
    "_npu_moe_token_unpermute_with_routing_map": (
        lambda x, n, r, p: npu._npu_moe_token_unpermute_with_routing_map(x, n, [5, 8], probs=p, routing_map=r)[0],
        lambda: [torch.randn(10, 8), places(), ROUTING.clone(), torch.rand(5, 4)],
        unpermuted,
        ALL,
    ),
    "npu_moe_token_unpermute_with_routing_map_grad": (
        lambda g, n, r, x, p: npu.npu_moe_token_unpermute_with_routing_map_grad(g, n, n, r, x, p, False, [5, 8]),
        lambda: [torch.randn(5, 8), places(), ROUTING.clone(), torch.randn(10, 8), torch.rand(5, 4)],
        lambda g, n, r, x, p: of(lambda x, p: unpermuted(x, n, r, p), 0, 1)(g, x, p),
        ALL,
    ),
    **{
        f"npu_moe_gating_top_k_backward-{kind}": (
            lambda x, g, n, k=kind: npu.npu_moe_gating_top_k_backward(
                torch.sigmoid(x) if k else torch.softmax(x, -1), g, n, norm_type=k, routed_scaling_factor=2.5
            ),
            lambda: [
                torch.randn(4, 8),
                torch.randn(4, 3),
                torch.stack([torch.randperm(8)[:3] for _ in range(4)]).to(I32),
            ],
            lambda x, g, n, k=kind: of(lambda x: gating(x, n, k), 0)(g, x),
            BOTH,
        )
        for kind in (0, 1)
    },
    "npu_moe_update_expert": (
        lambda i, t, s, p, m: npu.npu_moe_update_expert(
            i, t, expert_scales=s, pruning_threshold=p, active_mask=m, local_rank_id=3, world_size=4
        ),
        lambda: [
            torch.tensor([[0, 1], [2, 3], [1, 2]], dtype=I32),
            EPLB.clone(),
            torch.rand(3, 2),
            torch.tensor([0.3, 0.6]),
            torch.tensor([True, True, False]),
        ],
        balanced,
        ALL,
    ),
    "npu_moe_init_routing_quant": (
        lambda x, n: npu.npu_moe_init_routing_quant(
            x, n, active_num=0, expert_num=4, expert_tokens_num_mode=2, quant_mode=1
        ),
        lambda: [torch.randn(5, 8).half(), torch.randint(0, 4, (5, 2), dtype=I32)],
        routed_and_quantized,
        BOTH,
    ),
    # Products
    **{
        f"npu_ffn-{name}": (
            lambda x, w1, w2, b1, b2, n=name: npu.npu_ffn(
                x, w1, w2, n, expert_tokens=[3, 0, 5], bias1=b1, bias2=b2, inner_precise=0
            ),
            lambda: [
                torch.randn(8, 16).half(),
                torch.randn(3, 16, 32).half() / 4,
                torch.randn(3, 32, 16).half() / 4,
                torch.randn(3, 32).half(),
                torch.randn(3, 16).half(),
            ],
            lambda x, w1, w2, b1, b2, a=act: ffn(x, w1, w2, b1, b2, a, [3, 0, 5]),
            ALL,
        )
        for name, act in (("gelu", F.gelu), ("silu", F.silu), ("relu", torch.relu))
    },
    "npu_ffn-swiglu": (
        lambda x, w1, w2: npu.npu_ffn(x, w1, w2, "swiglu", inner_precise=1),
        lambda: [torch.randn(2, 4, 16).half(), torch.randn(16, 32).half() / 4, torch.randn(16, 16).half() / 4],
        ffn_of_halves,
        ALL,
    ),
    "npu_grouped_matmul_swiglu_quant": (
        lambda x, w, g, ws, xs: npu.npu_grouped_matmul_swiglu_quant(x, w, g, ws, xs)[:2],
        lambda: [numbers(7, 16), numbers(2, 16, 64), torch.tensor([3, 7]), torch.rand(2, 64), torch.rand(7)],
        lambda x, w, g, ws, xs: grouped_swiglu(x, w, ws, xs, [3, 4]),
        ALL,
    ),
    "npu_grouped_matmul_swiglu_quant_v2": (
        lambda x, w, g, ws, xs: npu.npu_grouped_matmul_swiglu_quant_v2(x, [w], [ws], xs, g, group_list_type=1)[:2],
        lambda: [numbers(7, 16), numbers(2, 16, 64), torch.tensor([3, 4]), torch.rand(2, 64), torch.rand(7)],
        lambda x, w, g, ws, xs: grouped_swiglu(x, w, ws, xs, [3, 4]),
        ALL,
    ),
    "npu_grouped_matmul_finalize_routing": (
        lambda x, w, g, s, p, sh, lo, n: npu.npu_grouped_matmul_finalize_routing(
            x,
            w,
            g,
            scale=s,
            pertoken_scale=p,
            shared_input=sh,
            logit=lo,
            row_index=n,
            dtype=torch.float32,
            shared_input_weight=0.5,
            shared_input_offset=1,
            output_bs=4,
            group_list_type=1,
        ),
        lambda: [
            numbers(7, 16),
            numbers(2, 16, 32),
            torch.tensor([3, 4]),
            torch.rand(2, 32),
            torch.rand(7),
            torch.randn(2, 32).bfloat16(),
            torch.rand(7),
            torch.tensor([0, 2, 1, 3, 3, 0, 1]),
        ],
        finalized,
        ALL,
    ),
    "npu_grouped_matmul_add": (
        lambda y, x, w, g: npu.npu_grouped_matmul_add(y, x, w, g),
        lambda: [torch.randn(32, 24), torch.randn(9, 16).half(), torch.randn(9, 24).half(), torch.tensor([4, 9])],
        lambda y, x, w, g: summed(y, x, w, [4, 9]),
        ALL,
    ),
    "npu_grouped_matmul_add_": (
        lambda y, x, w, g: npu.npu_grouped_matmul_add_(y, x, w, g),
        lambda: [torch.randn(32, 24), torch.randn(9, 16).half(), torch.randn(9, 24).half(), torch.tensor([4, 9])],
        lambda y, x, w, g: summed(y, x, w, [4, 9]),
        ALL,
    ),
    "npu_transpose_batchmatmul": (
        lambda x, w: npu.npu_transpose_batchmatmul(x, w, perm_x1=[1, 0, 2], perm_x2=[0, 1, 2], perm_y=[1, 0, 2]),
        lambda: [torch.randn(6, 4, 16).half(), torch.randn(4, 16, 32).half()],
        lambda x, w: torch.einsum("mbk,bkn->mbn", x.float(), w.float()).half(),
        ALL,
    ),
    "npu_transpose_batchmatmul-parts": (
        lambda x, w: npu.npu_transpose_batchmatmul(
            x, w, perm_x1=[1, 0, 2], perm_x2=[0, 1, 2], perm_y=[1, 0, 2], batch_split_factor=2
        ),
        lambda: [torch.randn(6, 4, 16).half(), torch.randn(4, 16, 32).half()],
        lambda x, w: torch.stack(
            [torch.cat([x[:, b].float() @ w[b].float() for b in part], 1) for part in ((0, 1), (2, 3))]
        ).half(),
        BOTH,
    ),
    **{
        f"npu_fused_matmul-{name}": (
            lambda a, b, c, n=name: npu.npu_fused_matmul(a, b, x3=c, fused_op_type=n),
            lambda: [torch.randn(16, 48).half(), torch.randn(48, 16).half(), torch.randn(16, 16).half()],
            lambda a, b, c, f=act: f((a.float() @ b.float()).half(), c),
            NO_GE,
        )
        for name, act in (("add", torch.add), ("mul", torch.mul))
    },
    # npu_batch_gather_matmul itself returns its input: it gives the result to nobody
    "npu_batch_gather_matmul_": (
        lambda y, x, b, n, a: npu.npu_batch_gather_matmul_(y, x, b, n, a, scale=2.0, y_slice_size=32),
        lambda: [
            torch.randn(4, 32).half(),
            torch.randn(4, 16).half(),
            torch.randn(2, 1, 32, 16).half(),
            i32(1, 0, 2, 1),
            torch.randn(2, 1, 16, 16).half(),
        ],
        lora,
        ALL,
    ),
    "npu_quant_matmul_dequant": (
        lambda x, w, s: npu.npu_quant_matmul_dequant(x, w, s, quant_mode="pertoken"),
        lambda: [torch.randn(4, 16).half(), numbers(32, 16), torch.rand(32)],
        quantized_product,
        ALL,
    ),
    "npu_quant_grouped_matmul_dequant": (
        lambda x, w, s, g: npu.npu_quant_grouped_matmul_dequant(x, w, s, g, quant_mode="pertoken"),
        lambda: [torch.randn(5, 16).half(), numbers(2, 32, 16), torch.rand(2, 32), torch.tensor([2, 5])],
        lambda x, w, s, g: torch.cat([quantized_product(x[:2], w[0], s[0]), quantized_product(x[2:], w[1], s[1])]),
        ALL,
    ),
    # Quantization
    "npu_group_quant": (
        lambda x, s, g, o: npu.npu_group_quant(x, s, g, offset=o, dst_dtype=torch.qint8),
        lambda: [torch.randn(6, 8) * 9, torch.rand(3, 8), i32(1, 4, 6), torch.randn(1)],
        lambda x, s, g, o: rounded(x * s[[0, 1, 1, 1, 2, 2]] + o),
        ALL,
    ),
    "npu_gelu_quant": (
        lambda x, s: npu.npu_gelu_quant(x, input_scale=s, quant_mode="dynamic"),
        lambda: [torch.randn(4, 16).half(), torch.rand(16).half()],
        lambda x, s: by_rows(F.gelu(x.float()) * s.float()),
        ALL,
    ),
    "npu_gelu_quant-static": (
        lambda x, s, o: npu.npu_gelu_quant(x, input_scale=s, input_offset=o, approximate="tanh", quant_mode="static")[
            0
        ],
        lambda: [torch.randn(4, 16).half(), torch.rand(16).half() * 30, torch.rand(16).half()],
        lambda x, s, o: rounded(F.gelu(x.float(), approximate="tanh") * s.float() + o.float()),
        ALL,
    ),
    "npu_dequant_bias": (
        lambda x, w, a, b: npu.npu_dequant_bias(x, w, a, b, output_dtype=HALF),
        lambda: [torch.randint(-99, 99, (4, 8), dtype=I32), torch.rand(8), torch.rand(4), torch.randn(8)],
        lambda x, w, a, b: (x.float() * w * a.unsqueeze(1) + b).half(),
        ALL,
    ),
    "npu_dynamic_block_quant": (
        lambda x: npu.npu_dynamic_block_quant(x),
        lambda: [torch.randn(3, 256).half()],
        lambda x: [t.reshape(3, -1) for t in by_rows(x.reshape(3, 2, 128))],
        NO_GE,
    ),
    # Attention in parts
    "npu_attention_update": (
        lambda a, b, c, d: npu.npu_attention_update([a, b], [c, d], 1),
        lambda: [torch.randn(6), torch.randn(6), torch.randn(6, 8), torch.randn(6, 8)],
        merged,
        ALL,
    ),
    "npu_ring_attention_update": (lambda *a: npu.npu_ring_attention_update(*a), ring, joined, ALL),
    "npu_scaled_masked_softmax": (
        lambda x, m: npu.npu_scaled_masked_softmax(x, m, 0.5),
        lambda: [torch.randn(1, 2, 32, 32).half(), torch.rand(1, 1, 32, 32) > 0.6],
        masked_scores,
        SINGLE,
    ),
    "npu_scaled_masked_softmax_backward": (
        lambda g, x, m: npu.npu_scaled_masked_softmax_backward(
            g, npu.npu_scaled_masked_softmax(x, m, 0.5), m, 0.5, False
        ),
        lambda: [torch.randn(1, 2, 32, 32), torch.randn(1, 2, 32, 32), torch.rand(1, 1, 32, 32) > 0.6],
        of(masked_scores, 0),
        SINGLE,
    ),
    "npu_masked_softmax_with_rel_pos_bias": (
        npu.npu_masked_softmax_with_rel_pos_bias,
        lambda: [torch.randn(1, 2, 3, 4, 4), torch.randn(1, 2, 1, 4, 4), torch.randn(1, 1, 3, 4, 4)],
        lambda x, m, b: torch.softmax(x + m + b, -1),
        ALL,
    ),
    "npu_attn_softmax_": (npu.npu_attn_softmax_, lambda: [torch.randn(2, 4, 6)], lambda x: torch.softmax(x, -1), ALL),
    "npu_attn_softmax_backward_": (
        lambda x, g, v: npu.npu_attn_softmax_backward_(npu.npu_attn_softmax_(x), g, v),
        lambda: [torch.randn(2, 4, 6), torch.randn(2, 4, 8), torch.randn(2, 6, 8)],
        lambda x, g, v: of(lambda x: torch.softmax(x, -1) @ v, 0)(g, x),
        ALL,
    ),
    # Gates and convolutions
    "npu_clipped_swiglu": (
        lambda x, g: npu.npu_clipped_swiglu(x, group_index=g),
        lambda: [torch.randn(5, 16) * 5, torch.tensor([1, 3])],
        clipped,
        ALL,
    ),
    "npu_geglu_grad": (
        lambda g, x: npu.npu_geglu_grad(g, x, npu.npu_geglu(x, -1, 0)[1], -1, 0),
        lambda: [torch.randn(4, 8), torch.randn(4, 16)],
        of(lambda x: x[:, :8] * F.gelu(x[:, 8:]), 0),
        BOTH,
    ),
    "npu_masked_causal_conv1d": (
        lambda x, w, m: npu.npu_masked_causal_conv1d(x, w, mask=m),
        lambda: [torch.randn(6, 2, 8).half(), torch.randn(3, 8).half(), torch.rand(2, 6) > 0.3],
        lambda x, w, m: causal(x.float(), w.float(), m).half(),
        ALL,
    ),
    "npu_masked_causal_conv1d_backward": (
        lambda g, x, w, m: npu.npu_masked_causal_conv1d_backward(g, x, w, mask=m),
        lambda: [
            torch.randn(6, 2, 8).half(),
            torch.randn(6, 2, 8).half(),
            torch.randn(3, 8).half(),
            torch.rand(2, 6) > 0.3,
        ],
        lambda g, x, w, m: [t.half() for t in of(causal, 0, 1)(g.float(), x.float(), w.float(), m)],
        ALL,
    ),
    "npu_advance_step_flashattn": (
        advance,
        lambda: [
            torch.zeros(4, dtype=I64),
            torch.tensor([[7], [8], [9]]),
            torch.zeros(4, dtype=I64),
            torch.tensor([3, 4, 9, 1]),
            torch.zeros(4, dtype=I64),
            torch.randint(0, 20, (4, 3)),
        ],
        advanced,
        ALL,
    ),
    # Training
    "npu_cross_entropy_loss": (
        lambda x, t, w: npu.npu_cross_entropy_loss(x, t, w, label_smoothing=0.1)[:2],
        lambda: [torch.randn(6, 5), torch.tensor([0, 4, -100, 2, 2, 1]), torch.rand(5)],
        lambda x, t, w: cross_entropy(x, t, w, label_smoothing=0.1),
        ALL,
    ),
    "npu_cross_entropy_loss-none": (
        lambda x, t, w: npu.npu_cross_entropy_loss(x, t, w, "none", ignore_index=2)[:2],
        lambda: [torch.randn(6, 5), torch.tensor([0, 4, 3, 2, 2, 1]), torch.rand(5)],
        lambda x, t, w: cross_entropy(x, t, w, reduction="none", ignore_index=2),
        ALL,
    ),
    "npu_cross_entropy_loss_backward": (
        lambda g, x, t, w: npu.npu_cross_entropy_loss_backward(
            g, npu.npu_cross_entropy_loss(x, t, w)[1], t, w, reduction="mean", label_smoothing=0.1
        ),
        lambda: [torch.randn(1), torch.randn(6, 5), torch.tensor([0, 4, -100, 2, 2, 1]), torch.rand(5)],
        of(lambda x, t, w: cross_entropy(x, t, w, label_smoothing=0.1)[0], 0),
        ALL,
    ),
    "npu_fused_linear_online_max_sum": (
        lambda x, w, t: npu.npu_fused_linear_online_max_sum(x, w, t, 4, 9, True),
        lambda: [torch.randn(9, 16).half(), torch.randn(6, 16).half(), torch.randint(0, 14, (9,))],
        part_of_vocabulary,
        BOTH,
    ),
    "npu_fused_cross_entropy_loss_with_max_sum": (
        lambda x: npu.npu_fused_cross_entropy_loss_with_max_sum(
            x.amax(1), (x - x.amax(1, True)).exp().sum(1), x[:, 2] - x.amax(1), vocab_parallel_logits=x
        ),
        lambda: [torch.randn(4, 6)],
        lambda x: (F.cross_entropy(x, torch.full((4,), 2), reduction="none"), torch.softmax(x, -1)),
        BOTH,
    ),
    "npu_fused_linear_cross_entropy_loss_with_max_sum_backward": (
        linear_loss_backward,
        lambda: [
            torch.rand(9),
            torch.randn(9, 16).half(),
            torch.randn(128, 16).half() / 4,
            torch.randint(0, 128, (9,)),
        ],
        loss_of_linear,
        BOTH,
    ),
    "npu_deep_norm": (
        lambda x, g, b, w: npu.npu_deep_norm(x, g, b, w)[2],
        lambda: [torch.randn(3, 8), torch.randn(3, 8), torch.randn(8), torch.randn(8)],
        deep_norm,
        ALL,
    ),
    "npu_deep_norm_backward": (
        lambda dy, x, g, b, w: npu.npu_deep_norm_backward(dy, x, g, w, *npu.npu_deep_norm(x, g, b, w)[:2]),
        lambda: [torch.randn(3, 8), torch.randn(3, 8), torch.randn(3, 8), torch.randn(8), torch.randn(8)],
        of(deep_norm, 0, 1, 2, 3),
        ALL,
    ),
    "npu_add_layer_norm_backward": (
        lambda dy, x, y, w, b: npu.npu_add_layer_norm_backward(
            dy, x, y, *reversed(npu.npu_add_layer_norm(x, y, w, b)[1:3]), w, None
        )[::3],
        lambda: [torch.randn(3, 8), torch.randn(3, 8), torch.randn(3, 8), torch.randn(8), torch.randn(8)],
        of(lambda x, y, w, b: F.layer_norm(x + y, (8,), w, b), 0, 3),
        BOTH,
    ),
    "npu_group_norm_swish": (
        lambda x, w, b: npu.npu_group_norm_swish(x, 2, w, b, 1e-5, 1.5),
        lambda: [torch.randn(3, 4, 5), torch.randn(4), torch.randn(4)],
        lambda x, w, b: (swish_norm(x, w, b), *statistics(x, 2)),
        ALL,
    ),
    "npu_group_norm_swish_grad": (
        lambda g, x, w, b: npu.npu_group_norm_swish_grad(
            g, x, 2, w, b, *npu.npu_group_norm_swish(x, 2, w, b, 1e-5, 1.5)[1:], [True, True, True], 1.5
        ),
        lambda: [torch.randn(3, 4, 5), torch.randn(3, 4, 5), torch.randn(4), torch.randn(4)],
        of(swish_norm, 0, 1, 2),
        BOTH,
    ),
    "_npu_rms_norm_backward_quant": (
        lambda dy, x, w, s: npu._npu_rms_norm_backward_quant(dy, x, npu.npu_rms_norm(x, w)[1], w, s),
        lambda: [torch.randn(3, 8).half(), torch.randn(3, 8).half(), torch.rand(8).half(), torch.tensor([0.02])],
        rms_gradient,
        ALL,
    ),
    "npu_apply_adam_w": (
        in_place(
            lambda g, out: npu.npu_apply_adam_w.out(
                0.9**2, 0.99**2, 0.1, 0.01, 0.9, 0.99, 1e-8, g, None, False, False, out=out
            )
        ),
        state,
        adam_w,
        EAGER,
    ),
    "npu_apply_adam": (
        in_place(
            lambda g, out: npu.npu_apply_adam.out(0.9**3, 0.99**3, 0.1, 0.9, 0.99, 1e-8, g, False, False, out=out)
        ),
        state,
        adam,
        EAGER,
    ),
    "npu_bert_apply_adam": (
        in_place(lambda g, out: npu.npu_bert_apply_adam.out(0.1, 0.9, 0.99, 1e-6, g, 1.0, 4.0, 0.01, out=out)),
        state,
        bert_adam,
        EAGER,
    ),
    "npu_alloc_float_status": (
        lambda x: npu.npu_get_float_status(npu.npu_alloc_float_status(x)),
        lambda: [torch.zeros(1)],
        lambda x: torch.zeros(8, dtype=I32),
        EAGER,
    ),
    "npu_clear_float_status": (
        lambda x: npu.npu_clear_float_status(npu.npu_get_float_status(npu.npu_alloc_float_status(x))),
        lambda: [torch.zeros(1)],
        lambda x: torch.zeros(8, dtype=I32),
        EAGER,
    ),
    "_amp_foreach_non_finite_check": (
        lambda x, y: torch.tensor(npu._amp_foreach_non_finite_check([x, y])),
        lambda: [torch.randn(3), torch.randn(4)],
        lambda x, y: torch.tensor(False),
        EAGER,
    ),
    # Attention, and what stands in its place
    "npu_fusion_attention_v3": (
        lambda g, q, k, v: npu.npu_fusion_attention_v3(q, k, v, 4, "BNSD", scale=0.25)[0],
        attention_args,
        lambda g, q, k, v: attention_of(q, k, v),
        NO_GE,
    ),
    "npu_fusion_attention_grad": (
        attention_gradients("npu_fusion_attention_grad"),
        attention_args,
        of(attention_of, 0, 1, 2),
        NO_GE,
    ),
    "npu_fusion_attention_grad_v2": (
        attention_gradients("npu_fusion_attention_grad_v2"),
        attention_args,
        of(attention_of, 0, 1, 2),
        BOTH,
    ),
    "npu_fusion_attention_grad_v3": (
        attention_gradients("npu_fusion_attention_grad_v3"),
        attention_args,
        of(attention_of, 0, 1, 2),
        NO_GE,
    ),
    "npu_mrope": (
        lambda p, q, k, c: npu.npu_mrope(p, q, k, c, 16, mrope_section=[0, 0, 0], rotary_mode="half"),
        lambda: [torch.tensor([3, 0, 7, 19]), torch.randn(4, 48), torch.randn(4, 16), table()],
        lambda p, q, k, c: rope_from_table(p, q, k, c, [], True),
        ALL,
    ),
    "npu_mrope-sections": (
        lambda p, q, k, c: npu.npu_mrope(p, q, k, c, 16, mrope_section=[2, 3, 3], rotary_mode="interleave"),
        lambda: [torch.randint(0, 20, (3, 4)), torch.randn(4, 48), torch.randn(4, 16), table()],
        lambda p, q, k, c: rope_from_table(p, q, k, c, [2, 3, 3], False),
        ALL,
    ),
    "npu_recurrent_gated_delta_rule": (recurrent, delta_args, delta_rule, ALL),
    "npu_recurrent_gated_delta_rule_functional": (recurrent_functional, delta_args, delta_rule, ALL),
    "npu_mhc_sinkhorn": (lambda x: npu.npu_mhc_sinkhorn(x)[0], lambda: [torch.randn(1, 6, 4, 4)], sinkhorn, NO_GE),
    "npu_mhc_post": (lambda *a: npu.npu_mhc_post(*a), stream_args, wide(streams), ALL),
    "npu_scatter_list": (
        lambda a, b, n, r: npu.npu_scatter_list([a, b], n, r),
        lambda: [torch.randn(2, 8, 32), torch.randn(2, 8, 32), i32(5, 0), torch.randn(2, 2, 1, 32)],
        lambda a, b, n, r: lines([a, b], n, r),
        BOTH,
    ),
    "npu_scatter_list_": (
        lambda a, b, n, r: (npu.npu_scatter_list_([a, b], n, r), a, b)[1:],
        lambda: [torch.randn(2, 8, 32), torch.randn(2, 8, 32), i32(5, 0), torch.randn(2, 2, 1, 32)],
        lambda a, b, n, r: lines([a, b], n, r),
        BOTH,
    ),
    "npu_scatter_pa_kv_cache_functional": (
        lambda k, s, c: npu.npu_scatter_pa_kv_cache_functional(k, k, c, c + 1, s, cache_mode="Norm"),
        lambda: [torch.randn(3, 2, 16).half(), i32(5, 0, 10), torch.randn(3, 4, 2, 16).half()],
        lambda k, s, c: (to_slots(k, s, c), to_slots(k, s, c + 1)),
        ALL,
    ),
    "npu_moe_token_unpermute": (
        lambda x, n, p: npu.npu_moe_token_unpermute(x, n, p),
        lambda: [torch.randn(10, 8), torch.randperm(10).to(I32), torch.rand(5, 2)],
        lambda x, n, p: (x[n.long()].reshape(5, 2, 8) * p.unsqueeze(-1)).sum(1),
        BOTH,
    ),
    "npu_moe_token_unpermute_grad": (
        lambda g, x, n, p: npu.npu_moe_token_unpermute_grad(x, g, n, p),
        lambda: [torch.randn(5, 8), torch.randn(10, 8), torch.randperm(10).to(I32), torch.rand(5, 2)],
        of(lambda x, n, p: (x[n.long()].reshape(5, 2, 8) * p.unsqueeze(-1)).sum(1), 0, 2),
        ALL,
    ),
    "npu_moe_token_permute_grad": (
        lambda g, x, i, n: npu.npu_moe_token_permute_grad(x, g, i, n),
        lambda: [torch.randn(10, 8), torch.randn(5, 8), torch.randint(0, 4, (5, 2)), torch.randperm(10).to(I32)],
        lambda g, x, i, n: g[n.long()].reshape(5, 2, 8).sum(1),
        ALL,
    ),
    "npu_add_rms_norm_v2_functional": (
        lambda x, y, w: npu.npu_add_rms_norm_v2_functional(x, y, w),
        lambda: [torch.randn(3, 8), torch.randn(3, 8), torch.rand(8)],
        lambda x, y, w: (
            torch.rsqrt((x + y).square().mean(-1, keepdim=True) + 1e-6),
            rms(x + y, w, 1e-6),
            x + y,
        ),
        ALL,
    ),
}


#: Operators that not every processor has.
ELSEWHERE = {
    "npu_kv_rmsnorm_rope_cache_v2_functional": pytest.mark.skipif(
        torch.__version__ < (2, 10) and torch_npu.__version__ != "2.9.0.post9",
        reason=f"torch_npu {torch_npu.__version__} writes to the caches it is given, and returns copies from before",
    ),
    "npu_moe_update_expert": ATLAS_A3,
    "npu_quant_matmul_dequant": ATLAS_INFERENCE,
    **dict.fromkeys(
        (
            "npu_fused_matmul-add",
            "npu_fused_matmul-mul",
            "npu_gelu_quant",
            "npu_gelu_quant-static",
            "_npu_rms_norm_backward_quant",
        ),
        ASCEND_950,
    ),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=ELSEWHERE.get(name, ())) for name in CASES])
def test_an_operator_is_as_documented(name: str) -> None:
    function, arguments, reference, modes = CASES[name]
    args = arguments()
    expected = reference(*[a.clone() if isinstance(a, T) else a for a in args])
    check(function, args, [t.detach() if isinstance(t, T) else t for t in listed(expected)], modes)


def test_gradients_are_not_cut_to_a_norm_of_minus_one() -> None:
    """As in the wheel's own example: no gradient is infinite, and a learning rate of 0 changes nothing."""
    var, m, v, grad = (x.npu() for x in (torch.randn(5), torch.zeros(5), torch.zeros(5), torch.randn(5)))
    before = var.clone()
    npu.npu_bert_apply_adam.out(0.0, 0.9, 0.99, 1e-6, grad, -1.0, 0.0, 0.0, out=[var, m, v])
    torch.testing.assert_close(var, before)
    torch.testing.assert_close(m.cpu(), 0.1 * grad.cpu())
    torch.testing.assert_close(v.cpu(), 0.01 * grad.cpu().square())

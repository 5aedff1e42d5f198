"""Attention as its documentation describes it, a sequence and a head at a time.

https://www.hiascend.com/document, torch_npu.npu_fused_infer_attention_score: layouts, sparse modes, lengths and pages.
"""

from __future__ import annotations

import math

import torch

T = torch.Tensor
EVERYTHING = 2147483647


def allowed(i: int, j: int, queries: int, keys: int, mode: int, mask: T | None, before: int, after: int) -> bool:
    """Whether query i attends to key j."""
    given = mask is not None and bool(mask[i, j]) if mode in (0, 1) else False
    if mask is None:
        return True
    if mode == 0:
        return not given and (queries == 1 or -before <= j - i <= after)
    if mode == 1:
        return not given
    if mode == 2:  # a triangle from the upper left corner
        return j <= i
    corner = keys - queries  # or from the lower right one
    if mode == 3:
        return j - i <= corner
    return -before <= j - i - corner <= after


def attention(
    q: T,
    k: T,
    v: T,
    scale: float,
    *,
    mode: int = 0,
    mask: T | None = None,
    before: int = EVERYTHING,
    after: int = EVERYTHING,
    bias: T | None = None,
    sink: T | None = None,
) -> tuple[T, T]:
    """One sequence, [heads, length, dimension]: the result in float32 and log(sum(exp(scores)))."""
    heads, queries, _ = q.shape
    shared = heads // k.size(0)
    out, lse = torch.zeros(heads, queries, v.size(-1)), torch.full((heads, queries, 1), math.inf)
    for n in range(heads):
        scores = q[n].float() @ k[n // shared].float().t() * scale
        if bias is not None:
            scores = scores + bias[n].float()
        for i in range(queries):
            keys = [j for j in range(k.size(1)) if allowed(i, j, queries, k.size(1), mode, mask, before, after)]
            if not keys:
                continue
            row = scores[i, keys]
            weights = row.exp()
            total = weights.sum() + (0 if sink is None else sink[n].float().exp())
            out[n, i] = weights / total @ v[n // shared][keys].float()
            lse[n, i] = total.log()
    return out, lse


def to_layout(x: T, layout: str) -> T:
    """[batch, heads, length, dimension] in another layout."""
    match layout:
        case "BSH":
            return x.permute(0, 2, 1, 3).flatten(2).contiguous()
        case "BSND":
            return x.permute(0, 2, 1, 3).contiguous()
        case "NBSD":
            return x.permute(1, 0, 2, 3).contiguous()
    return x.contiguous()


def pages(x: T, block: int, kind: str, generator: torch.Generator) -> tuple[T, T]:
    """Keys or values, [batch, heads, length, dimension], in blocks in any order, and the table of them."""
    batch, heads, length, width = x.shape
    count = -(-length // block)
    padded = torch.nn.functional.pad(x, (0, 0, 0, count * block - length))
    blocks = padded.unflatten(2, (count, block)).transpose(1, 2).flatten(0, 1)  # [blocks, heads, block, dimension]
    order = torch.randperm(batch * count + 2, generator=generator)[: batch * count]
    cache = torch.full((batch * count + 2, heads, block, width), 100.0, dtype=x.dtype)
    cache[order] = blocks
    if kind == "BSH":
        cache = cache.transpose(1, 2).flatten(2)
    elif kind == "NZ":  # sixteen numbers next to each other
        cache = cache.unflatten(3, (width // 16, 16)).transpose(2, 3)
    return cache.contiguous(), order.reshape(batch, count).to(torch.int32)

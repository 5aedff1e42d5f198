"""Attention over triples (FloydAttention).

A pair of nodes (i, k) attends to the nodes j between them, by what joins i with j, and j with k.
"""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.checks import check_dtype, check_shape
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

#: Number of copies of each softmax statistic in the last dimension.
_COPIES = 8


@host_kernel("FusedFloydAttention")
def fused_floyd_attention(
    query: T, key1: T, value1: T, key2: T, value2: T, atten_mask: T | None = None, *, scale_value: float = 1.0
) -> tuple[T, T, T]:
    """Return the softmax's maxima and sums, and the result, of [batch, heads, n, m, d]."""
    scores = _scores(query, key1, value1, key2, value2, atten_mask, scale_value)
    top = scores.amax(-1, keepdim=True)
    if not top.is_meta and bool((top == -torch.inf).any()):
        raise ValueError("atten_mask leaves a query without a key; expected at least one key for each query")
    weights = torch.exp(scores - top)
    total = weights.sum(-1, keepdim=True)
    weights = weights / total
    out = torch.einsum("bhnmk,bhnkd->bhnmd", weights, value1.float())
    out = out + torch.einsum("bhnmk,bhkmd->bhnmd", weights, value2.float())
    return top.expand(*top.shape[:-1], _COPIES), total.expand(*top.shape[:-1], _COPIES), out.to(query.dtype)


@host_kernel("FusedFloydAttentionGrad")
def fused_floyd_attention_grad(
    query: T,
    key1: T,
    value1: T,
    key2: T,
    value2: T,
    dy: T,
    atten_mask: T | None = None,
    softmax_max: T | None = None,
    softmax_sum: T | None = None,
    attention_in: T | None = None,
    *,
    scale_value: float = 1.0,
) -> tuple[T, T, T, T, T]:
    """Return the gradients of the query, the first key and value, and the second ones."""
    if softmax_max is None or softmax_sum is None or attention_in is None:
        raise ValueError("softmax_max, softmax_sum and attention_in of the forward are required")
    if dy.shape != query.shape or attention_in.shape != query.shape:
        raise ValueError(
            f"dy {tuple(dy.shape)} and attention_in {tuple(attention_in.shape)}: valid is {tuple(query.shape)}"
        )
    statistics = (*query.shape[:-1], _COPIES)
    if softmax_max.shape != statistics or softmax_sum.shape != statistics:
        raise ValueError(
            f"softmax_max {tuple(softmax_max.shape)}, softmax_sum {tuple(softmax_sum.shape)}: valid is {statistics}"
        )
    scores = _scores(query, key1, value1, key2, value2, atten_mask, scale_value)
    p = torch.exp(scores - softmax_max[..., :1]) / softmax_sum[..., :1]
    grad = dy.float()
    of_p = torch.einsum("bhnmd,bhnkd->bhnmk", grad, value1.float())
    of_p = of_p + torch.einsum("bhnmd,bhkmd->bhnmk", grad, value2.float())
    of_scores = p * (of_p - (grad * attention_in.float()).sum(-1, keepdim=True)) * scale_value
    dq = torch.einsum("bhnmk,bhnkd->bhnmd", of_scores, key1.float())
    dq = dq + torch.einsum("bhnmk,bhkmd->bhnmd", of_scores, key2.float())
    dk1 = torch.einsum("bhnmk,bhnmd->bhnkd", of_scores, query.float())
    dk2 = torch.einsum("bhnmk,bhnmd->bhkmd", of_scores, query.float())
    dv1 = torch.einsum("bhnmk,bhnmd->bhnkd", p, grad)
    dv2 = torch.einsum("bhnmk,bhnmd->bhkmd", p, grad)
    return tuple(g.to(query.dtype) for g in (dq, dk1, dv1, dk2, dv2))  # type: ignore[return-value]


def _scores(query: T, key1: T, value1: T, key2: T, value2: T, mask: T | None, scale: float) -> T:
    _check(query, key1, value1, key2, value2, mask)
    wide = query.float()
    scores = torch.einsum("bhnmd,bhnkd->bhnmk", wide, key1.float())
    scores = (scores + torch.einsum("bhnmd,bhkmd->bhnmk", wide, key2.float())) * scale
    return scores if mask is None else scores.masked_fill(mask.bool(), -torch.inf)


def _check(query: T, key1: T, value1: T, key2: T, value2: T, mask: T | None) -> None:
    if query.dim() != 5 or key1.dim() != 5:
        raise ValueError(f"query {tuple(query.shape)}, key1 {tuple(key1.shape)}: expected five dimensions of both")
    b, h, n, m, d = query.shape
    k = key1.size(3)
    for name, tensor, shape in (
        ("key1", key1, (b, h, n, k, d)),
        ("value1", value1, (b, h, n, k, d)),
        ("key2", key2, (b, h, k, m, d)),
        ("value2", value2, (b, h, k, m, d)),
        ("atten_mask", mask, (b, 1, n, 1, k)),
    ):
        if tensor is not None:
            check_shape(name, tensor, shape, why="by query and key1")
        if name != "atten_mask":
            check_dtype(name, tensor, "query", query.dtype)
    if n % 16 or m % 128 or k % 128 or d not in (32, 64, 128) or not (1 <= b <= 2048 and 1 <= h <= 256):
        raise ValueError(
            f"query {tuple(query.shape)}, key1 {tuple(key1.shape)}: valid is a batch up to 2048, up to 256 heads, n by 16, m and k by "
            "128, and d of 32, 64 or 128"
        )

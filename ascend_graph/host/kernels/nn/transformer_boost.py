"""Operations of CANN's transformer library libatb without GE operators; ``csrc/host/atb`` calls them."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.attention.inference import attend
from ascend_graph.host.kernels.checks import check_between, check_covers, check_range
from ascend_graph.host.kernels.matmul.matmul import product
from ascend_graph.host.kernels.quantization.quantize import saturated
from ascend_graph.host.kernels.quantization.quantized_norms import rms_norm_quant
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

#: Kinds of masks: of all sequences or each; of all heads or each; the lower triangle, regardless of the mask's
#: contents; of all tokens.
_NONE, _OF_SEQUENCES, _OF_HEADS, _TRIANGLE, _OF_TOKENS = range(5)


@host_kernel("AtbRope")
def rope(query: T, key: T, cos: T, sin: T, *, rotary_coeff: int) -> tuple[T, T]:
    """Rotate halves of a head (coefficient 2), halves of its halves (4), or neighbors (the head's width)."""
    width = cos.size(-1)
    if rotary_coeff not in (2, 4, width) or width % rotary_coeff:
        raise ValueError(f"rotaryCoeff {rotary_coeff} is not one of 2, 4 and the width of a head, {width}")
    return _turned(query, cos, sin, rotary_coeff), _turned(key, cos, sin, rotary_coeff)


def _turned(x: T, cos: T, sin: T, parts: int) -> T:
    width = cos.size(-1)
    if x.numel() % (cos.numel() or 1) or cos.shape != sin.shape or cos.dim() != 2 or x.size(0) != cos.size(0):
        raise ValueError(
            f"cos {tuple(cos.shape)} and sin {tuple(sin.shape)} do not fit x {tuple(x.shape)}; expected one shape of "
            "two dimensions, with a row for each row of x"
        )
    heads = x.float().reshape(x.size(0), -1, width)
    a, b = heads.unflatten(-1, (parts // 2, 2, -1)).unbind(-2)
    other = torch.stack([-b, a], -2).flatten(-3)
    angles = (values.float().unsqueeze(1) for values in (cos, sin))
    return (heads * next(angles) + other * next(angles)).reshape(x.shape).to(x.dtype)


@host_kernel("AtbAttention")
def attention(
    query: T,
    key: T,
    value: T | None = None,
    block_table: T | None = None,
    mask: T | None = None,
    *,
    key_lengths: list[int],
    query_lengths: list[int] | None = None,
    head_num: int,
    kv_head_num: int,
    scale: float,
    mask_type: int = _NONE,
    value_width: int = 0,
) -> T:
    """Compute attention of packed sequences over their keys, dense or in pages.

    Without ``query_lengths`` each sequence has one query. Without ``value``, values are the first ``value_width``
    elements of the keys.
    """
    kv_heads = kv_head_num or head_num
    q = _heads(query, head_num)
    if head_num <= 0 or head_num % kv_heads:
        raise ValueError(f"kvHeadNum {kv_head_num}: expected a divisor of headNum, {head_num}")
    k = _heads(key, kv_heads, block_table is not None)
    v = k[..., :value_width] if value is None else _heads(value, kv_heads, block_table is not None)
    out = q.new_zeros(*q.shape[:-1], v.size(-1))
    spans = _spans(q.size(0), k, block_table, query_lengths or [1] * len(key_lengths), key_lengths)
    if not q.is_meta:
        for number, (start, end, rows) in enumerate(spans):
            keys, values = (
                x[rows] if block_table is None else _paged(x, block_table[number], rows.stop) for x in (k, v)
            )
            bias, masked = _mask(mask, mask_type, number, slice(start, end), keys.size(0), head_num)
            y, _ = attend(
                q[start:end].transpose(0, 1), keys.transpose(0, 1), values.transpose(0, 1), scale, bias, masked
            )
            out[start:end] = y.transpose(0, 1).to(out.dtype)
    return out.flatten(1) if query.dim() == 2 else out


def _heads(x: T, heads: int, paged: bool = False) -> T:
    """Reshape […, heads * width] or […, heads, width] to the latter."""
    if x.dim() == 2 + paged:
        x = x.unflatten(-1, (heads, -1))
    if x.dim() != 3 + paged or x.size(-2) != heads:
        raise ValueError(f"a tensor of shape {tuple(x.shape)} is not one of {heads} heads")
    return x


def _spans(
    tokens: int, keys: T, block_table: T | None, queries: list[int], lengths: list[int]
) -> list[tuple[int, int, slice]]:
    """Return each sequence's start and end among the queries, and the slice of its keys."""
    if len(queries) != len(lengths) or sum(queries) > tokens or min([*queries, *lengths], default=0) < 0:
        raise ValueError(f"lengths of queries {queries} and of keys {lengths}: there are {tokens} queries")
    if block_table is not None and (block_table.dim() != 2 or block_table.size(0) < len(lengths)):
        raise ValueError(
            f"block_table of shape {tuple(block_table.shape)} is not valid; expected [{len(lengths)} sequences or "
            "more, blocks of a sequence]"
        )
    most = keys.size(0) if block_table is None else block_table.size(1) * keys.size(1)
    if (sum(lengths) if block_table is None else max(lengths, default=0)) > most:
        raise ValueError(f"lengths of keys {lengths}: there is room for {most}")
    spans, start, first = [], 0, 0
    for count, length in zip(queries, lengths, strict=True):
        rows = slice(first, first + length) if block_table is None else slice(0, length)
        spans.append((start, start + count, rows))
        start, first = start + count, first + length
    return spans


def _paged(cache: T, pages: T, length: int) -> T:
    used = pages[: -(-length // cache.size(1))].long()
    check_range("block_table", used, cache.size(0))
    return cache[used].flatten(0, 1)[:length]


def _mask(mask: T | None, kind: int, number: int, tokens: slice, keys: int, heads: int) -> tuple[T | None, T | None]:
    """Return the bias for a sequence's scores, and the mask of scores that do not count."""
    queries = tokens.stop - tokens.start
    if kind == _TRIANGLE:
        return None, torch.ones(queries, keys, dtype=torch.bool).triu(keys - queries + 1)
    if mask is None or kind == _NONE:
        return None, None
    if kind == _OF_TOKENS and mask.dim() == 2:
        own = mask[tokens]
    elif mask.dim() == 4 or (mask.dim() == 3 and (kind != _OF_HEADS or mask.size(0) != heads)):
        own = mask[number if mask.size(0) > 1 else 0]
    else:
        own = mask
    rows = own.size(-2)
    if kind == _OF_TOKENS and mask.dim() > 2:  # of whole sequences: their last queries
        own = own[..., keys - queries : keys, :]
    own = own[..., : queries if rows > 1 or queries == 1 else 1, :keys].float()
    check_covers("mask", own, 1 if own.size(-2) == 1 else queries, keys)
    if mask.dtype is torch.bfloat16 and kind == _OF_SEQUENCES:  # 1 is where nothing is attended to
        return own.clamp(max=0), own > 0
    return own, None


@host_kernel("AtbGroupTopk")
def group_topk(x: T, *, group_num: int, k: int, n: int) -> T:
    """Keep the values of a row's k best groups and zero the others; groups rank by the sum of their n largest."""
    if x.dim() != 2 or group_num <= 0 or x.size(1) % group_num or not 0 < k <= group_num:
        raise ValueError(f"x of shape {tuple(x.shape)}, groupNum {group_num}, k {k}: columns in groups are expected")
    check_between("n", n, 1, x.size(1) // group_num, "the size of a group")
    groups = x.unflatten(1, (group_num, -1))
    best = groups.float().topk(n, -1).values.sum(-1).sort(dim=-1, descending=True, stable=True).indices[:, :k]
    kept = torch.zeros(groups.shape[:2], dtype=torch.bool, device=x.device).scatter(1, best, True)
    return torch.where(kept.unsqueeze(-1), groups, 0).reshape(x.shape)


@host_kernel("AtbLinearAccumulated")
def linear_accumulated(x: T, weight: T, total: T, *, transpose_a: bool, transpose_b: bool) -> T:
    if total.dtype is not torch.float32:
        raise ValueError(f"the sum is {total.dtype}; torch.float32 is expected")
    return total + product(x.float(), weight.float(), transpose_a, transpose_b, None)


@host_kernel("AtbQuantPerChannel")
def quant_per_channel(x: T, scale: T, offset: T | None = None) -> T:
    """Quantize: divide by the scale, round, and add the offset."""
    whole = torch.round(x.float() / scale.float())
    return saturated(whole if offset is None or offset.numel() == 0 else whole + offset.float())


@host_kernel("AtbRmsNormQuant")
def norm_quant(x: T, gamma: T, scale: T, beta: T | None = None, offset: T | None = None, *, epsilon: float) -> T:
    """Normalize the last dimension, divide by the scale and add the offset."""
    shift = None if beta is None or beta.numel() == 0 else beta.flatten()
    return rms_norm_quant(x, gamma.flatten(), scale, shift, offset, epsilon=epsilon, div_mode=True)

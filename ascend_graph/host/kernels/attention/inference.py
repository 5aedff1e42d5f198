"""Attention for inference: prompts, single tokens, and both in one operator, with paged key-value caches.

Every sequence of a batch is computed alone. Ragged lengths, pages and lists of caches are then the same thing: keys and
values of one sequence as [heads, length, head dimension].
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch.nn import functional

from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.kernels.attention.layouts import (
    LAYOUTS,
    Cache,
    KeySpans,
    Query,
    as_bnsd,
    from_bnsd,
    quantized_output,
)
from ascend_graph.host.kernels.attention.masks import UNBOUNDED, Sparsity
from ascend_graph.host.kernels.checks import check_choice, check_covers, check_shape, refuse_given
from ascend_graph.host.kernels.quantization.antiquantization import Dequantizer, joint_dequantizers
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


def attend(
    q: T,
    k: T,
    v: T,
    scale: float,
    bias: T | None,
    masked: T | None,
    sink: T | None = None,
    with_logarithm: bool = False,
) -> tuple[T, T | None]:
    """Compute attention of one sequence, [heads, queries, dimension], in float32.

    The second output is the logarithm of the softmax's sum, if requested. Queries that attend to nothing give zeros,
    and infinity for the logarithm.
    """
    heads, queries, _ = q.shape
    is_plain = bias is None and masked is None and sink is None and k.size(1)  # as in a step that decodes one token
    if is_plain and not with_logarithm:
        wide = [x.float().unsqueeze(0) for x in (q, k, v)]
        y = functional.scaled_dot_product_attention(
            wide[0], wide[1], wide[2], scale=scale, enable_gqa=heads != k.size(0)
        )
        return y[0], None
    # The heads that share keys are rows of one product.
    scores = q.float().reshape(k.size(0), -1, q.size(-1)) @ k.float().transpose(-1, -2) * scale
    scores = scores.reshape(heads, queries, k.size(1))
    if is_plain:
        y = torch.softmax(scores, -1).reshape(v.size(0), -1, v.size(1)) @ v.float()
        return y.reshape(heads, queries, v.size(-1)), scores.logsumexp(-1, keepdim=True)
    if bias is not None:
        scores = scores + bias.float()
    if masked is not None:
        scores = scores.masked_fill(masked, -math.inf)
    if scores.size(-1) == 0:
        lse = scores.new_full((*scores.shape[:-1], 1), math.inf)
        return scores.new_zeros(*scores.shape[:-1], v.size(-1)), lse if with_logarithm else None
    top = scores.amax(-1, keepdim=True)
    empty = top == -math.inf
    if sink is not None:
        sink = sink.float().reshape(-1, 1, 1)
        top = torch.maximum(top, sink)
    top = torch.where(top == -math.inf, 0, top)
    weights = torch.exp(scores - top)
    total = weights.sum(-1, keepdim=True)
    if sink is not None:
        total = total + torch.exp(sink - top)
    y = (weights.reshape(v.size(0), -1, v.size(1)) @ v.float()).reshape(heads, queries, v.size(-1))
    y = y / torch.where(total == 0, 1, total)
    return y, torch.where(empty, math.inf, top + torch.log(total)) if with_logarithm else None


def _numbers(x: T | None) -> list[int] | None:
    return None if x is None or x.is_meta or x.numel() == 0 else [int(n) for n in x.reshape(-1).tolist()]


def _attention(
    query: T,
    key: Sequence[T],
    value: Sequence[T],
    *,
    pse_shift: T | None,
    sparsity: Sparsity,
    lengths: T | None,
    kv_lengths: T | None,
    block_table: T | None,
    block_size: int,
    heads: int,
    kv_heads: int,
    layout: str,
    scale: float,
    ropes: tuple[T, T] | None = None,
    dequantizers: tuple[Dequantizer, Dequantizer] = (Dequantizer(), Dequantizer()),
    sink: T | None = None,
    dtype: torch.dtype | None = None,
    with_logarithm: bool = False,
) -> tuple[T, T]:
    """Compute attention in the output's layout, and the logarithm of the softmax's sum.

    The logarithm is [batch, heads, queries, 1] or [T, heads, 1]; without ``with_logarithm`` it is empty.
    """
    kv_heads = kv_heads or heads
    _check_attrs(layout, heads, kv_heads, block_table, block_size)
    q_layout, out_layout = LAYOUTS[layout]
    source = Query(query, q_layout, heads, _numbers(lengths))
    keys = Cache("key", key, q_layout, kv_heads, block_table, block_size)
    values = Cache("value", value, q_layout, kv_heads, block_table, block_size)
    padded = source.padded()
    batch, _, length, width = padded.shape
    _check_caches(keys, values, batch, width)
    _check_companions(query, key[0], block_table, ropes, sink, heads)
    for cache, dequantizer in zip((keys, values), dequantizers, strict=True):
        cache.check_dequantizer(dequantizer)
    out = padded.new_zeros(batch, heads, length, values.width(), dtype=dtype or query.dtype)
    lse = padded.new_full((batch, heads, length, 1) if with_logarithm else (0,), math.inf, dtype=torch.float32)
    if not query.is_meta:
        kv_spans = KeySpans(source, keys, _numbers(kv_lengths), batch)
        rotated, rope_cache = None, None
        if ropes is not None:
            rotated = as_bnsd(ropes[0], q_layout, heads)
            rope_cache = Cache("key_rope", [ropes[1]], q_layout, kv_heads, block_table, block_size)
        for number, (row, start, end) in enumerate(source.spans(batch, length)):
            kv_start, kv_length = kv_spans(number)
            q = padded[row, :, start:end]
            k = dequantizers[0](keys.sequence(number, kv_start, kv_length), number)
            v = dequantizers[1](values.sequence(number, kv_start, kv_length), number)
            if rotated is not None and rope_cache is not None:
                q = torch.cat([q, rotated[row, :, start:end]], -1)
                k = torch.cat([k, rope_cache.sequence(number, kv_start, kv_length).float()], -1)
            bias = None if pse_shift is None else _bias(pse_shift, number, end - start, kv_length)
            masked = sparsity.masked(number, end - start, kv_length)
            out[row, :, start:end], logarithm = attend(q, k, v, scale, bias, masked, sink, with_logarithm)
            if logarithm is not None:
                lse[row, :, start:end] = logarithm
    return from_bnsd(out, out_layout), from_bnsd(lse, "TND") if "T" in q_layout and with_logarithm else lse


def _check_attrs(layout: str, heads: int, kv_heads: int, block_table: T | None, block_size: int) -> None:
    """Refuse attrs that are not supported or do not fit each other."""
    check_choice("input_layout", layout, *LAYOUTS)
    if heads % kv_heads:
        raise ValueError(f"num_key_value_heads {kv_heads}: expected a divisor of num_heads, {heads}")
    if block_table is not None and block_size <= 0:
        raise ValueError(f"block_size {block_size} is not positive; block_table needs it")


def _check_caches(keys: Cache, values: Cache, batch: int, width: int) -> None:
    """Refuse keys and values that do not fit each other or the queries."""
    keys.check(batch)
    values.check(batch)
    if keys.width() != width:
        raise ValueError(
            f"key of shape {tuple(keys.tensors[0].shape)} has heads of {keys.width()}; expected {width}, as query has"
        )
    shapes = [[tuple(x.shape) for x in cache.tensors] for cache in (keys, values)]
    if [shape[:-1] for shape in shapes[0]] != [shape[:-1] for shape in shapes[1]] and keys.tensors[0].dim() != 5:
        raise ValueError(f"key {shapes[0]} and value {shapes[1]} must differ in the last dimension only")


def _check_companions(
    query: T, key: T, block_table: T | None, ropes: tuple[T, T] | None, sink: T | None, heads: int
) -> None:
    """Refuse a block table, rotary parts or a sink whose shapes do not fit queries and keys."""
    if block_table is not None:
        check_shape("block_table", block_table, ("batch", "blocks of a sequence"))
    for name, x, rope in (("query", query, ropes and ropes[0]), ("key", key, ropes and ropes[1])):
        if rope is not None and rope.shape[:-1] != x.shape[:-1] and x.dim() != 5:
            raise ValueError(
                f"{name}_rope of shape {tuple(rope.shape)} and {name} of shape {tuple(x.shape)} must differ in the "
                "last dimension only"
            )
    if sink is not None:
        check_shape("learnable_sink", sink, (heads,), why="one for each head")


def _bias(pse_shift: T, number: int, queries: int, keys: int) -> T:
    bias = pse_shift[number if pse_shift.size(0) > 1 else 0]
    check_covers("pse_shift", pse_shift, queries, keys)
    return bias[:, :queries, :keys]


@host_kernel("PromptFlashAttention", ignores=("inner_precise",))
def prompt_flash_attention(
    query: T,
    key: T,
    value: T,
    pse_shift: T | None = None,
    atten_mask: T | None = None,
    actual_seq_lengths: T | None = None,
    actual_seq_lengths_kv: T | None = None,
    deq_scale1: T | None = None,
    quant_scale1: T | None = None,
    deq_scale2: T | None = None,
    quant_scale2: T | None = None,
    quant_offset2: T | None = None,
    *,
    num_heads: int,
    scale_value: float = 1.0,
    pre_tokens: int = 214748647,
    next_tokens: int = 0,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    sparse_mode: int = 0,
) -> T:
    refuse_given("not supported on the host", deq_scale1=deq_scale1, quant_scale1=quant_scale1, deq_scale2=deq_scale2)
    y, _ = _attention(
        query,
        [key],
        [value],
        pse_shift=pse_shift,
        sparsity=Sparsity(atten_mask, sparse_mode, pre_tokens, next_tokens),
        lengths=actual_seq_lengths,
        kv_lengths=actual_seq_lengths_kv,
        block_table=None,
        block_size=0,
        heads=num_heads,
        kv_heads=num_key_value_heads,
        layout=input_layout,
        scale=scale_value,
    )
    return quantized_output(y, input_layout, num_heads, quant_scale2, quant_offset2)


@host_kernel("IncreFlashAttention", dynamic=("key", "value"), ignores=("inner_precise",))
def incre_flash_attention(
    query: T,
    key: list[T],
    value: list[T],
    pse_shift: T | None = None,
    atten_mask: T | None = None,
    actual_seq_lengths: T | None = None,
    dequant_scale1: T | None = None,
    quant_scale1: T | None = None,
    dequant_scale2: T | None = None,
    quant_scale2: T | None = None,
    quant_offset2: T | None = None,
    antiquant_scale: T | None = None,
    antiquant_offset: T | None = None,
    block_table: T | None = None,
    kv_padding_size: T | None = None,
    *,
    num_heads: int,
    scale_value: float = 1.0,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    block_size: int = 0,
) -> T:
    refuse_given(
        "not supported on the host",
        dequant_scale1=dequant_scale1,
        quant_scale1=quant_scale1,
        dequant_scale2=dequant_scale2,
    )
    refuse_given("not supported on the host", kv_padding_size=kv_padding_size)
    y, _ = _attention(
        query,
        key,
        value,
        pse_shift=pse_shift,
        sparsity=Sparsity(atten_mask, 0, UNBOUNDED, UNBOUNDED),
        lengths=None,
        kv_lengths=actual_seq_lengths,
        block_table=block_table,
        block_size=block_size,
        heads=num_heads,
        kv_heads=num_key_value_heads,
        layout=input_layout,
        scale=scale_value,
        dequantizers=joint_dequantizers(antiquant_scale, antiquant_offset, 0),
    )
    return quantized_output(y, input_layout, num_heads, quant_scale2, quant_offset2)


def _has_one_token(query: T, layout: str) -> bool:
    """Return whether every sequence has one query, as in a decoding step.

    Sequence lengths have no effect then, whatever their values.
    """
    q_layout, _ = LAYOUTS.get(layout, ("", ""))
    place = q_layout.find("S")
    return 0 <= place < query.dim() and query.size(place) == 1


@host_kernel("FusedInferAttentionScore", dynamic=("key", "value"), ignores=("inner_precise",))
def fused_infer_attention_score(
    query: T,
    key: list[T],
    value: list[T],
    pse_shift: T | None = None,
    atten_mask: T | None = None,
    actual_seq_lengths: T | None = None,
    actual_seq_lengths_kv: T | None = None,
    dequant_scale1: T | None = None,
    quant_scale1: T | None = None,
    dequant_scale2: T | None = None,
    quant_scale2: T | None = None,
    quant_offset2: T | None = None,
    antiquant_scale: T | None = None,
    antiquant_offset: T | None = None,
    block_table: T | None = None,
    query_padding_size: T | None = None,
    kv_padding_size: T | None = None,
    key_antiquant_scale: T | None = None,
    key_antiquant_offset: T | None = None,
    value_antiquant_scale: T | None = None,
    value_antiquant_offset: T | None = None,
    key_shared_prefix: T | None = None,
    value_shared_prefix: T | None = None,
    actual_shared_prefix_len: T | None = None,
    query_rope: T | None = None,
    key_rope: T | None = None,
    key_rope_antiquant_scale: T | None = None,
    dequant_scale_query: T | None = None,
    learnable_sink: T | None = None,
    q_start_idx: T | None = None,
    kv_start_idx: T | None = None,
    *,
    num_heads: int,
    scale: float = 1.0,
    pre_tokens: int = UNBOUNDED,
    next_tokens: int = UNBOUNDED,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    sparse_mode: int = 0,
    block_size: int = 0,
    antiquant_mode: int = 0,
    softmax_lse_flag: bool = False,
    key_antiquant_mode: int = 0,
    value_antiquant_mode: int = 0,
    query_quant_mode: int = 0,
    pse_type: int = 0,
    out_dtype: int | None = None,
) -> tuple[T, T]:
    refuse_given(
        "not supported on the host",
        dequant_scale1=dequant_scale1,
        quant_scale1=quant_scale1,
        dequant_scale2=dequant_scale2,
    )
    refuse_given("not supported on the host", query_padding_size=query_padding_size, kv_padding_size=kv_padding_size)
    refuse_given(
        "not supported on the host", key_shared_prefix=key_shared_prefix, value_shared_prefix=value_shared_prefix
    )
    refuse_given(
        "not supported on the host",
        key_rope_antiquant_scale=key_rope_antiquant_scale,
        dequant_scale_query=dequant_scale_query,
    )
    if query.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise ValueError(f"query of {query.dtype} is not supported; float16 and bfloat16 are")
    if (query_rope is None) != (key_rope is None):
        raise ValueError("query_rope and key_rope go together: give both or none")
    if pse_type or query_quant_mode:
        raise ValueError(f"pse_type {pse_type}, query_quant_mode {query_quant_mode}: not supported on the host; 0 is")
    if key_antiquant_scale is not None or value_antiquant_scale is not None:
        dequantizers = (
            Dequantizer(key_antiquant_scale, key_antiquant_offset, key_antiquant_mode, "key_antiquant_{}"),
            Dequantizer(value_antiquant_scale, value_antiquant_offset, value_antiquant_mode, "value_antiquant_{}"),
        )
        if key_antiquant_mode != value_antiquant_mode and (key_antiquant_mode, value_antiquant_mode) != (0, 1):
            raise ValueError(
                f"key_antiquant_mode {key_antiquant_mode}, value_antiquant_mode {value_antiquant_mode}: they are the same, or 0 and 1"
            )
    else:
        dequantizers = joint_dequantizers(antiquant_scale, antiquant_offset, antiquant_mode)
    one_token = _has_one_token(query, input_layout) and query_rope is None
    y, lse = _attention(
        query,
        key,
        value,
        pse_shift=pse_shift,
        sparsity=Sparsity(atten_mask, sparse_mode, pre_tokens, next_tokens, one_token),
        lengths=None if one_token else actual_seq_lengths,
        kv_lengths=actual_seq_lengths_kv,
        block_table=block_table,
        block_size=block_size,
        heads=num_heads,
        kv_heads=num_key_value_heads,
        layout=input_layout,
        scale=scale,
        ropes=None if query_rope is None or key_rope is None else (query_rope, key_rope),
        dequantizers=dequantizers,
        sink=learnable_sink,
        dtype=torch_dtype(out_dtype) if out_dtype and quant_scale2 is None else None,
        with_logarithm=softmax_lse_flag,
    )
    return quantized_output(y, input_layout, num_heads, quant_scale2, quant_offset2), lse

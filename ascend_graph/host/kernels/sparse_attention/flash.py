"""Sparse flash attention to the keys that a lightning indexer selects."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch

from ascend_graph.host.kernels.checks import check_choice, check_count, check_multiple, check_shape
from ascend_graph.host.kernels.quantization.hifloat8 import decoded
from ascend_graph.host.kernels.registry import host_kernel
from ascend_graph.prototypes import DataType

T = torch.Tensor
#: Value of preTokens and nextTokens for all tokens before and after a query.
EVERYTHING = 9223372036854775807


def check_tokens(pre_tokens: int, next_tokens: int) -> None:
    """Refuse a band of keys."""
    check_choice("preTokens", pre_tokens, EVERYTHING)
    check_choice("nextTokens", next_tokens, EVERYTHING)


@host_kernel("LightningIndexer")
def lightning_indexer(
    query: T,
    key: T,
    weights: T,
    actual_seq_lengths_query: T | None = None,
    actual_seq_lengths_key: T | None = None,
    block_table: T | None = None,
    *,
    layout_query: str = "BSND",
    layout_key: str = "BSND",
    sparse_count: int = 2048,
    sparse_mode: int = 3,
    pre_tokens: int = EVERYTHING,
    next_tokens: int = EVERYTHING,
    return_values: bool = False,
) -> tuple[T, T]:
    """Return for each query the keys with the largest index scores; -1 after the last.

    A score is the weighted sum over heads of their products with the key, each clamped at 0.
    """
    check_choice("layout_query", layout_query, "BSND", "TND")
    check_choice("layout_key", layout_key, layout_query, "PA_BSND")
    check_choice("sparse_mode", sparse_mode, 0, 3)
    check_tokens(pre_tokens, next_tokens)
    if key.size(-2) != 1 or query.shape[:-1] != weights.shape or query.size(-1) != key.size(-1):
        raise ValueError(
            f"query {tuple(query.shape)}, key {tuple(key.shape)} weights {tuple(weights.shape)}: expected one head of "
            "keys, of the size of query, and a weight for each query and head"
        )
    indices = query.new_full((*query.shape[:-2], 1, sparse_count), -1, dtype=torch.int32)
    values = query.new_full(indices.shape if return_values else (0,), -torch.inf)
    if query.is_meta:
        return indices, values
    keys = sequences(key, actual_seq_lengths_key, layout_key, block_table)
    places = spans(query, actual_seq_lengths_query, layout_query)
    check_count("the lengths of keys", keys, len(places), "sequence of queries")
    for (row, start, end), known in zip(places, keys, strict=True):
        q, w = (x[row, start:end] if row is not None else x[start:end] for x in (query, weights))
        scores = (torch.einsum("snd,kd->snk", q.float(), known.float()).relu() * w.float().unsqueeze(-1)).sum(1)
        if sparse_mode == 3:  # the last query sees the last key
            after = torch.ones_like(scores, dtype=torch.bool).triu(1 + known.size(0) - (end - start))
            scores = scores.masked_fill(after, -torch.inf)
        count = min(sparse_count, known.size(0))
        best, numbers = scores.topk(count, -1)
        numbers = torch.where(best == -torch.inf, -1, numbers).to(torch.int32)
        for target, found in ((indices, numbers), (values, best.to(values.dtype))):
            if target.numel():
                (target[row, start:end] if row is not None else target[start:end])[:, 0, :count] = found
    return indices, values


def _check_chosen_keys(sparse_block_size: int, key: T, value: T, query: T, sparse_indices: T) -> None:
    """Raise if keys, values or their indices do not fit the queries."""
    check_choice("sparse_block_size", sparse_block_size, 1, 2, 4, 8, 16, 32, 64, 128)
    if key.size(-2) != 1 or key.shape != value.shape or query.size(-1) != key.size(-1):
        raise ValueError(
            f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}: expected one head of "
            "keys, and one size for all"
        )
    check_shape("sparse_indices", sparse_indices, (*query.shape[:-2], 1, "blocks"), why="a row for each token of query")


@host_kernel("SparseFlashAttention")
def sparse_flash_attention(
    query: T,
    key: T,
    value: T,
    sparse_indices: T,
    block_table: T | None = None,
    actual_seq_lengths_query: T | None = None,
    actual_seq_lengths_kv: T | None = None,
    query_rope: T | None = None,
    key_rope: T | None = None,
    sinks: T | None = None,
    *,
    scale_value: float,
    sparse_block_size: int = 1,
    layout_query: str = "BSND",
    layout_kv: str = "BSND",
    sparse_mode: int = 3,
    pre_tokens: int = EVERYTHING,
    next_tokens: int = EVERYTHING,
    attention_mode: int = 0,
    return_softmax_lse: bool = False,
) -> tuple[T, T, T]:
    """Compute attention of each query to the blocks of keys in its row of ``sparse_indices``.

    Index -1 selects no block.
    """
    check_choice("layout_query", layout_query, "BSND", "TND")
    check_choice("layout_kv", layout_kv, layout_query, "PA_BSND")
    check_choice("sparse_mode", sparse_mode, 0, 3)
    check_tokens(pre_tokens, next_tokens)
    check_choice("attention_mode", attention_mode, 2)
    if query_rope is None or key_rope is None:
        raise ValueError("query_rope and key_rope are required")
    _check_chosen_keys(sparse_block_size, key, value, query, sparse_indices)
    out, heads = torch.zeros_like(query), query.size(-2)
    shape = (1, query.size(0), heads) if layout_query == "TND" else (query.size(0), 1, query.size(1), heads)
    largest, total = (query.new_zeros(shape if return_softmax_lse else (0,), dtype=torch.float32) for _ in range(2))
    if query.is_meta:
        return out, largest, total
    keys, values, ropes = (sequences(x, actual_seq_lengths_kv, layout_kv, block_table) for x in (key, value, key_rope))
    places = spans(query, actual_seq_lengths_query, layout_query)
    check_count("the lengths of keys", keys, len(places), "sequence of queries")
    for (row, start, end), k_nope, v, k_rope in zip(places, keys, values, ropes, strict=True):
        k = torch.cat([k_nope, k_rope], -1).float()
        for n in range(start, end):
            at = n if row is None else (row, n)
            tokens = _chosen(sparse_indices[at], sparse_block_size, n - start, end - start, k.size(0), sparse_mode)
            scores = torch.cat([query[at], query_rope[at]], -1).float() @ k[tokens].t() * scale_value
            cells = scores if sinks is None else torch.cat([scores, sinks.float().reshape(-1, 1)], -1)
            if cells.size(-1) == 0:
                continue
            top = cells.amax(-1, keepdim=True)
            sums = (cells - top).exp().sum(-1, keepdim=True)
            out[at] = ((scores - top).exp() / sums @ v[tokens].float()).to(out.dtype)
            if return_softmax_lse:
                cell = (0, n) if row is None else (row, 0, n)
                largest[cell], total[cell] = top.squeeze(-1), sums.squeeze(-1)
    return out, largest, total


def _places(
    query: T, key: T, lengths: tuple[T | None, T | None], layout: str
) -> Iterator[tuple[tuple[int | None, int, int], tuple[int | None, int, int]]]:
    """Yield the positions of each sequence's queries and keys."""
    queries, keys = (spans(x, part, layout) for x, part in zip((query, key), lengths, strict=True))
    check_count("the lengths of keys", keys, len(queries), "sequence of queries")
    yield from zip(queries, keys, strict=True)


def _check_gradient_inputs(
    query: T,
    sparse_indices: T,
    key: T,
    query_rope: T,
    key_rope: T,
    value: T | None,
    layout: str,
    softmax_max: T,
    softmax_sum: T,
) -> None:
    """Raise if the shapes of the gradients' inputs do not fit one another."""
    heads, count = query.size(-2), sparse_indices.size(-1)
    widths = (query.size(-1), key.size(-1), query_rope.size(-1), key_rope.size(-1))
    if widths != (512, 512, 64, 64) or key.size(-2) != 1 or (value is not None and value.shape != key.shape):
        raise ValueError(
            f"query {tuple(query.shape)}, key {tuple(key.shape)}, value "
            f"{None if value is None else tuple(value.shape)}: expected one head of keys "
            f"and values, 512 wide, of which 64 more are rotated; {widths}"
        )
    check_multiple("the last dimension of sparseIndices", count, 1024, 8192)
    check_shape("sparseIndices", sparse_indices, (*query.shape[:-2], 1, count))
    statistics = (1, query.size(0), heads) if layout == "TND" else (query.size(0), 1, query.size(1), heads)
    for name, values in (("softmaxMax", softmax_max), ("softmaxSum", softmax_sum)):
        check_shape(name, values, statistics, why="as the attention gives them with return_softmax_lse")


def _check_gradient_attrs(layout: str, sparse_mode: int, sparse_block_size: int) -> None:
    check_choice("layout", layout, "BSND", "TND")
    check_choice("sparseMode", sparse_mode, 0, 3)
    check_choice("sparseBlockSize", sparse_block_size, 1, 8, 16, 32, 64)


@host_kernel("SparseFlashAttentionGrad", ignores=("deterministic",))
def sparse_flash_attention_grad(
    query: T,
    key: T,
    sparse_indices: T,
    d_out: T,
    out: T,
    softmax_max: T,
    softmax_sum: T,
    value: T | None = None,
    actual_seq_lengths_query: T | None = None,
    actual_seq_lengths_kv: T | None = None,
    query_rope: T | None = None,
    key_rope: T | None = None,
    *,
    scale_value: float,
    sparse_block_size: int = 1,
    layout: str = "BSND",
    sparse_mode: int = 3,
    pre_tokens: int = EVERYTHING,
    next_tokens: int = EVERYTHING,
) -> tuple[T, ...]:
    """Return the gradients of queries, keys, values and the rotated parts, by the statistics of the softmax.

    Without values the keys take their place, and the gradient of the keys is the sum of both.
    """
    check_tokens(pre_tokens, next_tokens)
    _check_gradient_attrs(layout, sparse_mode, sparse_block_size)
    if query_rope is None or key_rope is None:
        raise ValueError("queryRope, keyRope: both are required")
    _check_gradient_inputs(query, sparse_indices, key, query_rope, key_rope, value, layout, softmax_max, softmax_sum)
    values = key if value is None else value
    dq, dk, dv, dq_rope, dk_rope = (
        torch.zeros_like(x, dtype=torch.float32) for x in (query, key, values, query_rope, key_rope)
    )
    if not query.is_meta:
        mean = (d_out.float() * out.float()).sum(-1, keepdim=True)
        lengths = (actual_seq_lengths_query, actual_seq_lengths_kv)
        for (row, start, end), (_, k_start, k_end) in _places(query, key, lengths, layout):
            for n in range(start, end):
                at: Any = n if row is None else (row, n)
                cell = (0, n) if row is None else (row, 0, n)
                tokens = _chosen(
                    sparse_indices[at], sparse_block_size, n - start, end - start, k_end - k_start, sparse_mode
                )
                kept: Any = (tokens + k_start, 0) if row is None else (row, tokens + k_start, 0)
                q, grad = torch.cat([query[at], query_rope[at]], -1).float(), d_out[at].float()
                k = torch.cat([key[kept], key_rope[kept]], -1).float()
                weights = torch.exp(q @ k.t() * scale_value - softmax_max[cell].unsqueeze(-1)) / softmax_sum[
                    cell
                ].unsqueeze(-1)
                by_scores = weights * (grad @ values[kept].float().t() - mean[at]) * scale_value
                dq[at], dq_rope[at] = (by_scores @ k).split((512, 64), -1)
                for target, found in zip((dk, dk_rope), (by_scores.t() @ q).split((512, 64), -1), strict=True):
                    _added(target, row)[:, 0].index_add_(0, tokens + k_start, found)
                _added(dv, row)[:, 0].index_add_(0, tokens + k_start, weights.t() @ grad)
    if value is None:
        dk, dv = dk + dv, dv.new_empty(0)
    return tuple(g.to(query.dtype) for g in (dq, dk, dv, dq_rope, dk_rope))


def _added(target: T, row: int | None) -> T:
    return target if row is None else target[row]


def _chosen(indices: T, size: int, number: int, queries: int, keys: int, mode: int) -> T:
    """Return the tokens of a query's selected blocks, in mode 3 only those it sees.

    The last query sees the last key.
    """
    blocks = indices.flatten().long()
    tokens = (blocks[blocks >= 0, None] * size + torch.arange(size)).flatten()
    return tokens[tokens <= (keys - queries + number if mode == 3 else keys - 1)]


def _check_quantized_keys(
    key_dequant_scale: T | None,
    value_dequant_scale: T | None,
    modes: tuple[int, ...],
    query: T,
    key: T,
    sparse_block_size: int,
    layout_kv: str,
) -> None:
    """Raise if keys, scales or modes are not those of the documents."""
    if key_dequant_scale is not None or value_dequant_scale is not None:
        raise ValueError("key_dequant_scale and value_dequant_scale are reserved: the scales stand in the key")
    if modes != (2, 2, 1, 128, 64):
        raise ValueError(
            f"(key_quant_mode, value_quant_mode, quant_scale_repo_mode, tile_size, rope_head_dim) are {modes}; valid are (2, 2, 1, 128, 64)"
        )
    if query.size(-1) != 576 or key.size(-1) != 656 or key.element_size() != 1:
        raise ValueError(
            f"query {tuple(query.shape)}, key {tuple(key.shape)}: expected a query 576 wide, and a key of 656 bytes, "
            "512 and 64 numbers and 4 scales"
        )
    if not 1 <= sparse_block_size <= 16 or (layout_kv == "PA_BSND" and key.size(1) % sparse_block_size):
        raise ValueError(f"sparse_block_size {sparse_block_size}: valid are 1 to 16, which divide a page of keys")


def _unpacked_keys(key: T, query: T, value: T) -> tuple[T, T]:
    """Return the keys as floats, and the bytes of their rotated part."""
    raw = key.view(torch.uint8)
    nope, rope, scales = raw.split((512, 128, 16), -1)
    if not query.is_meta and not torch.equal(value.view(torch.uint8)[..., :512], nope):
        raise ValueError("value must be the first 512 elements of each key: attention_mode 2 has one tensor for both")
    kind = getattr(key, "ge_dtype", None)
    numbers = decoded(nope) if kind == DataType.HIFLOAT8 else nope.contiguous().view(key.dtype).float()
    k = numbers * scales.contiguous().view(torch.float32).repeat_interleave(128, -1)
    return k, rope


@host_kernel("KvQuantSparseFlashAttention")
def kv_quant_sparse_flash_attention(
    query: T,
    key: T,
    value: T,
    sparse_indices: T,
    key_dequant_scale: T | None = None,
    value_dequant_scale: T | None = None,
    block_table: T | None = None,
    actual_seq_lengths_query: T | None = None,
    actual_seq_lengths_kv: T | None = None,
    *,
    scale_value: float,
    key_quant_mode: int,
    value_quant_mode: int,
    sparse_block_size: int = 1,
    layout_query: str = "BSND",
    layout_kv: str = "BSND",
    sparse_mode: int = 3,
    pre_tokens: int = EVERYTHING,
    next_tokens: int = EVERYTHING,
    attention_mode: int = 0,
    quant_scale_repo_mode: int = 1,
    tile_size: int = 128,
    rope_head_dim: int = 64,
) -> T:
    """Compute attention to selected tokens whose keys are packed in rows of bytes.

    A row has 512 8-bit numbers, 64 rotated ones of the query's dtype, and four scales of 128 numbers each
    (https://gitcode.com/Ascend/op-plugin, torch_npu.npu_kv_quant_sparse_flash_attention).
    """
    modes = (key_quant_mode, value_quant_mode, quant_scale_repo_mode, tile_size, rope_head_dim)
    _check_quantized_keys(key_dequant_scale, value_dequant_scale, modes, query, key, sparse_block_size, layout_kv)
    k, rope = _unpacked_keys(key, query, value)
    out, _, _ = sparse_flash_attention(
        query[..., :512],
        k,
        k,
        sparse_indices,
        block_table,
        actual_seq_lengths_query,
        actual_seq_lengths_kv,
        query[..., 512:],
        rope.contiguous().view(query.dtype),
        scale_value=scale_value,
        sparse_block_size=sparse_block_size,
        layout_query=layout_query,
        layout_kv=layout_kv,
        sparse_mode=sparse_mode,
        pre_tokens=pre_tokens,
        next_tokens=next_tokens,
        attention_mode=attention_mode,
    )
    return out


def spans(x: T, lengths: T | None, layout: str) -> list[tuple[int | None, int, int]]:
    """Return the row, None in layout TND, and the start and end of each sequence."""
    if layout == "TND":
        if lengths is None:
            raise ValueError("actual_seq_lengths_query is required with TND")
        ends = [0, *lengths.tolist()]
        if sorted(ends) != ends or ends[-1] > x.size(0):
            raise ValueError(f"actual_seq_lengths_query {ends[1:]}: sums that grow to at most {x.size(0)} are expected")
        return [(None, start, end) for start, end in itertools.pairwise(ends)]
    sizes = [x.size(1)] * x.size(0) if lengths is None else lengths.tolist()
    if len(sizes) != x.size(0) or any(not 0 <= size <= x.size(1) for size in sizes):
        raise ValueError(f"actual_seq_lengths_query {sizes}: {x.size(0)} numbers of at most {x.size(1)} are expected")
    return [(row, 0, size) for row, size in enumerate(sizes)]


def sequences(key: T, lengths: T | None, layout: str, table: T | None) -> list[T]:
    """Return the keys of each sequence, [tokens, size]."""
    if layout != "PA_BSND":
        found = spans(key, lengths, layout)
        return [(key[start:end] if row is None else key[row, start:end])[:, 0] for row, start, end in found]
    if lengths is None or table is None:
        raise ValueError("actual_seq_lengths_key and block_table are required with PA_BSND")
    size, keys = key.size(1), []
    for row, length in zip(table.tolist(), lengths.tolist(), strict=True):
        pages = row[: -(-length // size)]
        if length > len(row) * size or any(not 0 <= page < key.size(0) for page in pages):
            raise ValueError(f"block_table {row} for {length} tokens: there are {key.size(0)} blocks of {size}")
        keys.append(key[pages, :, 0].flatten(0, 1)[:length] if pages else key.new_empty(0, key.size(-1)))
    return keys

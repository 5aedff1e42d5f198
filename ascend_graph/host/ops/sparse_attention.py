"""Attention to some of the keys, and which: the most alike to each query by an attention of few dimensions."""

from __future__ import annotations

import itertools

import torch

from ascend_graph.host.ops.registry import host_kernel

T = torch.Tensor
_EVERYTHING = 9223372036854775807


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
    pre_tokens: int = _EVERYTHING,
    next_tokens: int = _EVERYTHING,
    return_values: bool = False,
) -> tuple[T, T]:
    """For each query the keys with the largest sums of what its heads score, cut at 0 and weighted; -1 behind the last."""
    if layout_query not in ("BSND", "TND") or layout_key not in (layout_query, "PA_BSND"):
        raise ValueError(f"layout_query {layout_query!r} (BSND, TND), layout_key {layout_key!r} (the same, or PA_BSND)")
    if sparse_mode not in (0, 3) or pre_tokens != _EVERYTHING or next_tokens != _EVERYTHING:
        raise ValueError(f"sparse_mode {sparse_mode} (0, 3), pre_tokens, next_tokens (2^63 - 1): no other is supported")
    if key.size(-2) != 1 or query.shape[:-1] != weights.shape or query.size(-1) != key.size(-1):
        raise ValueError(
            f"query {tuple(query.shape)}, key {tuple(key.shape)} with one head, weights {tuple(weights.shape)}: they do not fit"
        )
    indices = query.new_full((*query.shape[:-2], 1, sparse_count), -1, dtype=torch.int32)
    values = query.new_full(indices.shape if return_values else (0,), -torch.inf)
    if query.is_meta:
        return indices, values
    keys = _sequences(key, actual_seq_lengths_key, layout_key, block_table)
    places = _spans(query, actual_seq_lengths_query, layout_query)
    if len(keys) != len(places):
        raise ValueError(f"{len(places)} sequences of queries, {len(keys)} of keys")
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
    pre_tokens: int = _EVERYTHING,
    next_tokens: int = _EVERYTHING,
    attention_mode: int = 0,
    return_softmax_lse: bool = False,
) -> tuple[T, T, T]:
    """Attention of each query to the blocks of keys that its row of ``sparse_indices`` names; -1 names none."""
    if layout_query not in ("BSND", "TND") or layout_kv not in (layout_query, "PA_BSND"):
        raise ValueError(f"layout_query {layout_query!r} (BSND, TND), layout_kv {layout_kv!r} (the same, or PA_BSND)")
    if sparse_mode not in (0, 3) or pre_tokens != _EVERYTHING or next_tokens != _EVERYTHING:
        raise ValueError(f"sparse_mode {sparse_mode} (0, 3), pre_tokens, next_tokens (2^63 - 1): no other is supported")
    if attention_mode != 2 or query_rope is None or key_rope is None:
        raise ValueError(
            f"attention_mode {attention_mode} (2), query_rope and key_rope (required): no other is supported"
        )
    if not 1 <= sparse_block_size <= 128 or sparse_block_size & (sparse_block_size - 1):
        raise ValueError(f"sparse_block_size {sparse_block_size} is no power of 2 from 1 to 128")
    if key.size(-2) != 1 or key.shape != value.shape or query.size(-1) != key.size(-1):
        raise ValueError(
            f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}: one head of keys, all of one size"
        )
    if sparse_indices.shape[:-1] != (*query.shape[:-2], 1):
        raise ValueError(
            f"sparse_indices of shape {tuple(sparse_indices.shape)} has no row for each of {tuple(query.shape)}"
        )
    out, heads = torch.zeros_like(query), query.size(-2)
    shape = (1, query.size(0), heads) if layout_query == "TND" else (query.size(0), 1, query.size(1), heads)
    largest, total = (query.new_zeros(shape if return_softmax_lse else (0,), dtype=torch.float32) for _ in range(2))
    if query.is_meta:
        return out, largest, total
    keys, values, ropes = (_sequences(x, actual_seq_lengths_kv, layout_kv, block_table) for x in (key, value, key_rope))
    places = _spans(query, actual_seq_lengths_query, layout_query)
    if len(keys) != len(places):
        raise ValueError(f"{len(places)} sequences of queries, {len(keys)} of keys")
    steps = torch.arange(sparse_block_size)
    for (row, start, end), k_nope, v, k_rope in zip(places, keys, values, ropes, strict=True):
        k = torch.cat([k_nope, k_rope], -1).float()
        for n in range(start, end):
            at = n if row is None else (row, n)
            chosen = sparse_indices[at].flatten().long()
            tokens = (chosen[chosen >= 0, None] * sparse_block_size + steps).flatten()
            last = k.size(0) - (end - start) + (n - start) if sparse_mode == 3 else k.size(0) - 1
            tokens = tokens[tokens <= last]
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


def _spans(x: T, lengths: T | None, layout: str) -> list[tuple[int | None, int, int]]:
    """The row, where there are rows, and the first and last token of each sequence."""
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


def _sequences(key: T, lengths: T | None, layout: str, table: T | None) -> list[T]:
    """The keys of each sequence, [tokens, size]."""
    if layout != "PA_BSND":
        found = _spans(key, lengths, layout)
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

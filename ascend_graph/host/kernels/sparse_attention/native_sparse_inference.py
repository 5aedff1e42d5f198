"""Native sparse attention of single queries with a paged cache."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ascend_graph.host.kernels.attention.attention import softmax_with_statistics
from ascend_graph.host.kernels.checks import check_choice, check_multiple
from ascend_graph.host.kernels.registry import host_kernel
from ascend_graph.host.kernels.sparse_attention.native_sparse import check_blocks, check_heads, importance

T = torch.Tensor

#: Number of blocks that are always selected: the first, and the two that end with the newest token.
_ALWAYS_CHOSEN = 3


def _check_single(lengths: Sequence[int], batch: int) -> None:
    if any(length != 1 for length in lengths) or len(lengths) not in (0, batch):
        raise ValueError(
            f"actualQSeqLen {list(lengths)}: expected one query for every sequence on the host; which keys several of "
            "them see is not documented"
        )


def _single_queries(query: T, layout: str, heads: int) -> T:
    """Return the only query of each sequence, [batch, heads, width]."""
    batch, size = query.size(0), query.dim()
    if layout == "TND" and size == 3:
        found = query
    elif layout in ("BSND", "BSH") and size == (4 if layout == "BSND" else 3) and query.size(1) == 1:
        found = query[:, 0] if layout == "BSND" else query.reshape(batch, heads, -1)
    else:
        raise ValueError(
            f"query {tuple(query.shape)} in layout {layout!r}: expected one query for every sequence on the host"
        )
    if found.size(1) != heads:
        raise ValueError(f"query {tuple(query.shape)} in layout {layout!r} must have {heads} heads")
    return found


def _pages(x: T, name: str, heads: int, page_size: int) -> T:
    """Return keys or values as pages, [pages, page size, heads, width]."""
    if x.dim() not in (3, 4) or x.size(1) != page_size or (x.size(2) % heads if x.dim() == 3 else x.size(2) != heads):
        raise ValueError(f"{name} {tuple(x.shape)}: pages of {page_size} tokens with {heads} heads are expected")
    return x.unflatten(2, (heads, -1)) if x.dim() == 3 else x


def _of_sequence(pages: T, table: T, length: int) -> T:
    """Return a sequence's tokens, [tokens, heads, width]."""
    size = pages.size(1)
    used = table[: -(-length // size)].tolist()
    if length > table.numel() * size or any(not 0 <= page < pages.size(0) for page in used):
        raise ValueError(f"blockTable {table.tolist()} for {length} tokens: there are {pages.size(0)} blocks of {size}")
    return pages[used].flatten(0, 1)[:length]


def _token_counts(
    actual_cmp_kv_seq_len: Sequence[int],
    batch: int,
    block_table: T,
    compress_stride: int,
    compress_block_size: int,
    select_block_count: int,
    select_block_size: int,
) -> list[int]:
    """Return the number of tokens of each sequence; raise if blocks do not fit them."""
    if len(actual_cmp_kv_seq_len) != batch or block_table.size(0) != batch:
        raise ValueError(
            f"actualCmpKvSeqLen {list(actual_cmp_kv_seq_len)}, blockTable {tuple(block_table.shape)}: expected one for "
            f"each of {batch} sequences"
        )
    counts = [(length - 1) * compress_stride + compress_block_size for length in actual_cmp_kv_seq_len]
    if any(
        not _ALWAYS_CHOSEN <= select_block_count <= tokens // select_block_size or tokens / select_block_size > 4096
        for tokens in counts
    ):
        raise ValueError(
            f"selectBlockCount {select_block_count} of sequences of {counts} tokens in blocks of {select_block_size}: valid are "
            f"{_ALWAYS_CHOSEN}, which are always chosen, up to the whole blocks of each sequence, which has at most 4096"
        )
    return counts


def _check_widths(
    queries: T, values: T, num_heads: int, num_key_value_heads: int, keys: T, query: T, key: T, value: T
) -> tuple[int, int]:
    """Return the number of sequences and the width of values; raise if widths do not fit one another."""
    batch, width, v_width = queries.size(0), queries.size(2), values.size(3)
    if (
        128 % (num_heads // num_key_value_heads)
        or keys.size(3) != width
        or not v_width <= width <= 192
        or v_width > 128
    ):
        raise ValueError(
            f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}: expected heads that "
            "divide 128 for each of keys, queries and keys "
            "as wide, up to 192, and values not wider, up to 128"
        )
    return batch, v_width


@host_kernel("NsaCompressAttentionInfer", ignores=("sparse_mode", "actual_sel_kv_seq_len"))
def nsa_compress_attention_infer(
    query: T,
    key: T,
    value: T,
    block_table: T,
    attention_mask: T | None = None,
    *,
    actual_q_seq_len: Sequence[int] = (),
    actual_cmp_kv_seq_len: Sequence[int] = (),
    num_heads: int,
    num_key_value_heads: int,
    select_block_size: int,
    select_block_count: int,
    compress_block_size: int,
    compress_stride: int,
    scale_value: float,
    layout: str = "TND",
    page_block_size: int,
) -> tuple[T, T]:
    """Return the result of each sequence's only query, and the blocks of keys that it selects.

    These are the first block, the last two, and the most important ones. A mask matters for several queries alone.
    """
    del attention_mask
    check_blocks(compress_block_size, compress_stride, select_block_size)
    check_choice("layout", layout, "TND", "BSND")
    check_multiple("pageBlockSize", page_block_size, 16, 128)
    check_heads(num_heads, num_key_value_heads)
    queries = _single_queries(query, layout, num_heads)
    keys, values = (
        _pages(x, name, num_key_value_heads, page_block_size) for x, name in ((key, "key"), (value, "value"))
    )
    batch, v_width = _check_widths(queries, values, num_heads, num_key_value_heads, keys, query, key, value)
    _check_single(actual_q_seq_len, batch)
    counts = _token_counts(
        actual_cmp_kv_seq_len,
        batch,
        block_table,
        compress_stride,
        compress_block_size,
        select_block_count,
        select_block_size,
    )
    leading = query.shape[:-2]
    out = query.new_zeros(*leading, num_heads, v_width)
    chosen = query.new_zeros(*leading, num_key_value_heads, select_block_count, dtype=torch.int32)
    if query.is_meta:
        return out, chosen
    for row, (length, tokens) in enumerate(zip(actual_cmp_kv_seq_len, counts, strict=True)):
        k, v = (_of_sequence(x, block_table[row], length).float().transpose(0, 1) for x in (keys, values))
        scores = queries[row].float().unflatten(0, (num_key_value_heads, -1)) @ k.mT * scale_value
        probabilities, _, _ = softmax_with_statistics(scores)
        out[row] = (probabilities @ v).flatten(0, 1).reshape(out[row].shape).to(out.dtype)
        blocks = -(-tokens // select_block_size)
        matters = importance(probabilities, compress_block_size, compress_stride, select_block_size, blocks).sum(1)
        middle = matters[:, 1:-2].sort(stable=True, dim=-1, descending=True).indices + 1
        always = torch.tensor([0, blocks - 2, blocks - 1]).expand(num_key_value_heads, -1)
        order = torch.cat([always, middle], 1)[:, :select_block_count]
        chosen[row] = order.reshape(chosen[row].shape).to(torch.int32)
    return out, chosen


def _check_selected(
    actual_q_seq_len: Sequence[int],
    batch: int,
    actual_kv_seq_len: Sequence[int],
    block_table: T,
    select_block_count: int,
    select_block_size: int,
    topk_indices: T,
    num_key_value_heads: int,
) -> None:
    """Raise if lengths, pages or selected blocks do not fit the sequences."""
    _check_single(actual_q_seq_len, batch)
    if len(actual_kv_seq_len) != batch or block_table.size(0) != batch or batch > 3072:
        raise ValueError(
            f"actualKvSeqLen {list(actual_kv_seq_len)}, blockTable {tuple(block_table.shape)}: one for each of {batch} (at most 3072) sequences"
        )
    if not 1 <= select_block_count <= max(actual_kv_seq_len) // select_block_size:
        raise ValueError(
            f"selectBlockCount {select_block_count} of blocks of {select_block_size}: expected 1 to "
            f"{max(actual_kv_seq_len) // select_block_size}, for the longest sequence has {max(actual_kv_seq_len)} keys"
        )
    if topk_indices.shape[-2:] != (num_key_value_heads, select_block_count) or topk_indices.numel() != (
        batch * num_key_value_heads * select_block_count
    ):
        raise ValueError(
            f"topkIndices of shape {tuple(topk_indices.shape)} is not valid; expected [{num_key_value_heads}, "
            f"{select_block_count}] for each of {batch} sequences"
        )


def _check_block_sizes(select_block_size: int, page_block_size: int) -> None:
    """Raise if block or page sizes are not those of the documents."""
    check_multiple("selectBlockSize", select_block_size, 16, 128)
    check_choice("pageBlockSize", page_block_size, 64, 128)


@host_kernel("NsaSelectedAttentionInfer", ignores=("sparse_mode",))
def nsa_selected_attention_infer(
    query: T,
    key: T,
    value: T,
    topk_indices: T,
    block_table: T,
    *,
    actual_q_seq_len: Sequence[int] = (),
    actual_kv_seq_len: Sequence[int] = (),
    layout: str = "BSND",
    num_heads: int,
    num_key_value_heads: int,
    select_block_size: int,
    select_block_count: int,
    page_block_size: int,
    scale_value: float,
) -> T:
    """Compute attention of each sequence's only query to its selected blocks of paged keys; index -1 ends them."""
    _check_block_sizes(select_block_size, page_block_size)
    check_heads(num_heads, num_key_value_heads, 16)
    queries = _single_queries(query, layout, num_heads)
    keys, values = (
        _pages(x, name, num_key_value_heads, page_block_size) for x, name in ((key, "key"), (value, "value"))
    )
    batch, widths = queries.size(0), (queries.size(2), keys.size(3), values.size(3))
    if widths != (192, 192, 128):
        raise ValueError(f"heads of query, key and value are {widths} wide; 192, 192 and 128 are valid")
    _check_selected(
        actual_q_seq_len,
        batch,
        actual_kv_seq_len,
        block_table,
        select_block_count,
        select_block_size,
        topk_indices,
        num_key_value_heads,
    )
    out = query.new_zeros(batch, num_heads, 128)
    if not query.is_meta:
        rows, steps = topk_indices.reshape(batch, num_key_value_heads, -1), torch.arange(select_block_size)
        group = num_heads // num_key_value_heads
        for row, length in enumerate(actual_kv_seq_len):
            k, v = (_of_sequence(x, block_table[row], length) for x in (keys, values))
            for head in range(num_key_value_heads):
                blocks = rows[row, head].long()
                blocks = blocks[blocks >= 0]
                if not blocks.numel() or int(blocks.max()) * select_block_size >= length:
                    raise ValueError(
                        f"topkIndices {rows[row, head].tolist()}: valid are 0 to {-(-length // select_block_size) - 1}, at least one, and -1 behind"
                    )
                places = (blocks[:, None] * select_block_size + steps).flatten()
                places = places[places < length]
                at = slice(head * group, (head + 1) * group)
                scores = queries[row, at].float() @ k[places, head].float().mT * scale_value
                out[row, at] = (scores.softmax(-1) @ v[places, head].float()).to(out.dtype)
    if layout == "BSH":
        return out.reshape(batch, 1, -1)
    return out if layout == "TND" else out.unsqueeze(1)

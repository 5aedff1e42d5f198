"""Native sparse attention (https://arxiv.org/abs/2502.11089): attention to compressed keys, the blocks of keys that matter most by it, and
attention to these blocks.

Documented: https://gitcode.com/cann/ops-transformer, attention/nsa_compress_attention, nsa_compress_attention_infer,
nsa_selected_attention, nsa_selected_attention_grad and nsa_selected_attention_infer. Which compressed keys count for a block, and which blocks
inference always chooses, is as torch_npu's and CANN's own tests of these operators have it: the formula counts blocks from 1 and
compressed keys from 0, and the first block and the last two come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from ascend_graph.host.ops.attention import STATISTICS_WIDTH, softmax_with_statistics
from ascend_graph.host.ops.registry import host_kernel

T = torch.Tensor

_MOST_COMPRESSED_KEYS = 14000
#: The first block, and the two that end with the newest token.
_ALWAYS_CHOSEN = 3


def _check_blocks(block: int, stride: int, selected: int) -> None:
    sizes = {"compressBlockSize": (block, 128), "compressStride": (stride, 64), "selectBlockSize": (selected, 128)}
    for name, (size, most) in sizes.items():
        if not 16 <= size <= most or size % 16:
            raise ValueError(f"{name}={size}: valid are multiples of 16 up to {most}")
    if block < stride or selected < block or selected % stride:
        raise ValueError(
            f"compressBlockSize={block}, compressStride={stride}, selectBlockSize={selected}: the first is at least the stride, and the "
            "last at least the first and a multiple of the stride"
        )


def _check_heads(heads: int, kv_heads: int, most: int = 128) -> None:
    group = heads // kv_heads if kv_heads else 0
    if not kv_heads or heads % kv_heads or group > most:
        raise ValueError(
            f"{heads} heads of queries and {kv_heads} of keys: valid are 1 to {most} of queries for each of keys"
        )


def _spans(names: str, *ends: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """The places of each sequence's tokens in tensors in which they follow each other, by where sequences end."""
    for values in ends:
        if not values or any(a > b for a, b in zip([0, *values], values, strict=False)) or len(values) != len(ends[0]):
            shown = ", ".join(map(str, map(list, ends)))
            raise ValueError(f"{names} {shown}: each has the ends of all sequences, which do not fall")
    starts = ([0, *values[:-1]] for values in ends)
    for row in zip(*(zip(a, b, strict=True) for a, b in zip(starts, ends, strict=True)), strict=True):
        yield tuple(slice(start, end) for start, end in row)


def _importance(probabilities: T, block: int, stride: int, selected: int, blocks: int) -> T:
    """How much the blocks of keys matter: the sums of the probabilities of the compressed keys that count for each, over the last
    dimension."""
    ratio, keys = selected // stride, probabilities.size(-1)
    counts = probabilities.new_zeros(keys, blocks)
    for number in range(blocks):
        for m in range(ratio):
            for n in range(block // stride):
                place = ratio * (number + 1) - m - n
                if 0 <= place < keys:
                    counts[place, number] += 1
    return probabilities @ counts


@host_kernel("NsaCompressAttention")
def nsa_compress_attention(
    query: T,
    key: T,
    value: T,
    atten_mask: T | None = None,
    topk_mask: T | None = None,
    *,
    actual_seq_qlen: Sequence[int] = (),
    actual_cmp_seq_kvlen: Sequence[int] = (),
    actual_sel_seq_kvlen: Sequence[int] = (),
    scale_value: float = 1.0,
    head_num: int,
    input_layout: str,
    sparse_mode: int = 0,
    compress_block_size: int,
    compress_stride: int,
    select_block_size: int,
    select_block_count: int,
) -> tuple[T, T, T, T]:
    """The maxima and sums of the softmax, the result, and for each query and head of keys the blocks that matter most.

    What ``atten_mask`` hides does not count, and what ``topk_mask`` has is chosen first.
    """
    if input_layout != "TND" or sparse_mode not in (0, 1):
        raise ValueError(f"inputLayout {input_layout!r} (TND), sparseMode {sparse_mode} (0, 1): no other is supported")
    _check_blocks(compress_block_size, compress_stride, select_block_size)
    tokens, heads, width = query.shape
    kv_heads = key.size(1)
    _check_heads(heads, kv_heads, 127)
    if head_num != heads or 128 % (heads // kv_heads) or key.size(2) != width or value.size(2) > width:
        raise ValueError(
            f"headNum {head_num}, query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}: heads are headNum, those for "
            "one of keys divide 128, and values are not wider than keys"
        )
    ratio = select_block_size // compress_stride
    top, total = (query.new_zeros(tokens, heads, STATISTICS_WIDTH, dtype=torch.float32) for _ in range(2))
    out = query.new_zeros(tokens, heads, value.size(2))
    chosen = query.new_zeros(tokens, kv_heads, select_block_count, dtype=torch.int32)
    names = "actualSeqQLen, actualCmpSeqKvLen, actualSelSeqKvLen"
    ends = (actual_seq_qlen, actual_cmp_seq_kvlen, actual_sel_seq_kvlen)
    for queries, keys, blocks in _spans(names, *ends):
        lengths = [s.stop - s.start for s in (queries, keys, blocks)]
        if lengths[2] != -(-lengths[1] // ratio) or lengths[1] > _MOST_COMPRESSED_KEYS:
            raise ValueError(
                f"{names}: {lengths[1]} compressed keys (at most {_MOST_COMPRESSED_KEYS}) in {lengths[2]} blocks of {ratio}"
            )
        if not 1 <= select_block_count <= min(32, lengths[2]):
            raise ValueError(
                f"selectBlockCount={select_block_count}: valid are 1 to 32, and the {lengths[2]} blocks of a sequence"
            )
    if actual_seq_qlen[-1] != tokens or actual_cmp_seq_kvlen[-1] != key.size(0):
        raise ValueError(
            f"{names} end at {actual_seq_qlen[-1]} and {actual_cmp_seq_kvlen[-1]}; there are {tokens} queries and {key.size(0)} keys"
        )
    if query.is_meta:
        return top, total, out, chosen
    for queries, keys, blocks in _spans(names, *ends):
        q = query[queries].float().unflatten(1, (kv_heads, -1)).permute(1, 2, 0, 3)
        k, v = (x[keys].float().transpose(0, 1).unsqueeze(1) for x in (key, value))
        scores = q @ k.mT * scale_value
        if atten_mask is not None:
            scores = scores.masked_fill(_part(atten_mask, "attenMask", *scores.shape[-2:]), -torch.inf)
        probabilities, largest, sums = softmax_with_statistics(scores)
        for target, found in ((out, probabilities @ v), (top, largest), (total, sums)):
            target[queries] = found.permute(2, 0, 1, 3).flatten(1, 2).to(target.dtype)
        count = blocks.stop - blocks.start
        matters = _importance(probabilities, compress_block_size, compress_stride, select_block_size, count).sum(1)
        if topk_mask is not None:
            matters = matters.masked_fill(_part(topk_mask, "topkMask", *matters.shape[-2:]), torch.inf)
        order = matters.sort(stable=True, dim=-1, descending=True).indices[..., :select_block_count]
        chosen[queries] = order.transpose(0, 1).to(torch.int32)
    return top, total, out, chosen


def _part(mask: T, name: str, rows: int, columns: int) -> T:
    if mask.dim() != 2 or mask.size(0) < rows or mask.size(1) < columns:
        raise ValueError(f"{name} of shape {tuple(mask.shape)}: at least ({rows}, {columns}) is needed")
    return mask[:rows, :columns].bool()


def _check_single(lengths: Sequence[int], batch: int) -> None:
    if any(length != 1 for length in lengths) or len(lengths) not in (0, batch):
        raise ValueError(
            f"actualQSeqLen {list(lengths)}: on the host every sequence has one query; which keys several of them see is not documented"
        )


def _single_queries(query: T, layout: str, heads: int) -> T:
    """The only query of each sequence, [batch, heads, width]."""
    batch, size = query.size(0), query.dim()
    if layout == "TND" and size == 3:
        found = query
    elif layout in ("BSND", "BSH") and size == (4 if layout == "BSND" else 3) and query.size(1) == 1:
        found = query[:, 0] if layout == "BSND" else query.reshape(batch, heads, -1)
    else:
        raise ValueError(f"query {tuple(query.shape)} in layout {layout!r}: on the host every sequence has one query")
    if found.size(1) != heads:
        raise ValueError(f"query {tuple(query.shape)} in layout {layout!r} has not {heads} heads")
    return found


def _pages(x: T, name: str, heads: int, page_size: int) -> T:
    """Keys or values in pages, [pages, page size, heads, width]."""
    if x.dim() not in (3, 4) or x.size(1) != page_size or (x.size(2) % heads if x.dim() == 3 else x.size(2) != heads):
        raise ValueError(f"{name} {tuple(x.shape)}: pages of {page_size} tokens with {heads} heads are expected")
    return x.unflatten(2, (heads, -1)) if x.dim() == 3 else x


def _of_sequence(pages: T, table: T, length: int) -> T:
    """A sequence's tokens, [tokens, heads, width]."""
    size = pages.size(1)
    used = table[: -(-length // size)].tolist()
    if length > table.numel() * size or any(not 0 <= page < pages.size(0) for page in used):
        raise ValueError(f"blockTable {table.tolist()} for {length} tokens: there are {pages.size(0)} blocks of {size}")
    return pages[used].flatten(0, 1)[:length]


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
    """The result of the only query of each sequence, and the blocks of keys that it chooses: the first, the last two, and those that
    matter most. A mask has an effect on several queries of a sequence alone."""
    del attention_mask
    _check_blocks(compress_block_size, compress_stride, select_block_size)
    if layout not in ("TND", "BSND") or not 16 <= page_block_size <= 128 or page_block_size % 16:
        raise ValueError(f"layout {layout!r} (TND, BSND), pageBlockSize {page_block_size} (multiples of 16 up to 128)")
    _check_heads(num_heads, num_key_value_heads)
    queries = _single_queries(query, layout, num_heads)
    keys, values = (
        _pages(x, name, num_key_value_heads, page_block_size) for x, name in ((key, "key"), (value, "value"))
    )
    batch, width, v_width = queries.size(0), queries.size(2), values.size(3)
    if (
        128 % (num_heads // num_key_value_heads)
        or keys.size(3) != width
        or not v_width <= width <= 192
        or v_width > 128
    ):
        raise ValueError(
            f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}: heads for one of keys divide 128, queries and keys "
            "are as wide, up to 192, and values not wider, up to 128"
        )
    _check_single(actual_q_seq_len, batch)
    if len(actual_cmp_kv_seq_len) != batch or block_table.size(0) != batch:
        raise ValueError(
            f"actualCmpKvSeqLen {list(actual_cmp_kv_seq_len)}, blockTable {tuple(block_table.shape)}: one for each of {batch} sequences"
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
        matters = _importance(probabilities, compress_block_size, compress_stride, select_block_size, blocks).sum(1)
        middle = matters[:, 1:-2].sort(stable=True, dim=-1, descending=True).indices + 1
        always = torch.tensor([0, blocks - 2, blocks - 1]).expand(num_key_value_heads, -1)
        order = torch.cat([always, middle], 1)[:, :select_block_count]
        chosen[row] = order.reshape(chosen[row].shape).to(torch.int32)
    return out, chosen


def _check_selection(
    query: T, key: T, value: T, indices: T, heads: int, layout: str, mode: int, size: int, count: int
) -> None:
    if layout != "TND" or mode not in (0, 2):
        raise ValueError(f"inputLayout {layout!r} (TND), sparseMode {mode} (0, 2): no other is supported")
    if not 16 <= size <= 128 or size % 16 or not 1 <= count <= 128 or size * count >= 128 * 64:
        raise ValueError(
            f"selectedBlockSize {size} (multiples of 16 up to 128), selectedBlockCount {count} (1 to 128): together less than {128 * 64}"
        )
    _check_heads(query.size(1), key.size(1), 32)
    widths = (query.size(2), key.size(2), value.size(2))
    if heads != query.size(1) or heads > 128 or key.shape[:2] != value.shape[:2] or widths != (192, 192, 128):
        raise ValueError(
            f"headNum {heads}, query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}: heads are headNum, up to 128, "
            "queries and keys are 192 wide, and values 128"
        )
    if tuple(indices.shape) != (query.size(0), key.size(1), count):
        raise ValueError(f"topkIndices of shape {tuple(indices.shape)} is not {(query.size(0), key.size(1), count)}")


def _selections(
    query: T, key: T, indices: T, mask: T | None, mode: int, ends: tuple[Sequence[int], Sequence[int]], size: int
) -> Iterator[tuple[int, int, T, T]]:
    """Of each query and head of keys the tokens that it chooses, and which of them it does not see."""
    names = "actualSeqQLen, actualSeqKvLen"
    steps = torch.arange(size)
    for queries, keys in _spans(names, *ends):
        length = keys.stop - keys.start
        if length % size or length < size * indices.size(-1):
            raise ValueError(
                f"actualSeqKvLen {list(ends[1])}: a sequence has {length} keys; valid are multiples of {size} from {size * indices.size(-1)} on"
            )
        if (
            indices[queries].numel()
            and not 0 <= int(indices[queries].min()) <= int(indices[queries].max()) < length // size
        ):
            raise ValueError(f"topkIndices: valid are 0 to {length // size - 1} for a sequence of {length} keys")
        if mask is not None:
            _check_causal(mask, mode, queries.stop - queries.start, length)
        for number, token in enumerate(range(queries.start, queries.stop)):
            for head in range(key.size(1)):
                places = (indices[token, head].long()[:, None] * size + steps).flatten()
                hidden = places > number if mask is not None else torch.zeros_like(places, dtype=torch.bool)
                yield token, head, places + keys.start, hidden


def _check_causal(mask: T, mode: int, queries: int, keys: int) -> None:
    """Refuse all but what every reading of the documents takes for the same: mode 2 and a triangle that covers all scores."""
    if mode != 2:
        raise ValueError(f"attenMask with sparseMode {mode}: on the host 2, for what it hides with 0 is not documented")
    causal = torch.ones(queries, keys, dtype=torch.bool).triu(1)
    if not torch.equal(_part(mask, "attenMask", queries, keys), causal):
        raise ValueError(
            "attenMask with sparseMode 2 is not a triangle: all keys after the query's own number are hidden"
        )


def _check_ends(ends: tuple[Sequence[int], Sequence[int]], query: T, key: T) -> None:
    for name, values, x in zip(("actualSeqQLen", "actualSeqKvLen"), ends, (query, key), strict=True):
        if not values or values[-1] != x.size(0):
            raise ValueError(f"{name} {list(values)}: the ends of the sequences are needed, the last one {x.size(0)}")


@host_kernel("NsaSelectedAttention")
def nsa_selected_attention(
    query: T,
    key: T,
    value: T,
    topk_indices: T,
    atten_mask: T | None = None,
    *,
    actual_seq_qlen: Sequence[int] = (),
    actual_seq_kvlen: Sequence[int] = (),
    scale_value: float = 1.0,
    head_num: int,
    input_layout: str,
    sparse_mode: int = 0,
    selected_block_size: int,
    selected_block_count: int,
) -> tuple[T, T, T]:
    """The maxima and sums of the softmax, and the result of attention to the blocks that each query chooses."""
    _check_selection(
        query, key, value, topk_indices, head_num, input_layout, sparse_mode, selected_block_size, selected_block_count
    )
    ends = (actual_seq_qlen, actual_seq_kvlen)
    _check_ends(ends, query, key)
    top, total = (query.new_zeros(*query.shape[:2], STATISTICS_WIDTH, dtype=torch.float32) for _ in range(2))
    out = query.new_zeros(*query.shape[:2], value.size(2))
    if query.is_meta:
        return top, total, out
    group = query.size(1) // key.size(1)
    for token, head, places, hidden in _selections(
        query, key, topk_indices, atten_mask, sparse_mode, ends, selected_block_size
    ):
        at = slice(head * group, (head + 1) * group)
        scores = query[token, at].float() @ key[places, head].float().mT * scale_value
        probabilities, largest, sums = softmax_with_statistics(scores.masked_fill(hidden, -torch.inf))
        out[token, at] = (probabilities @ value[places, head].float()).to(out.dtype)
        top[token, at], total[token, at] = largest, sums
    return top, total, out


@host_kernel("NsaSelectedAttentionGrad")
def nsa_selected_attention_grad(
    query: T,
    key: T,
    value: T,
    attention_out: T,
    attention_out_grad: T,
    softmax_max: T,
    softmax_sum: T,
    topk_indices: T,
    atten_mask: T | None = None,
    *,
    actual_seq_qlen: Sequence[int] = (),
    actual_seq_kvlen: Sequence[int] = (),
    scale_value: float = 1.0,
    head_num: int,
    input_layout: str,
    sparse_mode: int = 0,
    selected_block_size: int,
    selected_block_count: int,
) -> tuple[T, T, T]:
    """The gradients of queries, keys and values, by the statistics of the softmax."""
    _check_selection(
        query, key, value, topk_indices, head_num, input_layout, sparse_mode, selected_block_size, selected_block_count
    )
    expected = (*query.shape[:2], STATISTICS_WIDTH)
    if (
        softmax_max.shape != expected
        or softmax_sum.shape != expected
        or attention_out.shape != attention_out_grad.shape
    ):
        raise ValueError(
            f"softmaxMax {tuple(softmax_max.shape)}, softmaxSum {tuple(softmax_sum.shape)}: {expected} is expected; attentionOut "
            f"{tuple(attention_out.shape)} and its gradient {tuple(attention_out_grad.shape)} are alike"
        )
    ends = (actual_seq_qlen, actual_seq_kvlen)
    _check_ends(ends, query, key)
    dq, dk, dv = (torch.zeros_like(x, dtype=torch.float32) for x in (query, key, value))
    if not query.is_meta:
        group = query.size(1) // key.size(1)
        mean = (attention_out_grad.float() * attention_out.float()).sum(-1, keepdim=True)
        for token, head, places, hidden in _selections(
            query, key, topk_indices, atten_mask, sparse_mode, ends, selected_block_size
        ):
            at = slice(head * group, (head + 1) * group)
            q, grad = query[token, at].float(), attention_out_grad[token, at].float()
            k, v = key[places, head].float(), value[places, head].float()
            weights = torch.exp(q @ k.mT * scale_value - softmax_max[token, at, :1]) / softmax_sum[token, at, :1]
            weights = weights.masked_fill(hidden, 0)
            by_scores = weights * (grad @ v.mT - mean[token, at]) * scale_value
            dq[token, at] = by_scores @ k
            dk[:, head].index_add_(0, places, by_scores.mT @ q)
            dv[:, head].index_add_(0, places, weights.mT @ grad)
    return dq.to(query.dtype), dk.to(key.dtype), dv.to(value.dtype)


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
    """Attention of the only query of each sequence to the blocks that it chooses of keys in pages; -1 behind the last."""
    if not 16 <= select_block_size <= 128 or select_block_size % 16 or page_block_size not in (64, 128):
        raise ValueError(
            f"selectBlockSize {select_block_size} (multiples of 16 up to 128), pageBlockSize {page_block_size} (64, 128)"
        )
    _check_heads(num_heads, num_key_value_heads, 16)
    queries = _single_queries(query, layout, num_heads)
    keys, values = (
        _pages(x, name, num_key_value_heads, page_block_size) for x, name in ((key, "key"), (value, "value"))
    )
    batch, widths = queries.size(0), (queries.size(2), keys.size(3), values.size(3))
    if widths != (192, 192, 128):
        raise ValueError(f"heads of query, key and value are {widths} wide; 192, 192 and 128 are valid")
    _check_single(actual_q_seq_len, batch)
    if len(actual_kv_seq_len) != batch or block_table.size(0) != batch or batch > 3072:
        raise ValueError(
            f"actualKvSeqLen {list(actual_kv_seq_len)}, blockTable {tuple(block_table.shape)}: one for each of {batch} (at most 3072) sequences"
        )
    if not 1 <= select_block_count <= max(actual_kv_seq_len) // select_block_size:
        raise ValueError(
            f"selectBlockCount {select_block_count} of blocks of {select_block_size}: the longest sequence has {max(actual_kv_seq_len)} keys"
        )
    if topk_indices.shape[-2:] != (num_key_value_heads, select_block_count) or topk_indices.numel() != (
        batch * num_key_value_heads * select_block_count
    ):
        raise ValueError(
            f"topkIndices of shape {tuple(topk_indices.shape)} has not ({num_key_value_heads}, {select_block_count}) for each of {batch}"
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

"""Native sparse attention (https://arxiv.org/abs/2502.11089): to compressed keys, and to the blocks they rank highest.

Documented: https://gitcode.com/cann/ops-transformer, attention/nsa_compress_attention, nsa_compress_attention_infer,
nsa_selected_attention, nsa_selected_attention_grad and nsa_selected_attention_infer. Two details follow torch_npu's and
CANN's own tests of these operators: which compressed keys count for a block, and which blocks inference always selects.
The formula counts blocks from 1 and compressed keys from 0; the first block and the last two come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from ascend_graph.host.kernels.attention.attention import STATISTICS_WIDTH, softmax_with_statistics
from ascend_graph.host.kernels.checks import check_between, check_choice, check_multiple, check_shape
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

_MOST_COMPRESSED_KEYS = 14000


def check_blocks(block: int, stride: int, selected: int) -> None:
    sizes = {"compressBlockSize": (block, 128), "compressStride": (stride, 64), "selectBlockSize": (selected, 128)}
    for name, (size, most) in sizes.items():
        if not 16 <= size <= most or size % 16:
            raise ValueError(f"{name}={size}: valid are multiples of 16 up to {most}")
    if block < stride or selected < block or selected % stride:
        raise ValueError(
            f"compressBlockSize={block}, compressStride={stride}, selectBlockSize={selected}: the first is at least the stride, and the "
            "last at least the first and a multiple of the stride"
        )


def check_heads(heads: int, kv_heads: int, most: int = 128) -> None:
    group = heads // kv_heads if kv_heads else 0
    if not kv_heads or heads % kv_heads or group > most:
        raise ValueError(
            f"{heads} heads of queries and {kv_heads} of keys: valid are 1 to {most} of queries for each of keys"
        )


def _spans(names: str, *ends: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Yield the slices of each sequence's tokens in packed tensors, given the ends of sequences."""
    for values in ends:
        if not values or any(a > b for a, b in zip([0, *values], values, strict=False)) or len(values) != len(ends[0]):
            shown = ", ".join(map(str, map(list, ends)))
            raise ValueError(f"{names} {shown}: expected the ends of all sequences in each, in ascending order")
    starts = ([0, *values[:-1]] for values in ends)
    for row in zip(*(zip(a, b, strict=True) for a, b in zip(starts, ends, strict=True)), strict=True):
        yield tuple(slice(start, end) for start, end in row)


def importance(probabilities: T, block: int, stride: int, selected: int, blocks: int) -> T:
    """Sum the probabilities of the compressed keys of each block over the last dimension."""
    ratio, keys = selected // stride, probabilities.size(-1)
    counts = probabilities.new_zeros(keys, blocks)
    for number in range(blocks):
        for m in range(ratio):
            for n in range(block // stride):
                place = ratio * (number + 1) - m - n
                if 0 <= place < keys:
                    counts[place, number] += 1
    return probabilities @ counts


def _check_spans(
    names: str,
    ends: tuple[Sequence[int], ...],
    ratio: int,
    select_block_count: int,
    actual_seq_qlen: Sequence[int],
    tokens: int,
    actual_cmp_seq_kvlen: Sequence[int],
    key: T,
) -> None:
    """Raise if sequences of queries, compressed keys and blocks do not fit one another."""
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
    """Return softmax maxima and sums, the result, and the most important blocks for each query and head of keys.

    ``atten_mask`` hides keys; the blocks in ``topk_mask`` are selected first.
    """
    check_choice("inputLayout", input_layout, "TND")
    check_choice("sparseMode", sparse_mode, 0, 1)
    check_blocks(compress_block_size, compress_stride, select_block_size)
    tokens, heads, width = query.shape
    kv_heads = key.size(1)
    check_heads(heads, kv_heads, 127)
    if head_num != heads or 128 % (heads // kv_heads) or key.size(2) != width or value.size(2) > width:
        raise ValueError(
            f"headNum {head_num}, query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}: "
            "expected headNum heads, a number of "
            "them for each of keys that divides 128, and values not wider than keys"
        )
    ratio = select_block_size // compress_stride
    top, total = (query.new_zeros(tokens, heads, STATISTICS_WIDTH, dtype=torch.float32) for _ in range(2))
    out = query.new_zeros(tokens, heads, value.size(2))
    chosen = query.new_zeros(tokens, kv_heads, select_block_count, dtype=torch.int32)
    names = "actualSeqQLen, actualCmpSeqKvLen, actualSelSeqKvLen"
    ends = (actual_seq_qlen, actual_cmp_seq_kvlen, actual_sel_seq_kvlen)
    _check_spans(names, ends, ratio, select_block_count, actual_seq_qlen, tokens, actual_cmp_seq_kvlen, key)
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
        matters = importance(probabilities, compress_block_size, compress_stride, select_block_size, count).sum(1)
        if topk_mask is not None:
            matters = matters.masked_fill(_part(topk_mask, "topkMask", *matters.shape[-2:]), torch.inf)
        order = matters.sort(stable=True, dim=-1, descending=True).indices[..., :select_block_count]
        chosen[queries] = order.transpose(0, 1).to(torch.int32)
    return top, total, out, chosen


def _part(mask: T, name: str, rows: int, columns: int) -> T:
    if mask.dim() != 2 or mask.size(0) < rows or mask.size(1) < columns:
        raise ValueError(f"{name} of shape {tuple(mask.shape)}: at least ({rows}, {columns}) is needed")
    return mask[:rows, :columns].bool()


def _check_selection(
    query: T, key: T, value: T, indices: T, heads: int, layout: str, mode: int, size: int, count: int
) -> None:
    check_choice("inputLayout", layout, "TND")
    check_choice("sparseMode", mode, 0, 2)
    check_multiple("selectedBlockSize", size, 16, 128)
    check_between("selectedBlockCount", count, 1, min(128, (128 * 64 - 1) // size), f"with blocks of {size}")
    check_heads(query.size(1), key.size(1), 32)
    widths = (query.size(2), key.size(2), value.size(2))
    if heads != query.size(1) or heads > 128 or key.shape[:2] != value.shape[:2] or widths != (192, 192, 128):
        raise ValueError(
            f"headNum {heads}, query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}: "
            "expected headNum heads, up to 128, "
            "queries and keys 192 wide, and values 128"
        )
    check_shape("topkIndices", indices, (query.size(0), key.size(1), count))


def _selections(
    query: T, key: T, indices: T, mask: T | None, mode: int, ends: tuple[Sequence[int], Sequence[int]], size: int
) -> Iterator[tuple[int, int, T, T]]:
    """Yield for each query and head of keys the selected tokens, and a mask of those it does not see."""
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
    """Refuse masks that readings of the documents treat differently.

    All readings agree on mode 2 with a triangle that covers all scores.
    """
    if mode != 2:
        raise ValueError(
            f"attenMask with sparseMode {mode} is not supported on the host; expected 2, for what 0 hides is not "
            "documented"
        )
    causal = torch.ones(queries, keys, dtype=torch.bool).triu(1)
    if not torch.equal(_part(mask, "attenMask", queries, keys), causal):
        raise ValueError(
            "attenMask with sparseMode 2 must be a triangle: true for all keys after the number of the query"
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
    """Return softmax maxima and sums, and the result of attention to each query's selected blocks."""
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
    """Return the gradients of queries, keys and values, by the statistics of the softmax."""
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

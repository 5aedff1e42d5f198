"""Attention to blocks of keys, selected by a mask for each block of queries and each head.

Documented: https://gitcode.com/cann/ops-transformer, attention/block_sparse_attention and block_sparse_attention_grad.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from ascend_graph.environment import processor
from ascend_graph.host.kernels.checks import check_choice, check_shape, refuse_given
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

_UNBOUNDED = 2147483647
_PRECISIONS = {"Ascend950PR_9589": (4,)}


@dataclass(frozen=True, slots=True)
class _Shape:
    """Layout of queries and keys, and the lengths of the sequences."""

    layout: str
    queries: list[int]
    keys: list[int]
    block: tuple[int, int]

    @classmethod
    def of(
        cls,
        query: T,
        key: T,
        value: T,
        mask: T | None,
        layouts: tuple[str, str],
        block: Sequence[int],
        lengths: tuple[Sequence[int], Sequence[int]],
    ) -> _Shape:
        """Build the layout after checking it against the documents.

        Raises:
            ValueError: with the values given and the valid ones.
        """
        layout = layouts[0]
        if layouts[1] != layout or layout not in ("TND", "BNSD", "BSND") or query.dim() != len(layout):
            raise ValueError(
                f"query {tuple(query.shape)}, qInputLayout and kvInputLayout {layouts}: expected TND, BNSD or BSND, "
                "the same for both, and its dimensions"
            )
        block = list(block) or [128, 128]
        if len(block) < 2 or block[0] <= 0 or block[1] <= 0 or block[1] % 128:
            raise ValueError(f"blockShape {block}: expected two sizes above 0, the second a multiple of 128")
        heads = query.size(layout.index("N"))
        if key.shape != value.shape or key.dim() != query.dim() or key.size(-1) != query.size(-1):
            raise ValueError(
                f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}: expected key and "
                "value of one shape, with the dimensions and the head size of query"
            )
        if key.size(layout.index("N")) != heads:
            raise ValueError(
                f"{heads} heads of queries and {key.size(layout.index('N'))} of keys; expected as many on the host, "
                "for it is not documented which share one"
            )
        if (not lengths[0]) != (not lengths[1]) or (layout == "TND" and not lengths[0]):
            raise ValueError(
                f"actualSeqLengths {list(lengths[0])}, actualSeqLengthsKv {list(lengths[1])}: give both or neither, "
                "and both with TND"
            )
        if layout == "TND":
            found = [list(part) for part in lengths]
            if [sum(part) for part in found] != [query.size(0), key.size(0)] or len(found[0]) != len(found[1]):
                raise ValueError(
                    f"actualSeqLengths {found[0]}, actualSeqLengthsKv {found[1]}: there are {query.size(0)} queries and {key.size(0)} keys"
                )
        else:
            most = [x.size(layout.index("S")) for x in (query, key)]
            found = [list(part) or [size] * query.size(0) for part, size in zip(lengths, most, strict=True)]
            for part, size in zip(found, most, strict=True):
                if len(part) != query.size(0) or not all(0 <= n <= size for n in part):
                    raise ValueError(f"lengths of sequences {part}: {query.size(0)} of at most {size}")
            if key.size(0) != query.size(0):
                raise ValueError(f"query {tuple(query.shape)}, key {tuple(key.shape)}: there is one batch")
        longest = [max(part, default=0) for part in found] if layout == "TND" else most
        expected = (len(found[0]), heads, *(-(-size // part) for size, part in zip(longest, block, strict=False)))
        check_shape("blockSparseMask", mask, expected)
        return cls(layout, found[0], found[1], (block[0], block[1]))

    def sequences(self) -> Iterator[tuple[int, slice, slice]]:
        """Yield the number of each sequence, and the slices of its queries and keys."""
        q_start = k_start = 0
        for number, (queries, keys) in enumerate(zip(self.queries, self.keys, strict=True)):
            yield number, slice(q_start, q_start + queries), slice(k_start, k_start + keys)
            if self.layout == "TND":
                q_start, k_start = q_start + queries, k_start + keys

    def part(self, x: T, number: int, place: slice) -> T:
        """Return a sequence's part of a tensor, [heads, tokens, …], as a view."""
        if self.layout == "TND":
            return x[place].transpose(0, 1)
        return x[number, :, place] if self.layout == "BNSD" else x[number, place].transpose(0, 1)

    def hidden(self, mask: T, number: int, queries: int, keys: int) -> T:
        """Return the mask of scores that do not count, [heads, queries, keys]."""
        rows, columns = self.block
        named = mask[number].bool().repeat_interleave(rows, 1)[:, :queries].repeat_interleave(columns, 2)[..., :keys]
        if not bool(named.any(-1).all()):
            raise ValueError("blockSparseMask has a block of queries without keys; expected a block of keys for each")
        return ~named


@host_kernel("BlockSparseAttention")
def block_sparse_attention(
    query: T,
    key: T,
    value: T,
    block_sparse_mask: T | None = None,
    atten_mask: T | None = None,
    block_table: T | None = None,
    *,
    block_shape: Sequence[int] = (),
    actual_seq_lengths: Sequence[int] = (),
    actual_seq_lengths_kv: Sequence[int] = (),
    q_input_layout: str = "TND",
    kv_input_layout: str = "TND",
    num_key_value_heads: int = 1,
    mask_type: int = 0,
    scale_value: float = 0.0,
    inner_precise: int = 0,
    block_size: int = 0,
    pre_tokens: int = _UNBOUNDED,
    next_tokens: int = _UNBOUNDED,
    softmax_lse_flag: int = 0,
) -> tuple[T, T]:
    """Return the result, and the logarithm of each row's sum if requested."""
    refuse_given(
        "reserved by the documents",
        attenMask=atten_mask is not None, blockTable=block_table is not None, maskType=mask_type, blockSize=block_size,
        preTokens=pre_tokens != _UNBOUNDED, nextTokens=next_tokens != _UNBOUNDED,
    )  # fmt: skip
    valid = _PRECISIONS.get(processor(os.environ), (0, 1) if query.dtype is torch.float16 else (0,))
    if inner_precise not in valid or softmax_lse_flag not in (0, 1) or query.size(-1) not in (64, 128):
        raise ValueError(
            f"innerPrecise {inner_precise} (of {query.dtype} on this SoC {valid}), softmaxLseFlag {softmax_lse_flag} (0, 1), query "
            f"{tuple(query.shape)} (64 or 128 wide): no other is supported"
        )
    shape = _Shape.of(
        query, key, value, block_sparse_mask, (q_input_layout, kv_input_layout), block_shape,
        (actual_seq_lengths, actual_seq_lengths_kv),
    )  # fmt: skip
    _check_key_heads(key, shape, num_key_value_heads)
    out = torch.zeros_like(query)
    lse = query.new_zeros((*query.shape[:-1], 1) if softmax_lse_flag else (0,), dtype=torch.float32)
    if query.is_meta or block_sparse_mask is None:
        return out, lse
    for number, queries, keys in shape.sequences():
        q, k, v = (shape.part(x, number, at).float() for x, at in ((query, queries), (key, keys), (value, keys)))
        scores = (q @ k.mT * scale_value).masked_fill(
            shape.hidden(block_sparse_mask, number, q.size(1), k.size(1)), -torch.inf
        )
        shape.part(out, number, queries).copy_(scores.softmax(-1) @ v)
        if softmax_lse_flag:
            shape.part(lse, number, queries).copy_(scores.logsumexp(-1, keepdim=True))
    return out, lse


def _check_key_heads(key: T, shape: _Shape, heads: int) -> None:
    check_choice("numKeyValueHeads", heads, key.size(shape.layout.index("N")))


@host_kernel("BlockSparseAttentionGrad")
def block_sparse_attention_grad(
    dout: T,
    query: T,
    key: T,
    value: T,
    attention_out: T,
    softmax_lse: T,
    block_sparse_mask: T | None = None,
    atten_mask: T | None = None,
    *,
    block_shape: Sequence[int] = (),
    actual_seq_lengths: Sequence[int] = (),
    actual_seq_lengths_kv: Sequence[int] = (),
    q_input_layout: str = "TND",
    kv_input_layout: str = "TND",
    num_key_value_heads: int = 1,
    mask_type: int = 0,
    scale_value: float = 0.0,
    pre_tokens: int = _UNBOUNDED,
    next_tokens: int = _UNBOUNDED,
) -> tuple[T, T, T]:
    """Return the gradients of queries, keys and values, from the logarithms of the rows' sums."""
    refuse_given(
        "reserved by the documents",
        attenMask=atten_mask is not None, maskType=mask_type, preTokens=pre_tokens != _UNBOUNDED,
        nextTokens=next_tokens != _UNBOUNDED,
    )  # fmt: skip
    if q_input_layout == "BSND" or query.size(-1) != 128:
        raise ValueError(
            f"qInputLayout {q_input_layout!r} (TND, BNSD), query {tuple(query.shape)} (128 wide): no other is supported"
        )
    shape = _Shape.of(
        query, key, value, block_sparse_mask, (q_input_layout, kv_input_layout), block_shape,
        (actual_seq_lengths, actual_seq_lengths_kv),
    )  # fmt: skip
    _check_key_heads(key, shape, num_key_value_heads)
    if dout.shape != query.shape or attention_out.shape != query.shape or softmax_lse.shape != (*query.shape[:-1], 1):
        raise ValueError(
            f"dout {tuple(dout.shape)}, attentionOut {tuple(attention_out.shape)}, softmaxLse "
            f"{tuple(softmax_lse.shape)}: expected the shape of query, with a last size of 1 for softmaxLse, "
            f"{tuple(query.shape)}"
        )
    dq, dk, dv = (torch.zeros_like(x) for x in (query, key, value))
    if query.is_meta or block_sparse_mask is None:
        return dq, dk, dv
    for number, queries, keys in shape.sequences():
        q, grad, out, lse = (shape.part(x, number, queries).float() for x in (query, dout, attention_out, softmax_lse))
        k, v = (shape.part(x, number, keys).float() for x in (key, value))
        hidden = shape.hidden(block_sparse_mask, number, q.size(1), k.size(1))
        weights = (q @ k.mT * scale_value - lse).exp().masked_fill(hidden, 0)
        by_scores = weights * (grad @ v.mT - (grad * out).sum(-1, keepdim=True)) * scale_value
        shape.part(dq, number, queries).copy_(by_scores @ k)
        shape.part(dk, number, keys).copy_(by_scores.mT @ q)
        shape.part(dv, number, keys).copy_(weights.mT @ grad)
    return dq, dk, dv

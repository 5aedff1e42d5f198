"""Gradients and losses of the lightning indexer.

Documented: https://gitcode.com/cann/ops-transformer, attention/lightning_indexer_grad, sparse_lightning_indexer_grad_kl_loss,
dense_lightning_indexer_softmax_lse and dense_lightning_indexer_grad_kl_loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from ascend_graph.host.kernels.checks import check_choice, check_count, check_multiple, check_shape, listed
from ascend_graph.host.kernels.registry import host_kernel
from ascend_graph.host.kernels.sparse_attention.flash import EVERYTHING, check_tokens, spans
from ascend_graph.host.kernels.sparse_attention.indexer import F32

T = torch.Tensor

_HEADS = (32, 64, 128)


_INDEX_HEADS = (8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class _Sequence:
    """Location of a sequence's queries and keys: in a row of all tensors, or in the whole tensors."""

    row: int | None
    queries: slice
    keys: slice

    def of_queries(self, x: T) -> T:
        return x[self.queries] if self.row is None else x[self.row, self.queries]

    def of_keys(self, x: T) -> T:
        return x[self.keys] if self.row is None else x[self.row, self.keys]

    def statistics(self, x: T) -> T:
        """Return a sequence's softmax statistics, [heads, queries, …].

        ``x`` is [heads, tokens, …] or [batch, heads, tokens, …].
        """
        return x[:, self.queries] if self.row is None else x[self.row, :, self.queries]

    def hidden(self, device: torch.device) -> T:
        """Return the mask of keys that a query does not see, [queries, keys]; the last query sees the last key."""
        queries, keys = (s.stop - s.start for s in (self.queries, self.keys))
        return torch.ones(queries, keys, dtype=torch.bool, device=device).triu(1 + keys - queries)


def _sequences(
    query: T, key: T, layout: str, lengths: tuple[T | None, T | None], *, longer: bool
) -> Iterator[_Sequence]:
    """Yield all sequences; with ``longer`` refuse one with fewer keys than queries."""
    queries, keys = (spans(x, part, layout) for x, part in zip((query, key), lengths, strict=True))
    check_count("the lengths of keys", keys, len(queries), "sequence of queries")
    for (row, start, end), (_, k_start, k_end) in zip(queries, keys, strict=True):
        if longer and k_end - k_start < end - start:
            raise ValueError(
                f"a sequence of {end - start} queries and {k_end - k_start} keys: there are at least as many keys"
            )
        yield _Sequence(row, slice(start, end), slice(k_start, k_end))


def _check_layout(layout: str, mode: int, modes: tuple[int, ...], *tensors: T) -> None:
    check_choice("layout", layout, "BSND", "TND")
    check_choice("sparseMode", mode, *modes)
    dims = len(layout)
    if any(x.dim() != dims for x in tensors):
        raise ValueError(
            f"tensors of shapes {[tuple(x.shape) for x in tensors]}: expected {dims} dimensions, as layout {layout} has"
        )


def _check_index(query: T, key: T, weights: T, heads: tuple[int, ...] | range) -> None:
    shown = heads if isinstance(heads, tuple) else f"{heads[0]} to {heads[-1]}"
    if (
        query.size(-2) not in heads
        or query.size(-1) != 128
        or key.shape[-2:] != (1, 128)
        or weights.shape != query.shape[:-1]
    ):
        raise ValueError(
            f"queries {tuple(query.shape)} (heads: {shown}), keys {tuple(key.shape)} (one head), weights "
            f"{tuple(weights.shape)}: expected 128 columns, and a "
            "weight for each query and head"
        )
    if key.dtype != query.dtype or weights.dtype not in (query.dtype, F32):
        raise ValueError(
            f"queries {query.dtype}, keys {key.dtype}, weights {weights.dtype}: expected one dtype for all, or float32 "
            "weights"
        )


@host_kernel("LightningIndexerGrad", ignores=("deterministic",))
def lightning_indexer_grad(
    query: T,
    key: T,
    dy: T,
    sparse_indices: T,
    weights: T,
    actual_seq_lengths_query: T | None = None,
    actual_seq_lengths_key: T | None = None,
    *,
    layout: str = "BSND",
    sparse_mode: int = 3,
    head_num: int = 0,
    pre_tokens: int = EVERYTHING,
    next_tokens: int = EVERYTHING,
) -> tuple[T, T, T]:
    """Return the gradients of queries, keys and weights, from those of the selected keys' scores."""
    check_tokens(pre_tokens, next_tokens)
    check_choice("headNum", head_num, 0, query.size(-2))  # torch_npu says 0
    _check_layout(layout, sparse_mode, (0, 3), query, key)
    _check_index(query, key, weights, range(1, 65))
    if weights.dtype != query.dtype or dy.dtype != query.dtype:
        raise ValueError(f"weights {weights.dtype} and dy {dy.dtype} are not of the queries' dtype, {query.dtype}")
    chosen = (*query.shape[:-2], sparse_indices.size(-1))
    if chosen[-1] != 2048 or any(tuple(x.shape) not in (chosen, (*chosen[:-1], 1, 2048)) for x in (dy, sparse_indices)):
        raise ValueError(
            f"sparseIndices {tuple(sparse_indices.shape)}, dy {tuple(dy.shape)}: expected 2048 for each of "
            f"{tuple(query.shape[:-2])}"
        )
    dq, dk, dw = (torch.zeros_like(x, dtype=F32) for x in (query, key, weights))
    if not query.is_meta:
        dy, sparse_indices = (x.reshape(chosen) for x in (dy, sparse_indices))
        lengths = (actual_seq_lengths_query, actual_seq_lengths_key)
        for part in _sequences(query, key, layout, lengths, longer=False):
            keys = part.of_keys(key)[:, 0].float()
            if keys.size(0) < chosen[-1]:
                raise ValueError(f"a sequence of {keys.size(0)} keys: there are at least the 2048 that are chosen")
            for n, (q, w, rows, grad) in enumerate(
                zip(*map(part.of_queries, (query, weights, sparse_indices, dy)), strict=True)
            ):
                there = rows >= 0
                _check_keys(rows[there], keys.size(0))
                by_query, by_weight = _by_indexer(
                    q.float(), keys, w.float(), rows[there].long(), grad[there].float(), part.of_keys(dk)[:, 0]
                )
                part.of_queries(dq)[n], part.of_queries(dw)[n] = by_query, by_weight
    return dq.to(query.dtype), dk.to(key.dtype), dw.to(weights.dtype)


def _check_keys(indices: T, keys: int) -> None:
    if indices.numel() and int(indices.max()) >= keys:
        raise ValueError(f"sparseIndices has {int(indices.max())}; valid are 0 to {keys - 1}, and -1")


def _by_indexer(q: T, keys: T, w: T, chosen: T, grad: T, by_keys: T) -> tuple[T, T]:
    """Return the gradients of a query and its weights, from those of its scores.

    The gradient of the keys is added to ``by_keys``.
    """
    k = keys[chosen]
    products = q @ k.t()
    by_products = grad * w.unsqueeze(-1) * (products > 0)
    by_keys.index_add_(0, chosen, by_products.t() @ q)
    return by_products @ k, products.relu() @ grad


@host_kernel("DenseLightningIndexerSoftmaxLse")
def dense_lightning_indexer_softmax_lse(
    query_index: T,
    key_index: T,
    weight: T,
    actual_seq_lengths_query: T | None = None,
    actual_seq_lengths_key: T | None = None,
    *,
    layout: str = "TND",
    sparse_mode: int = 3,
    pre_tokens: int = EVERYTHING,
    next_tokens: int = EVERYTHING,
) -> tuple[T, T]:
    """Return the maxima and sums of the softmax of the index scores, over the keys that a query sees."""
    _check_layout(layout, sparse_mode, (3,), query_index, key_index)
    check_tokens(pre_tokens, next_tokens)
    _check_index(query_index, key_index, weight, _INDEX_HEADS)
    shape = (1, query_index.size(0)) if layout == "TND" else (query_index.size(0), 1, query_index.size(1))
    top, total = (query_index.new_zeros(shape, dtype=F32) for _ in range(2))
    if not query_index.is_meta:
        lengths = (actual_seq_lengths_query, actual_seq_lengths_key)
        for part in _sequences(query_index, key_index, layout, lengths, longer=True):
            sums, _ = _indexed(part, query_index, key_index, weight)
            sums = sums.masked_fill(part.hidden(sums.device), -torch.inf)
            if sums.numel():
                part.statistics(top)[0] = sums.amax(-1)
                part.statistics(total)[0] = (sums - sums.amax(-1, keepdim=True)).exp().sum(-1)
    return top, total


def _indexed(part: _Sequence, query: T, key: T, weights: T) -> tuple[T, T]:
    """Return the index scores, [queries, keys], and the products they sum, [queries, heads, keys]."""
    products = torch.einsum("snd,kd->snk", part.of_queries(query).float(), part.of_keys(key)[:, 0].float())
    return (products.relu() * part.of_queries(weights).float().unsqueeze(-1)).sum(1), products


def _divergence(target: T, log_target: T, log_found: T) -> T:
    """Return the sum of target * log(target / found); zeros of the target add nothing."""
    return torch.where(target > 0, target * (log_target - log_found), 0).sum()


@host_kernel("DenseLightningIndexerGradKLLoss")
def dense_lightning_indexer_grad_kl_loss(
    query: T,
    key: T,
    query_index: T,
    key_index: T,
    weight: T,
    softmax_max: T,
    softmax_sum: T,
    softmax_max_index: T,
    softmax_sum_index: T,
    query_rope: T | None = None,
    key_rope: T | None = None,
    actual_seq_lengths_query: T | None = None,
    actual_seq_lengths_key: T | None = None,
    *,
    scale_value: float,
    layout: str = "TND",
    sparse_mode: int = 3,
    pre_tokens: int = EVERYTHING,
    next_tokens: int = EVERYTHING,
) -> tuple[T, T, T, T]:
    """Return the gradients of the indexer's queries, keys and weights, and the loss.

    The loss is the divergence of the softmax of the index scores from the mean over an attention's heads. It covers all
    keys that a query sees.
    """
    check_tokens(pre_tokens, next_tokens)
    _check_layout(layout, sparse_mode, (3,), query, key, query_index, key_index)
    _check_index(query_index, key_index, weight, _INDEX_HEADS)
    _check_attention(query, key, query_rope, key_rope, 128, query.size(-2), query_index.dtype)
    _check_statistics(query, layout, query.size(-2), 1, softmax_max=softmax_max, softmax_sum=softmax_sum)
    _check_statistics(query, layout, 1, None, softmax_max_index=softmax_max_index, softmax_sum_index=softmax_sum_index)
    dq, dk, dw = (torch.zeros_like(x, dtype=F32) for x in (query_index, key_index, weight))
    loss = query.new_zeros(1, dtype=F32)
    if not query.is_meta:
        lengths = (actual_seq_lengths_query, actual_seq_lengths_key)
        for part in _sequences(query, key, layout, lengths, longer=True):
            hidden = part.hidden(query.device)
            q, k = (
                _joined(x, rope, of)
                for x, rope, of in ((query, query_rope, part.of_queries), (key, key_rope, part.of_keys))
            )
            scores = torch.einsum("snd,knd->nsk", q, k) * scale_value
            shares = (scores - part.statistics(softmax_max)).exp() / part.statistics(softmax_sum)
            target = shares.mean(0).masked_fill(hidden, 0)
            sums, products = _indexed(part, query_index, key_index, weight)
            largest, below = (part.statistics(x)[0].unsqueeze(-1) for x in (softmax_max_index, softmax_sum_index))
            log_found = sums - largest - below.log()
            found = log_found.exp().masked_fill(hidden, 0)
            loss += _divergence(target, target.log(), log_found)
            by_sums = (found - target).unsqueeze(1)
            by_products = by_sums * part.of_queries(weight).float().unsqueeze(-1) * (products > 0)
            known, asked = part.of_keys(key_index)[:, 0].float(), part.of_queries(query_index).float()
            part.of_queries(dw).copy_((by_sums * products.relu()).sum(-1))
            part.of_queries(dq).copy_(by_products @ known)
            part.of_keys(dk)[:, 0] += torch.einsum("snk,snd->kd", by_products, asked)
    return dq.to(query_index.dtype), dk.to(key_index.dtype), dw.to(weight.dtype), loss


def _joined(x: T, rope: T | None, of: Any) -> T:
    found: T = of(x).float()
    return found if rope is None else torch.cat([found, of(rope).float()], -1)


def _check_attention(
    query: T, key: T, query_rope: T | None, key_rope: T | None, width: int, kv_heads: int, dtype: torch.dtype
) -> None:
    if query.size(-2) not in _HEADS or query.size(-1) != width or key.shape[-2:] != (kv_heads, width):
        raise ValueError(
            f"query {tuple(query.shape)}, key {tuple(key.shape)}: expected {listed(_HEADS)} heads of queries, "
            f"{kv_heads} of keys, all {width} wide"
        )
    if query.dtype != dtype or key.dtype != dtype:
        raise ValueError(f"query {query.dtype}, key {key.dtype}, queryIndex {dtype}: expected one dtype for all")
    if (query_rope is None) != (key_rope is None):
        raise ValueError("queryRope and keyRope go together: give both or neither")
    for name, x, rope in (("queryRope", query, query_rope), ("keyRope", key, key_rope)):
        if rope is not None:
            check_shape(name, rope, (*x.shape[:-1], 64))


def _check_statistics(query: T, layout: str, heads: int, group: int | None, **tensors: T) -> None:
    tokens = (heads, query.size(0)) if layout == "TND" else (query.size(0), heads, query.size(1))
    expected = tokens if group is None else (*tokens, group)
    for name, x in tensors.items():
        check_shape(name, x, expected)


@host_kernel("SparseLightningIndexerGradKLLoss", ignores=("deterministic",))
def sparse_lightning_indexer_grad_kl_loss(
    query: T,
    key: T,
    query_index: T,
    key_index: T,
    weight: T,
    sparse_indices: T,
    softmax_max: T,
    softmax_sum: T,
    query_rope: T | None = None,
    key_rope: T | None = None,
    actual_seq_lengths_query: T | None = None,
    actual_seq_lengths_key: T | None = None,
    *,
    scale_value: float,
    layout: str = "BSND",
    sparse_mode: int = 3,
    pre_tokens: int = EVERYTHING,
    next_tokens: int = EVERYTHING,
) -> tuple[T, T, T, T]:
    """Return gradients and loss as the dense version, over the keys in ``sparse_indices`` of each query.

    Index -1 selects no key.
    """
    check_tokens(pre_tokens, next_tokens)
    _check_layout(layout, sparse_mode, (3,), query, key, query_index, key_index)
    _check_index(query_index, key_index, weight, _INDEX_HEADS)
    _check_attention(query, key, query_rope, key_rope, 512, 1, query_index.dtype)
    _check_statistics(query, layout, 1, query.size(-2), softmax_max=softmax_max, softmax_sum=softmax_sum)
    count = sparse_indices.size(-1)
    check_multiple("the last dimension of sparseIndices", count, 1024, 8192)
    check_shape("sparseIndices", sparse_indices, (*query.shape[:-2], 1, count))
    dq, dk, dw = (torch.zeros_like(x, dtype=F32) for x in (query_index, key_index, weight))
    loss = query.new_zeros(1, dtype=F32)
    if not query.is_meta:
        lengths = (actual_seq_lengths_query, actual_seq_lengths_key)
        for part in _sequences(query, key, layout, lengths, longer=True):
            q, k = (
                _joined(x, rope, of)
                for x, rope, of in ((query, query_rope, part.of_queries), (key, key_rope, part.of_keys))
            )
            known, hidden = part.of_keys(key_index)[:, 0].float(), part.hidden(query.device)
            for n, rows in enumerate(part.of_queries(sparse_indices)[:, 0]):
                chosen = rows[rows >= 0].long()
                _check_keys(chosen, k.size(0))
                chosen = chosen[~hidden[n, chosen]]
                if not chosen.numel():
                    continue
                scores = q[n] @ k[chosen, 0].t() * scale_value
                largest, below = (part.statistics(x)[0, n].unsqueeze(-1) for x in (softmax_max, softmax_sum))
                target = ((scores - largest).exp() / below).mean(0)
                asked, weights = part.of_queries(query_index)[n].float(), part.of_queries(weight)[n].float()
                log_found = (weights @ (asked @ known[chosen].t()).relu()).log_softmax(-1)
                loss += _divergence(target, target.log(), log_found)
                part.of_queries(dq)[n], part.of_queries(dw)[n] = _by_indexer(
                    asked, known, weights, chosen, log_found.exp() - target, part.of_keys(dk)[:, 0]
                )
    return dq.to(query_index.dtype), dk.to(key_index.dtype), dw.to(weight.dtype), loss

"""Permutation of tokens to their experts and back."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.checks import check_choice, check_range
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


def inverse_permutation(order: T) -> T:
    places = torch.arange(order.numel(), dtype=order.dtype, device=order.device)
    return torch.empty_like(order).scatter_(0, order.long(), places)


@host_kernel("MoeTokenPermute")
def moe_token_permute(tokens: T, indices: T, *, num_out_tokens: int = 0, padded_mode: bool = False) -> tuple[T, T]:
    """Repeat each token for each of its experts, in the experts' order; return the position of each (token, choice)."""
    _not_padded(padded_mode)
    k = indices.size(1) if indices.dim() == 2 else 1
    order = indices.reshape(-1).argsort(stable=True)
    count = order.numel() if num_out_tokens <= 0 else min(num_out_tokens, order.numel())
    return tokens[order[:count] // k], inverse_permutation(order).to(torch.int32)


@host_kernel("MoeTokenPermuteGrad")
def moe_token_permute_grad(dy: T, sorted_indices: T, *, num_topk: int, padded_mode: bool = False) -> T:
    _not_padded(padded_mode)
    rows = _rows_of(dy, sorted_indices)
    return rows.float().reshape(-1, num_topk, rows.size(-1)).sum(1).to(dy.dtype)


@host_kernel("MoeTokenUnpermute", ignores=("restore_shape",))
def moe_token_unpermute(
    permuted_tokens: T, sorted_indices: T, probs: T | None = None, *, padded_mode: bool = False
) -> T:
    """Sum each token's rows, weighted if probabilities are given."""
    _not_padded(padded_mode)
    k = 1 if probs is None else probs.size(1)
    rows = _rows_of(permuted_tokens, sorted_indices).float().reshape(-1, k, permuted_tokens.size(-1))
    return (rows if probs is None else rows * probs.float().unsqueeze(-1)).sum(1).to(permuted_tokens.dtype)


@host_kernel("MoeTokenUnpermuteGrad", ignores=("restore_shape",))
def moe_token_unpermute_grad(
    permuted_tokens: T, dy: T, sorted_indices: T, probs: T | None = None, *, padded_mode: bool = False
) -> tuple[T, T]:
    _not_padded(padded_mode)
    k = 1 if probs is None else probs.size(1)
    grad = dy.float().repeat_interleave(k, 0)
    weighted = grad if probs is None else grad * probs.float().reshape(-1, 1)
    dx = torch.zeros_like(permuted_tokens, dtype=torch.float32)
    kept = (sorted_indices < dx.size(0)).unsqueeze(-1)
    dx.index_add_(0, sorted_indices.long().clamp(max=dx.size(0) - 1), weighted * kept)
    if probs is None:
        return dx.to(permuted_tokens.dtype), dy.new_empty(0)
    dprobs = (_rows_of(permuted_tokens, sorted_indices).float() * grad).sum(-1).reshape(probs.shape)
    return dx.to(permuted_tokens.dtype), dprobs.to(probs.dtype)


def _not_padded(padded_mode: bool) -> None:
    check_choice("padded_mode", padded_mode, False)


def _rows_of(x: T, places: T) -> T:
    """Gather rows; those that were cut off are zeros."""
    if not x.is_meta and places.numel() and int(places.min()) < 0:
        raise ValueError(f"sorted_indices {places.tolist()} must not be negative")
    return x[places.long().clamp(max=x.size(0) - 1)].masked_fill((places >= x.size(0)).unsqueeze(-1), 0)


@host_kernel("MoeTokenPermuteWithRoutingMap")
def moe_token_permute_with_routing_map(
    tokens: T, routing_map: T, probs: T | None = None, *, num_out_tokens: int, drop_and_pad: bool = False
) -> tuple[T, T, T]:
    """Return each expert's tokens, one expert after the other, their probabilities and positions.

    The positions are those of each (token, choice). With ``drop_and_pad`` an expert has a fixed number of tokens, its
    own first, and the last output holds the tokens' indices.
    """
    by_expert = routing_map.bool().t()
    experts, count = by_expert.shape
    if drop_and_pad:
        capacity = num_out_tokens // experts
        if capacity > count:
            raise ValueError(f"num_out_tokens {num_out_tokens}: {capacity} tokens for each expert, there are {count}")
        order = by_expert.to(torch.int8).argsort(dim=-1, descending=True, stable=True)[:, :capacity]
        flat = order.reshape(-1)
        given = None if probs is None else probs.t().gather(1, order).reshape(-1)
        return tokens[flat], _or_empty(given, tokens), flat.to(torch.int32)
    if routing_map.is_meta:
        flat = torch.empty(num_out_tokens, dtype=torch.int64, device=tokens.device)
        given = None if probs is None else probs.new_empty(num_out_tokens)
    else:
        own, flat = by_expert.nonzero(as_tuple=True)
        if flat.numel() != num_out_tokens:
            raise ValueError(f"num_out_tokens is {num_out_tokens}; expected {flat.numel()}, as routing_map has")
        given = None if probs is None else probs[flat, own]
    return tokens[flat], _or_empty(given, tokens), flat.argsort(stable=True).to(torch.int32)


def _or_empty(given: T | None, like: T) -> T:
    return like.new_empty(0) if given is None else given


@host_kernel("MoeTokenPermuteWithRoutingMapGrad")
def moe_token_permute_with_routing_map_grad(
    permuted_token_output_grad: T,
    permuted_probs_output_grad: T | None,
    sorted_indices: T,
    routing_map: T,
    *,
    num_experts: int,
    tokens_num: int,
    drop_and_pad: bool = False,
) -> tuple[T, T]:
    dy, places = permuted_token_output_grad, sorted_indices.long()
    check_range("sorted_indices", places, tokens_num if drop_and_pad else dy.size(0))
    if drop_and_pad:
        dx = dy.new_zeros(tokens_num, dy.size(-1), dtype=torch.float32).index_add_(0, places, dy.float())
    else:
        dx = dy.float()[places].reshape(tokens_num, -1, dy.size(-1)).sum(1)
    if permuted_probs_output_grad is None:
        return dx.to(dy.dtype), dy.new_empty(0)
    of_probs = permuted_probs_output_grad.new_zeros(num_experts, tokens_num)
    if drop_and_pad:
        of_probs = of_probs.scatter(
            1, places.reshape(num_experts, -1), permuted_probs_output_grad.reshape(num_experts, -1)
        )
    else:
        of_probs = of_probs.masked_scatter(routing_map.bool().t(), permuted_probs_output_grad)
    return dx.to(dy.dtype), of_probs.t().contiguous()


@host_kernel("MoeTokenUnpermuteWithRoutingMap")
def moe_token_unpermute_with_routing_map(
    permuted_tokens: T,
    sorted_indices: T,
    routing_map: T | None = None,
    probs: T | None = None,
    *,
    drop_and_pad: bool = False,
    restore_shape: list[int],
) -> tuple[T, T, T, T]:
    """Sum each token's weighted rows; with ``drop_and_pad`` also return the rows by token and their tokens."""
    places, rows = sorted_indices.long(), permuted_tokens.float()
    check_range("sorted_indices", places, restore_shape[0] if drop_and_pad else rows.size(0))
    if drop_and_pad:
        token, row = places.sort(stable=True)
        weights = None
        if probs is not None:
            weights = probs.t().gather(1, places.reshape(probs.size(1), -1)).reshape(-1)
            rows = rows * weights.float().unsqueeze(-1)
        y = rows.new_zeros(restore_shape).index_add_(0, places, rows)
        return (
            y.to(permuted_tokens.dtype), row.to(torch.int32), token.to(torch.int32), _or_empty(weights, permuted_tokens),
        )  # fmt: skip
    rows = rows[places].reshape(restore_shape[0], -1, permuted_tokens.size(-1))
    weights = None
    if probs is not None:
        if routing_map is None:
            raise ValueError("probs need routing_map")
        weights = probs.new_empty(sorted_indices.numel()) if probs.is_meta else probs.masked_select(routing_map.bool())
        rows = rows * weights.float().reshape(restore_shape[0], -1, 1)
    return (
        rows.sum(1).to(permuted_tokens.dtype),
        sorted_indices.clone(),
        sorted_indices.clone(),
        _or_empty(weights, probs if probs is not None else permuted_tokens),
    )


@host_kernel("MoeTokenUnpermuteWithRoutingMapGrad", ignores=("restore_shape",))
def moe_token_unpermute_with_routing_map_grad(
    unpermuted_tokens_grad: T,
    out_index: T,
    permuted_token_id: T,
    routing_map: T | None = None,
    permuted_tokens: T | None = None,
    probs: T | None = None,
    *,
    drop_and_pad: bool = False,
) -> tuple[T, T]:
    dy, rows = unpermuted_tokens_grad.float(), out_index.long()
    check_range("out_index", rows, rows.numel())
    if drop_and_pad:
        check_range("permuted_token_id", permuted_token_id, dy.size(0))
    if drop_and_pad:
        tokens = permuted_token_id.long()
    else:
        tokens = torch.arange(dy.size(0), device=dy.device).repeat_interleave(rows.numel() // dy.size(0))
    grad = dy[tokens]  # for each (token, choice), whose row is out_index
    if probs is None:
        return torch.zeros_like(grad).index_copy(0, rows, grad).to(unpermuted_tokens_grad.dtype), dy.new_empty(0)
    if permuted_tokens is None or routing_map is None:
        raise ValueError("probs need permuted_tokens and routing_map")
    of_weights = (permuted_tokens.float()[rows] * grad).sum(-1).to(unpermuted_tokens_grad.dtype)
    if drop_and_pad:
        experts = rows // (rows.numel() // probs.size(1))
        weights = probs[tokens, experts]
        dprobs = torch.zeros_like(probs, dtype=of_weights.dtype).index_put((tokens, experts), of_weights)
    else:
        chosen = routing_map.bool()
        weights = probs.new_empty(rows.numel()) if probs.is_meta else probs.masked_select(chosen)
        dprobs = torch.zeros_like(probs, dtype=of_weights.dtype).masked_scatter(chosen, of_weights)
    dx = torch.zeros_like(grad).index_copy(0, rows, grad * weights.float().unsqueeze(-1))
    return dx.to(unpermuted_tokens_grad.dtype), dprobs

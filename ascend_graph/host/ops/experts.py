"""Mixtures of experts: gating, and the order of tokens by expert and back."""

from __future__ import annotations

import torch

from ascend_graph.host.ops.registry import check_range, host_kernel

T = torch.Tensor


def _top(scores: T, k: int, name: str) -> tuple[T, T]:
    """The k largest of each row, of equal ones the first."""
    if not 1 <= k <= scores.size(-1):
        raise ValueError(f"{name} {k} is not from 1 to the number of experts, {scores.size(-1)}")
    values, order = scores.sort(dim=-1, descending=True, stable=True)
    return values[..., :k].contiguous(), order[..., :k].contiguous()


def _without_finished(experts: T, finished: T | None, count: int) -> T:
    """Rows that are finished have the number of experts in the place of each."""
    if finished is not None:
        experts = experts.masked_fill(finished.bool().reshape(*experts.shape[:-1], 1), count)
    return experts.to(torch.int32)


@host_kernel("MoeGatingTopKSoftmax")
def moe_gating_top_k_softmax(x: T, finished: T | None = None, *, k: int) -> tuple[T, T, T]:
    values, experts = _top(torch.softmax(x.float(), -1), k, "k")
    count = experts.numel() // k
    rows = torch.arange(count * k, dtype=torch.int32, device=x.device).reshape(k, count).t().reshape(experts.shape)
    return values.to(x.dtype), _without_finished(experts, finished, x.size(-1)), rows.contiguous()


@host_kernel("MoeGatingTopKSoftmaxV2")
def moe_gating_top_k_softmax_v2(
    x: T, finished: T | None = None, *, k: int, renorm: int = 0, output_softmax: bool = False
) -> tuple[T, T, T]:
    """The softmax of all scores and then the largest (renorm 0), or the softmax of the largest (1)."""
    if renorm not in (0, 1):
        raise ValueError(f"renorm {renorm} is not 0 or 1")
    if renorm:
        largest, experts = _top(x.float(), k, "k")
        values, softmax = torch.softmax(largest, -1), x.new_empty(0, dtype=torch.float32)
    else:
        softmax = torch.softmax(x.float(), -1)
        values, experts = _top(softmax, k, "k")
    softmax = softmax if output_softmax else x.new_empty(0, dtype=torch.float32)
    return values.to(x.dtype), _without_finished(experts, finished, x.size(-1)), softmax


@host_kernel("MoeGatingTopK")
def moe_gating_top_k(
    x: T,
    bias: T | None = None,
    input_ids: T | None = None,
    tid2eid: T | None = None,
    *,
    k: int,
    k_group: int = 1,
    group_count: int = 1,
    group_select_mode: int = 0,
    renorm: int = 0,
    norm_type: int = 0,
    out_flag: bool = False,
    routed_scaling_factor: float = 1.0,
    eps: float = 1e-20,
) -> tuple[T, T, T]:
    """The best experts of the best groups, by softmax (norm_type 0) or sigmoid (1); the bias counts for the choice alone."""
    if input_ids is not None or tid2eid is not None:
        raise ValueError("input_ids and tid2eid are not supported on the host")
    if norm_type not in (0, 1) or renorm != 0 or group_select_mode not in (0, 1):
        raise ValueError(
            f"norm_type {norm_type} (0, 1), renorm {renorm} (0), group_select_mode {group_select_mode} (0, 1)"
        )
    experts_in_group, rest = divmod(x.size(-1), group_count)
    if rest or not 1 <= k_group <= group_count or k > k_group * experts_in_group:
        raise ValueError(f"k {k}, k_group {k_group}, group_count {group_count} do not suit {x.size(-1)} experts")
    normalised = torch.sigmoid(x.float()) if norm_type else torch.softmax(x.float(), -1)
    scores = normalised if bias is None else normalised + bias.float()
    if group_count > 1:
        groups = scores.unflatten(-1, (group_count, experts_in_group))
        by_group = groups.amax(-1) if group_select_mode == 0 else groups.topk(2, -1).values.sum(-1)
        chosen = _top(by_group, k_group, "k_group")[1]
        kept = torch.zeros_like(by_group, dtype=torch.bool).scatter(-1, chosen, True)
        scores = groups.masked_fill(~kept.unsqueeze(-1), -torch.inf).flatten(-2)
    experts = _top(scores, k, "k")[1]
    values = normalised.gather(-1, experts)
    if norm_type == 1:
        values = values / (values.sum(-1, keepdim=True) + eps)
    values = (values * routed_scaling_factor).to(x.dtype)
    return values, experts.to(torch.int32), normalised if out_flag else x.new_empty(0, dtype=torch.float32)


@host_kernel("MoeComputeExpertTokens")
def moe_compute_expert_tokens(sorted_experts: T, *, num_experts: int) -> T:
    """For each expert how many rows it and those before it have."""
    if not sorted_experts.is_meta and bool((sorted_experts.diff() < 0).any()):
        raise ValueError(f"sorted_experts {sorted_experts.tolist()} must not fall")
    experts = torch.arange(num_experts, dtype=sorted_experts.dtype, device=sorted_experts.device)
    return torch.searchsorted(sorted_experts.contiguous(), experts, right=True).to(sorted_experts.dtype)


def _inverse(order: T) -> T:
    places = torch.arange(order.numel(), dtype=order.dtype, device=order.device)
    return torch.empty_like(order).scatter_(0, order.long(), places)


@host_kernel("MoeInitRouting")
def moe_init_routing(x: T, row_idx: T, expert_idx: T, *, active_num: int) -> tuple[T, T, T]:
    check_range("row_idx", row_idx, row_idx.numel())
    experts, order = expert_idx.reshape(-1).sort(stable=True)
    sources = row_idx.reshape(-1)[order]
    active = min(active_num, x.size(0)) * expert_idx.size(-1)
    return x[sources[:active].long() % x.size(0)], _inverse(sources), experts


@host_kernel("MoeInitRoutingV3")
def moe_init_routing_v3(
    x: T,
    expert_idx: T,
    scale: T | None = None,
    offset: T | None = None,
    *,
    active_num: int = -1,
    expert_capacity: int = -1,
    expert_num: int = -1,
    drop_pad_mode: int = 0,
    expert_tokens_num_type: int = 0,
    expert_tokens_num_flag: bool = False,
    quant_mode: int = -1,
    active_expert_range: list[int] | None = None,
    row_idx_type: int = 0,
) -> tuple[T, T, T, T]:
    """Tokens in the order of their experts, where each came from, and how many each expert has.

    Rows of experts out of the active range have nowhere to go; rows that no token reaches are zeros.
    """
    if quant_mode not in (-1, 0, 1):
        raise ValueError(f"quant_mode {quant_mode} is not supported; -1 (none), 0 (static) and 1 (dynamic) are")
    if drop_pad_mode not in (0, 1) or expert_tokens_num_type not in (0, 1, 2) or row_idx_type not in (0, 1):
        raise ValueError(
            f"drop_pad_mode {drop_pad_mode} (0, 1), expert_tokens_num_type {expert_tokens_num_type} (0, 1, 2), "
            f"row_idx_type {row_idx_type} (0, 1)"
        )
    if active_expert_range and len(active_expert_range) != 2:
        raise ValueError(f"active_expert_range {active_expert_range} is not a first expert and one behind the last")
    start, end = active_expert_range or (0, expert_num)
    if not 0 <= start < end <= expert_num:
        raise ValueError(f"active_expert_range [{start}, {end}) is not within the {expert_num} experts")
    check_range("expert_idx", expert_idx, expert_num + 1)  # the number of experts stands for none
    if drop_pad_mode == 1 and not 0 < expert_capacity <= x.size(0):
        raise ValueError(f"expert_capacity {expert_capacity} is not from 1 to the number of rows, {x.size(0)}")
    if quant_mode == 0 and (scale is None or offset is None):
        raise ValueError("quant_mode 0 needs scale and offset")
    k, experts = expert_idx.size(-1), expert_idx.reshape(-1).long()
    here = (experts >= start) & (experts < end)
    sorted_experts, order = torch.where(here, experts, 1 << 31).sort(stable=True)
    kept = sorted_experts < end
    counts = (experts.unsqueeze(-1) == torch.arange(start, end, device=x.device)).sum(0)
    if drop_pad_mode == 0:
        rows = experts.numel() if active_num <= 0 else min(active_num, experts.numel())
        places = torch.where(kept, torch.arange(experts.numel(), device=x.device), -1)
        shape: tuple[int, ...] = (rows, x.size(1))
    else:
        first = counts.cumsum(0) - counts
        rank = (
            torch.arange(experts.numel(), device=x.device) - first[(sorted_experts - start).clamp(0, end - start - 1)]
        )
        places = torch.where(kept & (rank < expert_capacity), sorted_experts * expert_capacity + rank, -1)
        rows, shape = expert_num * expert_capacity, (expert_num, expert_capacity, x.size(1))
    gathered = torch.full_like(experts, -1).scatter(0, order, places).to(torch.int32)
    expanded_row_idx = order.to(torch.int32) if row_idx_type == 1 else gathered
    sources = _sources(places, order, rows)
    expanded_x, expanded_scale = _expanded(x, sources, k, expert_idx, scale, offset, quant_mode, start)
    return (
        expanded_x.reshape(shape),
        expanded_row_idx,
        _token_counts(counts, expert_tokens_num_type, expert_num, start),
        expanded_scale,
    )


def _sources(places: T, order: T, rows: int) -> T:
    """For each row of the result the (token, choice) that comes there, or -1."""
    spare = torch.full((rows + 1,), -1, dtype=torch.int64, device=order.device)  # the last takes what has no place
    return spare.scatter(0, torch.where((places >= 0) & (places < rows), places, rows), order)[:rows]


def _expanded(
    x: T, sources: T, k: int, expert_idx: T, scale: T | None, offset: T | None, quant_mode: int, start: int
) -> tuple[T, T]:
    empty = (sources < 0).unsqueeze(-1)
    tokens = sources.clamp(min=0) // k
    rows = x[tokens].masked_fill(empty, 0)
    if quant_mode == -1:
        if scale is None:
            return rows, x.new_zeros(sources.numel(), dtype=torch.float32)
        return rows, scale.reshape(-1)[tokens].masked_fill(empty.squeeze(-1), 0)
    wide = rows.float()
    if quant_mode == 0:
        assert scale is not None
        assert offset is not None
        y = torch.round(wide * scale.float().reshape(-1)[0] + offset.float().reshape(-1)[0])
        return y.clamp(-128, 127).to(torch.int8).masked_fill(empty, 0), x.new_zeros(
            sources.numel(), dtype=torch.float32
        )
    if scale is not None:
        own = expert_idx.reshape(-1).long()[sources.clamp(min=0)] - start
        wide = wide * (scale.float() if scale.size(0) == 1 else scale.float()[own.clamp(0, scale.size(0) - 1)])
    largest = wide.abs().amax(-1, keepdim=True) / 127
    y = torch.round(wide / torch.where(largest == 0, 1, largest)).clamp(-128, 127).to(torch.int8)
    return y.masked_fill(empty, 0), largest.squeeze(-1)


def _token_counts(counts: T, kind: int, expert_num: int, start: int) -> T:
    if kind == 0:
        return counts.cumsum(0)
    if kind == 1:
        return counts
    experts = torch.arange(counts.numel(), device=counts.device) + start
    order = (counts == 0).to(torch.int64).argsort(stable=True)  # experts with tokens first, in their order
    pairs = torch.stack([experts, counts], -1)[order].masked_fill((counts[order] == 0).unsqueeze(-1), 0)
    return torch.cat([pairs, pairs.new_zeros(expert_num - counts.numel(), 2)])


@host_kernel("MoeFinalizeRoutingV2", ignores=("K",))
def moe_finalize_routing(
    expanded_x: T,
    expanded_row_idx: T,
    x1: T | None = None,
    x2: T | None = None,
    bias: T | None = None,
    scales: T | None = None,
    expert_idx: T | None = None,
    *,
    drop_pad_mode: int = 0,
    k: int = 1,
) -> T:
    """Each token's rows, weighted and summed up, and two residuals; places are in columns (modes 0, 1) or rows (2, 3)."""
    if drop_pad_mode not in (0, 1, 2, 3):
        raise ValueError(f"drop_pad_mode {drop_pad_mode} is not 0, 1, 2 or 3")
    if x1 is None and x2 is not None:
        raise ValueError("skip2 (x2) is given without skip1 (x1)")
    if bias is not None and expert_idx is None:
        raise ValueError("bias needs the experts of the rows (expert_idx)")
    by_token = expert_idx if scales is None else scales
    if by_token is not None:  # k is for a call without them
        k = by_token.size(1)
    rows = expanded_x.reshape(-1, expanded_x.size(-1))
    count = expanded_row_idx.numel() // k
    places = expanded_row_idx.reshape(k, count).t() if drop_pad_mode < 2 else expanded_row_idx.reshape(count, k)
    if not rows.is_meta and bool(((places < -1) | (places >= rows.size(0))).any()):
        raise ValueError(
            f"expanded_row_idx {places.flatten().tolist()}: there are rows 0 to {rows.size(0) - 1}, and -1"
        )
    if bias is not None and expert_idx is not None:
        check_range("expert_idx", expert_idx, bias.size(0))
    parts = rows.float()[places.clamp(min=0).long()].masked_fill((places < 0).unsqueeze(-1), 0)
    if bias is not None and expert_idx is not None:
        parts = parts + bias.float()[expert_idx.long()]
    if scales is not None:
        parts = parts * scales.float().unsqueeze(-1)
    y = parts.sum(1)
    for skip in (x1, x2):
        if skip is not None:
            y = y + skip.float()
    return y.to(expanded_x.dtype)


@host_kernel("MoeFinalizeRouting")
def moe_finalize_routing_v1(
    expanded_x: T,
    x1: T | None = None,
    x2: T | None = None,
    bias: T | None = None,
    scales: T | None = None,
    expanded_row_idx: T | None = None,
    expanded_expert_idx: T | None = None,
) -> T:
    if expanded_row_idx is None:
        raise ValueError("expanded_src_to_dst_row is required")
    return moe_finalize_routing(expanded_x, expanded_row_idx, x1, x2, bias, scales, expanded_expert_idx)


@host_kernel("MoeReRouting")
def moe_re_routing(
    tokens: T,
    expert_token_num_per_rank: T,
    per_token_scales: T | None = None,
    *,
    expert_token_num_type: int = 1,
    idx_type: int = 0,
) -> tuple[T, T, T, T]:
    """Tokens that come in order of rank, then expert, in order of expert, then rank."""
    if expert_token_num_type != 1 or idx_type != 0:
        raise ValueError(
            f"expert_token_num_type {expert_token_num_type} (1), idx_type {idx_type} (0): no other is supported"
        )
    counts = expert_token_num_per_rank
    total = tokens.size(0)
    if tokens.is_meta:
        order = torch.empty(total, dtype=torch.int64, device=tokens.device)
    else:
        if int(counts.sum()) != total or bool((counts < 0).any()):
            raise ValueError(f"expert_token_num_per_rank has {int(counts.sum())} tokens in all; tokens has {total}")
        experts = torch.arange(counts.size(1), device=tokens.device).repeat(counts.size(0))
        order = experts.repeat_interleave(counts.reshape(-1).long()).argsort(stable=True)
    scales = tokens.new_empty(0, dtype=torch.float32) if per_token_scales is None else per_token_scales[order]
    return tokens[order], scales, order.to(torch.int32), counts.sum(0).to(counts.dtype)


@host_kernel("MoeTokenPermute")
def moe_token_permute(tokens: T, indices: T, *, num_out_tokens: int = 0, padded_mode: bool = False) -> tuple[T, T]:
    """Each token once for each of its experts, in the experts' order, and the place of each (token, choice)."""
    _not_padded(padded_mode)
    k = indices.size(1) if indices.dim() == 2 else 1
    order = indices.reshape(-1).argsort(stable=True)
    count = order.numel() if num_out_tokens <= 0 else min(num_out_tokens, order.numel())
    return tokens[order[:count] // k], _inverse(order).to(torch.int32)


@host_kernel("MoeTokenPermuteGrad")
def moe_token_permute_grad(dy: T, sorted_indices: T, *, num_topk: int, padded_mode: bool = False) -> T:
    _not_padded(padded_mode)
    rows = _rows_of(dy, sorted_indices)
    return rows.float().reshape(-1, num_topk, rows.size(-1)).sum(1).to(dy.dtype)


@host_kernel("MoeTokenUnpermute", ignores=("restore_shape",))
def moe_token_unpermute(
    permuted_tokens: T, sorted_indices: T, probs: T | None = None, *, padded_mode: bool = False
) -> T:
    """Each token's rows, weighted and summed up."""
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
    if padded_mode:
        raise ValueError("padded_mode is not supported")


def _rows_of(x: T, places: T) -> T:
    """The rows at places, zeros for those that were cut off."""
    if not x.is_meta and places.numel() and int(places.min()) < 0:
        raise ValueError(f"sorted_indices {places.tolist()} must not be negative")
    return x[places.long().clamp(max=x.size(0) - 1)].masked_fill((places >= x.size(0)).unsqueeze(-1), 0)


@host_kernel("MoeGatingTopKBackward")
def moe_gating_top_k_backward(
    x_norm: T,
    grad_y: T,
    expert_idx: T,
    *,
    renorm: int = 0,
    norm_type: int = 0,
    routed_scaling_factor: float = 1.0,
    eps: float = 1e-20,
) -> T:
    """The gradient of the scores, from the normalised ones."""
    if norm_type not in (0, 1) or renorm != 0:
        raise ValueError(f"norm_type {norm_type} (0, 1), renorm {renorm} (0): no other is supported")
    norm, places = x_norm.float(), expert_idx.long()
    check_range("expert_idx", places, norm.size(-1))
    grad = grad_y.float() * routed_scaling_factor
    chosen = norm.gather(-1, places)
    if norm_type == 1:
        total = chosen.sum(-1, keepdim=True) + eps
        grad = grad / total - (grad * chosen).sum(-1, keepdim=True) / total.square()
    of_norm = torch.zeros_like(norm).scatter(-1, places, grad)
    if norm_type == 1:
        return (of_norm * norm * (1 - norm)).to(grad_y.dtype)
    return (norm * (of_norm - (of_norm * norm).sum(-1, keepdim=True))).to(grad_y.dtype)


@host_kernel("MoeUpdateExpert")
def moe_update_expert(
    expert_ids: T,
    eplb_table: T,
    expert_scales: T | None = None,
    pruning_threshold: T | None = None,
    active_mask: T | None = None,
    *,
    local_rank_id: int = -1,
    world_size: int = -1,
    balance_mode: int = 0,
) -> tuple[T, T]:
    """Of experts that have several instances one, by the rank (balance_mode 0) or the token's number (1); and who is active."""
    if balance_mode not in (0, 1):
        raise ValueError(f"balance_mode {balance_mode} is not 0 or 1")
    if balance_mode == 0 and not 0 <= local_rank_id < world_size:
        raise ValueError(f"local_rank_id {local_rank_id} is not one of {world_size} ranks (world_size)")
    if (expert_scales is None) != (pruning_threshold is None) or (active_mask is not None and expert_scales is None):
        raise ValueError("expert_scales and pruning_threshold go together, and active_mask with both")
    rows = expert_ids.long()
    if not rows.is_meta and bool(((rows < 0) | (rows >= eplb_table.size(0))).any()):
        raise ValueError(f"expert_ids: eplb_table has experts 0 to {eplb_table.size(0) - 1}")
    counts = eplb_table[rows, 0].long()
    check_range("eplb_table: the number of an expert's instances", counts, eplb_table.size(1), 1)
    if balance_mode == 0:
        place = local_rank_id // -(-world_size // counts)
    else:
        place = torch.arange(rows.size(0), device=rows.device).unsqueeze(1) % counts
    balanced = eplb_table[rows, 1 + place].to(expert_ids.dtype)
    active = torch.ones(rows.shape, dtype=torch.bool, device=rows.device)
    if expert_scales is not None and pruning_threshold is not None:
        scales = expert_scales.float()
        active = scales >= scales.sum(1, keepdim=True) * pruning_threshold.float().reshape(1, -1)
    if active_mask is not None:
        active = active & active_mask.unsqueeze(1)
    return balanced, active


@host_kernel("MoeInitRoutingQuantV2")
def moe_init_routing_quant_v2(
    x: T,
    expert_idx: T,
    scale: T | None = None,
    offset: T | None = None,
    *,
    active_num: int = 0,
    expert_capacity: int = 0,
    expert_num: int = 0,
    drop_pad_mode: int = 0,
    expert_tokens_num_mode: int = 0,
    expert_tokens_before_capacity_flag: bool = False,
    quant_mode: int = 0,
) -> tuple[T, T, T, T, T]:
    """Quantised tokens in the order of their experts, where each came, and how many each expert has: summed up (1) or each (2)."""
    if drop_pad_mode != 0 or expert_tokens_before_capacity_flag:
        raise ValueError(f"drop_pad_mode {drop_pad_mode} is not supported; 0 is")
    if expert_tokens_num_mode not in (0, 1, 2) or quant_mode not in (0, 1):
        raise ValueError(f"expert_tokens_num_mode {expert_tokens_num_mode} (0, 1, 2), quant_mode {quant_mode} (0, 1)")
    rows, places, counts, own = moe_init_routing_v3(
        x, expert_idx, scale, offset, active_num=active_num, expert_num=expert_num, quant_mode=quant_mode,
        expert_tokens_num_type=0 if expert_tokens_num_mode == 1 else 1,
    )  # fmt: skip
    empty = counts.new_empty(0, dtype=torch.int32)
    counts = counts.to(torch.int32) if expert_tokens_num_mode else empty
    return rows, places, counts, empty, own if quant_mode == 1 else own.new_empty(0)


@host_kernel("MoeTokenPermuteWithRoutingMap")
def moe_token_permute_with_routing_map(
    tokens: T, routing_map: T, probs: T | None = None, *, num_out_tokens: int, drop_and_pad: bool = False
) -> tuple[T, T, T]:
    """Each expert's tokens, one expert after the other, their probabilities, and the place of each (token, choice).

    With ``drop_and_pad`` an expert has a fixed number of tokens, its own first, and the places are the tokens'.
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
            raise ValueError(f"num_out_tokens is {num_out_tokens}; routing_map has {flat.numel()}")
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
    """Each token's rows, weighted and summed up; and, with ``drop_and_pad``, the rows by token and their tokens."""
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

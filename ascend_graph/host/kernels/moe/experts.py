"""Routing of tokens to experts, and collection of their results."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.checks import check_between, check_choice, check_range
from ascend_graph.host.kernels.moe.permutation import inverse_permutation
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


@host_kernel("MoeComputeExpertTokens")
def moe_compute_expert_tokens(sorted_experts: T, *, num_experts: int) -> T:
    """Return for each expert the number of rows up to and including its own."""
    if not sorted_experts.is_meta and bool((sorted_experts.diff() < 0).any()):
        raise ValueError(f"sorted_experts {sorted_experts.tolist()} must not fall")
    experts = torch.arange(num_experts, dtype=sorted_experts.dtype, device=sorted_experts.device)
    return torch.searchsorted(sorted_experts.contiguous(), experts, right=True).to(sorted_experts.dtype)


@host_kernel("MoeInitRouting")
def moe_init_routing(x: T, row_idx: T, expert_idx: T, *, active_num: int) -> tuple[T, T, T]:
    check_range("row_idx", row_idx, row_idx.numel())
    experts, order = expert_idx.reshape(-1).sort(stable=True)
    sources = row_idx.reshape(-1)[order]
    active = min(active_num, x.size(0)) * expert_idx.size(-1)
    return x[sources[:active].long() % x.size(0)], inverse_permutation(sources), experts


def _active_range(
    quant_mode: int,
    drop_pad_mode: int,
    expert_tokens_num_type: int,
    row_idx_type: int,
    active_expert_range: list[int] | None,
    expert_num: int,
    expert_idx: T,
    expert_capacity: int,
    x: T,
    scale: T | None,
    offset: T | None,
) -> tuple[int, int]:
    """Return the active experts' range; raise if an argument is not supported."""
    if quant_mode not in (-1, 0, 1):
        raise ValueError(f"quant_mode {quant_mode} is not supported; -1 (none), 0 (static) and 1 (dynamic) are")
    check_choice("drop_pad_mode", drop_pad_mode, 0, 1)
    check_choice("expert_tokens_num_type", expert_tokens_num_type, 0, 1, 2)
    check_choice("row_idx_type", row_idx_type, 0, 1)
    if active_expert_range and len(active_expert_range) != 2:
        raise ValueError(
            f"active_expert_range {active_expert_range} has {len(active_expert_range)} numbers; expected two, the "
            "first expert and one past the last"
        )
    start, end = active_expert_range or (0, expert_num)
    if not 0 <= start < end <= expert_num:
        raise ValueError(
            f"active_expert_range [{start}, {end}) must be within 0 and the number of experts, {expert_num}"
        )
    check_range("expert_idx", expert_idx, expert_num + 1)  # the number of experts stands for none
    if drop_pad_mode == 1:
        check_between("expert_capacity", expert_capacity, 1, x.size(0), "the number of rows")
    if quant_mode == 0 and (scale is None or offset is None):
        raise ValueError("quant_mode 0 needs scale and offset")
    return start, end


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
    """Sort tokens by expert; return their rows, where each came from, and the expert counts.

    Rows of experts outside the active range are dropped; output rows that no token reaches are zeros.
    """
    start, end = _active_range(
        quant_mode,
        drop_pad_mode,
        expert_tokens_num_type,
        row_idx_type,
        active_expert_range,
        expert_num,
        expert_idx,
        expert_capacity,
        x,
        scale,
        offset,
    )
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
    """Return for each output row the index of its (token, choice), or -1."""
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
    """Sum each token's weighted rows and two residuals; indices are in columns (modes 0, 1) or rows (2, 3)."""
    check_choice("drop_pad_mode", drop_pad_mode, 0, 1, 2, 3)
    if x1 is None and x2 is not None:
        raise ValueError("skip2 (x2) needs skip1 (x1), which is not given")
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
    """Reorder tokens from (rank, expert) order to (expert, rank) order."""
    check_choice("expert_token_num_type", expert_token_num_type, 1)
    check_choice("idx_type", idx_type, 0)
    counts = expert_token_num_per_rank
    total = tokens.size(0)
    if tokens.is_meta:
        order = torch.empty(total, dtype=torch.int64, device=tokens.device)
    else:
        if int(counts.sum()) != total or bool((counts < 0).any()):
            raise ValueError(
                f"expert_token_num_per_rank has {int(counts.sum())} tokens in all; expected {total}, as tokens has, "
                "and counts of 0 or more"
            )
        experts = torch.arange(counts.size(1), device=tokens.device).repeat(counts.size(0))
        order = experts.repeat_interleave(counts.reshape(-1).long()).argsort(stable=True)
    scales = tokens.new_empty(0, dtype=torch.float32) if per_token_scales is None else per_token_scales[order]
    return tokens[order], scales, order.to(torch.int32), counts.sum(0).to(counts.dtype)


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
    """Select one instance of each expert, by rank (balance_mode 0) or token number (1), and a mask of active ones."""
    check_choice("balance_mode", balance_mode, 0, 1)
    if balance_mode == 0 and not 0 <= local_rank_id < world_size:
        raise ValueError(f"local_rank_id {local_rank_id} is not one of {world_size} ranks (world_size)")
    if (expert_scales is None) != (pruning_threshold is None) or (active_mask is not None and expert_scales is None):
        raise ValueError(
            "expert_scales and pruning_threshold go together: give both or none, and active_mask with both only"
        )
    rows = expert_ids.long()
    check_range("expert_ids", rows, eplb_table.size(0))
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
    """Sort quantized tokens by expert; return their rows, where each came from, and the expert counts.

    Counts are cumulative (mode 1) or for each expert (2).
    """
    if drop_pad_mode != 0 or expert_tokens_before_capacity_flag:
        raise ValueError(f"drop_pad_mode {drop_pad_mode} is not supported; 0 is")
    check_choice("expert_tokens_num_mode", expert_tokens_num_mode, 0, 1, 2)
    check_choice("quant_mode", quant_mode, 0, 1)
    rows, places, counts, own = moe_init_routing_v3(
        x, expert_idx, scale, offset, active_num=active_num, expert_num=expert_num, quant_mode=quant_mode,
        expert_tokens_num_type=0 if expert_tokens_num_mode == 1 else 1,
    )  # fmt: skip
    empty = counts.new_empty(0, dtype=torch.int32)
    counts = counts.to(torch.int32) if expert_tokens_num_mode else empty
    return rows, places, counts, empty, own if quant_mode == 1 else own.new_empty(0)

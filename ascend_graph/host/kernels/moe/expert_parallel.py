"""Mixtures of experts between processes: tokens to the ranks of their experts and back.

The reference is the documents of aclnnMoeDistributeDispatch and aclnnMoeDistributeCombine for Ascend 910B
(https://github.com/hicann/ops-transformer, ``mc2/moe_distribute_dispatch/docs`` and
``mc2/moe_distribute_combine/docs``, with the operators of PyTorch in https://github.com/Ascend/op-plugin,
``docs/zh/custom_APIs/torch_npu``). Rows that a rank receives are ordered by expert, then by source rank, then by their
order there: op-plugin's own test expects the rows of all ranks' tokens sorted by expert
(``test/test_custom_ops/test_moe_distribute_dispatch.py``). The document leaves the contents of ``expand_idx`` and
``ep_recv_counts`` to the pair of operators: they differ between devices and versions, and only the combination may read
them.

One limit of the document is dropped, so that one machine suffices: devices take 16, 32 or 64 ranks, and here any number
is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import torch

from ascend_graph.host.kernels.checks import check_choice, refuse_given
from ascend_graph.host.kernels.collectives.communication import Communicator, places_of
from ascend_graph.host.kernels.quantization.quantize import dynamic
from ascend_graph.host.kernels.registry import host_kernel
from ascend_graph.host.kernels.tensor.shape import ints

T = torch.Tensor

#: Limits of the document: sizes of a token, tokens of a rank, experts of a token, of all ranks, and of one.
_MOST_WIDTH, _MULTIPLE, _MOST_TOKENS, _MOST_CHOSEN, _MOST_EXPERTS, _MOST_LOCAL = 7168, 32, 256, 16, 512, 24
#: Values of quant_mode: tokens travel unchanged, or as int8 with a scale for each.
_AS_THEY_ARE, _BY_TOKEN = 0, 2


def _check_experts(
    world: int, experts: int, refused: Mapping[str, object], shared_expert_rank_num: int, tp_world_size: int
) -> int:
    """Return the number of experts of each rank.

    Raises:
        ValueError: an option is given that the host does not support.
    """
    refuse_given("not supported on the host", **refused)
    check_choice("shared_expert_rank_num", shared_expert_rank_num, 0)
    check_choice("tp_world_size", tp_world_size, 0, 1)
    if world < 1 or experts < 1 or experts % world:
        raise ValueError(f"moe_expert_num {experts} must be a positive multiple of ep_world_size, {world}")
    if experts > _MOST_EXPERTS or experts // world > _MOST_LOCAL:
        raise ValueError(
            f"moe_expert_num {experts} on {world} ranks: a device takes {_MOST_EXPERTS} at most, and {_MOST_LOCAL} of a rank"
        )
    return experts // world


def _check_tokens(x: T, expert_ids: T, experts: int) -> None:
    """Check the document's limits on tokens and on the experts chosen for them."""
    if x.dtype not in (torch.float16, torch.bfloat16):
        raise ValueError(f"x is {x.dtype}; it must be float16 or bfloat16")
    if x.dim() != 2 or x.size(1) % _MULTIPLE or not 0 < x.size(1) <= _MOST_WIDTH or not 0 < x.size(0) <= _MOST_TOKENS:
        raise ValueError(
            f"x of shape {tuple(x.shape)}: it must be 1 to {_MOST_TOKENS} tokens of a multiple of {_MULTIPLE} numbers, {_MOST_WIDTH} at most"
        )
    if expert_ids.dim() != 2 or expert_ids.size(0) != x.size(0):
        raise ValueError(
            f"expert_ids of shape {tuple(expert_ids.shape)} must have a row for each of {x.size(0)} tokens"
        )
    if not 0 < expert_ids.size(1) <= min(_MOST_CHOSEN, experts):
        raise ValueError(
            f"expert_ids of shape {tuple(expert_ids.shape)}: expected 1 to {min(_MOST_CHOSEN, experts)} experts a token"
        )
    if expert_ids.is_meta:
        return
    ids = expert_ids.sort(1).values
    if not 0 <= int(ids.min()) <= int(ids.max()) < experts:
        raise ValueError(f"expert_ids are {int(ids.min())} to {int(ids.max())}; they must be 0 to {experts - 1}")
    if bool((ids[:, 1:] == ids[:, :-1]).any()):
        raise ValueError("expert_ids names an expert twice for one token; those of a token must differ")


def _check_quantization(quant_mode: int, scales: T | None, experts: int, width: int) -> None:
    if quant_mode not in (_AS_THEY_ARE, _BY_TOKEN):
        raise ValueError(f"quant_mode {quant_mode} must be {_AS_THEY_ARE} (none) or {_BY_TOKEN} (by token)")
    if scales is None:
        return
    if quant_mode == _AS_THEY_ARE:
        raise ValueError(f"scales are for quant_mode {_BY_TOKEN}; without quantization they must be left out")
    if scales.dtype is not torch.float32 or tuple(scales.shape) != (experts, width):
        raise ValueError(
            f"scales, {scales.dtype} of shape {tuple(scales.shape)}, must be float32 of {(experts, width)}"
        )


def _check_group(group: str, world: int, rank: int) -> Communicator:
    communicator = Communicator(group)
    if (communicator.ranks, communicator.rank) != (world, rank):
        raise ValueError(
            f"ep_world_size {world} and ep_rank_id {rank}: expected those of this process, which is rank "
            f"{communicator.rank} of {communicator.ranks} in {group!r}"
        )
    return communicator


def _exchange(group: Communicator, rows: T, sent: Sequence[int], received: Sequence[int]) -> T:
    """Exchange rows with all ranks, given the counts to send and to receive by rank."""
    width = rows[0].numel() if rows.size(0) else prod(rows.shape[1:])
    counts = [[n * width for n in numbers] for numbers in (sent, received)]
    flat = group.all_to_all(rows, counts[0], places_of(counts[0], None), counts[1], places_of(counts[1], None))
    return flat.view(sum(received), *rows.shape[1:])


def _numbered(experts: T, sent: T) -> tuple[T, T]:
    """Return the order of tokens by experts, and the number of each token among those of its expert."""
    order = experts.argsort(stable=True)
    numbered = torch.empty_like(experts)
    numbered[order] = torch.arange(experts.numel()) - (sent.cumsum(0) - sent)[experts[order]]
    return order, numbered


@host_kernel(
    "MoeDistributeDispatch",
    ignores=("tp_rank_id", "shared_expert_num", "expert_shard_type", "group_tp"),
    communicates=True,
)
def moe_distribute_dispatch(
    x: T,
    expert_ids: T,
    scales: T | None = None,
    x_active_mask: T | None = None,
    expert_scales: T | None = None,
    *,
    group_ep: str,
    ep_world_size: int,
    ep_rank_id: int,
    moe_expert_num: int,
    tp_world_size: int = 0,
    shared_expert_rank_num: int = 0,
    quant_mode: int = 0,
    global_bs: int = 0,
    expert_token_nums_type: int = 1,
) -> tuple[T, T, T, T, T, T, T]:
    """Send every token's row to the ranks of its experts, as int8 with ``quant_mode`` 2.

    Rows are multiplied by their expert's ``scales`` and then quantized, each with its own scale. ``expand_idx`` numbers
    the tokens that this rank sends to an expert; ``ep_recv_count`` are prefix sums over experts and ranks.
    """
    refused = {"x_active_mask": x_active_mask}
    local = _check_experts(ep_world_size, moe_expert_num, refused, shared_expert_rank_num, tp_world_size)
    if expert_token_nums_type not in (0, 1):
        raise ValueError(f"expert_token_nums_type {expert_token_nums_type} must be 0 (prefix sums) or 1 (counts)")
    _check_tokens(x, expert_ids, moe_expert_num)
    _check_quantization(quant_mode, scales, moe_expert_num, x.size(1))
    tokens, k = expert_ids.shape
    most = (global_bs or tokens * ep_world_size) * min(local, k)
    sent_as = torch.int8 if quant_mode == _BY_TOKEN else x.dtype
    expand_x = x.new_zeros(most * max(tp_world_size, 1), x.size(1), dtype=sent_as)
    dynamic_scales = x.new_zeros(expand_x.size(0), dtype=torch.float32)
    tp_counts = x.new_zeros(tp_world_size, dtype=torch.int32)
    expand_scales = x.new_zeros(most, dtype=torch.float32)
    if x.is_meta:
        indices = x.new_empty(tokens * k, dtype=torch.int32)
        numbers = x.new_empty(local, dtype=torch.int64)
        counts = x.new_empty(ep_world_size * local, dtype=torch.int32)
        return expand_x, dynamic_scales, indices, numbers, counts, tp_counts, expand_scales
    group = _check_group(group_ep, ep_world_size, ep_rank_id)
    experts = expert_ids.flatten().long()
    sent = experts.bincount(minlength=moe_expert_num)
    order, numbered = _numbered(experts, sent)
    received = _exchange(group, sent, [local] * ep_world_size, [local] * ep_world_size).view(ep_world_size, local)
    rows = _exchange(group, x[order // k], ints(sent.view(-1, local).sum(1)), ints(received.sum(1)))
    if rows.size(0) > most:
        raise ValueError(f"global_bs {global_bs}: {rows.size(0)} tokens come to this rank; expected at most {most}")
    of_expert = torch.arange(local).repeat(ep_world_size).repeat_interleave(received.flatten())
    rows, of_expert = rows[of_expert.argsort(stable=True)], of_expert.sort().values
    if quant_mode == _BY_TOKEN:
        wide = rows.float() if scales is None else rows.float() * scales[ep_rank_id * local + of_expert]
        rows, by_token = dynamic(wide)
        dynamic_scales[: rows.size(0)] = by_token.squeeze(-1)
    expand_x[: rows.size(0)] = rows
    counted = received.sum(0)
    numbers = counted if expert_token_nums_type == 1 else counted.cumsum(0)
    prefix = received.t().flatten().cumsum(0).int()
    return expand_x, dynamic_scales, numbered.int(), numbers, prefix, tp_counts, expand_scales


@host_kernel(
    "MoeDistributeCombine",
    ignores=("tp_rank_id", "shared_expert_num", "expert_shard_type", "group_tp", "global_bs", "group_list_type"),
    communicates=True,
)
def moe_distribute_combine(
    expand_x: T,
    expert_ids: T,
    expand_idx: T,
    ep_send_counts: T,
    expert_scales: T,
    tp_send_counts: T | None = None,
    x_active_mask: T | None = None,
    activation_scale: T | None = None,
    weight_scale: T | None = None,
    group_list: T | None = None,
    expand_scales: T | None = None,
    *,
    group_ep: str,
    ep_world_size: int,
    ep_rank_id: int,
    moe_expert_num: int,
    tp_world_size: int = 0,
    shared_expert_rank_num: int = 0,
    out_dtype: int = 0,
    comm_quant_mode: int = 0,
) -> T:
    """Send the experts' rows back to their tokens' ranks, and return each token's weighted sum."""
    refused = {
        "x_active_mask": x_active_mask,
        "activation_scale": activation_scale,
        "weight_scale": weight_scale,
        "group_list": group_list,
        "out_dtype": out_dtype,
        "comm_quant_mode": comm_quant_mode,
    }
    local = _check_experts(ep_world_size, moe_expert_num, refused, shared_expert_rank_num, tp_world_size)
    tokens, k = expert_ids.shape
    if expand_x.is_meta:
        return expand_x.new_empty(tokens, expand_x.size(1))
    group = _check_group(group_ep, ep_world_size, ep_rank_id)
    prefix = ep_send_counts.flatten()[: ep_world_size * local].long()
    counts = prefix.diff(prepend=prefix.new_zeros(1)).view(local, ep_world_size)
    of_rank = torch.arange(ep_world_size).repeat(local).repeat_interleave(counts.flatten())
    rows = expand_x[: of_rank.numel()][of_rank.argsort(stable=True)]
    experts = expert_ids.flatten().long()
    own = experts.bincount(minlength=moe_expert_num)
    back = _exchange(group, rows, ints(counts.sum(0)), ints(own.view(-1, local).sum(1)))
    mine = back[(own.cumsum(0) - own)[experts] + expand_idx.flatten()[: tokens * k].long()]
    weighted = mine.view(tokens, k, -1).float() * expert_scales.view(tokens, k, 1).float()
    return weighted.sum(1).to(expand_x.dtype)


#: Attrs of the second versions that have no effect here, and attrs of other kinds of experts.
_IGNORED = ("tp_rank_id", "shared_expert_num", "expert_shard_type", "group_tp", "comm_alg", "y_dtype")
_KINDS = ("zero_expert_num", "copy_expert_num", "const_expert_num")


@host_kernel("MoeDistributeDispatchV2", ignores=_IGNORED, communicates=True)
def moe_distribute_dispatch_v2(
    x: T,
    expert_ids: T,
    scales: T | None = None,
    x_active_mask: T | None = None,
    expert_scales: T | None = None,
    elastic_info: T | None = None,
    performance_info: T | None = None,
    **attrs: Any,
) -> tuple[T, T, T, T, T, T, T]:
    """Dispatch as the first version; ``expand_idx`` is padded to 128 numbers for each row that may arrive.

    It has room for three numbers of each token and more.
    """
    refuse_given("not supported on the host", elastic_info=elastic_info, performance_info=performance_info)
    refuse_given("not supported on the host", **{name: attrs.pop(name, 0) for name in _KINDS})
    found = moe_distribute_dispatch(x, expert_ids, scales, x_active_mask, expert_scales, **attrs)
    room = max(found[2].numel(), found[6].numel() * 128)
    return *found[:2], torch.nn.functional.pad(found[2], (0, room - found[2].numel())), *found[3:]


@host_kernel("MoeDistributeCombineV2", ignores=(*_IGNORED, "global_bs", "group_list_type"), communicates=True)
def moe_distribute_combine_v2(
    expand_x: T,
    expert_ids: T,
    assist_info_for_combine: T,
    ep_send_counts: T,
    expert_scales: T,
    tp_send_counts: T | None = None,
    x_active_mask: T | None = None,
    activation_scale: T | None = None,
    weight_scale: T | None = None,
    group_list: T | None = None,
    expand_scales: T | None = None,
    shared_expert_x: T | None = None,
    elastic_info: T | None = None,
    ori_x: T | None = None,
    const_expert_alpha_1: T | None = None,
    const_expert_alpha_2: T | None = None,
    const_expert_v: T | None = None,
    performance_info: T | None = None,
    **attrs: Any,
) -> T:
    """Combine as the first version and add ``shared_expert_x`` to the sums."""
    refuse_given(
        "not supported on the host",
        elastic_info=elastic_info,
        performance_info=performance_info,
        ori_x=ori_x,
    )
    refuse_given("not supported on the host", **{name: attrs.pop(name, 0) for name in _KINDS})
    given = (activation_scale, weight_scale, group_list, expand_scales)
    weighed = (expert_ids, assist_info_for_combine, ep_send_counts, expert_scales, tp_send_counts, x_active_mask)
    found = moe_distribute_combine(expand_x, *weighed, *given, **attrs)
    return (
        found if shared_expert_x is None else (found.float() + shared_expert_x.view_as(found).float()).to(found.dtype)
    )

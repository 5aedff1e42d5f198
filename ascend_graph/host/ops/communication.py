"""Collectives in graphs: the calling process's part in them, through libhccl as outside of graphs."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate
from math import prod
from typing import Any

import torch

from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.ops.matmul import product
from ascend_graph.host.ops.registry import host_kernel
from ascend_graph.host.ops.shape import ints
from ascend_graph.host.toolkit import toolkit_directory

T = torch.Tensor

#: HcclDataType's and HcclReduceOp's numbers.
_DTYPES = {
    torch.int8: 0,
    torch.int16: 1,
    torch.int32: 2,
    torch.float16: 3,
    torch.float32: 4,
    torch.int64: 5,
    torch.uint64: 6,
    torch.uint8: 7,
    torch.bool: 7,
    torch.uint16: 8,
    torch.uint32: 9,
    torch.float64: 10,
    torch.bfloat16: 11,
}
_REDUCTIONS = {"sum": 0, "prod": 1, "max": 2, "min": 3}


@cache
def _library(name: str) -> ctypes.CDLL:
    library = ctypes.CDLL(str(toolkit_directory() / "lib64" / name))
    library.ascendgraphRecentError.restype = ctypes.c_char_p
    return library


class Group:
    """A communicator by its name; its methods return when this process's part is done.

    Raises:
        RuntimeError: there is no such communicator, or a collective failed.
    """

    def __init__(self, name: str) -> None:
        self._hccl = _library("libhccl.so")
        self._handle = ctypes.c_void_p()
        self._check(self._hccl.HcomGetCommHandleByGroup(name.encode(), ctypes.byref(self._handle)))
        ranks, rank = ctypes.c_uint32(), ctypes.c_uint32()
        self._check(self._hccl.HcclGetRankSize(self._handle, ctypes.byref(ranks)))
        self._check(self._hccl.HcclGetRankId(self._handle, ctypes.byref(rank)))
        self.ranks, self.rank = ranks.value, rank.value

    def _check(self, error: int) -> None:
        if error != 0:
            raise RuntimeError(_library("libascendcl.so").ascendgraphRecentError().decode())

    def _run(self, function: str, *arguments: object) -> None:
        stream = ctypes.c_void_p()  # the default one: what comes before a graph's node is done when it runs
        self._check(self._hccl[function](*arguments, self._handle, stream))
        self._check(_library("libascendcl.so").aclrtSynchronizeStream(stream))

    def all_reduce(self, x: T, reduction: str) -> T:
        """The reduction of all ranks' ``x``."""
        x, y = x.contiguous(), torch.empty(x.shape, dtype=x.dtype)
        self._run("HcclAllReduce", _at(x), _at(y), _count(x), _dtype(x), _reduction(reduction))
        return y

    def all_gather(self, x: T) -> T:
        """All ranks' ``x``, one after the other along the first dimension."""
        x, y = x.contiguous(), torch.empty(_times(x.shape, self.ranks), dtype=x.dtype)
        self._run("HcclAllGather", _at(x), _at(y), _count(x), _dtype(x))
        return y

    def reduce_scatter(self, x: T, reduction: str) -> T:
        """This rank's part, along the first dimension, of the reduction of all ranks' ``x``."""
        if x.size(0) % self.ranks:
            raise ValueError(f"the first dimension of {tuple(x.shape)} is no multiple of {self.ranks} ranks")
        x, y = x.contiguous(), torch.empty((x.size(0) // self.ranks, *x.shape[1:]), dtype=x.dtype)
        self._run("HcclReduceScatter", _at(x), _at(y), _count(y), _dtype(x), _reduction(reduction))
        return y

    def broadcast(self, x: T, root: int) -> T:
        """``x`` of the rank ``root``."""
        y = x.clone(memory_format=torch.contiguous_format)
        self._run("HcclBroadcast", _at(y), _count(y), _dtype(y), ctypes.c_uint32(root))
        return y

    def all_to_all(
        self,
        x: T,
        sent: Sequence[int],
        sent_from: Sequence[int],
        received: Sequence[int],
        received_at: Sequence[int],
    ) -> T:
        """The elements that every rank sends to this one; counts and places by rank."""
        x = x.contiguous()
        y = torch.zeros(max((a + b for a, b in zip(received, received_at, strict=True)), default=0), dtype=x.dtype)
        self._run(
            "HcclAlltoAllV",
            _at(x),
            _numbers(sent),
            _numbers(sent_from),
            _dtype(x),
            _at(y),
            _numbers(received),
            _numbers(received_at),
            _dtype(y),
        )
        return y

    def send(self, x: T, to: int) -> None:
        """Send ``x`` to a rank."""
        x = x.contiguous()
        self._run("HcclSend", _at(x), _count(x), _dtype(x), ctypes.c_uint32(to))

    def receive(self, y: T, source: int) -> None:
        """Receive ``y`` from a rank."""
        self._run("HcclRecv", _at(y), _count(y), _dtype(y), ctypes.c_uint32(source))


def _at(t: T) -> ctypes.c_void_p:
    return ctypes.c_void_p(t.data_ptr())


def _count(t: T) -> ctypes.c_uint64:
    return ctypes.c_uint64(t.numel())


def _dtype(t: T) -> int:
    if t.dtype not in _DTYPES:
        raise ValueError(f"{t.dtype} has no HcclDataType; these have: {', '.join(map(str, _DTYPES))}")
    return _DTYPES[t.dtype]


def _reduction(name: str) -> int:
    if name not in _REDUCTIONS:
        raise ValueError(f"reduction {name!r} is not one of {', '.join(_REDUCTIONS)}")
    return _REDUCTIONS[name]


def _numbers(values: Sequence[int]) -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * len(values))(*values)


def _times(shape: Sequence[int], ranks: int) -> tuple[int, ...]:
    return (shape[0] * ranks, *shape[1:])


def _places(counts: Sequence[int], displacements: T | None) -> list[int]:
    return [0, *accumulate(counts)][:-1] if displacements is None else ints(displacements)


@host_kernel("HcomAllReduce", ignores=("fusion", "fusion_id"), communicates=True)
def hcom_all_reduce(x: T, *, reduction: str, group: str) -> T:
    return torch.empty_like(x) if x.is_meta else Group(group).all_reduce(x, reduction)


@host_kernel("HcomAllGather", ignores=("fusion", "fusion_id"), communicates=True)
def hcom_all_gather(x: T, *, rank_size: int, group: str) -> T:
    return x.new_empty(_times(x.shape, rank_size)) if x.is_meta else Group(group).all_gather(x)


@host_kernel("HcomReduceScatter", ignores=("fusion", "fusion_id"), communicates=True)
def hcom_reduce_scatter(x: T, *, reduction: str, group: str, rank_size: int) -> T:
    if x.is_meta:
        return x.new_empty((x.size(0) // rank_size, *x.shape[1:]))
    return Group(group).reduce_scatter(x, reduction)


@host_kernel("HcomBroadcast", dynamic=("x",), ignores=("fusion", "fusion_id"), communicates=True)
def hcom_broadcast(x: list[T], *, root_rank: int, group: str) -> tuple[list[T]]:
    return ([torch.empty_like(t) if t.is_meta else Group(group).broadcast(t, root_rank) for t in x],)


@host_kernel("HcomAllToAll", communicates=True)
def hcom_all_to_all(x: T, *, group: str) -> T:
    if x.is_meta:
        return torch.empty_like(x)
    communicator = Group(group)
    counts = [x.numel() // communicator.ranks] * communicator.ranks
    places = _places(counts, None)
    return communicator.all_to_all(x, counts, places, counts, places).view(x.shape)


@host_kernel("HcomAllToAllV", values=("recv_counts", "recv_displacements"), communicates=True)
def hcom_all_to_all_v(
    send_data: T,
    send_counts: T,
    send_displacements: T,
    recv_counts: T,
    recv_displacements: T,
    *,
    group: str,
) -> T:
    received = ints(recv_counts)
    row = max(send_data[0].numel(), 1) if send_data.dim() > 1 and send_data.size(0) else 1
    shape = (sum(received) // row, *(send_data.shape[1:] if row > 1 else ()))
    if send_data.is_meta:
        return send_data.new_empty(shape)
    flat = Group(group).all_to_all(
        send_data, ints(send_counts), ints(send_displacements), received, ints(recv_displacements)
    )
    return flat.view(shape)


@host_kernel("HcomSend", ignores=("sr_tag",), communicates=True)
def hcom_send(x: T, *, group: str, dest_rank: int) -> tuple[()]:
    if not x.is_meta:
        Group(group).send(x, dest_rank)
    return ()


def _received(*, group: str, src_rank: int, shape: list[int], dtype: int) -> T:
    return torch.empty(shape, dtype=torch_dtype(dtype))


@host_kernel("HcomReceive", ignores=("sr_tag",), communicates=True, infer=_received)
def hcom_receive(*, group: str, src_rank: int, shape: list[int], dtype: int) -> T:
    y = _received(group=group, src_rank=src_rank, shape=shape, dtype=dtype)
    Group(group).receive(y, src_rank)
    return y


def _checkproduct(x1: T, x2: T, is_trans_a: bool, most_k: int, least_k: int = 0) -> None:
    """What CANN's reference says of the matrices that are multiplied and communicated at once."""
    if x1.dtype not in (torch.float16, torch.bfloat16) or x2.dtype != x1.dtype:
        raise ValueError(f"x1 is {x1.dtype} and x2 {x2.dtype}; both must be float16, or both bfloat16")
    if is_trans_a:
        raise ValueError("x1 cannot be transposed")
    if not least_k <= x1.size(-1) <= most_k:
        raise ValueError(f"x1 of shape {tuple(x1.shape)}: its last dimension must be {least_k} to {most_k}")


def _check_bias(bias: T | None) -> None:
    if bias is not None and not bias.is_meta and bool(bias.count_nonzero()):
        raise ValueError("a bias other than zero is not supported by the device; add it to the result")


@host_kernel(
    "MatmulAllReduce",
    ignores=("comm_turn", "stream_mode", "group_size", "antiquant_group_size", "y_dtype"),
    communicates=True,
)
def matmul_all_reduce(
    x1: T,
    x2: T,
    bias: T | None = None,
    x3: T | None = None,
    antiquant_scale: T | None = None,
    antiquant_offset: T | None = None,
    dequant_scale: T | None = None,
    pertoken_scale: T | None = None,
    comm_quant_scale_1: T | None = None,
    comm_quant_scale_2: T | None = None,
    *,
    group: str,
    reduce_op: str = "sum",
    is_trans_a: bool = False,
    is_trans_b: bool = False,
    comm_quant_mode: int = 0,
    comm_mode: str = "ai_cpu",
) -> T:
    """The sum over the ranks of each one's product."""
    scales = (antiquant_scale, antiquant_offset, dequant_scale, pertoken_scale, comm_quant_scale_1, comm_quant_scale_2)
    if any(scale is not None for scale in scales) or comm_quant_mode or comm_mode != "ai_cpu":
        raise ValueError("quantised products and quantised communication are not supported on the host")
    if reduce_op != "sum":
        raise ValueError(f"reduce_op {reduce_op!r} is not supported by the device; it must be 'sum'")
    _checkproduct(x1, x2, is_trans_a, most_k=65535)
    y = product(x1, x2, False, is_trans_b, bias)
    if x3 is not None:
        y = y + x3
    return y if y.is_meta else Group(group).all_reduce(y, reduce_op)


@host_kernel("MatmulReduceScatter", ignores=("comm_turn", "stream_mode"), communicates=True)
def matmul_reduce_scatter(
    x1: T,
    x2: T,
    bias: T | None = None,
    *,
    group: str,
    reduce_op: str = "sum",
    is_trans_a: bool = False,
    is_trans_b: bool = False,
    rank_size: int = 0,
) -> T:
    """This rank's rows of the sum over the ranks of each one's product."""
    if reduce_op != "sum":
        raise ValueError(f"reduce_op {reduce_op!r} is not supported by the device; it must be 'sum'")
    _checkproduct(x1, x2, is_trans_a, least_k=256, most_k=65534)
    _check_bias(bias)
    ranks = rank_size or Group(group).ranks
    y = product(x1, x2, False, is_trans_b, None)
    if y.size(0) % ranks:
        raise ValueError(f"x1 of shape {tuple(x1.shape)}: its rows are no multiple of {ranks} ranks")
    return y[: y.size(0) // ranks] if y.is_meta else Group(group).reduce_scatter(y, reduce_op)


@host_kernel("AllGatherMatmul", ignores=("comm_turn", "stream_mode"), communicates=True)
def all_gather_matmul(
    x1: T,
    x2: T,
    bias: T | None = None,
    *,
    group: str,
    is_trans_a: bool = False,
    is_trans_b: bool = False,
    gather_index: int = 0,
    rank_size: int = 0,
    is_gather_out: bool = True,
) -> tuple[T, T]:
    """The product of all ranks' rows, and those rows."""
    if gather_index != 0:
        raise ValueError(f"gather_index {gather_index} is not supported by the device; it must be 0")
    _checkproduct(x1, x2, is_trans_a, least_k=256, most_k=65534)
    _check_bias(bias)
    ranks = rank_size or Group(group).ranks
    rows = x1.new_empty(_times(x1.shape, ranks)) if x1.is_meta else Group(group).all_gather(x1)
    return product(rows, x2, False, is_trans_b, None), rows if is_gather_out else rows.new_empty(0)


# ------------------------------------------------------------------------------------------------------------- experts


def _refuse(asked: Mapping[str, object]) -> None:
    """Raise a ValueError where something is asked for that the host has not."""
    if names := [name for name, value in asked.items() if isinstance(value, T) or value]:
        raise ValueError(f"{', '.join(names)}: not supported on the host, which moves tokens as they are")


def _check_experts(
    world: int, experts: int, refused: Mapping[str, object], shared_expert_rank_num: int, tp_world_size: int
) -> int:
    """How many experts each rank has.

    Raises:
        ValueError: something that the host has not is asked for.
    """
    _refuse(refused)
    if shared_expert_rank_num != 0:
        raise ValueError(f"shared_expert_rank_num {shared_expert_rank_num} is not supported on the host; it must be 0")
    if tp_world_size not in (0, 1):
        raise ValueError(f"tp_world_size {tp_world_size} is not supported on the host; it must be 0 or 1")
    if world < 1 or experts < 1 or experts % world:
        raise ValueError(f"moe_expert_num {experts} is no multiple of ep_world_size {world}")
    return experts // world


def _check_group(group: str, world: int, rank: int) -> Group:
    communicator = Group(group)
    if (communicator.ranks, communicator.rank) != (world, rank):
        raise ValueError(
            f"ep_world_size {world} and ep_rank_id {rank}: this process is rank {communicator.rank} of {communicator.ranks} in {group!r}"
        )
    return communicator


def _exchange(group: Group, rows: T, sent: Sequence[int], received: Sequence[int]) -> T:
    """Rows by rank, so many to each and so many from each."""
    width = rows[0].numel() if rows.size(0) else prod(rows.shape[1:])
    counts = [[n * width for n in numbers] for numbers in (sent, received)]
    flat = group.all_to_all(rows, counts[0], _places(counts[0], None), counts[1], _places(counts[1], None))
    return flat.view(sum(received), *rows.shape[1:])


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
    """Every token's row to the ranks of its experts, where they lie by expert, then by the rank that they come from.

    ``expand_idx`` numbers the tokens that this rank sends to an expert; ``ep_recv_count`` are prefix sums over experts and ranks.
    """
    refused = {"scales": scales, "x_active_mask": x_active_mask, "quant_mode": quant_mode}
    local = _check_experts(ep_world_size, moe_expert_num, refused, shared_expert_rank_num, tp_world_size)
    if expert_token_nums_type not in (0, 1):
        raise ValueError(f"expert_token_nums_type {expert_token_nums_type} must be 0 (prefix sums) or 1 (counts)")
    tokens, k = expert_ids.shape
    most = (global_bs or tokens * ep_world_size) * min(local, k)
    expand_x = x.new_zeros(most * max(tp_world_size, 1), x.size(1))
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
    if experts.numel() and not 0 <= int(experts.min()) <= int(experts.max()) < moe_expert_num:
        raise ValueError(
            f"expert_ids are {int(experts.min())} to {int(experts.max())}; they must be 0 to {moe_expert_num - 1}"
        )
    sent = experts.bincount(minlength=moe_expert_num)
    order = experts.argsort(stable=True)
    numbered = torch.empty_like(experts)
    numbered[order] = torch.arange(experts.numel()) - (sent.cumsum(0) - sent)[experts[order]]
    received = _exchange(group, sent, [local] * ep_world_size, [local] * ep_world_size).view(ep_world_size, local)
    rows = _exchange(group, x[order // k], ints(sent.view(-1, local).sum(1)), ints(received.sum(1)))
    if rows.size(0) > most:
        raise ValueError(f"global_bs {global_bs}: {rows.size(0)} tokens come to this rank, {most} are the most for it")
    of_expert = torch.arange(local).repeat(ep_world_size).repeat_interleave(received.flatten())
    expand_x[: rows.size(0)] = rows[of_expert.argsort(stable=True)]
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
    """The experts' rows back to where their tokens came from, and the sum of each token's, weighted."""
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


#: Attrs of the second versions that change nothing here, and those that other kinds of experts have.
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
    """As the first version; what tells the combination where tokens came from has room for three numbers of each and more."""
    _refuse({"elastic_info": elastic_info, "performance_info": performance_info})
    _refuse({name: attrs.pop(name, 0) for name in _KINDS})
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
    """As the first version; ``shared_expert_x`` is added to the sums."""
    _refuse({"elastic_info": elastic_info, "performance_info": performance_info, "ori_x": ori_x})
    _refuse({name: attrs.pop(name, 0) for name in _KINDS})
    given = (activation_scale, weight_scale, group_list, expand_scales)
    weighed = (expert_ids, assist_info_for_combine, ep_send_counts, expert_scales, tp_send_counts, x_active_mask)
    found = moe_distribute_combine(expand_x, *weighed, *given, **attrs)
    return (
        found if shared_expert_x is None else (found.float() + shared_expert_x.view_as(found).float()).to(found.dtype)
    )

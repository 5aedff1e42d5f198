"""Collectives in graphs: the calling process's part in them, through libhccl as outside of graphs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from itertools import accumulate

import torch

from ascend_graph.environment import toolkit_directory
from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.kernels.checks import check_choice
from ascend_graph.host.kernels.registry import host_kernel
from ascend_graph.host.kernels.tensor.shape import ints

T = torch.Tensor

#: Numbers of HcclDataType and HcclReduceOp.
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


class Communicator:
    """Communicator found by its name; its methods return when this process's part is done.

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
        """Return the reduction of all ranks' ``x``."""
        x, y = x.contiguous(), torch.empty(x.shape, dtype=x.dtype)
        self._run("HcclAllReduce", _at(x), _at(y), _count(x), _dtype(x), _reduction(reduction))
        return y

    def all_gather(self, x: T) -> T:
        """Return all ranks' ``x``, concatenated along the first dimension."""
        x, y = x.contiguous(), torch.empty(times(x.shape, self.ranks), dtype=x.dtype)
        self._run("HcclAllGather", _at(x), _at(y), _count(x), _dtype(x))
        return y

    def reduce_scatter(self, x: T, reduction: str) -> T:
        """Return this rank's part, along the first dimension, of the reduction of all ranks' ``x``."""
        if x.size(0) % self.ranks:
            raise ValueError(f"the first dimension of {tuple(x.shape)} must be a multiple of the {self.ranks} ranks")
        x, y = x.contiguous(), torch.empty((x.size(0) // self.ranks, *x.shape[1:]), dtype=x.dtype)
        self._run("HcclReduceScatter", _at(x), _at(y), _count(y), _dtype(x), _reduction(reduction))
        return y

    def broadcast(self, x: T, root: int) -> T:
        """Return ``x`` of the rank ``root``."""
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
        """Return the elements that every rank sends to this one; counts and offsets are by rank."""
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
    check_choice("reduction", name, *_REDUCTIONS)
    return _REDUCTIONS[name]


def _numbers(values: Sequence[int]) -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * len(values))(*values)


def times(shape: Sequence[int], ranks: int) -> tuple[int, ...]:
    return (shape[0] * ranks, *shape[1:])


def places_of(counts: Sequence[int], displacements: T | None) -> list[int]:
    return [0, *accumulate(counts)][:-1] if displacements is None else ints(displacements)


@host_kernel("HcomAllReduce", ignores=("fusion", "fusion_id"), communicates=True)
def hcom_all_reduce(x: T, *, reduction: str, group: str) -> T:
    return torch.empty_like(x) if x.is_meta else Communicator(group).all_reduce(x, reduction)


@host_kernel("HcomAllGather", ignores=("fusion", "fusion_id"), communicates=True)
def hcom_all_gather(x: T, *, rank_size: int, group: str) -> T:
    return x.new_empty(times(x.shape, rank_size)) if x.is_meta else Communicator(group).all_gather(x)


@host_kernel("HcomReduceScatter", ignores=("fusion", "fusion_id"), communicates=True)
def hcom_reduce_scatter(x: T, *, reduction: str, group: str, rank_size: int) -> T:
    if x.is_meta:
        return x.new_empty((x.size(0) // rank_size, *x.shape[1:]))
    return Communicator(group).reduce_scatter(x, reduction)


@host_kernel("HcomBroadcast", dynamic=("x",), ignores=("fusion", "fusion_id"), communicates=True)
def hcom_broadcast(x: list[T], *, root_rank: int, group: str) -> tuple[list[T]]:
    return ([torch.empty_like(t) if t.is_meta else Communicator(group).broadcast(t, root_rank) for t in x],)


@host_kernel("HcomAllToAll", communicates=True)
def hcom_all_to_all(x: T, *, group: str) -> T:
    if x.is_meta:
        return torch.empty_like(x)
    communicator = Communicator(group)
    counts = [x.numel() // communicator.ranks] * communicator.ranks
    places = places_of(counts, None)
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
    flat = Communicator(group).all_to_all(
        send_data, ints(send_counts), ints(send_displacements), received, ints(recv_displacements)
    )
    return flat.view(shape)


@host_kernel("HcomSend", ignores=("sr_tag",), communicates=True)
def hcom_send(x: T, *, group: str, dest_rank: int) -> tuple[()]:
    if not x.is_meta:
        Communicator(group).send(x, dest_rank)
    return ()


def _received(*, group: str, src_rank: int, shape: list[int], dtype: int) -> T:
    return torch.empty(shape, dtype=torch_dtype(dtype))


@host_kernel("HcomReceive", ignores=("sr_tag",), communicates=True, infer=_received)
def hcom_receive(*, group: str, src_rank: int, shape: list[int], dtype: int) -> T:
    y = _received(group=group, src_rank=src_rank, shape=shape, dtype=dtype)
    Communicator(group).receive(y, src_rank)
    return y

"""Matmuls fused with a collective: all-reduce, reduce-scatter and all-gather."""

from __future__ import annotations

import os

import torch

from ascend_graph.environment import processor
from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.kernels.checks import check_choice, check_multiple, listed
from ascend_graph.host.kernels.collectives.communication import Communicator, times
from ascend_graph.host.kernels.matmul.matmul import product
from ascend_graph.host.kernels.matmul.quantized_matmul import quant_batch_matmul, weight_quant_batch_matmul
from ascend_graph.host.kernels.quantization.quantize import saturated
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

#: Supported numbers of ranks of a matmul with an all-gather or a reduce-scatter, by hardware.
_RANKS = {
    "Ascend910B1": (2, 4, 8),
    "Ascend910_9391": (2, 4, 8, 16, 32),
    "Ascend950PR_9589": (2, 4, 8, 16, 32, 64),
}
#: Numbers in GE of the result dtypes of quantized matmuls.
_NUMBERS = {torch.float16: 1, torch.bfloat16: 27}
#: Result dtype by the scale's dtype and whether each row has a scale, for int8 matmuls.
_QUANTIZED = {
    (torch.int64, False): torch.float16,
    (torch.uint64, False): torch.float16,
    (torch.bfloat16, False): torch.bfloat16,
    (torch.float32, True): torch.float16,
    (torch.bfloat16, True): torch.bfloat16,
}


def _check_product(x1: T, x2: T, is_trans_a: bool, most_k: int, least_k: int = 0) -> None:
    """Check the operands of a communicated matmul against CANN's reference."""
    if x1.dtype not in (torch.float16, torch.bfloat16) or x2.dtype != x1.dtype:
        raise ValueError(f"x1 is {x1.dtype} and x2 {x2.dtype}; both must be float16, or both bfloat16")
    if is_trans_a:
        raise ValueError("x1 cannot be transposed; give is_trans_a=False")
    if not least_k <= x1.size(-1) <= most_k:
        raise ValueError(f"x1 of shape {tuple(x1.shape)}: its last dimension must be {least_k} to {most_k}")


def _check_bias(bias: T | None) -> None:
    if bias is not None and not bias.is_meta and bool(bias.count_nonzero()):
        raise ValueError("a bias other than zero is not supported by the device; add it to the result")


@host_kernel(
    "MatmulAllReduce",
    ignores=("comm_turn", "stream_mode", "group_size", "y_dtype"),
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
    antiquant_group_size: int = 0,
    comm_quant_mode: int = 0,
    comm_mode: str = "ai_cpu",
) -> T:
    """Sum each rank's matmul over the ranks: floats, int8, or an int8 weight; plain, or as int8 by two scales."""
    check_choice("comm_quant_mode", comm_quant_mode, 0)
    check_choice("comm_mode", comm_mode, "ai_cpu")
    check_choice("reduce_op", reduce_op, "sum")
    antiquant = {"antiquant_scale": antiquant_scale, "antiquant_offset": antiquant_offset}
    dequant = {"dequant_scale": dequant_scale, "pertoken_scale": pertoken_scale}
    communicated = {"comm_quant_scale_1": comm_quant_scale_1, "comm_quant_scale_2": comm_quant_scale_2}
    if x1.dtype is x2.dtype is torch.int8:
        _refuse("of int8", antiquant)
        y = _int8_product(x1, x2, is_trans_a, is_trans_b, bias, dequant_scale, pertoken_scale)
    elif x2.dtype is torch.int8:
        _refuse("of floats and an int8 weight", dequant | communicated)
        y = _int8_weight_product(
            x1, x2, is_trans_a, is_trans_b, bias, antiquant_scale, antiquant_offset, antiquant_group_size
        )
    else:
        _refuse("of floats", antiquant | dequant | communicated)
        _check_product(x1, x2, is_trans_a, most_k=65535)
        y = product(x1, x2, False, is_trans_b, bias)
    if x3 is not None:
        if x3.dtype is not y.dtype or x3.shape != y.shape:
            raise ValueError(
                f"x3 is {x3.dtype} of shape {tuple(x3.shape)}; expected {y.dtype} of shape {tuple(y.shape)}, as the "
                "matmul gives"
            )
        y = y + x3
    scales = [_communication_scale(name, scale, y) for name, scale in communicated.items() if scale is not None]
    if len(scales) == 1:
        raise ValueError("comm_quant_scale_1 and comm_quant_scale_2 go together: give both or none")
    if y.is_meta:
        return y
    return (
        _summed_as_int8(y, *scales, group=Communicator(group))
        if scales
        else Communicator(group).all_reduce(y, reduce_op)
    )


def _refuse(what: str, scales: dict[str, T | None]) -> None:
    given = [name for name, scale in scales.items() if scale is not None]
    if given:
        raise ValueError(f"a matmul {what} takes no {', '.join(given)}")


def _int8_product(
    x1: T, x2: T, is_trans_a: bool, is_trans_b: bool, bias: T | None, scale: T | None, by_row: T | None
) -> T:
    """Multiply int8 matrices and add a bias, by a scale for all or each column, and optionally one for each row."""
    _check_sizes(x1, is_trans_a)
    if scale is None:
        raise ValueError("a matmul of int8 needs dequant_scale")
    dtype = _QUANTIZED.get((scale.dtype, by_row is not None))
    if dtype is None:
        raise ValueError(
            f"dequant_scale is {scale.dtype} {'with' if by_row is not None else 'without'} a pertoken_scale; it must be int64, uint64 "
            "(as npu_trans_quant_param gives it) or bfloat16 without one, float32 or bfloat16 with one"
        )
    if by_row is not None and by_row.dtype is not torch.float32:
        raise ValueError(f"pertoken_scale is {by_row.dtype}; it must be float32")
    if bias is not None and bias.dtype is not torch.int32:
        raise ValueError(f"bias is {bias.dtype}; of a matmul of int8 it must be int32")
    rows = x1.reshape(-1, x1.size(-1))
    y = quant_batch_matmul(
        rows, x2, scale.reshape(-1), None, bias, by_row, dtype=_NUMBERS[dtype], transpose_x2=is_trans_b
    )
    return y.reshape(*x1.shape[:-1], y.size(-1))


def _int8_weight_product(
    x1: T, x2: T, is_trans_a: bool, is_trans_b: bool, bias: T | None, scale: T | None, offset: T | None, group_size: int
) -> T:
    """Multiply by a weight (x2 + offset) * scale, scaled for all, by column, or by column of a group of rows."""
    _check_sizes(x1, is_trans_a)
    if x1.dtype not in _NUMBERS:
        raise ValueError(f"x1 is {x1.dtype}; with an int8 weight it must be float16 or bfloat16")
    if scale is None:
        raise ValueError("a matmul with an int8 weight needs antiquant_scale")
    for name, values in (("antiquant_scale", scale), ("antiquant_offset", offset), ("bias", bias)):
        if values is not None and values.dtype is not x1.dtype:
            raise ValueError(f"{name} is {values.dtype}; it must be that of x1, {x1.dtype}")
    if group_size:
        check_multiple("antiquant_group_size", group_size, 32, x1.size(-1) - 1)
    return weight_quant_batch_matmul(
        x1, x2, scale, offset, bias=bias, transpose_weight=is_trans_b, antiquant_group_size=group_size
    )


def _check_sizes(x1: T, is_trans_a: bool) -> None:
    if is_trans_a:
        raise ValueError("x1 cannot be transposed; give is_trans_a=False")
    if not x1.numel() or not 1 <= x1.size(-1) <= 65535:
        raise ValueError(
            f"x1 of shape {tuple(x1.shape)}: it cannot be empty, and its last dimension must be 1 to 65535"
        )


def _communication_scale(name: str, scale: T, y: T) -> T:
    """Return a communication scale, one number for each column."""
    if scale.dtype is not y.dtype or tuple(scale.shape) not in ((y.size(-1),), (1, y.size(-1))):
        raise ValueError(
            f"{name} is {scale.dtype} of shape {tuple(scale.shape)}; it must be {y.dtype} of shape ({y.size(-1)},) or (1, {y.size(-1)})"
        )
    return scale.reshape(-1).float()


def _summed_as_int8(y: T, sent: T, summed: T, *, group: Communicator) -> T:
    """Sum each rank's values as int8 by one scale, and return the sum quantized as int8 by another.

    A device has every rank sum a part of the rows (all-to-all, then all-gather); element by element it is the sum of
    all integers.
    """
    total = group.all_reduce(saturated(y.float() / sent).to(torch.int32), "sum")
    return (saturated(total.float() * (sent / summed)).float() * summed).to(y.dtype)


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
    """Return this rank's rows of the sum over the ranks of each one's matmul."""
    check_choice("reduce_op", reduce_op, "sum")
    _check_product(x1, x2, is_trans_a, least_k=256, most_k=65534)
    _check_bias(bias)
    return _summed_and_shared(product(x1, x2, False, is_trans_b, None), group, rank_size)


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
    """Return the matmul of all ranks' rows, and those rows."""
    check_choice("gather_index", gather_index, 0)
    _check_product(x1, x2, is_trans_a, least_k=256, most_k=65534)
    _check_bias(bias)
    rows = _of_all_ranks(x1, group, rank_size)
    return product(rows, x2, False, is_trans_b, None), rows if is_gather_out else rows.new_empty(0)


def _summed_and_shared(y: T, group: str, rank_size: int) -> T:
    """Return this rank's rows of the sum over the ranks."""
    ranks = _ranks(group, rank_size)
    if y.size(0) % ranks:
        raise ValueError(f"x1 has {y.size(0)} rows; expected a multiple of the {ranks} ranks")
    return y[: y.size(0) // ranks] if y.is_meta else Communicator(group).reduce_scatter(y, "sum")


def _of_all_ranks(x: T, group: str, rank_size: int) -> T:
    """Gather all ranks' rows, one rank's after the other's."""
    ranks = _ranks(group, rank_size)
    if x.is_meta:
        return x.new_empty(times(x.shape, ranks))
    return Communicator(group).all_gather(x)


def _ranks(group: str, rank_size: int) -> int:
    """Return the number of ranks, if the hardware's documents allow it."""
    ranks = rank_size or Communicator(group).ranks
    if ranks not in (allowed := _RANKS.get(processor(os.environ), ())):
        raise ValueError(f"{ranks} ranks are not supported by this device; expected {listed(allowed or ('none',))}")
    return ranks


@host_kernel("MatmulReduceScatterV2", ignores=("comm_turn", "stream_mode"), communicates=True)
def matmul_reduce_scatter_v2(
    x1: T,
    x2: T,
    bias: T | None = None,
    x1_scale: T | None = None,
    x2_scale: T | None = None,
    quant_scale: T | None = None,
    *,
    group: str,
    reduce_op: str = "sum",
    is_trans_a: bool = False,
    is_trans_b: bool = False,
    rank_size: int = 0,
    block_size: int = 0,
    group_size: int = 0,
    is_amax_out: bool = False,
    y_dtype: int = 28,
    comm_mode: str = "ai_cpu",
) -> tuple[T, T]:
    """Return this rank's rows of the sum over the ranks of each one's matmul.

    Matmuls of int8 are dequantized before they are summed.
    """
    check_choice("reduce_op", reduce_op, "sum")
    _check_aiv(comm_mode, bias, quant_scale, block_size, group_size, is_amax_out)
    y = _scaled_product(x1, x2, x1_scale, x2_scale, is_trans_a, is_trans_b, y_dtype)
    return _summed_and_shared(y, group, rank_size), y.new_empty(0, dtype=torch.float32)


@host_kernel("AllGatherMatmulV2", ignores=("comm_turn", "stream_mode"), communicates=True)
def all_gather_matmul_v2(
    x1: T,
    x2: T,
    bias: T | None = None,
    x1_scale: T | None = None,
    x2_scale: T | None = None,
    quant_scale: T | None = None,
    *,
    group: str,
    is_trans_a: bool = False,
    is_trans_b: bool = False,
    gather_index: int = 0,
    rank_size: int = 0,
    block_size: int = 0,
    group_size: int = 0,
    is_gather_out: bool = True,
    is_amax_out: bool = False,
    y_dtype: int = 28,
    comm_mode: str | None = None,
) -> tuple[T, T, T]:
    """Return the matmul of all ranks' rows, and those rows.

    Matmuls of int8 use all ranks' row scales.
    """
    check_choice("gather_index", gather_index, 0)
    if not is_gather_out:
        raise ValueError("the rows of all ranks must be an output with comm_mode 'aiv'")
    _check_aiv(comm_mode, bias, quant_scale, block_size, group_size, is_amax_out)
    # What is wrong is refused before a rank waits for another.
    own_scale = None if x1_scale is None else x1_scale.to("meta")
    by_column = None if x2_scale is None else x2_scale.to("meta")
    _scaled_product(x1.to("meta"), x2.to("meta"), own_scale, by_column, is_trans_a, is_trans_b, y_dtype)
    rows = _of_all_ranks(x1, group, rank_size)
    by_row = None if x1_scale is None else _of_all_ranks(x1_scale, group, rank_size)
    y = _scaled_product(rows, x2, by_row, x2_scale, is_trans_a, is_trans_b, y_dtype)
    return y, rows, y.new_empty(0, dtype=torch.float32)


def _check_aiv(
    comm_mode: str | None, bias: T | None, quant_scale: T | None, block_size: int, group_size: int, is_amax_out: bool
) -> None:
    """Check the limits of the V2 operators on an Atlas A2.

    Vector cores communicate, and nothing but a matmul and its scales is supported.
    """
    check_choice("comm_mode", comm_mode, "aiv")
    asked = {"bias": bias is not None, "quant_scale": quant_scale is not None, "is_amax_out": is_amax_out}
    asked |= {"block_size": block_size != 0, "group_size": group_size != 0}
    if given := [name for name, is_there in asked.items() if is_there]:
        raise ValueError(
            f"{', '.join(given)}: not supported by this device with comm_mode 'aiv'; leave out "
            f"{'it' if len(given) == 1 else 'all of them'}"
        )


def _scaled_product(
    x1: T, x2: T, by_row: T | None, by_column: T | None, is_trans_a: bool, is_trans_b: bool, y_dtype: int
) -> T:
    """Multiply float matrices, or int8 ones by a scale for each column and optionally each row."""
    if not x1.numel() or not x2.numel():
        raise ValueError(f"x1 of shape {tuple(x1.shape)} and x2 of shape {tuple(x2.shape)} must not be empty")
    if x1.dtype is not torch.int8:
        _refuse("of floats", {"x1_scale": by_row, "x2_scale": by_column})
        _check_product(x1, x2, is_trans_a, least_k=256, most_k=65534)
        return product(x1, x2, False, is_trans_b, None)
    if is_trans_a:
        raise ValueError("x1 cannot be transposed; give is_trans_a=False")
    k, n = x1.size(-1), x2.size(0 if is_trans_b else 1)
    if x2.dtype is not torch.int8 or not 256 <= k < 65535:
        raise ValueError(
            f"x1 is int8 of shape {tuple(x1.shape)} and x2 {x2.dtype}; both must be int8, and the last dimension of x1 256 to 65534"
        )
    if by_column is None:
        raise ValueError("a matmul of int8 needs x2_scale")
    target = torch_dtype(y_dtype)
    dtypes = {torch.float32: (torch.float16, torch.bfloat16), torch.int64: (torch.float16,)}
    if target not in dtypes.get(by_column.dtype, ()):
        raise ValueError(
            f"x2_scale is {by_column.dtype} and the result {target}; it must be float32 for float16 and bfloat16, or int64 (as "
            "npu_trans_quant_param gives it) for float16"
        )
    for name, scale, shape in (("x1_scale", by_row, (x1.size(0), 1)), ("x2_scale", by_column, (1, n))):
        if scale is not None and tuple(scale.shape) != shape:
            raise ValueError(f"{name} is of shape {tuple(scale.shape)}; it must be {shape}")
    if by_row is not None and by_row.dtype is not torch.float32:
        raise ValueError(f"x1_scale is {by_row.dtype}; it must be float32")
    rows = None if by_row is None else by_row.reshape(-1)
    return quant_batch_matmul(x1, x2, by_column.reshape(-1), None, None, rows, dtype=y_dtype, transpose_x2=is_trans_b)

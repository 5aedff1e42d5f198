"""Quantization to integers of 8 and 4 bits and to 8-bit floats."""

from __future__ import annotations

import torch

from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.kernels.checks import check_choice, check_count, check_shape
from ascend_graph.host.kernels.quantization import hifloat8
from ascend_graph.host.kernels.quantization.four_bits import as_int4, integers, packed, unpacked
from ascend_graph.host.kernels.registry import host_kernel
from ascend_graph.host.kernels.tensor.indexing import scatter

T = torch.Tensor

INT8, _INT32, _UINT8, _INT4, HIF8, E5M2, E4M3 = 2, 3, 4, 29, 34, 35, 36
FLOAT8 = {E5M2: torch.float8_e5m2, E4M3: torch.float8_e4m3fn}
#: Smallest and largest number of each target dtype; an int32 holds eight 4-bit numbers.
_RANGES = {INT8: (-128, 127), _UINT8: (0, 255), _INT32: (-8, 7), _INT4: (-8, 7)}
_ROUND = {"round": torch.round, "rint": torch.round, "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc}


def range_of(dst_type: int) -> tuple[float, float]:
    if dst_type in FLOAT8:
        largest = torch.finfo(FLOAT8[dst_type]).max
        return -largest, largest
    if dst_type == HIF8:
        return -hifloat8.LARGEST, hifloat8.LARGEST
    if dst_type not in _RANGES:
        raise ValueError(
            f"dst_type {dst_type} is not supported; {INT8} (int8), {_UINT8} (uint8), {_INT32} (eight int4 in an int32), "
            f"{_INT4} (int4), {HIF8} (hifloat8, by scales of its own), {E5M2} (float8_e5m2) and {E4M3} (float8_e4m3fn) are"
        )
    return _RANGES[dst_type]


def saturated(x: T, dst_type: int = INT8, round_mode: str = "rint") -> T:
    """Round numbers and clamp them to the range of a dtype; for int32, pack eight 4-bit numbers in each."""
    check_choice("round_mode", round_mode, *_ROUND)
    low, high = range_of(dst_type)
    if dst_type == HIF8:
        raise ValueError(
            f"dst_type {HIF8} (hifloat8) by given scales: documents do not say what becomes of numbers beyond its largest; "
            "dynamic quantization, whose numbers all fit, is supported"
        )
    if dst_type in FLOAT8:
        return x.clamp(low, high).to(FLOAT8[dst_type])
    whole = _ROUND[round_mode](x).clamp_(low, high)
    if dst_type == _INT4:
        return as_int4(whole)
    return packed(whole) if dst_type == _INT32 else whole.to(torch_dtype(dst_type))


def dynamic(x: T, dst_type: int = INT8, dims: int | list[int] = -1, largest: float = 0.0) -> tuple[T, T]:
    """Quantize each row by its own scale so that its largest becomes the dtype's largest; return the scales too."""
    scale = x.abs().amax(dims, keepdim=True) / (largest or range_of(dst_type)[1])
    return fitted(x / scale.masked_fill(scale == 0, 1), dst_type), scale


def fitted(x: T, dst_type: int) -> T:
    """Saturate numbers that are within the dtype's range except for rounding errors."""
    return hifloat8.encoded(x.clamp(*range_of(dst_type))) if dst_type == HIF8 else saturated(x, dst_type)


def rows_by_group(values: T, rows: int, ends: T) -> T:
    """Return values for each row out of those for each group; rows from one group's end belong to the next."""
    numbers = torch.searchsorted(ends.contiguous().long(), torch.arange(rows, device=ends.device), right=True)
    return values[numbers.clamp(max=values.size(0) - 1)]


def groups_of(group_index: T, rows: int) -> list[tuple[int, int]]:
    """Return the start and end of each group of rows, given the ends."""
    ends = [int(end) for end in group_index.tolist()]
    starts = [0, *ends[:-1]]
    if not ends or ends[-1] != rows or any(a > b for a, b in zip(starts, ends, strict=True)):
        raise ValueError(f"group_index {ends} must not fall, and end with the number of rows, {rows}")
    return list(zip(starts, ends, strict=True))


def _smoothed(x: T, smooth_scales: T | None, group_index: T | None) -> T:
    if smooth_scales is None:
        return x.float()
    scales = smooth_scales.float()
    if group_index is not None:
        rows = x.numel() // x.size(-1)
        if scales.size(0) != group_index.numel():
            raise ValueError(
                f"smooth_scales {tuple(scales.shape)} must have {group_index.numel()} rows, one for each group"
            )
        scales = rows_by_group(scales, rows, group_index).reshape(x.shape)
    else:
        check_shape("smooth_scales", scales, tuple(x.shape[-1:]), why="one for each column of x")
    return x.float() * scales


@host_kernel("DynamicQuant")
def dynamic_quant(
    x: T, smooth_scales: T | None = None, group_index: T | None = None, *, dst_type: int = INT8
) -> tuple[T, T]:
    y, scale = dynamic(_smoothed(x, smooth_scales, group_index), dst_type)
    return y, scale.squeeze(-1)


@host_kernel("DynamicQuantV2")
def dynamic_quant_v2(
    x: T,
    smooth_scales: T | None = None,
    group_index: T | None = None,
    *,
    dst_type: int = INT8,
    is_symmetrical: bool = False,
    quant_mode: str = "pertoken",
    dst_type_max: float = 0.0,
) -> tuple[T, T, T]:
    """Quantize as DynamicQuant, by rows, by columns or as a whole, symmetrically or not.

    Asymmetric quantization covers the range from the least to the largest number.
    """
    wide = _smoothed(x, smooth_scales, group_index)
    dims = {"pertoken": [-1], "perchannel": [-2], "pertensor": list(range(x.dim()))}.get(quant_mode)
    if dims is None:
        raise ValueError(f"quant_mode {quant_mode!r} is not one of pertoken, perchannel, pertensor")
    shape = (1,) if quant_mode == "pertensor" else wide.amax(dims).shape
    if is_symmetrical:
        y, scale = dynamic(wide, dst_type, dims, dst_type_max)
        return y, scale.reshape(shape), x.new_empty(0, dtype=torch.float32)
    low, high = range_of(dst_type)
    top, bottom = wide.amax(dims, keepdim=True), wide.amin(dims, keepdim=True)
    scale = (top - bottom) / (high - low)
    offset = high - top / torch.where(scale == 0, 1, scale)
    y = fitted(wide / torch.where(scale == 0, 1, scale) + offset, dst_type)
    return y, scale.reshape(shape), offset.reshape(shape)


@host_kernel("AscendQuantV2")
def ascend_quant(
    x: T,
    scale: T,
    offset: T | None = None,
    *,
    sqrt_mode: bool = False,
    round_mode: str = "round",
    dst_type: int = INT8,
    axis: int = -1,
) -> T:
    factor = _along(scale, x, axis).float()
    y = x.float() * (factor.square() if sqrt_mode else factor)
    if offset is not None:
        y = y + _along(offset, x, axis).float()
    return saturated(y, dst_type, round_mode)


@host_kernel("Quantize")
def quantize(x: T, scales: T, zero_points: T | None = None, *, dtype: str | int, axis: int = 1) -> T:
    """Divide numbers by their scale and round them; int32 is a dtype of its own here."""
    y = x.float() / _along(scales, x, axis).float()
    if zero_points is not None:
        y = y + _along(zero_points, x, axis).float()
    names = {"torch.qint8": INT8, "torch.quint8": _UINT8, "torch.qint32": _INT32}
    number = names.get(dtype, -1) if isinstance(dtype, str) else dtype
    if number == _INT32:
        return torch.round(y.double()).clamp(-(2**31), 2**31 - 1).to(torch.int32)
    return saturated(y, number)


@host_kernel("AscendAntiQuantV2")
def ascend_anti_quant(x: T, scale: T, offset: T | None = None, *, dst_type: int = 1, sqrt_mode: bool = False) -> T:
    numbers = unpacked(x) if x.dtype == torch.int32 else integers(x)
    numbers = numbers.float()
    shifted = numbers if offset is None else numbers + offset.float()
    factor = scale.float()
    return (shifted * (factor.square() if sqrt_mode else factor)).to(torch_dtype(dst_type))


def _along(values: T, x: T, axis: int) -> T:
    """Align values of one dimension with an axis of ``x``."""
    if values.dim() != 1 or values.numel() == 1:
        return values
    check_count("a scale or offset", values, x.size(axis), f"element of axis {axis} of x")
    return values.reshape([-1 if dim == axis % x.dim() else 1 for dim in range(x.dim())])


@host_kernel("GroupQuant")
def group_quant(x: T, scale: T, group_index: T, offset: T | None = None, *, dst_type: int = INT8) -> T:
    """Quantize rows by the scales of their group; the groups are given by their ends."""
    if group_index.numel() != scale.size(0) or scale.size(1) != x.size(1):
        raise ValueError(
            f"scale {tuple(scale.shape)} is not valid; expected [{group_index.numel()} groups, {x.size(1)} columns], "
            "as group_index and x have"
        )
    if not x.is_meta:
        ends = group_index.tolist()
        if ends != sorted(ends) or (ends and (ends[0] < 0 or ends[-1] != x.size(0))):
            raise ValueError(f"group_index {ends} must not decrease, and end with the number of rows, {x.size(0)}")
    y = x.float() * rows_by_group(scale.float(), x.size(0), group_index)
    return saturated(y if offset is None else y + offset.float(), dst_type)


@host_kernel("QuantScatter", writes=("data",))
def quant_scatter(
    data: T,
    indices: T,
    updates: T,
    quant_scales: T,
    quant_zero_points: T | None = None,
    *,
    axis: int = 0,
    quant_axis: int = 1,
    reduce: str | int = "update",
) -> T:
    """Scatter updates along an axis, quantized by scales for the last dimension."""
    check_choice("quant_axis", quant_axis % updates.dim(), updates.dim() - 1)
    if reduce not in ("update", 1):  # 1 is what aclnnInplaceQuantScatter has
        raise ValueError(f"reduce {reduce!r} is not update")
    y = updates.float() / quant_scales.float().reshape(-1)
    if quant_zero_points is not None:
        y = y + quant_zero_points.float().reshape(-1)
    return scatter(data, indices, saturated(y).to(data.dtype), reduce="update", axis=axis)


@host_kernel("QuantUpdateScatter", writes=("var",))
def quant_update_scatter(
    var: T,
    indices: T,
    updates: T,
    quant_scales: T,
    quant_zero_points: T | None = None,
    *,
    reduce: str,
    axis: int = -2,
    quant_axis: int = -1,
    round_mode: str = "rint",
) -> T:
    """Run QuantScatter, as graphs call it."""
    check_choice("round_mode", round_mode, "rint")
    return quant_scatter(
        var, indices, updates, quant_scales, quant_zero_points, axis=axis, quant_axis=quant_axis, reduce=reduce
    )


@host_kernel("FlatQuant")
def flat_quant(
    x: T,
    kronecker_p1: T,
    kronecker_p2: T,
    *,
    clip_ratio: float = 1.0,
    dst_dtype: int = _INT32,
    dst_type_max: float = 0.0,
) -> tuple[T, T]:
    """Multiply each matrix of a batch by one on each side, and quantize to 4 bits by one scale."""
    if dst_type_max:
        raise ValueError(f"dst_type_max {dst_type_max} is not supported; 0 is")
    y = (kronecker_p1.float() @ (x.float() @ kronecker_p2.float())).to(x.dtype).float()
    scale = y.abs().amax((-2, -1), keepdim=True) / (7 * clip_ratio)
    return saturated(y / torch.where(scale == 0, 1, scale), dst_dtype), scale.reshape(-1)

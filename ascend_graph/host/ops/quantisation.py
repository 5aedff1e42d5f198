"""Quantisation to integers of 8 and 4 bits and to 8-bit floats, of tensors as they are and behind gated units."""

from __future__ import annotations

import torch

from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.ops import hifloat8
from ascend_graph.host.ops.four_bits import as_int4, integers, packed, unpacked
from ascend_graph.host.ops.indexing import scatter
from ascend_graph.host.ops.registry import host_kernel

T = torch.Tensor

INT8, _INT32, _UINT8, _INT4, _HIF8, _E5M2, _E4M3 = 2, 3, 4, 29, 34, 35, 36
_FLOAT8 = {_E5M2: torch.float8_e5m2, _E4M3: torch.float8_e4m3fn}
#: The smallest and the largest number of what is quantised to; an int32 holds eight numbers of 4 bits.
_RANGES = {INT8: (-128, 127), _UINT8: (0, 255), _INT32: (-8, 7), _INT4: (-8, 7)}
#: Of blocks of groups.
_ROWS, _COLUMNS = (1, 128, 256, 512), (64, 128, 192, 256)
_MOST_GROUPS = 384
_ROUND = {"round": torch.round, "rint": torch.round, "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc}


def _range_of(dst_type: int) -> tuple[float, float]:
    if dst_type in _FLOAT8:
        largest = torch.finfo(_FLOAT8[dst_type]).max
        return -largest, largest
    if dst_type == _HIF8:
        return -hifloat8.LARGEST, hifloat8.LARGEST
    if dst_type not in _RANGES:
        raise ValueError(
            f"dst_type {dst_type} is not supported; {INT8} (int8), {_UINT8} (uint8), {_INT32} (eight int4 in an int32), "
            f"{_INT4} (int4), {_HIF8} (hifloat8, by scales of its own), {_E5M2} (float8_e5m2) and {_E4M3} (float8_e4m3fn) are"
        )
    return _RANGES[dst_type]


def saturated(x: T, dst_type: int = INT8, round_mode: str = "rint") -> T:
    """Numbers rounded and cut to the range of a dtype; for int32 numbers of 4 bits, eight in each."""
    if round_mode not in _ROUND:
        raise ValueError(f"round_mode {round_mode!r} is not one of {', '.join(_ROUND)}")
    low, high = _range_of(dst_type)
    if dst_type == _HIF8:
        raise ValueError(
            f"dst_type {_HIF8} (hifloat8) by given scales: documents do not say what becomes of numbers beyond its largest; "
            "dynamic quantisation, whose numbers all fit, is supported"
        )
    if dst_type in _FLOAT8:
        return x.clamp(low, high).to(_FLOAT8[dst_type])
    whole = _ROUND[round_mode](x).clamp_(low, high)
    if dst_type == _INT4:
        return as_int4(whole)
    return packed(whole) if dst_type == _INT32 else whole.to(torch_dtype(dst_type))


def dynamic(x: T, dst_type: int = INT8, dims: int | list[int] = -1, largest: float = 0.0) -> tuple[T, T]:
    """Numbers by a scale of their own for each row, so that the largest becomes the dtype's largest, and the scales."""
    scale = x.abs().amax(dims, keepdim=True) / (largest or _range_of(dst_type)[1])
    return fitted(x / scale.masked_fill(scale == 0, 1), dst_type), scale


def fitted(x: T, dst_type: int) -> T:
    """As ``saturated``, of numbers that are within the dtype's range but for errors of rounding."""
    return hifloat8.encoded(x.clamp(*_range_of(dst_type))) if dst_type == _HIF8 else saturated(x, dst_type)


def _by_group(values: T, rows: int, ends: T) -> T:
    """Of values for each group those for each row; rows from one group's end belong to the next."""
    numbers = torch.searchsorted(ends.contiguous().long(), torch.arange(rows, device=ends.device), right=True)
    return values[numbers.clamp(max=values.size(0) - 1)]


def groups_of(group_index: T, rows: int) -> list[tuple[int, int]]:
    """Where each group of rows begins and ends, by the ends."""
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
            raise ValueError(f"smooth_scales {tuple(scales.shape)} has no row for each of {group_index.numel()} groups")
        scales = _by_group(scales, rows, group_index).reshape(x.shape)
    elif scales.shape != x.shape[-1:]:
        raise ValueError(f"smooth_scales of shape {tuple(scales.shape)} does not suit rows of {x.size(-1)}")
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
    """As DynamicQuant, for rows, columns or the whole; not symmetrical: the range from the least to the largest number."""
    wide = _smoothed(x, smooth_scales, group_index)
    dims = {"pertoken": [-1], "perchannel": [-2], "pertensor": list(range(x.dim()))}.get(quant_mode)
    if dims is None:
        raise ValueError(f"quant_mode {quant_mode!r} is not one of pertoken, perchannel, pertensor")
    shape = (1,) if quant_mode == "pertensor" else wide.amax(dims).shape
    if is_symmetrical:
        y, scale = dynamic(wide, dst_type, dims, dst_type_max)
        return y, scale.reshape(shape), x.new_empty(0, dtype=torch.float32)
    low, high = _range_of(dst_type)
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
    """Numbers divided by their scale; int32 is a dtype of its own here."""
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
    """Values of one dimension along an axis of ``x``."""
    if values.dim() != 1 or values.numel() == 1:
        return values
    if values.numel() != x.size(axis):
        raise ValueError(f"{values.numel()} scales or offsets; axis {axis} of {tuple(x.shape)} has {x.size(axis)}")
    return values.reshape([-1 if dim == axis % x.dim() else 1 for dim in range(x.dim())])


def gated(x: T, activate_left: bool, mode: int = 0, limit: float = 7.0, alpha: float = 1.702, bias: float = 1.0) -> T:
    """One half as gate of the other: silu (mode 0); cut, with another slope, of pairs (1) or halves (2)."""
    if x.size(-1) % 2:
        raise ValueError(f"the last dimension of {tuple(x.shape)} is odd: it is split into halves")
    if mode not in (0, 1, 2):
        raise ValueError(f"swiglu_mode {mode} is not 0, 1 or 2")
    first, second = (x[..., ::2], x[..., 1::2]) if mode == 1 else x.chunk(2, -1)
    gate, other = (first, second) if activate_left or mode == 1 else (second, first)
    if mode == 0:
        return torch.nn.functional.silu(gate) * other
    gate, other = gate.clamp(max=limit), other.clamp(-limit, limit)
    return gate * torch.sigmoid(alpha * gate) * (other + bias)


def _counts_to_ends(counts: T, rows: int) -> T:
    ends = counts.long().cumsum(0)
    if not ends.is_meta and ends.numel() and int(ends[-1]) > rows:
        raise ValueError(f"group_index {counts.tolist()}: there are {rows} rows")
    return ends


def _of_group(values: T | None, rows: int, ends: T | None) -> T | None:
    """Parameters for all rows, or [groups, columns] for each row its group's."""
    if values is None:
        return None
    wide = values.float()
    return wide if ends is None else _by_group(wide.reshape(ends.numel(), -1), rows, ends)


@host_kernel("DequantSwigluQuant")
def dequant_swiglu_quant(
    x: T,
    weight_scale: T | None = None,
    activation_scale: T | None = None,
    bias: T | None = None,
    quant_scale: T | None = None,
    quant_offset: T | None = None,
    group_index: T | None = None,
    *,
    activate_left: bool = False,
    quant_mode: str = "static",
    dst_type: int = INT8,
    round_mode: str = "rint",
    activate_dim: int = -1,
    swiglu_mode: int = 0,
    clamp_limit: float = 7.0,
    glu_alpha: float = 1.702,
    glu_bias: float = 1.0,
) -> tuple[T, T]:
    """Integers to floats, a gated unit, and back: by given scales (static) or by each row's own (dynamic)."""
    if activate_dim not in (-1, x.dim() - 1):
        raise ValueError(f"activate_dim {activate_dim} is not supported; the last dimension, -1, is")
    if quant_mode not in ("static", "dynamic"):
        raise ValueError(f"quant_mode {quant_mode!r} is not static or dynamic")
    flat = x.reshape(-1, x.size(-1))
    rows = flat.size(0)
    ends = None if group_index is None else _counts_to_ends(group_index, rows)
    wide = flat.float()
    if bias is not None and not bias.dtype.is_floating_point:
        wide = wide + bias.float()
    weight = _of_group(weight_scale, rows, ends)
    if weight is not None:
        wide = wide * weight
    if activation_scale is not None:
        wide = wide * activation_scale.float().reshape(-1, 1)
    if bias is not None and bias.dtype.is_floating_point:
        wide = wide + bias.float()
    y = gated(wide, activate_left, swiglu_mode, clamp_limit, glu_alpha, glu_bias)
    return _quantised_rows(
        y, _of_group(quant_scale, rows, ends), _of_group(quant_offset, rows, ends), quant_mode, dst_type, x.shape[:-1]
    )


def _quantised_rows(
    y: T, scale: T | None, offset: T | None, mode: str, dst_type: int, shape: torch.Size
) -> tuple[T, T]:
    """Rows by given scales or their own, in the input's shape, and the rows' scales."""
    if mode == "dynamic":
        quantised, own = dynamic(y if scale is None else y * scale, dst_type)
    else:
        if scale is None:
            raise ValueError("static quantisation needs scales")
        scaled = y / scale
        quantised = saturated(scaled if offset is None else scaled + offset, dst_type)
        own = y.new_zeros(y.size(0), 1)
    return quantised.reshape(*shape, -1), own.reshape(shape)


@host_kernel("SwiGluQuant")
def swiglu_quant(
    x: T,
    smooth_scales: T | None = None,
    offsets: T | None = None,
    group_index: T | None = None,
    *,
    activate_left: bool = False,
    quant_mode: str = "static",
    group_list_type: int = 0,
    dst_type: int = INT8,
) -> tuple[T, T]:
    """A gated unit and its quantisation; groups are the ends of their rows (group_list_type 0) or numbers of rows (1)."""
    if group_list_type not in (0, 1) or quant_mode not in ("static", "dynamic"):
        raise ValueError(f"group_list_type {group_list_type} (0, 1), quant_mode {quant_mode!r} (static, dynamic)")
    flat = x.reshape(-1, x.size(-1)).float()
    rows = flat.size(0)
    ends = group_index if group_index is None or group_list_type == 0 else _counts_to_ends(group_index, rows)
    y = gated(flat, activate_left)
    scale, offset = _of_group(smooth_scales, rows, ends), _of_group(offsets, rows, ends)
    if quant_mode == "dynamic":
        return _quantised_rows(y, scale, None, quant_mode, dst_type, x.shape[:-1])
    if scale is None:
        raise ValueError("static quantisation needs smooth_scales")
    scaled = y * scale
    quantised = saturated(scaled if offset is None else scaled + offset, dst_type)
    return quantised.reshape(*x.shape[:-1], -1), flat.new_zeros(x.shape[:-1])


@host_kernel("GroupQuant")
def group_quant(x: T, scale: T, group_index: T, offset: T | None = None, *, dst_type: int = INT8) -> T:
    """Rows by the scales of their group; the groups are given by their ends."""
    if group_index.numel() != scale.size(0) or scale.size(1) != x.size(1):
        raise ValueError(
            f"scale {tuple(scale.shape)} is not [{group_index.numel()} groups, {x.size(1)} columns] of group_index and x"
        )
    if not x.is_meta:
        ends = group_index.tolist()
        if ends != sorted(ends) or (ends and (ends[0] < 0 or ends[-1] != x.size(0))):
            raise ValueError(f"group_index {ends} must not decrease, and end with the number of rows, {x.size(0)}")
    y = x.float() * _by_group(scale.float(), x.size(0), group_index)
    return saturated(y if offset is None else y + offset.float(), dst_type)


@host_kernel("GeluQuant")
def gelu_quant(
    x: T,
    input_scale: T | None = None,
    input_offset: T | None = None,
    *,
    approximate: str = "none",
    quant_mode: str = "dynamic",
    round_mode: str = "rint",
    dst_type: int = INT8,
) -> tuple[T, T]:
    """GELU, quantised by a given scale (static) or each row's own (dynamic)."""
    if quant_mode not in ("static", "dynamic") or approximate not in ("none", "tanh"):
        raise ValueError(f"quant_mode {quant_mode!r} (static, dynamic), approximate {approximate!r} (none, tanh)")
    y = torch.nn.functional.gelu(x.float(), approximate=approximate)
    if input_scale is not None:
        y = y * input_scale.float()
    if quant_mode == "dynamic":
        quantised, scale = dynamic(y, dst_type)
        return quantised, scale.squeeze(-1)
    if input_scale is None:
        raise ValueError("static quantisation needs input_scale")
    return saturated(y if input_offset is None else y + input_offset.float(), dst_type, round_mode), y.new_empty(0)


@host_kernel("DynamicBlockQuant")
def dynamic_block_quant(
    x: T,
    *,
    min_scale: float = 0.0,
    round_mode: str = "rint",
    dst_type: int = INT8,
    row_block_size: int = 1,
    col_block_size: int = 128,
    dst_type_max: float = 0.0,
) -> tuple[T, T]:
    """Blocks of rows and columns by scales of their own."""
    limit = dst_type_max or _range_of(dst_type)[1]
    scale = (_largest_of_blocks(x, row_block_size, col_block_size) / limit).clamp(min=min_scale)
    return saturated(_by_blocks(x, scale, row_block_size, col_block_size), dst_type, round_mode), scale


def _largest_of_blocks(x: T, row_block: int, column_block: int) -> T:
    rows, columns = x.shape[-2:]
    down, across = -(-rows // row_block), -(-columns // column_block)
    padded = torch.nn.functional.pad(x.float(), (0, across * column_block - columns, 0, down * row_block - rows))
    blocks = padded.unflatten(-1, (across, column_block)).unflatten(-3, (down, row_block))
    largest: T = blocks.abs().amax((-1, -3))
    return largest


def _by_blocks(x: T, scale: T, row_block: int, column_block: int) -> T:
    """Numbers divided by their blocks' scales; zeros by zero are zeros."""
    rows, columns = x.shape[-2:]
    wide = scale.repeat_interleave(row_block, -2).repeat_interleave(column_block, -1)[..., :rows, :columns]
    return x.float() / torch.where(wide == 0, 1, wide)


@host_kernel("GroupedDynamicBlockQuant")
def grouped_dynamic_block_quant(
    x: T,
    group_list: T,
    *,
    min_scale: float = 0.0,
    round_mode: str = "rint",
    dst_type: int = _E5M2,
    row_block_size: int = 1,
    col_block_size: int = 128,
    group_list_type: int = 0,
    dst_type_max: float = 0.0,
) -> tuple[T, T]:
    """Blocks of rows and columns, none across the end of a group; a group's scales begin behind those that its first row leaves room for.

    As documented, ``min_scale`` is the reciprocal of the largest scale. Rows of scales that no group has are zeros.
    """
    _check_rounding(dst_type, round_mode)
    if row_block_size not in _ROWS or col_block_size not in _COLUMNS or group_list_type or min_scale < 0:
        raise ValueError(
            f"row_block_size {row_block_size} {_ROWS}, col_block_size {col_block_size} {_COLUMNS}, group_list_type {group_list_type} "
            f"(0), min_scale {min_scale} (at least 0): no others are documented"
        )
    if x.dim() not in (2, 3) or group_list.dim() != 1:
        raise ValueError(
            f"x {tuple(x.shape)}, group_list {tuple(group_list.shape)}: 2 or 3 dimensions, and 1, are expected"
        )
    if not 0 <= dst_type_max <= hifloat8.LARGEST or (dst_type_max and dst_type != _HIF8):
        raise ValueError(
            f"dst_type_max {dst_type_max} with dst_type {dst_type}: 0, and up to {hifloat8.LARGEST} of hifloat8"
        )
    if min_scale and dst_type == _HIF8:
        raise ValueError(
            f"min_scale {min_scale} with hifloat8: documents do not say what becomes of numbers beyond its largest; 0 is supported"
        )
    rows, columns = x.shape[-2:]
    size = (*x.shape[:-2], rows // row_block_size + group_list.numel(), -(-columns // col_block_size))
    scales = x.new_zeros(size, dtype=torch.float32)
    limit = dst_type_max or _range_of(dst_type)[1]
    if x.is_meta:
        return fitted(x.float(), dst_type), scales
    y = torch.empty_like(fitted(x.float(), dst_type))
    for number, (start, end) in enumerate(groups_of(group_list, rows)):
        if end > start:
            part = x[..., start:end, :]
            own = _largest_of_blocks(part, row_block_size, col_block_size) / limit
            own = own.clamp(max=1 / min_scale) if min_scale else own
            y[..., start:end, :] = fitted(_by_blocks(part, own, row_block_size, col_block_size), dst_type)
            first = start // row_block_size + number
            scales[..., first : first + own.size(-2), :] = own
    return y, scales


def _check_rounding(dst_type: int, round_mode: str) -> None:
    """Of 8-bit floats."""
    mode = "round" if dst_type == _HIF8 else "rint"
    if dst_type not in (_HIF8, *_FLOAT8) or round_mode != mode:
        also = "; hybrid, which is documented by its name alone, is not supported" if round_mode == "hybrid" else ""
        raise ValueError(
            f"dst_type {dst_type} ({_HIF8}, {_E5M2}, {_E4M3}), round_mode {round_mode!r}: rint is of {_E5M2} and {_E4M3}, round of "
            f"{_HIF8} (hifloat8){also}"
        )


@host_kernel("QuantMax")
def quant_max(
    x: T, scale: T, group_list: T | None = None, *, round_mode: str = "rint", dst_type: int = _E5M2
) -> tuple[T, T]:
    """Numbers times a scale, and the largest without sign of what was given."""
    if group_list is not None:
        raise ValueError(f"group_list {tuple(group_list.shape)}: groups are of GroupedQuantMax; none is supported")
    _check_rounding(dst_type, round_mode)
    _check_scales(x, scale, 1)
    return saturated(x.float() * scale, dst_type), x.abs().amax().reshape(1)


@host_kernel("GroupedQuantMax")
def grouped_quant_max(x: T, scale: T, group_list: T, *, round_mode: str = "rint", dst_type: int = _E5M2) -> tuple[T, T]:
    """As QuantMax, of each group of rows."""
    _check_rounding(dst_type, round_mode)
    _check_scales(x, scale, group_list.numel())
    if not 0 < group_list.numel() <= _MOST_GROUPS or x.dim() < 2:
        raise ValueError(
            f"{group_list.numel()} groups (1 to {_MOST_GROUPS}) of x {tuple(x.shape)} (2 dimensions or more)"
        )
    if x.is_meta:
        return saturated(x.float(), dst_type), x.new_empty(group_list.numel())
    groups = groups_of(group_list, x.size(0))
    if empty := [group for group in groups if group[0] == group[1]]:
        raise ValueError(f"group_list {group_list.tolist()}: groups of rows {empty[0]} are empty; ends must rise")
    y = torch.cat([x[a:b].float() * own for (a, b), own in zip(groups, scale, strict=True)])
    return saturated(y, dst_type), torch.stack([x[a:b].abs().amax() for a, b in groups])


def _check_scales(x: T, scale: T, groups: int) -> None:
    if scale.shape != (groups,):
        raise ValueError(f"scale of shape {tuple(scale.shape)} for {groups} groups: [{groups}] is expected")
    if not x.numel():
        raise ValueError(f"x of shape {tuple(x.shape)} has no elements: documents do not say what its largest is")


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
    """Updates, quantised by scales for the last dimension, to the places along an axis."""
    if quant_axis % updates.dim() != updates.dim() - 1:
        raise ValueError(f"quant_axis {quant_axis} is not the last one of updates, {updates.dim() - 1}")
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
    """QuantScatter, as graphs call it."""
    if round_mode != "rint":
        raise ValueError(f"round_mode {round_mode!r} is not rint, the one for int8")
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
    """Each matrix of a batch between two others, as numbers of 4 bits by one scale."""
    if dst_type_max:
        raise ValueError(f"dst_type_max {dst_type_max} is not supported; 0 is")
    y = (kronecker_p1.float() @ (x.float() @ kronecker_p2.float())).to(x.dtype).float()
    scale = y.abs().amax((-2, -1), keepdim=True) / (7 * clip_ratio)
    return saturated(y / torch.where(scale == 0, 1, scale), dst_dtype), scale.reshape(-1)

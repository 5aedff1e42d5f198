"""Quantization of blocks and of groups of rows, each with its own scale."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.quantization import hifloat8
from ascend_graph.host.kernels.quantization.quantize import (
    E4M3,
    E5M2,
    FLOAT8,
    HIF8,
    INT8,
    fitted,
    groups_of,
    range_of,
    saturated,
)
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

#: Block sizes of groups, rows and columns.
_ROWS, _COLUMNS = (1, 128, 256, 512), (64, 128, 192, 256)


_MOST_GROUPS = 384


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
    """Quantize blocks of rows and columns, each by its own scale."""
    limit = dst_type_max or range_of(dst_type)[1]
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
    """Divide numbers by their blocks' scales; zeros by zero are zeros."""
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
    dst_type: int = E5M2,
    row_block_size: int = 1,
    col_block_size: int = 128,
    group_list_type: int = 0,
    dst_type_max: float = 0.0,
) -> tuple[T, T]:
    """Quantize blocks of rows and columns that do not cross the end of a group.

    The first row of a group's scales is its first row divided by the block size, plus the group's number. As
    documented, ``min_scale`` is the reciprocal of the largest scale. Rows of scales without a group are zeros.
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
    if not 0 <= dst_type_max <= hifloat8.LARGEST or (dst_type_max and dst_type != HIF8):
        raise ValueError(
            f"dst_type_max {dst_type_max} with dst_type {dst_type}: expected 0, or up to {hifloat8.LARGEST} for "
            "hifloat8"
        )
    if min_scale and dst_type == HIF8:
        raise ValueError(
            f"min_scale {min_scale} with hifloat8: documents do not say what becomes of numbers beyond its largest; 0 is supported"
        )
    rows, columns = x.shape[-2:]
    size = (*x.shape[:-2], rows // row_block_size + group_list.numel(), -(-columns // col_block_size))
    scales = x.new_zeros(size, dtype=torch.float32)
    limit = dst_type_max or range_of(dst_type)[1]
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
    """Raise if 8-bit floats are rounded otherwise than documented."""
    mode = "round" if dst_type == HIF8 else "rint"
    if dst_type not in (HIF8, *FLOAT8) or round_mode != mode:
        also = "; hybrid, which is documented by its name alone, is not supported" if round_mode == "hybrid" else ""
        raise ValueError(
            f"dst_type {dst_type}, round_mode {round_mode!r}: expected {E5M2} or {E4M3} with rint, or round with "
            f"{HIF8} (hifloat8){also}"
        )


@host_kernel("QuantMax")
def quant_max(
    x: T, scale: T, group_list: T | None = None, *, round_mode: str = "rint", dst_type: int = E5M2
) -> tuple[T, T]:
    """Multiply numbers by a scale and quantize them; also return the input's largest absolute value."""
    if group_list is not None:
        raise ValueError(f"group_list {tuple(group_list.shape)}: groups are of GroupedQuantMax; none is supported")
    _check_rounding(dst_type, round_mode)
    _check_scales(x, scale, 1)
    return saturated(x.float() * scale, dst_type), x.abs().amax().reshape(1)


@host_kernel("GroupedQuantMax")
def grouped_quant_max(x: T, scale: T, group_list: T, *, round_mode: str = "rint", dst_type: int = E5M2) -> tuple[T, T]:
    """Quantize each group of rows as QuantMax does."""
    _check_rounding(dst_type, round_mode)
    _check_scales(x, scale, group_list.numel())
    if not 0 < group_list.numel() <= _MOST_GROUPS or x.dim() < 2:
        raise ValueError(
            f"{group_list.numel()} groups of x {tuple(x.shape)}: expected 1 to {_MOST_GROUPS} groups, and at least two "
            "dimensions"
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
        raise ValueError(
            f"x of shape {tuple(x.shape)} has no elements; expected at least one, for the scale is from the largest"
        )

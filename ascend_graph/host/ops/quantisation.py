"""Quantisation to 8-bit integers and products of quantised matrices."""

from __future__ import annotations

import torch

from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.ops.registry import host_kernel

T = torch.Tensor

_INT8, _LARGEST = 2, 127
_ROUND = {"round": torch.round, "rint": torch.round, "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc}


def _only_int8(dst_type: int) -> None:
    if dst_type != _INT8:
        raise ValueError(f"dst_type {dst_type} is not supported; {_INT8}, int8, is")


def _saturated(x: T) -> T:
    return x.clamp(-_LARGEST - 1, _LARGEST).to(torch.int8)


@host_kernel("DynamicQuant")
def dynamic_quant(
    x: T, smooth_scales: T | None = None, group_index: T | None = None, *, dst_type: int = _INT8
) -> tuple[T, T]:
    """Each row by its own scale, so that its largest absolute value becomes 127."""
    _only_int8(dst_type)
    if group_index is not None:
        raise ValueError("group_index is not supported on the host")
    wide = x.float() if smooth_scales is None else x.float() * smooth_scales.float()
    scale = wide.abs().amax(-1, keepdim=True) / _LARGEST
    return _saturated(torch.round(wide / torch.where(scale == 0, 1, scale))), scale.squeeze(-1)


@host_kernel("AscendQuantV2")
def ascend_quant(
    x: T,
    scale: T,
    offset: T | None = None,
    *,
    sqrt_mode: bool = False,
    round_mode: str = "round",
    dst_type: int = _INT8,
    axis: int = -1,
) -> T:
    _only_int8(dst_type)
    if round_mode not in _ROUND:
        raise ValueError(f"round_mode {round_mode!r} is not one of {', '.join(_ROUND)}")
    factor = _along(scale, x, axis).float()
    y = x.float() * (factor.square() if sqrt_mode else factor)
    if offset is not None:
        y = y + _along(offset, x, axis).float()
    return _saturated(_ROUND[round_mode](y))


@host_kernel("AscendAntiQuantV2")
def ascend_anti_quant(x: T, scale: T, offset: T | None = None, *, dst_type: int = 1, sqrt_mode: bool = False) -> T:
    shifted = x.float() if offset is None else x.float() + offset.float()
    factor = scale.float()
    return (shifted * (factor.square() if sqrt_mode else factor)).to(torch_dtype(dst_type))


def _along(values: T, x: T, axis: int) -> T:
    """Values of one dimension along an axis of ``x``."""
    if values.dim() != 1 or values.numel() == 1:
        return values
    return values.reshape([-1 if dim == axis % x.dim() else 1 for dim in range(x.dim())])


@host_kernel("QuantBatchMatmulV3")
def quant_batch_matmul(
    x1: T,
    x2: T,
    scale: T,
    offset: T | None = None,
    bias: T | None = None,
    pertoken_scale: T | None = None,
    *,
    dtype: int,
    transpose_x1: bool = False,
    transpose_x2: bool = False,
) -> T:
    """An integer product, its bias, and a scale for each column and optionally each row."""
    if scale.dtype in (torch.int64, torch.uint64):
        raise ValueError("a scale packed by TransQuantParamV2 is not supported on the host; float32 and bfloat16 are")
    a = x1.transpose(-1, -2) if transpose_x1 else x1
    b = x2.transpose(-1, -2) if transpose_x2 else x2
    y = a.double() @ b.double()  # sums of products of 8-bit integers are exact in float64
    if bias is not None and not bias.dtype.is_floating_point:
        y = y + bias.double()
    y = y * scale.double()
    if pertoken_scale is not None:
        y = y * pertoken_scale.double().unsqueeze(-1)
    if bias is not None and bias.dtype.is_floating_point:
        y = y + bias.double()
    if offset is not None:
        y = y + offset.double()
    target = torch_dtype(dtype)
    return _saturated(torch.round(y)) if target is torch.int8 else y.to(target)

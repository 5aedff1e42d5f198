"""Activations fused with the quantization of their result."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.checks import check_choice
from ascend_graph.host.kernels.quantization.quantize import INT8, dynamic, rows_by_group, saturated
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


def gated(x: T, activate_left: bool, mode: int = 0, limit: float = 7.0, alpha: float = 1.702, bias: float = 1.0) -> T:
    """Apply one half as gate of the other: SiLU (mode 0), or clamped with another slope, in pairs (1) or halves (2)."""
    if x.size(-1) % 2:
        raise ValueError(f"the last dimension of {tuple(x.shape)} is odd: it is split into halves")
    check_choice("swiglu_mode", mode, 0, 1, 2)
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
    """Return parameters for all rows, or for each row its group's out of [groups, columns]."""
    if values is None:
        return None
    wide = values.float()
    return wide if ends is None else rows_by_group(wide.reshape(ends.numel(), -1), rows, ends)


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
    """Dequantize, apply a gated unit and quantize, by given scales (static) or each row's own (dynamic)."""
    if activate_dim not in (-1, x.dim() - 1):
        raise ValueError(f"activate_dim {activate_dim} is not supported; the last dimension, -1, is")
    check_choice("quant_mode", quant_mode, "static", "dynamic")
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
    return _quantized_rows(
        y, _of_group(quant_scale, rows, ends), _of_group(quant_offset, rows, ends), quant_mode, dst_type, x.shape[:-1]
    )


def _quantized_rows(
    y: T, scale: T | None, offset: T | None, mode: str, dst_type: int, shape: torch.Size
) -> tuple[T, T]:
    """Quantize rows by given scales or their own, in the input's shape, and return the rows' scales."""
    if mode == "dynamic":
        quantized, own = dynamic(y if scale is None else y * scale, dst_type)
    else:
        if scale is None:
            raise ValueError("static quantization needs scales")
        scaled = y / scale
        quantized = saturated(scaled if offset is None else scaled + offset, dst_type)
        own = y.new_zeros(y.size(0), 1)
    return quantized.reshape(*shape, -1), own.reshape(shape)


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
    """Quantize a gated unit; groups are ends of rows (group_list_type 0) or numbers of rows (1)."""
    check_choice("group_list_type", group_list_type, 0, 1)
    check_choice("quant_mode", quant_mode, "static", "dynamic")
    flat = x.reshape(-1, x.size(-1)).float()
    rows = flat.size(0)
    ends = group_index if group_index is None or group_list_type == 0 else _counts_to_ends(group_index, rows)
    y = gated(flat, activate_left)
    scale, offset = _of_group(smooth_scales, rows, ends), _of_group(offsets, rows, ends)
    if quant_mode == "dynamic":
        return _quantized_rows(y, scale, None, quant_mode, dst_type, x.shape[:-1])
    if scale is None:
        raise ValueError("static quantization needs smooth_scales")
    scaled = y * scale
    quantized = saturated(scaled if offset is None else scaled + offset, dst_type)
    return quantized.reshape(*x.shape[:-1], -1), flat.new_zeros(x.shape[:-1])


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
    """Compute GELU, quantized by a given scale (static) or each row's own (dynamic)."""
    check_choice("quant_mode", quant_mode, "static", "dynamic")
    check_choice("approximate", approximate, "none", "tanh")
    y = torch.nn.functional.gelu(x.float(), approximate=approximate)
    if input_scale is not None:
        y = y * input_scale.float()
    if quant_mode == "dynamic":
        quantized, scale = dynamic(y, dst_type)
        return quantized, scale.squeeze(-1)
    if input_scale is None:
        raise ValueError("static quantization needs input_scale")
    return saturated(y if input_offset is None else y + input_offset.float(), dst_type, round_mode), y.new_empty(0)

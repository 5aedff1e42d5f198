"""Scales and offsets of quantized matmuls in one int64, as matrix units take them."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


@host_kernel("TransQuantParamV2")
def trans_quant_param(scale: T, offset: T | None = None, *, round_mode: int = 0) -> T:
    """Pack a scale in 19 bits, the upper ones of a float32, and an offset in 9 bits, into one int64."""
    if round_mode not in (0, 1):
        raise ValueError(f"round_mode {round_mode} must be 0 (cut) or 1 (rounded)")
    bits = scale.float().contiguous().view(torch.int32).to(torch.int64) & 0xFFFFFFFF
    if round_mode:
        bits = bits + 0x0FFF + ((bits >> 13) & 1)
    y = (bits & 0xFFFFE000) | (1 << 46)
    if offset is not None:
        y = (y & 0x4000FFFFFFFF) | ((torch.round(offset.float()).clamp(-256, 255).to(torch.int64) & 0x1FF) << 37)
    return y


def unpacked_parameter(y: T) -> tuple[T, T]:
    """Return the scale and the offset that TransQuantParamV2 packed."""
    bits = y.view(torch.int64)
    low = bits & 0xFFFFFFFF
    scale = torch.where(low >= 1 << 31, low - (1 << 32), low).to(torch.int32).view(torch.float32)
    offset = (bits >> 37) & 0x1FF
    return scale, torch.where(offset > 255, offset - 512, offset).float()

"""Quantization after a rotation of each group of a row (https://gitcode.com/cann/ops-nn, matmul/rotate_quant)."""

from __future__ import annotations

import os

import torch

from ascend_graph.environment import processor
from ascend_graph.host.kernels.checks import check_choice, refuse_given
from ascend_graph.host.kernels.quantization.microscaling import quantized
from ascend_graph.host.kernels.quantization.quantize import dynamic
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

_INT8, _INT32, _INT4 = 2, 3, 29
_MX = {35, 36, 40}
#: Number of elements that share a maximum, to which ``alpha`` clamps them.
_CLAMPED = 32


@host_kernel("RotateQuant")
def rotate_quant(
    x: T,
    rotation: T,
    alpha: T | None = None,
    *,
    y_dtype: int = _INT8,
    axis: int = -1,
    round_mode: str = "rint",
    scale_alg: int = 0,
    dst_type_max: float = 0.0,
    transpose_y: bool = False,
) -> tuple[T, T]:
    """Rotate the groups of each row and quantize to int8 or int4, or to microscaling formats on Ascend 950.

    For int8 and int4 each row has its own scale.
    """
    check_choice("axis", axis, -1, x.dim() - 1)
    check_choice("trans", transpose_y, False)
    check_choice("dstTypeMax", dst_type_max, 0)
    if rotation.size(-1) != rotation.size(-2) or x.size(-1) % rotation.size(-1) or x.dtype != rotation.dtype:
        raise ValueError(
            f"rotation {tuple(rotation.shape)}, {rotation.dtype}, of x {tuple(x.shape)}, {x.dtype}: expected a square "
            "whose size divides the rows of x, and the dtype of x"
        )
    if processor(os.environ) == "Ascend950PR_9589":
        return _microscaled(x, rotation, alpha, y_dtype, round_mode, scale_alg)
    length, size = x.size(-1), rotation.size(-1)
    check_choice("y_dtype", y_dtype, _INT8, _INT32, _INT4)
    refuse_given("not supported by this SoC", alpha=alpha)
    check_choice("scaleAlg", scale_alg, 0)
    if x.dim() != 2 or rotation.dim() != 2 or not 128 <= length <= 16000 or length % 8 or not 16 <= size <= 1024:
        raise ValueError(
            f"x {tuple(x.shape)} (rows of 128 to 16000, a multiple of 8), rotation {tuple(rotation.shape)} (16 to 1024): no other is supported"
        )
    check_choice("roundMode", round_mode, "", "rint")
    y, scale = dynamic(_rotated(x, rotation), y_dtype)
    return y, scale.squeeze(-1)


def _rotated(x: T, rotation: T) -> T:
    """Multiply each group of a row by the rotation, or by its own; sums are float32."""
    groups = x.float().unflatten(-1, (-1, rotation.size(-1)))
    by_groups = rotation.dim() == 3
    found: T = (groups.unsqueeze(-2) if by_groups else groups) @ rotation.float()
    return found.flatten(-3 if by_groups else -2)


def _microscaled(x: T, rotation: T, alpha: T | None, y_dtype: int, round_mode: str, scale_alg: int) -> tuple[T, T]:
    size = rotation.size(-1)
    if y_dtype not in _MX or size not in (32, 64, 128) or rotation.dim() not in (2, 3):
        raise ValueError(
            f"y_dtype {y_dtype}, rotation {tuple(rotation.shape)}: expected float4_e2m1, float8_e4m3fn or float8_e5m2, "
            "and a rotation of "
            "32, 64 or 128"
        )
    if rotation.dim() == 3 and rotation.size(0) != x.size(-1) // size:
        raise ValueError(
            f"rotation {tuple(rotation.shape)}: expected {x.size(-1) // size} matrices, one for each group of a row"
        )
    y = _rotated(x, rotation)
    if alpha is not None and not alpha.is_meta:
        if alpha.numel() != 1:
            raise ValueError(f"alpha of shape {tuple(alpha.shape)} is not valid; expected (1,)")
        share = float(alpha)
        if 0 < share < 1:  # others have no effect
            groups = y.unflatten(-1, (-1, _CLAMPED))
            limit = groups.abs().amax(-1, keepdim=True) * share
            y = groups.clamp(-limit, limit).flatten(-2)
    return quantized(y, y_dtype, algorithm=scale_alg, mode=round_mode or "rint")

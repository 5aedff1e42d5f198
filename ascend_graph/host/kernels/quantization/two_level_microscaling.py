"""Microscaling of square blocks, and by two levels of scales, with a matmul for the latter."""

from __future__ import annotations

import torch

from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.kernels.quantization.microscaling import (
    BIAS,
    BLOCK,
    E2M1,
    NAN,
    check_target,
    decoded,
    encoded,
    exponent_of,
    paired,
)
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

_LEVEL0 = 512
#: Largest numbers of blocks allowed by scale_alg 2; 0 is the dtype's own.
_MAXIMA = {0.0: 6.0, 6.0: 6.0, 7.0: 7.0}


@host_kernel("DynamicBlockMxQuant")
def dynamic_block_mx_quant(
    x: T, *, round_mode: str = "rint", dst_type: int = E2M1, scale_alg: int = 0, dst_type_max: float = 0.0
) -> tuple[T, T, T]:
    """Quantize blocks of 32 rows and columns.

    The scales are returned as those of column blocks in each row, and of row blocks in each column.
    """
    check_target(dst_type, round_mode)
    if scale_alg not in (0, 2) or (scale_alg == 2 and dst_type != E2M1):
        raise ValueError(
            f"scale_alg {scale_alg} with dst_type {dst_type}: 0 is supported, and 2 with {E2M1} (float4_e2m1)"
        )
    if dst_type_max not in (_MAXIMA if scale_alg == 2 else (0.0,)):
        raise ValueError(f"dst_type_max {dst_type_max} is not supported; expected 0, or 6 or 7 with scale_alg 2")
    if x.dim() not in (2, 3) or not x.numel():
        raise ValueError(f"x of shape {tuple(x.shape)}: 2 or 3 dimensions are expected, none of them 0")
    rows, columns = x.shape[-2:]
    down, across = -(-rows // BLOCK), -(-columns // BLOCK)
    padded = torch.nn.functional.pad(x.float(), (0, across * BLOCK - columns, 0, down * BLOCK - rows))
    top = padded.unflatten(-1, (across, BLOCK)).unflatten(-3, (down, BLOCK)).abs().amax((-1, -3))
    exponent = exponent_of(top, dst_type, 0) if scale_alg == 0 else _rounded_up(top / _MAXIMA[dst_type_max])
    codes = torch.where(torch.isfinite(top), exponent + BIAS, NAN)
    of_rows = codes.repeat_interleave(BLOCK, -2)[..., :rows, :]
    of_columns = codes.repeat_interleave(BLOCK, -1)[..., :columns].transpose(-1, -2)
    wide = exponent.repeat_interleave(BLOCK, -2).repeat_interleave(BLOCK, -1)[..., :rows, :columns]
    return encoded(torch.ldexp(x.float(), -wide), dst_type, round_mode), paired(of_rows), paired(of_columns, -2)


def _rounded_up(scale: T) -> T:
    """Return the exponent of the next power of two.

    Below the smallest normal float32 it is the least exponent that has a code.
    """
    bits = scale.contiguous().view(torch.int32)
    power, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    return torch.where((power > 0) & (power < 254) & (fraction > 0), power + 1, power) - BIAS


@host_kernel("DynamicDualLevelMxQuant")
def dynamic_dual_level_mx_quant(
    x: T,
    smooth_scale: T | None = None,
    *,
    round_mode: str = "rint",
    level0_block_size: int = _LEVEL0,
    level1_block_size: int = BLOCK,
) -> tuple[T, T, T]:
    """Quantize blocks of 512 by float32 scales, and the result by a power of two for each 32."""
    check_target(E2M1, round_mode)
    _check_sizes(level0_block_size, level1_block_size)
    if not 1 <= x.dim() <= 7 or not x.numel():
        raise ValueError(f"x of shape {tuple(x.shape)}: 1 to 7 dimensions are expected, none of them 0")
    length = x.size(-1)
    if smooth_scale is not None:
        if smooth_scale.shape != (length,) or smooth_scale.dtype != x.dtype:
            raise ValueError(
                f"smooth_scale {tuple(smooth_scale.shape)} of {smooth_scale.dtype}: [{length}] of {x.dtype} is expected"
            )
        x = x * smooth_scale
    blocks = torch.nn.functional.pad(x.float(), (0, -length % _LEVEL0)).unflatten(-1, (-1, _LEVEL0))
    level0 = blocks.abs().amax(-1) / _MAXIMA[0.0]
    divisor = torch.where(level0 == 0, 1, level0).unsqueeze(-1)
    between = (blocks / divisor).to(x.dtype).float().flatten(-2)
    parts = between.unflatten(-1, (-1, BLOCK))
    top = parts.abs().amax(-1, keepdim=True)
    exponent = exponent_of(top, E2M1, 0)
    y = torch.ldexp(parts, -exponent).flatten(-2)[..., :length]
    codes = torch.where(torch.isfinite(top), exponent + BIAS, NAN).squeeze(-1)[..., : -(-length // BLOCK)]
    return encoded(y, E2M1, round_mode), level0, paired(codes)


def _check_sizes(level0: int, level1: int) -> None:
    if (level0, level1) != (_LEVEL0, BLOCK):
        raise ValueError(f"blocks of {level0} and {level1}: they have {_LEVEL0} and {BLOCK} numbers")


@host_kernel("DualLevelQuantBatchMatmul")
def dual_level_quant_batch_matmul(
    x1: T,
    x2: T,
    x1_level0_scale: T,
    x2_level0_scale: T,
    x1_level1_scale: T,
    x2_level1_scale: T,
    bias: T | None = None,
    *,
    dtype: int,
    transpose_x1: bool = False,
    transpose_x2: bool = True,
    level0_group_size: int = _LEVEL0,
    level1_group_size: int = BLOCK,
) -> T:
    """Multiply matrices of 4-bit floats, [rows, sum] and [columns, sum], both with two levels of scales.

    Sums are float64.
    """
    _check_sizes(level0_group_size, level1_group_size)
    if transpose_x1 or not transpose_x2 or x1.dim() != 2 or x2.dim() != 2:
        raise ValueError(
            f"transposeX1 {transpose_x1} (False), transposeX2 {transpose_x2} (True), x1 {tuple(x1.shape)}, x2 {tuple(x2.shape)}: "
            "matrices of rows, and of columns, are expected"
        )
    a, b = (decoded(x.contiguous().view(torch.uint8), E2M1).double() for x in (x1, x2))
    (rows, length), columns = a.shape, b.size(0)
    coarse, pairs = -(-length // _LEVEL0), -(-length // (2 * BLOCK))
    expected = {
        "x2": (b, (columns, length)),
        "x1Level0Scale": (x1_level0_scale, (rows, coarse)),
        "x2Level0Scale": (x2_level0_scale, (coarse, columns)),
        "x1Level1Scale": (x1_level1_scale, (rows, pairs, 2)),
        "x2Level1Scale": (x2_level1_scale, (columns, pairs, 2)),
    }
    if bias is not None:
        expected["bias"] = bias, (columns,)
    for name, (tensor, shape) in expected.items():
        if tensor.shape != shape or not tensor.numel():
            raise ValueError(f"{name} of shape {tuple(tensor.shape)}: {list(shape)} is expected")
    y = (a * _wide(x1_level0_scale, x1_level1_scale, length)) @ (
        b * _wide(x2_level0_scale.t(), x2_level1_scale, length)
    ).t()
    return (y if bias is None else y + bias.double()).to(torch_dtype(dtype))


def _wide(level0: T, level1: T, length: int) -> T:
    """Return the factor of each number."""
    powers = level1.view(torch.float8_e8m0fnu).double().flatten(-2).repeat_interleave(BLOCK, -1)
    return powers[:, :length] * level0.double().repeat_interleave(_LEVEL0, -1)[:, :length]

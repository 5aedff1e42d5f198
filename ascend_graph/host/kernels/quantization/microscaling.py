"""Microscaling formats (MX): blocks of 8- or 4-bit floats that share a power of two."""

from __future__ import annotations

import torch

from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.kernels.checks import check_choice, check_multiple, refuse_given
from ascend_graph.host.kernels.quantization.activation_quantization import gated
from ascend_graph.host.kernels.quantization.quantize import groups_of
from ascend_graph.host.kernels.quantization.quantized_norms import normalized
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

_E5M2, E4M3, E2M1, _E1M2 = 35, 36, 40, 41
_FLOAT8 = {_E5M2: torch.float8_e5m2, E4M3: torch.float8_e4m3fn}
#: Exponent and mantissa of the largest number; for 4-bit floats also the steps between those below 1.
_EMAX = {_E5M2: 15, E4M3: 8, E2M1: 2, _E1M2: 0}
_LARGEST = {_E5M2: 57344.0, E4M3: 448.0, E2M1: 6.0, _E1M2: 1.75}
_STEP = {E2M1: 0.5, _E1M2: 0.25}
_MODES = ("rint", "round", "floor")
BIAS, NAN = 127, 255
BLOCK = 32


def quantized(
    x: T, dst_type: int, axis: int = -1, block: int = BLOCK, algorithm: int = 0, mode: str = "rint", least: float = 0.0
) -> tuple[T, T]:
    """Divide numbers by the power of two that each block along an axis shares, and return these powers in pairs.

    The number of powers is even. Algorithm 0 takes the exponent of the block's largest number, 1 the least power with
    which all fit into the dtype.
    """
    _check(dst_type, mode, algorithm)
    if least < 0 or (least and algorithm != 1):
        raise ValueError(f"max_low_bound {least} with scale_alg {algorithm}: it is positive, and of scale_alg 1")
    check_multiple("blocksize", block, BLOCK, 1024)
    moved = x.float().movedim(axis, -1)
    length, count = moved.size(-1), -(-moved.size(-1) // block)
    blocks = torch.nn.functional.pad(moved, (0, count * block - length)).unflatten(-1, (count, block))
    top = blocks.abs().amax(-1, keepdim=True)
    exponent = exponent_of(top.clamp(min=least), dst_type, algorithm)
    y = torch.ldexp(blocks, -exponent).flatten(-2)[..., :length].movedim(-1, axis)
    scale = torch.where(torch.isfinite(top), exponent + BIAS, NAN).squeeze(-1)
    return encoded(y, dst_type, mode), paired(scale, axis)


def paired(codes: T, axis: int = -1) -> T:
    """Arrange codes of powers of two of blocks as stored: pairs along the blocks' axis, a pair's two codes last."""
    pairs = torch.nn.functional.pad(codes, (0, codes.size(-1) % 2)).unflatten(-1, (-1, 2))
    placed = pairs.movedim(-2, axis - 1 if axis < 0 else axis)
    codes = placed.to(torch.uint8).contiguous()
    return codes.view(torch.float8_e8m0fnu)


def check_target(dst_type: int, mode: str) -> None:
    check_choice("dst_type", dst_type, *_EMAX)
    if mode not in (_MODES if dst_type in _STEP else _MODES[:1]):
        raise ValueError(f"round_mode {mode!r} is not one of {', '.join(_MODES)}; of 8-bit floats it is rint")


def _check(dst_type: int, mode: str, algorithm: int) -> None:
    check_target(dst_type, mode)
    if algorithm != 0 and (algorithm != 1 or dst_type in _STEP):
        raise ValueError(f"scale_alg {algorithm} with dst_type {dst_type}: 0 is supported, and 1 with 8-bit floats")


def exponent_of(top: T, dst_type: int, algorithm: int) -> T:
    """Return the exponent of the power of two that blocks share, by their largest numbers."""
    if algorithm == 0:
        exponent = torch.frexp(top).exponent - 1 - _EMAX[dst_type]
    else:
        mantissa, exponent = torch.frexp(top / _LARGEST[dst_type])
        exponent = torch.where(mantissa == 0.5, exponent - 1, exponent)
    return torch.where(top == 0, -BIAS, exponent).clamp(-BIAS, BIAS)


def encoded(y: T, dst_type: int, mode: str) -> T:
    """Encode the nearest numbers of a dtype, clamped to its largest; 4-bit floats are two in a byte."""
    largest = _LARGEST[dst_type]
    if dst_type in _FLOAT8:
        return y.clamp(-largest, largest).to(_FLOAT8[dst_type])
    if y.size(-1) % 2:
        raise ValueError(f"the last dimension of {tuple(y.shape)} must be even: two numbers of 4 bits are a byte")
    step = torch.full_like(y, _STEP[dst_type])
    if dst_type == E2M1:
        step = torch.ldexp(step, (torch.frexp(y).exponent - 1).clamp(0, _EMAX[dst_type]))
    ratio = y / step
    whole = _half_away(ratio) if mode == "round" else torch.floor(ratio) if mode == "floor" else torch.round(ratio)
    size = (whole * step).abs().clamp(max=largest)
    table = _table(dst_type, y.device)
    code = torch.searchsorted(table, size.contiguous()).clamp(max=7) | (torch.signbit(y).long() << 3)
    low, high = code.unflatten(-1, (-1, 2)).unbind(-1)
    joined: T = low | high << 4
    return joined.to(torch.uint8)


def _half_away(x: T) -> T:
    return torch.copysign(torch.floor(x.abs() + 0.5), x)


def _table(dtype: int, device: torch.device) -> T:
    """Return the values of the codes of positive 4-bit floats."""
    numbers = [0, 0.5, 1, 1.5, 2, 3, 4, 6] if dtype == E2M1 else [n / 4 for n in range(8)]
    return torch.tensor(numbers, device=device)


def decoded(x: T, kind: int = 0) -> T:
    """Decode 8-bit floats, or 4-bit ones, two in a byte, to float32.

    ``kind`` is the number in GE of a dtype that a view does not carry itself.
    """
    if x.dtype in _FLOAT8.values():
        return x.float()
    kind = kind or getattr(x, "ge_dtype", 0)
    if kind not in _STEP:
        raise ValueError(f"x is {x.dtype}; floats of 8 or 4 bits are expected")
    codes = torch.stack([x & 15, x >> 4], -1).flatten(-2).long()
    return torch.where(codes > 7, -1.0, 1.0) * _table(kind, x.device)[codes & 7]


@host_kernel("DynamicMxQuant")
def dynamic_mx_quant(
    x: T,
    *,
    axis: int = -1,
    round_mode: str = "rint",
    dst_type: int = E2M1,
    blocksize: int = BLOCK,
    scale_alg: int = 0,
    dst_type_max: float = 0.0,
    max_low_bound: float = 0.0,
) -> tuple[T, T]:
    no_maximum(dst_type_max)
    return quantized(x, dst_type, axis, blocksize, scale_alg, round_mode, max_low_bound)


def no_maximum(value: float) -> None:
    if value:
        raise ValueError(f"dst_type_max {value} is not supported; 0, the dtype's own, is")


@host_kernel("DynamicMxQuantWithDualAxis")
def dynamic_mx_quant_with_dual_axis(
    x: T, *, round_mode: str = "rint", dst_type: int = E2M1, scale_alg: int = 0, dst_type_max: float = 0.0
) -> tuple[T, T, T, T]:
    """Quantize by blocks of the last dimension, and by blocks of the one before."""
    no_maximum(dst_type_max)
    rows = quantized(x, dst_type, -1, BLOCK, scale_alg, round_mode)
    return (*rows, *quantized(x, dst_type, -2, BLOCK, scale_alg, round_mode))


@host_kernel("GroupedDynamicMxQuant")
def grouped_dynamic_mx_quant(
    x: T,
    group_index: T,
    *,
    round_mode: str = "rint",
    dst_type: int = _E5M2,
    blocksize: int = BLOCK,
    scale_alg: int = 0,
    dst_type_max: float = 0.0,
) -> tuple[T, T]:
    """Quantize blocks of rows that do not cross the end of a group; the scales of a group begin a pair."""
    no_maximum(dst_type_max)
    return quantized_by_groups(x, group_index, dst_type, blocksize, scale_alg, round_mode)


def quantized_by_groups(x: T, group_index: T, dst_type: int, block: int, algorithm: int, mode: str) -> tuple[T, T]:
    """Quantize a matrix by blocks of rows in groups given by their ends.

    The scales are [rows // (2 * block) + groups, columns, 2].
    """
    rows, groups = x.size(0), group_index.numel()
    y, _ = quantized(x, dst_type, 0, block, algorithm, mode)
    scales = torch.zeros(rows // (2 * block) + groups, x.size(1), 2, dtype=torch.uint8, device=x.device)
    if not x.is_meta:
        for number, (start, end) in enumerate(groups_of(group_index, rows)):
            if end > start:
                part, own = quantized(x[start:end], dst_type, 0, block, algorithm, mode)
                y[start:end] = part
                first = start // (2 * block) + number
                scales[first : first + own.size(0)] = own.view(torch.uint8)
    return y, scales.view(torch.float8_e8m0fnu)


@host_kernel("AntiMxQuant")
def anti_mx_quant(x: T, mxscale: T, *, axis: int = -1, dst_type: int = 27) -> T:
    """Multiply the numbers by the powers of two of their blocks."""
    if mxscale.dtype != torch.float8_e8m0fnu:
        raise ValueError(f"mxscale is {mxscale.dtype}; torch.float8_e8m0fnu is expected")
    numbers = decoded(x).movedim(axis, -1)
    powers = mxscale.float().movedim(axis - 1 if axis < 0 else axis, -2).flatten(-2)
    count = -(-numbers.size(-1) // BLOCK)
    if powers.size(-1) != count + count % 2 or powers.shape[:-1] != numbers.shape[:-1]:
        raise ValueError(
            f"mxscale {tuple(mxscale.shape)}: expected a pair of scales for each two blocks of {BLOCK} of "
            f"{tuple(x.shape)}"
        )
    wide = powers.repeat_interleave(BLOCK, -1)[..., : numbers.size(-1)]
    return (numbers * wide).movedim(-1, axis).contiguous().to(torch_dtype(dst_type))


@host_kernel("RmsNormDynamicMxQuant")
def rms_norm_dynamic_mx_quant(
    x: T,
    gamma: T,
    beta: T | None = None,
    *,
    epsilon: float = 1e-6,
    scale_alg: int = 0,
    round_mode: str = "rint",
    dst_type: int = E2M1,
    output_rstd: bool = False,
) -> tuple[T, T, T]:
    y, scale = quantized(normalized(x, gamma, beta, epsilon), dst_type, -1, BLOCK, scale_alg, round_mode)
    return y, scale, _rstd(x, epsilon, output_rstd)


def _rstd(x: T, epsilon: float, wanted: bool) -> T:
    if not wanted:
        return x.new_empty(0, dtype=torch.float32)
    return torch.rsqrt(x.float().square().mean(-1, keepdim=True) + epsilon)


@host_kernel("AddRmsNormDynamicMxQuant")
def add_rms_norm_dynamic_mx_quant(
    x1: T,
    x2: T,
    gamma: T,
    beta: T | None = None,
    *,
    epsilon: float = 1e-6,
    scale_alg: int = 0,
    round_mode: str = "rint",
    dst_type: int = E2M1,
    output_rstd: bool = False,
) -> tuple[T, T, T, T]:
    total = x1.float() + x2.float()
    y, scale = quantized(normalized(total, gamma, beta, epsilon), dst_type, -1, BLOCK, scale_alg, round_mode)
    return y, total.to(x1.dtype), scale, _rstd(total, epsilon, output_rstd)


@host_kernel("SwigluMxQuant")
def swiglu_mx_quant(
    x: T,
    group_index: T | None = None,
    *,
    activate_dim: int = -1,
    activate_left: bool = False,
    swiglu_mode: int = 0,
    clamp_limit: float = 7.0,
    glu_alpha: float = 1.702,
    glu_bias: float = 1.0,
    group_mode: int = 0,
    axis: int = -1,
    dst_type: int = E2M1,
    round_mode: str = "rint",
    scale_alg: int = 0,
    max_dtype_value: float = 0.0,
) -> tuple[T, T]:
    """Compute a gated unit of the last dimension, and quantize it."""
    no_maximum(max_dtype_value)
    refuse_given("not supported", group_index=group_index, group_mode=group_mode)
    check_choice("activate_dim", activate_dim, -1, x.dim() - 1)
    y = gated(x.float(), activate_left, swiglu_mode, clamp_limit, glu_alpha, glu_bias)
    return quantized(y, dst_type, axis, BLOCK, scale_alg, round_mode)

"""Quantized gated unit of weighted tokens, by blocks of a token or one scale for a group, and its gradient."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.checks import check_choice, check_count
from ascend_graph.host.kernels.quantization import hifloat8
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

_FLOAT8 = {35: torch.float8_e5m2, 36: torch.float8_e4m3fn}
_BLOCKS = {0: 128, 1: 32}
_BLOCK, _MX, _STATIC, _DYNAMIC = range(4)
#: Least maximum of a block and of a group; the document has no number for the latter.
_LEAST, _LEAST_OF_GROUP = 1e-4, 1e-8
_WIDTHS = (512, 768, 1024, 1536, 1792, 2048, 2560, 4096)
_LARGEST = (15.0, 56.0, 224.0, 32768.0)


@host_kernel("SwigluGroupQuant")
def swiglu_group_quant(
    x: T,
    weight: T | None = None,
    group_index: T | None = None,
    scale: T | None = None,
    *,
    dst_type: int = 36,
    quant_mode: int = 0,
    block_size: int = 0,
    round_scale: bool = False,
    clamp_limit: float = -1.0,
    dst_type_max: float = 15.0,
    output_origin: bool = False,
) -> tuple[T, T, T]:
    """Return the quantized unit, its scales, and the unit before its weights.

    Documents do not define rows after the groups; here they are zeros.
    """
    _check_mode(quant_mode, dst_type, block_size, round_scale, dst_type_max, output_origin)
    _check_rows(x, weight, group_index, clamp_limit, quant_mode in (_STATIC, _DYNAMIC))
    groups = 1 if group_index is None else group_index.numel()
    if (scale is not None) != (quant_mode == _STATIC) or (scale is not None and scale.shape != (groups,)):
        shown = None if scale is None else tuple(scale.shape)
        raise ValueError(
            f"scale {shown}, quant_mode {quant_mode}: expected a scale of ({groups},) with quant_mode 2, and none with "
            "any other"
        )
    flat = x.float().flatten(0, -2)
    gate, other, _ = _halves(flat, clamp_limit)
    unit = torch.nn.functional.silu(gate) * other
    weighted = unit if weight is None else unit * weight.reshape(-1, 1)
    ends = _ends(group_index, len(flat), x.is_meta)
    if not x.is_meta and not bool(torch.isfinite(weighted[: ends[-1]]).all()):
        raise ValueError("x: the unit has infinite numbers or NaN; what they are quantized to is not documented")
    shape = (*x.shape[:-1], x.size(-1) // 2)
    origin = unit.reshape(shape).to(x.dtype) if output_origin else x.new_empty(0)
    if quant_mode in _BLOCKS:
        y, own = _by_blocks(weighted, quant_mode, dst_type, round_scale)
        if quant_mode == _MX:
            own = own.unflatten(-1, (-1, 2))
        return y.reshape(shape), own.reshape(*x.shape[:-1], *own.shape[1:]), origin
    y, own = _by_groups(weighted, ends, scale, dst_type_max)
    return y.reshape(shape), own, origin


def _check_mode(mode: int, dst_type: int, block: int, rounded: bool, largest: float, origin: bool) -> None:
    if mode not in range(4):
        raise ValueError(f"quant_mode {mode} is not one of 0, 1, 2, 3")
    if mode in _BLOCKS:
        if dst_type not in _FLOAT8:
            raise ValueError(
                f"dst_type {dst_type} with quant_mode {mode}: {', '.join(map(str, _FLOAT8))} are supported; of floats of 4 bits documents "
                "do not say what the scale is"
            )
        check_choice("block_size", block, 0, _BLOCKS[mode], when=f"quant_mode {mode}")
        check_choice("output_origin", origin, False)
        if mode == _MX:
            check_choice("round_scale", rounded, True, when="quant_mode 1")
    elif mode == _DYNAMIC and largest not in _LARGEST:
        raise ValueError(f"dst_type_max {largest} is not one of {', '.join(f'{n:g}' for n in _LARGEST)}")


def _check_rows(x: T, weight: T | None, group_index: T | None, limit: float, in_groups: bool) -> None:
    width = x.size(-1) // 2
    if not 2 <= x.dim() <= 8 or x.size(-1) % 256 or not width:
        raise ValueError(f"x {tuple(x.shape)}: two to eight dimensions, the last one a multiple of 256, are supported")
    if in_groups and (x.dim() > 3 or width not in _WIDTHS or (x.dim() == 3 and x.size(0) > 31)):
        raise ValueError(
            f"x {tuple(x.shape)} is not valid; expected [t, d] or [1 to 31, s, d], with d twice one of "
            f"{', '.join(map(str, _WIDTHS))}"
        )
    if weight is not None:
        check_count("weight", weight, x.numel() // x.size(-1), "token")
    if limit != -1 and limit <= 0:
        raise ValueError(f"clamp_limit {limit}: it is above 0, or -1 for none")
    if group_index is not None and x.dim() != 2:
        raise ValueError(
            f"group_index with x {tuple(x.shape)}: whether groups count rows or tokens is not documented; reshape x to two dimensions"
        )


def _ends(group_index: T | None, rows: int, is_meta: bool) -> list[int]:
    """Return the ends of the groups, or all rows as one group."""
    if group_index is None or is_meta:
        return [rows] * (1 if group_index is None else group_index.numel())
    counts = [int(count) for count in group_index.tolist()]
    if min(counts) < 0:
        raise ValueError(f"group_index {counts}: expected groups of 0 rows or more")
    return [min(sum(counts[: number + 1]), rows) for number in range(len(counts))]


def _halves(flat: T, limit: float) -> tuple[T, T, tuple[T, T]]:
    """Return the gate and the other half, clamped if there is a limit, and both as they were."""
    gate, other = flat.chunk(2, -1)
    if limit > 0:
        return gate.clamp(max=limit), other.clamp(-limit, limit), (gate, other)
    return gate, other, (gate, other)


def _by_blocks(y: T, mode: int, dst_type: int, rounded: bool) -> tuple[T, T]:
    dtype = _FLOAT8[dst_type]
    blocks = y.unflatten(-1, (-1, _BLOCKS[mode]))
    raw = blocks.abs().amax(-1).clamp(min=_LEAST) / torch.finfo(dtype).max
    mantissa, exponent = torch.frexp(raw)
    exponent = torch.where(mantissa == 0.5, exponent - 1, exponent)  # rounded up
    scale = torch.ldexp(torch.ones_like(raw), exponent) if rounded else raw
    largest = torch.finfo(dtype).max
    numbers = (blocks / scale.unsqueeze(-1)).clamp(-largest, largest).flatten(-2).to(dtype)
    if mode == _BLOCK:
        return numbers, scale
    padded = torch.nn.functional.pad(exponent + 127, (0, exponent.size(-1) % 2))
    return numbers, padded.to(torch.uint8).view(torch.float8_e8m0fnu)


def _by_groups(y: T, ends: list[int], scale: T | None, largest: float) -> tuple[T, T]:
    """Encode as HiFloat8, by given factors or by the largest number of each group."""
    numbers = torch.zeros_like(y)
    own = []
    for number, end in enumerate(ends):
        part = y[(ends[number - 1] if number else 0) : end]
        if scale is None:
            top = part.abs().amax() if part.numel() else part.new_zeros(())
            own.append(top.clamp(min=_LEAST_OF_GROUP) / largest)
            part = part / own[-1]
        else:
            part = part * scale[number]
        numbers[(ends[number - 1] if number else 0) : end] = part
    if scale is not None and not y.is_meta and bool((numbers.abs() > hifloat8.LARGEST).any()):
        raise ValueError(
            f"scale {scale.tolist()}: of numbers beyond the largest of hifloat8, {hifloat8.LARGEST:g}, documents do not say what "
            "becomes of them"
        )
    fitting = numbers.clamp(-hifloat8.LARGEST, hifloat8.LARGEST)
    return hifloat8.encoded(fitting), y.new_empty(0) if scale is not None else torch.stack(own)


@host_kernel("SwigluGroupQuantGrad")
def swiglu_group_quant_grad(
    grad_y: T,
    x: T,
    weight: T | None = None,
    y_origin: T | None = None,
    group_index: T | None = None,
    *,
    clamp_limit: float = -1.0,
) -> tuple[T, T]:
    """Return the gradients of the input and of the weights; zeros for rows after the groups."""
    _check_rows(x, weight, group_index, clamp_limit, True)
    if grad_y.shape != (*x.shape[:-1], x.size(-1) // 2) or grad_y.dtype != x.dtype:
        raise ValueError(
            f"grad_y {tuple(grad_y.shape)}, {grad_y.dtype}: by x {tuple(x.shape)}, {x.dtype}, it is half as wide"
        )
    if weight is not None and (y_origin is None or y_origin.shape != grad_y.shape or y_origin.dtype != x.dtype):
        raise ValueError(f"weight needs y_origin, {x.dtype} of the shape of grad_y, {tuple(grad_y.shape)}")
    flat, grad = x.float().flatten(0, -2), grad_y.float().flatten(0, -2)
    gate, other, (gate_before, other_before) = _halves(flat, clamp_limit)
    last = _ends(group_index, len(flat), x.is_meta)[-1]
    kept = (torch.arange(len(flat), device=x.device) < last).unsqueeze(-1)
    of_unit = grad if weight is None else grad * weight.reshape(-1, 1)
    slope = torch.sigmoid(gate)
    of_gate = of_unit * other * slope * (1 + gate * (1 - slope))
    of_other = of_unit * torch.nn.functional.silu(gate)
    if clamp_limit > 0:
        of_gate = of_gate * (gate_before < clamp_limit)
        of_other = of_other * (other_before.abs() < clamp_limit)
    grad_x = (torch.cat([of_gate, of_other], -1) * kept).reshape(x.shape).to(x.dtype)
    if weight is None or y_origin is None:
        return grad_x, grad.new_empty(0)
    sums = (grad * y_origin.float().flatten(0, -2)).sum(-1, keepdim=True) * kept
    return grad_x, sums.reshape(weight.shape)

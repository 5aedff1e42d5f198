"""Elementwise operators, with broadcasting."""

from __future__ import annotations

import math

import torch

from ascend_graph.host.dtypes import INT4, torch_dtype
from ascend_graph.host.kernels.quantization.four_bits import as_int4, moves, packed, unpacked
from ascend_graph.host.kernels.registry import host_kernel, plain_kernels

T = torch.Tensor

plain_kernels(
    ["x"],
    {
        "Abs": torch.abs,
        "Acos": torch.acos,
        "Acosh": torch.acosh,
        "Asin": torch.asin,
        "Asinh": torch.asinh,
        "Atan": torch.atan,
        "Atanh": torch.atanh,
        "Ceil": torch.ceil,
        "Cos": torch.cos,
        "Cosh": torch.cosh,
        "Digamma": torch.digamma,
        "Erf": torch.erf,
        "Erfc": torch.erfc,
        "Expm1": torch.expm1,
        "Floor": torch.floor,
        "Inv": torch.reciprocal,
        "Invert": torch.bitwise_not,
        "IsFinite": torch.isfinite,
        "IsInf": torch.isinf,
        "IsNan": torch.isnan,
        "Lgamma": torch.lgamma,
        "Log1p": torch.log1p,
        "LogicalNot": torch.logical_not,
        "Neg": torch.neg,
        "Reciprocal": torch.reciprocal,
        "Rint": torch.round,
        "Round": torch.round,
        "Rsqrt": torch.rsqrt,
        "Sign": torch.sign,
        "Sin": torch.sin,
        "Sinh": torch.sinh,
        "Sqrt": torch.sqrt,
        "Square": torch.square,
        "Tan": torch.tan,
        "Tanh": torch.tanh,
    },
)
plain_kernels(["input_x"], {"Erfinv": torch.erfinv, "Trunc": torch.trunc})


def _truncated(x1: T, x2: T) -> T:
    return torch.div(x1, x2, rounding_mode="trunc")


def _quotient(x1: T, x2: T) -> T:
    """Divide in the inputs' dtype; integers give the integral part."""
    result = torch.true_divide(x1, x2)
    dtype = torch.result_type(x1, x2)
    return result if result.dtype == dtype else _truncated(x1, x2)


def _quotient_or_zero(x1: T, x2: T) -> T:
    one = torch.ones_like(x2)
    return torch.where(x2 == 0, 0, _quotient(x1, torch.where(x2 == 0, one, x2)))


plain_kernels(
    ["x1", "x2"],
    {
        "Add": torch.add,
        "AddV2": torch.add,
        "Atan2": torch.atan2,
        "BitwiseAnd": torch.bitwise_and,
        "BitwiseOr": torch.bitwise_or,
        "BitwiseXor": torch.bitwise_xor,
        "Div": _quotient,
        "DivNoNan": _quotient_or_zero,
        "Equal": torch.eq,
        "FloorDiv": torch.floor_divide,
        "FloorMod": torch.remainder,
        "Greater": torch.gt,
        "GreaterEqual": torch.ge,
        "Less": torch.lt,
        "LessEqual": torch.le,
        "LogicalAnd": torch.logical_and,
        "LogicalOr": torch.logical_or,
        "Maximum": torch.maximum,
        "Minimum": torch.minimum,
        "Mod": torch.fmod,
        "Mul": torch.mul,
        "NotEqual": torch.ne,
        "Pow": torch.pow,
        "RealDiv": _quotient,
        "Sub": torch.sub,
        "TruncateDiv": _truncated,
        "TruncateMod": torch.fmod,
    },
)
plain_kernels(["x", "y"], {"LeftShift": torch.bitwise_left_shift, "RightShift": torch.bitwise_right_shift})


def scalar(value: T) -> T:
    """Drop the dimensions of a one-element tensor, so that it does not add any to a result."""
    return value.reshape(()) if value.dim() and value.numel() == 1 else value


@host_kernel("MaskedFill")
def masked_fill(x: T, mask: T, value: T) -> T:
    return torch.where(mask, scalar(value).to(x.dtype), x)


plain_kernels(["condition", "then", "else"], {"SelectV2": torch.where})
plain_kernels(["condition", "x1", "x2"], {"Select": torch.where})


@host_kernel("ClipByValueV2", "ClipByValue")
def clip_by_value(x: T, clip_value_min: T, clip_value_max: T) -> T:
    return torch.clamp(x, scalar(clip_value_min), scalar(clip_value_max))


@host_kernel("Lerp")
def lerp(start: T, end: T, weight: T) -> T:
    return torch.lerp(start, end, scalar(weight).to(start.dtype))


def wide(x: T) -> T:
    """Convert to the dtype in which PyTorch computes narrow floats."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


@host_kernel("Addcdiv")
def addcdiv(input_data: T, x1: T, x2: T, value: T) -> T:
    return (wide(input_data) + wide(scalar(value)) * wide(x1) / wide(x2)).to(input_data.dtype)


@host_kernel("Addcmul")
def addcmul(input_data: T, x1: T, x2: T, value: T) -> T:
    return (wide(input_data) + wide(scalar(value)) * wide(x1) * wide(x2)).to(input_data.dtype)


@host_kernel("AxpyV2")
def axpy_v2(x1: T, x2: T, alpha: T) -> T:
    return (wide(x1) + wide(x2) * wide(scalar(alpha))).to(x1.dtype)


@host_kernel("Axpy")
def axpy(x1: T, x2: T, *, alpha: float) -> T:
    is_whole = float(alpha).is_integer() and not (x2.is_floating_point() or x2.is_complex())
    return (wide(x1) + wide(x2) * (int(alpha) if is_whole else alpha)).to(torch.promote_types(x1.dtype, x2.dtype))


@host_kernel("Sxpy")
def sxpy(x1: T, x2: T, alpha: T | None = None) -> T:
    return (wide(x1) - (wide(x2) if alpha is None else wide(x2) * wide(scalar(alpha)))).to(x1.dtype)


@host_kernel("Adds")
def adds(x: T, *, value: float) -> T:
    return x + _like(x, value)


@host_kernel("Muls")
def muls(x: T, *, value: float) -> T:
    return x * _like(x, value)


def _like(x: T, value: float) -> float:
    return value if x.dtype.is_floating_point or x.dtype.is_complex else int(value)


@host_kernel("Exp")
def exp(x: T, *, base: float = -1.0, scale: float = 1.0, shift: float = 0.0) -> T:
    y = _affine(x, scale, shift)
    return torch.exp(y) if base < 0 else torch.pow(base, y)


@host_kernel("Log")
def log(x: T, *, base: float = -1.0, scale: float = 1.0, shift: float = 0.0) -> T:
    known = {-1.0: torch.log, 2.0: torch.log2, 10.0: torch.log10}
    y = _affine(x, scale, shift)
    return known[base](y) if base in known else torch.log(y) / math.log(base)


def _affine(x: T, scale: float, shift: float) -> T:
    return x if (scale, shift) == (1.0, 0.0) else x * scale + shift


@host_kernel("NanToNum")
def nan_to_num(x: T, *, nan: float, posinf: float, neginf: float) -> T:
    limits = torch.finfo(x.dtype) if x.dtype.is_floating_point else None
    if limits is not None:  # the attrs are float32: the limits of a narrower dtype
        posinf, neginf = min(posinf, limits.max), max(neginf, limits.min)
    return torch.nan_to_num(x, nan, posinf, neginf)


@host_kernel("Complex", ignores=("Tout",))
def complex_(real: T, imag: T) -> T:
    return torch.complex(real, imag)


@host_kernel("Conj", views=("input",))
def conj(input: T) -> T:
    return torch.conj_physical(input)  # a real tensor itself


@host_kernel("Real", ignores=("Tout",), views=("input",))
def real(input: T) -> T:
    return input.real.clone() if input.is_complex() else input


@host_kernel("Imag", ignores=("Tout",))
def imag(input: T) -> T:
    return input.imag.clone() if input.is_complex() else torch.zeros_like(input)


@host_kernel("Identity", "StopGradient", "TensorMove", "Snapshot")
@moves
def copy(x: T) -> T:
    # Not x itself: an operator after this one may write to the memory of x.
    return x.clone(memory_format=torch.contiguous_format)


@host_kernel("Cast", ignores=("truncate",), views=("x",))
def cast(x: T, *, dst_type: int) -> T:
    return x.to(torch_dtype(dst_type))


@host_kernel("Bitcast", views=("x",))
def bitcast(x: T, *, type: int, keep_dim: bool = False) -> T:
    """Reinterpret the bits as another dtype.

    From wide to narrow a last dimension is added, from narrow to wide it is removed. With keep_dim the last one grows
    and shrinks instead.
    """
    target = torch_dtype(type)
    have, want = _bits(x.dtype), _bits(target)
    if have == want:
        return x.view(target)
    if have > want:
        y = _recast(x.unsqueeze(-1), target)
        return y.flatten(-2) if keep_dim else y
    ratio = want // have
    if x.dim() == 0 or (x.size(-1) % ratio if keep_dim else x.size(-1) != ratio):
        needed = f"a multiple of {ratio}" if keep_dim else f"{ratio}"
        raise ValueError(f"the last dimension of {x.dtype}{list(x.shape)} must be {needed} for {target}")
    y = _recast(x, target)
    return y if keep_dim else y.squeeze(-1)


def _bits(dtype: torch.dtype) -> int:
    return 4 if dtype is INT4 else 8 * dtype.itemsize


def _recast(x: T, target: torch.dtype) -> T:
    """Reinterpret the bits along the last dimension."""
    whole = packed(x, 2) if x.dtype is INT4 else x.contiguous()
    return as_int4(unpacked(whole.view(torch.uint8))) if target is INT4 else whole.view(target)


@host_kernel("Assign", writes=("ref",), ignores=("validate_shape", "use_locking"))
def assign(ref: T, value: T) -> T:
    return ref.copy_(value)


@host_kernel("AssignAdd", writes=("ref",), ignores=("use_locking",))
def assign_add(ref: T, value: T) -> T:
    return ref.add_(value)


@host_kernel("AssignSub", writes=("var",), ignores=("use_locking",))
def assign_sub(var: T, value: T) -> T:
    return var.sub_(value)


@host_kernel("StrideAdd")
def stride_add(x1: T, x2: T, *, x1_c1_offset: int, x2_c1_offset: int, c1_len: int) -> T:
    """Add slices of channels, counted in blocks of 16."""
    first, second = (x.narrow(1, offset * 16, c1_len * 16) for x, offset in ((x1, x1_c1_offset), (x2, x2_c1_offset)))
    return first + second

"""Matmuls of floats and integers."""

from __future__ import annotations

from functools import cache

import torch

from ascend_graph.host.kernels.checks import refuse_given
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


def product(x1: T, x2: T, transpose_x1: bool, transpose_x2: bool, bias: T | None) -> T:
    """Multiply two matrices and add a bias, rounded as devices do."""
    a = x1.transpose(-1, -2) if transpose_x1 else x1
    b = x2.transpose(-1, -2) if transpose_x2 else x2
    if a.dtype is torch.float16 and b.dtype is torch.float16:
        # As devices do, sums are float32; most CPUs are far slower at float16, too.
        y = torch.matmul(a.float(), b.float())
        return (y if bias is None else y + bias).to(a.dtype)
    if bias is not None and a.dim() == 2 and b.dim() == 2 and bias.dtype == a.dtype:
        return torch.addmm(bias, a, b)  # as PyTorch's linear layers, with their rounding
    y = torch.matmul(a, b)
    return y if bias is None else (y + bias).to(y.dtype)


def integer_product(a: T, b: T) -> T:
    """Multiply matrices of integers of at most 8 bits exactly: in int32, or in float64."""
    plain = a.dtype is b.dtype is torch.int8 and b.dim() == 2 and a.numel() > 0 and b.numel() > 0
    if plain and not a.is_meta and _is_exact():
        return torch._int_mm(a.reshape(-1, a.size(-1)), b).reshape(*a.shape[:-1], b.size(-1))
    return a.double() @ b.double()


@cache
def _is_exact() -> bool:
    """Return whether this CPU's int8 matmul sums up in 32 bits.

    Instructions before VNNI saturate sums of two products at 16 bits.
    """
    least = torch.full((32, 64), -128, dtype=torch.int8)
    return bool((torch._int_mm(least, least.t().contiguous()) == 64 * 128 * 128).all())


# cube_math_type, of aclnn functions, lets a device round float32 to fewer bits.
@host_kernel("MatMul", "MatMulV2", "MatMulV3", ignores=("offset_x", "cube_math_type"))
def mat_mul(
    x1: T,
    x2: T,
    bias: T | None = None,
    offset_w: T | None = None,
    *,
    transpose_x1: bool = False,
    transpose_x2: bool = False,
    opImplMode: int = 0,  # noqa: N803
) -> T:
    _no_offset(offset_w)
    return product(x1, x2, transpose_x1, transpose_x2, bias)


@host_kernel("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", ignores=("offset_x", "cube_math_type"))
def batch_mat_mul(
    x1: T, x2: T, bias: T | None = None, offset_w: T | None = None, *, adj_x1: bool = False, adj_x2: bool = False
) -> T:
    _no_offset(offset_w)
    return product(x1, x2, adj_x1, adj_x2, bias)


def _no_offset(offset_w: T | None) -> None:
    refuse_given("quantized weights are not supported", offset_w=offset_w)


@host_kernel("FusedMatMul", ignores=("enable_hf32", "cube_math_type"))
def fused_mat_mul(
    x1: T,
    x2: T,
    bias: T | None = None,
    x3: T | None = None,
    *,
    transpose_x1: bool = False,
    transpose_x2: bool = False,
    fused_op_type: str = "",
) -> T:
    if (fused_op_type, x3) == ("16cast32", None):  # sums and results are float32: nothing is rounded between them
        return product(x1.float(), x2.float(), transpose_x1, transpose_x2, None if bias is None else bias.float())
    y = product(x1, x2, transpose_x1, transpose_x2, bias)
    match fused_op_type, x3:
        case "", None:
            return y
        case "relu", None:
            return torch.relu(y)
        case "gelu_tanh", None:
            return torch.nn.functional.gelu(y, approximate="tanh")
        case "gelu_erf", None:
            return torch.nn.functional.gelu(y)
        case "add", torch.Tensor():
            return y + x3
        case "mul", torch.Tensor():
            return y * x3
    raise ValueError(
        f"fused_op_type {fused_op_type!r} {'without' if x3 is None else 'with'} x3 is not supported; expected '', "
        "16cast32, relu, "
        "gelu_tanh or gelu_erf without x3, or add or mul with it"
    )


@host_kernel("TransposeBatchMatMul", ignores=("cube_math_type", "enable_hf32"))
def transpose_batch_mat_mul(
    x1: T,
    x2: T,
    bias: T | None = None,
    scale: T | None = None,
    *,
    perm_x1: list[int] = [],
    perm_x2: list[int] = [],
    perm_y: list[int] = [],
    batch_split_factor: int = 1,
) -> T:
    """Multiply batches of matrices, permuted before and after.

    With a split factor, the batches of a part lie side by side in a row.
    """
    refuse_given("quantized results are not supported", scale=scale)
    a = x1.permute(perm_x1) if perm_x1 else x1
    b = x2.permute(perm_x2) if perm_x2 else x2
    y = product(a, b, False, False, bias)
    if batch_split_factor == 1:
        return y.permute(perm_y).contiguous() if perm_y else y
    if perm_y != [1, 0, 2] or y.size(0) % batch_split_factor:
        raise ValueError(
            f"batch_split_factor {batch_split_factor} needs perm_y [1, 0, 2], not {perm_y}, and divides {y.size(0)} batches"
        )
    parts: T = y.unflatten(0, (batch_split_factor, -1))  # [parts, batches of a part, rows, columns]
    return parts.permute(0, 2, 1, 3).flatten(2)


@host_kernel("Addmm", ignores=("cube_math_type",))
def add_mm(x: T, mat1: T, mat2: T, *, beta: float = 1, alpha: float = 1) -> T:
    y = product(mat1, mat2, False, False, None).float() * alpha
    return (y + beta * x.float() if beta else y).to(mat1.dtype)

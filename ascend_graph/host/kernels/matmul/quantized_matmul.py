"""Matmuls of quantized matrices."""

from __future__ import annotations

import torch

from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.kernels.checks import check_choice, check_count, check_matrices, check_shape, refuse_given
from ascend_graph.host.kernels.matmul.float_matmul import float_product, kind_of, with_first_dimensions_swapped
from ascend_graph.host.kernels.matmul.matmul import integer_product
from ascend_graph.host.kernels.quantization.four_bits import PACKED, integers, unpacked, unpacked_where_dense
from ascend_graph.host.kernels.quantization.packed_parameters import unpacked_parameter
from ascend_graph.host.kernels.quantization.quantize import dynamic, saturated
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


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
    group_size: int = 0,
) -> T:
    """Multiply integer matrices with bias and scales, or matrices of 8- or 4-bit floats.

    Each column has a scale, and optionally each row. ``group_size`` exists on the host only: newer prototypes and the
    aclnn function have it.
    """
    if kind_of(x1) or kind_of(x2):
        if offset is not None:
            raise ValueError("x2Offset is for int8; leave it out")
        transposed = (transpose_x1, transpose_x2)
        return float_product(x1, x2, scale, pertoken_scale, bias, group_size, transposed, torch_dtype(dtype))
    if group_size:
        raise ValueError(f"groupSize {group_size} is not supported for integers on the host; 0 is")
    a, b = _matrix(x1, transpose_x1), _matrix(x2, transpose_x2)
    check_matrices("x1", a, "x2", b)
    if scale.dtype in (torch.int64, torch.uint64):
        scale, offset = unpacked_parameter(scale)
    if scale.numel() not in (1, b.size(-1)):
        raise ValueError(f"scale has {scale.numel()} numbers; 1 or {b.size(-1)}, the columns of x2, are expected")
    if pertoken_scale is not None:
        check_count("pertoken_scale", pertoken_scale, a.size(-2), "row of x1")
    y = integer_product(a, b)
    if bias is not None and not bias.dtype.is_floating_point:
        y = y + bias
    target = torch_dtype(dtype)
    if target is torch.int32:
        return y.to(target)
    wide = torch.float64 if target is torch.int8 else torch.float32
    y = y.to(wide)  # before it is multiplied: PyTorch is slow where the dtypes of operands differ
    y = y * scale.to(wide)
    if pertoken_scale is not None:
        y.mul_(pertoken_scale.to(wide).unsqueeze(-1))
    if bias is not None and bias.dtype.is_floating_point:
        y = y + bias.to(wide)
    if offset is not None:
        y = y + offset.to(wide)
    return saturated(y) if target is torch.int8 else y.to(target)


@host_kernel("QuantMatmulReduceSum", ignores=("compute_type", "group_size"))
def quant_matmul_reduce_sum(
    x1: T,
    x2: T,
    dims: T,
    bias: T | None = None,
    x1_scale: T | None = None,
    x2_scale: T | None = None,
    y_scale: T | None = None,
    x1_offset: T | None = None,
    x2_offset: T | None = None,
    y_offset: T | None = None,
    x2_table: T | None = None,
    *,
    dtype: int = 27,
    transpose_x1: bool = False,
    transpose_x2: bool = False,
    keep_dims: bool = False,
) -> T:
    """Sum a batch of integer matmuls, scaled by row before the sum and by column after it.

    ``dims`` is not read: documents have [0] only, and torch_npu passes an array that is already freed.
    """
    reserved = (bias, y_scale, x1_offset, x2_offset, y_offset, x2_table)
    if any(x is not None for x in reserved) or transpose_x1 or transpose_x2 or keep_dims:
        raise ValueError(
            "bias, y_scale, offsets, x2_table, transposed inputs and keep_dims are reserved: none is supported"
        )
    if dims.numel() != 1:
        raise ValueError(f"dims has {dims.numel()} numbers: one, the batch, is supported")
    if x1_scale is None or x2_scale is None:
        raise ValueError("x1_scale and x2_scale are required")
    if torch_dtype(dtype) is not torch.bfloat16 or not x1.numel() or not x2.numel():
        raise ValueError(
            f"the result is {torch_dtype(dtype)} (bfloat16), of x1 {tuple(x1.shape)} and x2 {tuple(x2.shape)}, which must have elements"
        )
    y = integer_product(x1, x2).double() * x1_scale.double().unsqueeze(-1)
    return (y.sum(0) * x2_scale.double()).to(torch.bfloat16)


@host_kernel("TransposeQuantBatchMatMul")
def transpose_quant_batch_mat_mul(
    x1: T,
    x2: T,
    bias: T | None = None,
    x1_scale: T | None = None,
    x2_scale: T | None = None,
    *,
    dtype: int,
    group_size: int = 0,
    perm_x1: list[int] = [1, 0, 2],
    perm_x2: list[int] = [0, 1, 2],
    perm_y: list[int] = [1, 0, 2],
    batch_split_factor: int = 1,
) -> T:
    """Multiply batches of 8-bit float matrices; in x1 and the result the rows come before the batch.

    Scales are for each row and column, powers of two for each block of 32 (MX), or packed for each column.
    """
    if perm_x1 != [1, 0, 2] or perm_y != [1, 0, 2] or perm_x2 not in ([0, 1, 2], [0, 2, 1]):
        raise ValueError(
            f"permX1 {perm_x1} ([1, 0, 2]), permX2 {perm_x2} ([0, 1, 2], [0, 2, 1]), permY {perm_y} ([1, 0, 2]): no other is supported"
        )
    if bias is not None or batch_split_factor != 1 or x2_scale is None or x1.dim() != 3 or x2.dim() != 3:
        raise ValueError(
            f"bias (none), batchSplitFactor {batch_split_factor} (1), x2Scale (required), x1 {tuple(x1.shape)} and x2 {tuple(x2.shape)} (three "
            "dimensions): no other is supported"
        )
    if torch_dtype(dtype) not in (torch.float16, torch.bfloat16):
        raise ValueError(f"dtype {dtype}: on the host 1, float16, and 27, bfloat16, are supported")
    is_transposed = perm_x2 == [0, 2, 1]
    rows, width, columns = x1.size(0), x1.size(2), x2.size(1 if is_transposed else 2)
    if x1.size(1) != x2.size(0):
        raise ValueError(
            f"x1 {tuple(x1.shape)} has a batch of {x1.size(1)}; expected {x2.size(0)}, as x2 {tuple(x2.shape)} has"
        )
    if x2_scale.dtype is torch.float8_e8m0fnu:
        if x1.dtype is not torch.float8_e4m3fn or x2.dtype is not torch.float8_e4m3fn or width % 64:
            raise ValueError(
                f"x1 {x1.dtype}, x2 {x2.dtype}, sums of {width}: with scales for blocks float8_e4m3fn and multiples of 64 are supported"
            )
        of_rows = None if x1_scale is None else x1_scale.transpose(0, 1)
    else:
        of_rows = x1_scale
        _check_row_and_column_scales(x1, x1_scale, x2_scale, (rows, width, columns), is_transposed)
        group_size = 0  # documents give it no effect
    y = float_product(
        with_first_dimensions_swapped(x1),
        x2,
        x2_scale,
        of_rows,
        None,
        group_size,
        (False, is_transposed),
        torch_dtype(dtype),
    )
    return y.transpose(0, 1).contiguous()


def _check_row_and_column_scales(
    x1: T, x1_scale: T | None, x2_scale: T, sizes: tuple[int, int, int], is_transposed: bool
) -> None:
    rows, width, columns = sizes
    is_float8 = x1.dtype in (torch.float8_e4m3fn, torch.float8_e5m2)
    if is_float8 != (x2_scale.dtype is torch.float32):
        raise ValueError(
            f"x1 {x1.dtype} with x2Scale {x2_scale.dtype}: expected float32 or float8_e8m0fnu with float8, and packed "
            "scales with hifloat8"
        )
    if is_float8 and ((width, columns) != (512, 128) or is_transposed):
        raise ValueError(
            f"sums of {width} (512), {columns} columns (128), permX2 ([0, 1, 2]): with scales of rows and columns no other is supported"
        )
    of_rows = None if x1_scale is None else tuple(x1_scale.shape)
    if tuple(x2_scale.shape) != (columns,) or (is_float8 and of_rows != (rows,)):
        raise ValueError(f"x1Scale {of_rows}, x2Scale {tuple(x2_scale.shape)}: ({rows},) and ({columns},) are expected")


def _matrix(x: T, transposed: bool) -> T:
    """Return a matrix of numbers; int32 holds eight 4-bit numbers along the dense dimension."""
    x = unpacked_where_dense(x) if x.dtype is torch.int32 else integers(x)
    return x.transpose(-1, -2) if transposed else x


@host_kernel("WeightQuantBatchMatmulV2", ignores=("inner_precise",))
def weight_quant_batch_matmul(
    x: T,
    weight: T,
    antiquant_scale: T,
    antiquant_offset: T | None = None,
    quant_scale: T | None = None,
    quant_offset: T | None = None,
    bias: T | None = None,
    *,
    transpose_x: bool = False,
    transpose_weight: bool = False,
    antiquant_group_size: int = 0,
    dtype: int = -1,
    is_strided: bool = False,
) -> T:
    """Multiply by a weight that is dequantized: by one scale, by column, or by groups of its rows.

    ``is_strided`` exists on the host only: the weight's strides then tell which dimension holds eight 4-bit numbers in
    an int32, as aclnn functions take them. A graph's tensors have no strides: there it is the dimension that is too
    short.
    """
    a = x.transpose(-1, -2) if transpose_x else x
    if weight.dtype is torch.int32 and not is_strided and weight.size(-2) * PACKED == a.size(-1):
        weight = unpacked(weight.transpose(-1, -2)).transpose(-1, -2)
    w = _matrix(weight, transpose_weight).float()
    check_matrices("x", a, "weight", w)
    scale, offset = (
        _weight_parameter(name, values, w, transpose_weight, antiquant_group_size)
        for name, values in (("antiquant_scale", antiquant_scale), ("antiquant_offset", antiquant_offset))
    )
    if antiquant_offset is not None:
        check_shape(
            "antiquant_offset", antiquant_offset, tuple(antiquant_scale.shape), why="the shape of antiquant_scale"
        )
    assert scale is not None
    y = a.float() @ ((w if offset is None else w + offset) * scale)
    if bias is not None:
        y = y + bias.float()
    if quant_scale is None:
        return y.to(x.dtype)
    if quant_scale.dtype in (torch.int64, torch.uint64):
        quant_scale, quant_offset = unpacked_parameter(quant_scale)
    y = y * quant_scale.float()
    return saturated(y if quant_offset is None else y + quant_offset.float())


def _weight_parameter(name: str, values: T | None, weight: T, transposed: bool, group_size: int) -> T | None:
    """Expand a parameter to the weight: [1], [columns] or [1, columns], or [groups of rows, columns]."""
    if values is None:
        return None
    wide = values.float()
    rows, columns = weight.shape[-2:]
    if wide.numel() in (1, columns):
        return wide.reshape(1, -1)
    if group_size <= 0:
        raise ValueError(
            f"{name} of shape {tuple(values.shape)} is not valid; expected 1 element, or {columns}, one for each column"
        )
    if transposed:
        wide = wide.transpose(-1, -2)
    groups = -(-rows // group_size)
    if wide.shape[-2:] != (groups, columns):
        expected = (columns, groups) if transposed else (groups, columns)
        raise ValueError(
            f"{name} of shape {tuple(values.shape)} is not valid; expected {list(expected)}, for groups of "
            f"{group_size} of {rows} rows"
        )
    return wide.repeat_interleave(group_size, -2)[..., :rows, :]


@host_kernel("DequantBias")
def dequant_bias(
    x: T, weight_scale: T, activate_scale: T | None = None, bias: T | None = None, *, output_dtype: int
) -> T:
    """Convert integer sums to floats, by a scale for each column and optionally each row.

    An integer bias is added before the scales, a float one after them.
    """
    y = x.double()
    if bias is not None and not bias.dtype.is_floating_point:
        y = y + bias.double()
    y = y * weight_scale.double()
    if activate_scale is not None:
        y = y * activate_scale.double().unsqueeze(-1)
    if bias is not None and bias.dtype.is_floating_point:
        y = y + bias.double()
    return y.to(torch_dtype(output_dtype))


@host_kernel("QuantMatmulDequant")
def quant_matmul_dequant(
    x: T,
    quantized_weight: T,
    weight_scale: T,
    bias: T | None = None,
    x_scale: T | None = None,
    x_offset: T | None = None,
    smooth_scale: T | None = None,
    *,
    x_quant_mode: str = "pertoken",
    transpose_weight: bool = True,
) -> T:
    """Quantize x, by row or as a whole, multiply by an integer weight, and convert back to floats."""
    check_choice("x_quant_mode", x_quant_mode, "pertoken", "pertensor")
    refuse_given("not supported", x_offset=x_offset)
    numbers, scale = _quantized_for_product(x, x_scale, smooth_scale, x_quant_mode)
    w = quantized_weight.transpose(-1, -2) if transpose_weight else quantized_weight
    y = integer_product(numbers, w)
    if bias is not None:
        y = y + bias.double()
    return (y * weight_scale.double() * scale.double()).to(x.dtype)


def _quantized_for_product(x: T, x_scale: T | None, smooth_scale: T | None, mode: str) -> tuple[T, T]:
    wide = x.float() if smooth_scale is None else x.float() * smooth_scale.float()
    if x_scale is not None:
        scale = x_scale.float().reshape(-1, 1)
        return saturated(wide / scale), scale
    if mode == "pertensor":
        raise ValueError("x_quant_mode 'pertensor' needs x_scale")
    return dynamic(wide)


@host_kernel("FusedQuantMatMul", ignores=("compute_type", "group_size"))
def fused_quant_mat_mul(
    x1: T,
    x2: T,
    bias: T | None = None,
    x1_scale: T | None = None,
    x2_scale: T | None = None,
    y_scale: T | None = None,
    x1_offset: T | None = None,
    x2_offset: T | None = None,
    y_offset: T | None = None,
    x2_table: T | None = None,
    x3: T | None = None,
    *,
    dtype: int,
    transpose_x1: bool = False,
    transpose_x2: bool = False,
    fused_op_type: str = "",
) -> T:
    """Apply a GELU to a quantized matmul."""
    others = {
        "y_scale": y_scale,
        "x1_offset": x1_offset,
        "x2_offset": x2_offset,
        "y_offset": y_offset,
        "x2_table": x2_table,
        "x3": x3,
    }
    if given := [name for name, value in others.items() if value is not None]:
        raise ValueError(f"{', '.join(given)}: not supported; x1, x2, bias, x1_scale and x2_scale are")
    if x2_scale is None:
        raise ValueError("x2_scale is required")
    approximate = {"gelu_erf": "none", "gelu_tanh": "tanh"}.get(fused_op_type)
    if approximate is None:
        raise ValueError(f"fused_op_type {fused_op_type!r} is not one of gelu_erf, gelu_tanh")
    y = quant_batch_matmul(
        x1, x2, x2_scale, None, bias, x1_scale, dtype=0, transpose_x1=transpose_x1, transpose_x2=transpose_x2
    )
    return torch.nn.functional.gelu(y, approximate=approximate).to(torch_dtype(dtype))

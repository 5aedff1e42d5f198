"""Matmuls of 8-bit floats accumulated into an output, as for gradients of weights over several batches.

Documented: https://gitcode.com/cann/ops-nn, matmul/quant_batch_matmul_inplace_add, and
https://gitcode.com/cann/ops-transformer, gmm/quant_grouped_matmul_inplace_add. The summed dimension comes first in the
memory of both matrices: the first one is its transposed view.
"""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.checks import check_choice, check_shape
from ascend_graph.host.kernels.matmul.float_matmul import kind_of, with_first_dimensions_swapped
from ascend_graph.host.kernels.quantization import hifloat8
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

_BLOCK = 32
_FLOAT8 = "float8_e4m3fn or float8_e5m2"


def _kinds(x1: T, x2: T, scales: tuple[T | None, T]) -> bool:
    """Return whether blocks share powers of two (float8); HiFloat8 has scales instead."""
    kinds, dtypes = {kind_of(x1), kind_of(x2)}, {None if s is None else s.dtype for s in scales}
    if kinds == {_FLOAT8} and dtypes == {torch.float8_e8m0fnu}:
        return True
    if kinds == {"hifloat8"} and dtypes == {torch.float32}:
        return False
    raise ValueError(
        f"x1 is {kind_of(x1) or x1.dtype}, x2 {kind_of(x2) or x2.dtype}, scales are "
        f"{[None if s is None else s.dtype for s in scales]}: expected both as "
        "float8 with float8_e8m0fnu, or hifloat8 with float32"
    )


def _numbers(x: T) -> T:
    return hifloat8.decoded(x).double() if x.dtype is torch.uint8 else x.double()


def _spread(scale: T, rows: int) -> T:
    """Expand powers of two of [pairs of blocks, columns, 2] to [rows, columns]."""
    return scale.double().transpose(-1, -2).flatten(0, 1).repeat_interleave(_BLOCK, 0)[:rows]


def _check_transposed(x1: T, is_strided: bool) -> None:
    """Check that a strided matrix is the transposed view of memory's contents.

    Functions express this by strides; a graph's tensors have none.
    """
    if is_strided and x1.numel() and (x1.stride(0), x1.stride(1)) != (1, x1.size(0)) and min(x1.shape) > 1:
        raise ValueError(
            f"x1 of shape {tuple(x1.shape)} and strides {x1.stride()}: the transposed view of a matrix is expected, x1.transpose(0, 1)"
        )


@host_kernel("QuantGroupedMatmulInplaceAdd", writes=("y",))
def quant_grouped_matmul_inplace_add(
    x1: T,
    x2: T,
    scale2: T,
    group_list: T,
    y: T,
    scale1: T | None = None,
    *,
    group_list_type: int = 0,
    group_size: int = 0,
    is_strided: bool = False,
) -> T:
    """Add the matmul of each group's part of [rows, sum] and [sum, columns] to y[groups, rows, columns].

    ``is_strided`` exists on the host only: it says whether strides are meaningful.
    """
    check_choice("groupListType", group_list_type, 0, 1)
    check_choice("groupSize", group_size, 0)
    groups = group_list.numel()
    if x1.dim() != 2 or x2.dim() != 2 or x1.size(1) != x2.size(0) or not 1 <= groups <= 1024:
        raise ValueError(
            f"x1 {tuple(x1.shape)}, x2 {tuple(x2.shape)}: no matrices that can be multiplied, or not 1 to 1024 groups, but {groups}"
        )
    _check_transposed(x1, is_strided)
    m, rows, n = x1.size(0), x1.size(1), x2.size(1)
    check_shape("yRef", y, (groups, m, n))
    by_blocks = _kinds(x1, x2, (scale1, scale2))
    if by_blocks:
        check_shape("scale1", scale1, (rows // 64 + groups, m, 2))
        check_shape("scale2", scale2, (rows // 64 + groups, n, 2))
    else:
        check_shape("scale1", scale1, (groups, 1), (groups,))
        check_shape("scale2", scale2, (groups, 1), (groups,), (groups, n))
    if y.is_meta or scale1 is None:
        return y
    ends = [int(number) for number in (group_list.cumsum(0) if group_list_type else group_list).tolist()]
    if any(a > b for a, b in zip([0, *ends], ends, strict=False)) or ends[-1] > rows:
        raise ValueError(
            f"groupList {group_list.tolist()} of type {group_list_type}: the groups are of {rows} rows, in order"
        )
    a, b = _numbers(x1), _numbers(x2)
    for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        left, right = a[:, start:end], b[start:end]
        if by_blocks:  # each group's scales begin after room for a part of a pair of blocks in each group before
            first = start // 64 + number
            pairs = slice(first, first + -(-(end - start) // 64))
            product = (left * _spread(scale1[pairs], end - start).t()) @ (right * _spread(scale2[pairs], end - start))
        else:
            product = left @ right * scale1[number].double() * scale2[number].double()
        y[number] += product.to(y.dtype)
    return y


@host_kernel("QuantBatchMatmulInplaceAdd", writes=("y",))
def quant_batch_matmul_inplace_add(
    x1: T,
    x2: T,
    x2_scale: T,
    y: T,
    x1_scale: T | None = None,
    *,
    transpose_x1: bool = False,
    transpose_x2: bool = False,
    group_size: int = 0,
    is_strided: bool = False,
) -> T:
    """Add the matmul of [rows, sum] and [sum, columns], with the scales of their blocks, to y[rows, columns].

    ``is_strided`` exists on the host only: it says whether strides are meaningful.
    """
    if transpose_x2:
        raise ValueError("transposeX2 true: false is supported")
    if transpose_x1:
        x1, x1_scale = (
            with_first_dimensions_swapped(x1),
            x1_scale if x1_scale is None or x1_scale.dim() != 3 else x1_scale.transpose(0, 1),
        )
    if x1.dim() != 2 or x2.dim() != 2 or x1.size(1) != x2.size(0) or not x2.size(0):
        raise ValueError(
            f"x1 {tuple(x1.shape)}, x2 {tuple(x2.shape)}: expected matrices that can be multiplied and are not empty"
        )
    _check_transposed(x1, is_strided)
    m, rows, n = x1.size(0), x1.size(1), x2.size(1)
    check_shape("yRef", y, (m, n))
    by_blocks = _kinds(x1, x2, (x1_scale, x2_scale))
    sizes = tuple(group_size >> shift & 0xFFFF for shift in (32, 16, 0))
    if any(size not in (0, own) for size, own in zip(sizes, (1, 1, _BLOCK) if by_blocks else (0, 0, 0), strict=True)):
        raise ValueError(f"groupSize {group_size} is {sizes}; expected (1, 1, {_BLOCK}) for blocks, and 0 for HiFloat8")
    pairs = -(-rows // 64)
    check_shape("x1Scale", x1_scale, (m, pairs, 2) if by_blocks else (1,))
    check_shape("x2Scale", x2_scale, (pairs, n, 2) if by_blocks else (1,))
    if y.is_meta or x1_scale is None:
        return y
    a, b = _numbers(x1), _numbers(x2)
    if by_blocks:
        product = (a * _spread(x1_scale.transpose(0, 1), rows).t()) @ (b * _spread(x2_scale, rows))
    else:
        product = a @ b * x1_scale.double() * x2_scale.double()
    return y.add_(product.to(y.dtype))

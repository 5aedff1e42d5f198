"""Matmuls of 8- and 4-bit floats, with scales of rows and columns, of blocks, or of microscaling.

aclnnQuantMatmulV5 (https://gitcode.com/cann/ops-nn, matmul/quant_batch_matmul_v4/docs) supports them on Ascend 950
only. Sums are float64, so their order does not matter.
"""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.checks import check_matrices, check_shape
from ascend_graph.host.kernels.quantization import hifloat8
from ascend_graph.host.kernels.quantization.microscaling import decoded
from ascend_graph.host.kernels.quantization.packed_parameters import unpacked_parameter

T = torch.Tensor

_HIFLOAT8, _E2M1 = 34, 40
_FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)
_TARGETS = (torch.float16, torch.bfloat16, torch.float32)
_MX_BLOCK = 32
#: Rows, columns and numbers of a sum that share a scale: by groups and blocks, or by blocks on both sides.
_BLOCKS = ((1, 128, 128), (128, 128, 128))


def kind_of(x: T) -> str | None:
    """Return the kind of 8- or 4-bit floats that both operands must share, or None for other dtypes."""
    if x.dtype in _FLOAT8:
        return "float8_e4m3fn or float8_e5m2"
    kinds = {_HIFLOAT8: "hifloat8", _E2M1: "float4_e2m1"}
    return kinds.get(getattr(x, "ge_dtype", 0)) if x.dtype is torch.uint8 else None


def with_first_dimensions_swapped(x: T) -> T:
    """Return the transposed view and keep its ``ge_dtype``."""
    found = x.transpose(0, 1)
    if hasattr(x, "ge_dtype"):
        found.ge_dtype = x.ge_dtype  # type: ignore[attr-defined]
    return found


def _check_dtypes(kinds: tuple[str | None, str | None], x1: T, x2: T, target: torch.dtype, bias: T | None) -> None:
    """Raise if the operands' kinds, the result's dtype or the bias are not supported."""
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"x1 is {kinds[0] or x1.dtype} and x2 {kinds[1] or x2.dtype}: expected one kind of dtype for both on the "
            "host"
        )
    if target not in _TARGETS or (bias is not None and bias.dtype is not torch.float32):
        raise ValueError(
            f"the result is {target} (float16, bfloat16, float32), bias is {None if bias is None else bias.dtype} (float32): "
            "expected one of these for 8- and 4-bit floats"
        )


def float_product(
    x1: T,
    x2: T,
    scale: T,
    pertoken_scale: T | None,
    bias: T | None,
    group_size: int,
    transposed: tuple[bool, bool],
    target: torch.dtype,
) -> T:
    """Multiply two such matrices, of any number of batches, and apply their scales.

    Args:
        x1: [..., rows, sum].
        x2: [..., sum, columns].
        scale: of x2: float32 for all or for each column, or packed in int64, without ``pertoken_scale``; float32 for
            each block, [..., blocks of the sum, blocks of columns]; float8_e8m0fnu, [..., pairs of blocks of the sum,
            columns, 2].
        pertoken_scale: of x1: float32 for all or for each row; for each block, [..., blocks of rows, blocks of the
            sum]; or float8_e8m0fnu, [..., rows, pairs of blocks of the sum, 2].
        bias: float32, for each column; with a packed scale it is added before the scale is applied.
        group_size: rows, columns and numbers of a sum in a block, in 16 bits each from above; 0 derives them from the
            shapes.
        transposed: whether the last two dimensions are swapped, for x1 and x2 and for their scales of blocks.
        target: the result's dtype: float16, bfloat16 or float32.

    Raises:
        ValueError: for combinations that documents do not have.
    """
    kinds = kind_of(x1), kind_of(x2)
    _check_dtypes(kinds, x1, x2, target, bias)
    a, b = (_numbers(x, is_transposed) for x, is_transposed in zip((x1, x2), transposed, strict=True))
    check_matrices("x1", a, "x2", b)
    scales = {torch.float8_e8m0fnu: "MX", torch.int64: "packed", torch.uint64: "packed"}
    mode = scales.get(scale.dtype, "blocks" if scale.dim() > 1 else "rows and columns")
    if kinds[0] == "float4_e2m1" and mode != "MX":
        raise ValueError(f"x2Scale is {scale.dtype}: expected float8_e8m0fnu scales for float4_e2m1")
    if mode == "packed":
        if pertoken_scale is not None:
            raise ValueError("x1Scale with a packed x2Scale is not supported; give one of them")
        columns, _ = unpacked_parameter(scale)
        y = a @ b
        return ((y if bias is None else y + bias.double()) * _of_all_or_each("x2Scale", columns, b.size(-1))).to(target)
    if pertoken_scale is None or pertoken_scale.dtype != scale.dtype or scale.dtype not in (torch.float32, *scales):
        given = None if pertoken_scale is None else pertoken_scale.dtype
        raise ValueError(f"x1Scale is {given} and x2Scale {scale.dtype}: expected float32 or float8_e8m0fnu for both")
    if mode == "rows and columns":
        if group_size:
            raise ValueError(
                f"groupSize {group_size} is for scales of blocks; expected 0 for scales of rows and columns"
            )
        y = a @ b * _of_all_or_each("x2Scale", scale, b.size(-1))
        y = y * _of_all_or_each("x1Scale", pertoken_scale, a.size(-2)).unsqueeze(-1)
    elif mode == "MX":
        y = _microscaled(a, b, pertoken_scale, scale, group_size, transposed)
    else:
        if bias is not None:
            raise ValueError("bias with block scales is not supported; leave out bias")
        y = _by_blocks(a, b, pertoken_scale, scale, group_size, transposed)
    return (y if bias is None else y + bias.double()).to(target)


def _numbers(x: T, transposed: bool) -> T:
    """Return a matrix as float64; of 4-bit floats, bytes hold two numbers along the dense dimension."""
    kind = getattr(x, "ge_dtype", 0)
    if x.dtype is not torch.uint8:
        numbers = x.double()
    elif kind == _HIFLOAT8:
        numbers = hifloat8.decoded(x).double()
    else:
        across = x.stride(-1) != 1 and x.stride(-2) == 1
        codes = x.transpose(-1, -2) if across else x
        numbers = decoded(codes, kind).double()
        numbers = numbers.transpose(-1, -2) if across else numbers
    return numbers.transpose(-1, -2) if transposed else numbers


def _of_all_or_each(name: str, scale: T, count: int) -> T:
    check_shape(name, scale, (1,), (count,))
    return scale.double()


def _sizes(group_size: int) -> tuple[int, int, int]:
    return group_size >> 32, group_size >> 16 & 0xFFFF, group_size & 0xFFFF


def _check_blocks(name: str, scale: T, expected: tuple[int, ...]) -> None:
    if tuple(scale.shape[-len(expected) :]) != expected:
        raise ValueError(
            f"{name} of shape {tuple(scale.shape)} is not valid; expected [..., {', '.join(map(str, expected))}]"
        )


def _microscaled(a: T, b: T, x1_scale: T, x2_scale: T, group_size: int, transposed: tuple[bool, bool]) -> T:
    if any(size not in (0, own) for size, own in zip(_sizes(group_size), (1, 1, _MX_BLOCK), strict=True)):
        raise ValueError(
            f"groupSize {group_size} is {_sizes(group_size)}; expected (1, 1, {_MX_BLOCK}), as microscaling has, or 0"
        )
    if x1_scale.dim() < 3 or x2_scale.dim() < 3:
        raise ValueError(
            f"x1Scale {tuple(x1_scale.shape)}, x2Scale {tuple(x2_scale.shape)}: expected a last dimension of 2, for "
            "scales of microscaling come in pairs of blocks"
        )
    rows, columns = (
        s.transpose(-2, -3) if other else s for s, other in zip((x1_scale, x2_scale), transposed, strict=True)
    )
    length = a.size(-1)
    pairs = -(-length // (2 * _MX_BLOCK))
    _check_blocks("x1Scale", rows, (a.size(-2), pairs, 2))
    _check_blocks("x2Scale", columns, (pairs, b.size(-1), 2))
    of_rows = rows.double().flatten(-2).repeat_interleave(_MX_BLOCK, -1)[..., :length]
    of_columns = columns.double().transpose(-1, -2).flatten(-3, -2).repeat_interleave(_MX_BLOCK, -2)[..., :length, :]
    return (a * of_rows) @ (b * of_columns)


def _by_blocks(a: T, b: T, x1_scale: T, x2_scale: T, group_size: int, transposed: tuple[bool, bool]) -> T:
    if x1_scale.dim() < 2:
        raise ValueError(
            f"x1Scale of shape {tuple(x1_scale.shape)} has one dimension; expected two or more, as x2Scale is of blocks"
        )
    rows, columns = (
        s.transpose(-1, -2) if other else s for s, other in zip((x1_scale, x2_scale), transposed, strict=True)
    )
    sizes = (a.size(-2), b.size(-1), a.size(-1))
    counts = (rows.size(-2), columns.size(-1), rows.size(-1))
    blocks = tuple(
        given or (size // count if count and size % count == 0 else 0)
        for given, size, count in zip(_sizes(group_size), sizes, counts, strict=True)
    )
    if blocks not in _BLOCKS:
        raise ValueError(
            f"groupSize {group_size}: blocks of (rows, columns, sum) are {blocks}; expected one of {_BLOCKS}"
        )
    m, n, k = blocks
    of_m, of_n, of_k = (-(-size // block) for size, block in zip(sizes, blocks, strict=True))
    _check_blocks("x1Scale", rows, (of_m, of_k))
    _check_blocks("x2Scale", columns, (of_k, of_n))
    of_rows = rows.double().repeat_interleave(m, -2)[..., : sizes[0], :].repeat_interleave(k, -1)[..., : sizes[2]]
    of_columns = columns.double().repeat_interleave(k, -2)[..., : sizes[2], :].repeat_interleave(n, -1)[..., : sizes[1]]
    return (a * of_rows) @ (b * of_columns)

"""Microscaling of square blocks, by two levels of scales, and after gated units by both axes.

Documented: https://gitcode.com/cann/ops-nn, quant/dynamic_block_mx_quant, quant/dynamic_dual_level_mx_quant,
quant/swiglu_mx_quant_with_dual_axis, quant/swiglu_backward_mx_quant_with_dual_axis and
matmul/dual_level_quant_batch_matmul (docs/aclnn*.md).
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_npu
from float_codes import drawn as drawn_codes
from microscaling_reference import DTYPES, E1M2, E2M1, E4M3, E5M2, EMAX, NUMBERS, code_of, drawn, modes, reference
from operator_modes import ASCEND_950, assert_equal, check

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.runtime.aclnn_functions.call import prepare

pytestmark = ASCEND_950

T = torch.Tensor


def encoded(y: T, dtype: Any, mode: str) -> T:
    if dtype in NUMBERS:
        codes = torch.tensor([code_of(v, dtype, mode) for v in y.flatten().tolist()]).reshape(y.shape)
        return (codes[..., ::2] | codes[..., 1::2] << 4).to(torch.uint8)
    return y.clamp(-torch.finfo(dtype).max, torch.finfo(dtype).max).to(dtype)


def exponent_of(top: float, dtype: Any, algorithm: int, maximum: float) -> int:
    """With its bias."""
    if top == 0:
        return 0
    if algorithm == 0:
        return math.floor(math.log2(top)) - EMAX[dtype] + 127
    mantissa, exponent = math.frexp((torch.tensor(top) / (maximum or 6)).item())  # in float32
    return exponent - 1 + 127 + (mantissa > 0.5)


def squares(x: T, dtype: Any, algorithm: int = 0, mode: str = "rint", maximum: float = 0.0) -> list[T]:
    """Block by block."""
    flat = x.float().reshape(-1, *x.shape[-2:])
    count, rows, columns = flat.shape
    down, across = -(-rows // 32), -(-columns // 32)
    y = torch.zeros_like(flat)
    of_rows = torch.zeros(count, rows, across + across % 2, dtype=torch.uint8)
    of_columns = torch.zeros(count, down + down % 2, columns, dtype=torch.uint8)
    for n, i, j in itertools.product(range(count), range(down), range(across)):
        part = n, slice(32 * i, 32 * i + 32), slice(32 * j, 32 * j + 32)
        code = exponent_of(flat[part].abs().max().item(), dtype, algorithm, maximum)
        y[part] = flat[part] * 2.0 ** (127 - code)
        of_rows[n, part[1], j] = code
        of_columns[n, i, part[2]] = code
    pairs = [of_rows.unflatten(-1, (-1, 2)), of_columns.unflatten(1, (-1, 2)).transpose(2, 3)]
    lead = x.shape[:-2]
    return [encoded(y.reshape(x.shape), dtype, mode), *(p.reshape(*lead, *p.shape[1:]) for p in pairs)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("source", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(64, 64), (2, 70, 38), (3, 6)])
def test_square_blocks(dtype: Any, source: torch.dtype, shape: tuple[int, ...]) -> None:
    x = drawn(*shape, dtype=source)
    x[..., :32, :32] = 0
    check(lambda x: torch_npu.npu_dynamic_block_mx_quant(x, dst_type=dtype), (x,), squares(x, dtype), modes(dtype))


@pytest.mark.parametrize("mode", ["rint", "round", "floor"])
@pytest.mark.parametrize("dtype", [E2M1, E1M2])
def test_square_blocks_by_every_rounding(dtype: Any, mode: str) -> None:
    x = (torch.arange(-64, 64).reshape(2, 64) / 8.0).half()
    check(
        lambda x: torch_npu.npu_dynamic_block_mx_quant(x, dst_type=dtype, round_mode=mode),
        (x,),
        squares(x, dtype, mode=mode),
        "eager",
    )


@pytest.mark.parametrize("maximum", [0.0, 6.0, 7.0])
def test_square_blocks_with_a_range_of_their_own(maximum: float) -> None:
    x = drawn(70, 64)
    x[32:64, :32] = 0
    x[32, 0] = maximum or 6  # a power of two, exactly
    check(
        lambda x: torch_npu.npu_dynamic_block_mx_quant(x, dst_type=E2M1, scale_alg=2, dst_type_max=maximum),
        (x,),
        squares(x, E2M1, 2, maximum=maximum),
        "eager captured npugraph_ex",
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"scale_alg": 1}, "scale_alg 1 with dst_type 40"),
        ({"scale_alg": 2, "dst_type": E4M3}, "scale_alg 2 with dst_type 36"),
        ({"scale_alg": 2, "dst_type_max": 5.0}, "dst_type_max 5.0 is not supported; expected 0, or 6 or 7"),
        ({"dst_type_max": 6.0}, "dst_type_max 6.0 is not supported; expected 0, or 6 or 7"),
        ({"round_mode": "floor", "dst_type": E5M2}, "round_mode 'floor' is not one of"),
    ],
)
def test_square_blocks_that_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(RuntimeError, match=rf"161002[\s\S]*{text}|{text}"):
        torch_npu.npu_dynamic_block_mx_quant(torch.ones(2, 64).half().npu(), **options)


def test_square_blocks_are_of_matrices_or_batches_of_them() -> None:
    with pytest.raises(RuntimeError, match="2 or 3 dimensions are expected"):
        torch_npu.npu_dynamic_block_mx_quant(torch.ones(1, 1, 2, 64).half().npu())
    with pytest.raises(RuntimeError, match="x is FLOAT"):
        torch_npu.npu_dynamic_block_mx_quant(torch.ones(2, 64).npu())


def by_two_levels(x: T, smooth: T | None, mode: str = "rint") -> list[T]:
    """Block by block of 512, and what they give by blocks of 32."""
    x = x if smooth is None else x * smooth
    between, level0 = torch.zeros_like(x), torch.zeros(*x.shape[:-1], -(-x.size(-1) // 512))
    for place in itertools.product(*map(range, x.shape[:-1])):
        for number, start in enumerate(range(0, x.size(-1), 512)):
            part = x[place][start : start + 512].float()
            level0[place][number] = scale = part.abs().max() / 6
            between[place][start : start + 512] = (part / scale if scale else part).to(x.dtype)
    y, level1 = reference(between, E2M1, mode=mode)
    return [y, level0, level1]


@pytest.mark.parametrize("source", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(512,), (3, 1024), (2, 2, 598), (2, 70)])
@pytest.mark.parametrize("smoothed", [True, False])
def test_two_levels(source: torch.dtype, shape: tuple[int, ...], smoothed: bool) -> None:
    x = drawn(1, *shape)[0].to(source)
    x[..., :512] = x[..., :512] if len(shape) < 3 else 0
    smooth = torch.rand(shape[-1]).to(source) + 0.5 if smoothed else None
    check(
        lambda x, s: torch_npu.npu_dynamic_dual_level_mx_quant(x, smooth_scale=s),
        (x, smooth),
        by_two_levels(x, smooth),
        "eager captured npugraph_ex",
    )


@pytest.mark.parametrize("mode", ["round", "floor"])
def test_two_levels_by_every_rounding(mode: str) -> None:
    x = (torch.arange(-64, 64).reshape(2, 64) / 8.0).half()
    check(
        lambda x: torch_npu.npu_dynamic_dual_level_mx_quant(x, round_mode=mode),
        (x,),
        by_two_levels(x, None, mode),
        "eager",
    )


def test_two_levels_that_are_refused() -> None:
    x = torch.ones(2, 64).half().npu()
    with pytest.raises(RuntimeError, match=r"smooth_scale \(32,\) of torch.float16: \[64\] of torch.float16"):
        torch_npu.npu_dynamic_dual_level_mx_quant(x, smooth_scale=x[0, :32])
    with pytest.raises(RuntimeError, match="round_mode 'ceil' is not one of"):
        torch_npu.npu_dynamic_dual_level_mx_quant(x, round_mode="ceil")


def factors(rows: int, length: int) -> dict[str, Any]:
    """A matrix of 4-bit floats, its codes and scales, and what all of it means."""
    codes, numbers = drawn_codes(E2M1, rows, length)
    level0 = torch.rand(rows, -(-length // 512)) + 0.5
    level1 = torch.randint(124, 130, (rows, -(-length // 64), 2), dtype=torch.uint8)
    wide = (2.0 ** (level1.double().flatten(1) - 127)).repeat_interleave(32, 1)[:, :length]
    meaning = torch.from_numpy(numbers) * wide * level0.double().repeat_interleave(512, 1)[:, :length]
    return {"codes": codes, "level0": level0, "level1": level1, "meaning": meaning}


def four_bits(codes: T) -> T:
    codes.ge_dtype = 40  # type: ignore[attr-defined]
    return codes


@pytest.mark.parametrize("target", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(5, 64, 16), (3, 1088, 40)])
@pytest.mark.parametrize("biased", [True, False])
def test_a_product_by_two_levels(target: torch.dtype, shape: tuple[int, int, int], biased: bool) -> None:
    """By the aclnn function: torch_npu's operator wants FRACTAL_NZ, which it makes by aclnnNpuFormatCast on this
    processor."""
    rows, length, columns = shape
    a, b = factors(rows, length), factors(columns, length)
    bias, out = torch.randn(columns) if biased else None, torch.empty(rows, columns, dtype=target)
    levels = [a["level0"], b["level0"].t().contiguous(), *(m["level1"].view(torch.float8_e8m0fnu) for m in (a, b))]
    matrices = [four_bits(a["codes"]), b["codes"].view(torch.int8)]
    prepare("DualLevelQuantMatmulWeightNz", [*matrices, *levels, bias, False, True, 512, 32, out])()
    y = a["meaning"] @ b["meaning"].t()
    assert_equal(out, (y if bias is None else y + bias).to(target), "aclnn")


@pytest.mark.parametrize(
    ("place", "value", "text"),
    [
        (3, torch.ones(16, 1), r"x2Level0Scale of shape \(16, 1\): \[1, 16\] is expected"),
        (7, True, r"transposeX1 True \(False\)"),
        (9, 256, "blocks of 256 and 32: they have 512 and 32 numbers"),
        (11, torch.empty(5, 16), "out is FLOAT; expected FLOAT16, BF16"),
    ],
)
def test_a_product_by_two_levels_that_is_refused(place: int, value: Any, text: str) -> None:
    a, b = factors(5, 64), factors(16, 64)
    levels = [a["level0"], b["level0"].t().contiguous(), *(m["level1"].view(torch.float8_e8m0fnu) for m in (a, b))]
    arguments = [four_bits(a["codes"]), b["codes"], *levels, None, False, True, 512, 32, torch.empty(5, 16).half()]
    arguments[place] = value
    with pytest.raises(HostRuntimeError, match=text):
        prepare("DualLevelQuantMatmulWeightNz", arguments)


def by_both_axes(y: T, ends: list[int] | None, dtype: Any, algorithm: int, mode: str = "rint") -> list[T]:
    rows = reference(y, dtype, algorithm=algorithm, mode=mode)
    if ends is None:
        return [*rows, *reference(y, dtype, -2, algorithm=algorithm, mode=mode)]
    parts = [y[a:b] for a, b in itertools.pairwise([0, *ends])]
    scales, found = torch.zeros(len(y) // 64 + len(ends), y.size(1), 2, dtype=torch.uint8), []
    for number, (start, part) in enumerate(zip([0, *ends[:-1]], parts, strict=True)):
        if len(part):
            codes, own = reference(part, dtype, 0, algorithm=algorithm, mode=mode)
            scales[start // 64 + number :][: own.size(0)] = own
            found.append(codes)
    return [*rows, torch.cat(found), scales]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("ends", [None, [30, 30, 130, 150]])
def test_gated_units_by_both_axes(dtype: Any, left: bool, ends: list[int] | None) -> None:
    x = torch.randn(150, 8).bfloat16()
    a, b = x.float().chunk(2, -1) if left else x.float().chunk(2, -1)[::-1]
    algorithm = 0 if dtype in NUMBERS else 1
    check(
        lambda x, ends: torch_npu.npu_swiglu_mx_quant_with_dual_axis(
            x, group_index=ends, activate_left=left, scale_alg=algorithm, dst_type=dtype
        ),
        (x, None if ends is None else torch.tensor(ends)),
        by_both_axes((F.silu(a) * b).bfloat16(), ends, dtype, algorithm),
        "eager captured",
    )


@pytest.mark.parametrize("source", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize(("shape", "ends"), [((100, 64), None), ((100, 64), [3, 70, 100]), ((2, 70, 128), None)])
def test_gradients_of_gated_units_by_both_axes(
    source: torch.dtype, left: bool, shape: tuple[int, ...], ends: list[int] | None
) -> None:
    """Of autograd, the half that is activated first, whichever it is in x: that is what the document writes."""
    x, grad = (torch.randn(*shape[:-1], shape[-1] // n).to(source) for n in (1, 2))
    halves = [h.float().requires_grad_() for h in (x.chunk(2, -1) if left else x.chunk(2, -1)[::-1])]
    by_halves = torch.autograd.grad(F.silu(halves[0]) * halves[1], halves, grad.float())
    results = by_both_axes(torch.cat(by_halves, -1).to(source), ends, E4M3, 1)

    def backward(x: T, grad: T, ends: T | None) -> list[T]:
        y1, s1, y2, s2 = torch.ops.npu._npu_swiglu_backward_mx_quant_with_dual_axis(
            x, grad, group_index=ends, activate_left=left, scale_alg=1, dst_type=292
        )
        return [y1.float(), s1, y2.float(), s2]

    # The order of a product's factors may round a number to its neighbor: a step of e4m3 is an eighth of it.
    expected = [r.float() if r.dtype is E4M3 else r for r in results]
    args = (x, grad, None if ends is None else torch.tensor(ends))
    found = [r.cpu() for r in backward(*(None if a is None else a.npu() for a in args))]
    for got, wanted in zip(found, expected, strict=True):
        assert got.shape == wanted.shape
        if got.dtype is torch.uint8:
            assert (got != wanted).sum() <= 0.002 * got.numel()
        else:
            assert ((got - wanted).abs() > 0).sum() <= 0.01 * got.numel()
    check(backward, args, found, "captured")


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ([0, 150], "expected positive ends of groups"),
        ([100, 50, 150], "must not fall, and end with the number of rows, 150"),
        ([100, 140], "must not fall, and end with the number of rows, 150"),
    ],
)
def test_groups_that_are_none(ends: list[int], text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        torch_npu.npu_swiglu_mx_quant_with_dual_axis(
            torch.ones(150, 8).half().npu(), group_index=torch.tensor(ends).npu(), dst_type=E4M3
        )


def test_gradients_that_are_refused() -> None:
    backward = torch.ops.npu._npu_swiglu_backward_mx_quant_with_dual_axis
    x, grad = torch.ones(4, 64).half().npu(), torch.ones(4, 32).half().npu()
    with pytest.raises(RuntimeError, match=r"scale_alg 0 is not supported; expected 1"):
        backward(x, grad, scale_alg=0, dst_type=292)
    with pytest.raises(RuntimeError, match="must be divisible by 64"):
        backward(x[:, :32], grad[:, :16], dst_type=292)
    with pytest.raises(RuntimeError, match="expected half of x"):
        backward(x, grad[:, :30], dst_type=292)

"""Numbers of 4 bits, eight in an int32, the first in the lowest bits: torch_npu's operators that make and take them.

Formulas: docs/zh/custom_APIs/torch_npu of https://gitcode.com/Ascend/op-plugin, the page of each operator.
"""

from __future__ import annotations

import pytest
import torch
import torch_npu
from operator_modes import check

T = torch.Tensor
EVERY = "eager captured ge ge_dynamic npugraph_ex"


def joined(numbers: T) -> T:
    """Eight numbers in each int32."""
    words = torch.zeros(*numbers.shape[:-1], numbers.size(-1) // 8, dtype=torch.int64)
    for n in range(numbers.size(-1)):
        words[..., n // 8] |= (numbers[..., n].long() & 15) << 4 * (n % 8)
    return torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)


def nibbles(*shape: int) -> T:
    return torch.randint(-8, 8, shape, dtype=torch.int8)


@pytest.mark.parametrize("shape", [(3, 16), (2, 3, 8)])
def test_quantize(shape: tuple[int, ...]) -> None:
    x, scales, points = torch.randn(shape) * 5, torch.rand(shape[-1]) + 0.5, torch.randint(-2, 2, (shape[-1],)).float()
    y = torch.round(x * scales + points).clamp(-8, 7)
    check(
        lambda x, s, z: torch_npu.npu_quantize(x, s, z, torch.quint4x2, -1, False),
        [x, scales, points],
        joined(y),
        EVERY,
    )


def test_numbers_that_no_word_holds_are_refused() -> None:
    x, scales = torch.randn(3, 12).npu(), torch.ones(12).npu()
    with pytest.raises(RuntimeError, match="8"):
        torch_npu.npu_quantize(x, scales, None, torch.quint4x2, -1, False)


def test_dynamic_quant() -> None:
    x = torch.randn(3, 16).half()
    scale = x.float().abs().amax(-1) / 7
    y = torch.round(x.float() / scale[:, None])
    check(lambda x: torch_npu.npu_dynamic_quant(x, dst_type=torch.quint4x2), [x], (joined(y), scale), EVERY)


def test_dynamic_quant_asymmetric() -> None:
    x = torch.randn(3, 16).half()
    top, bottom = x.float().amax(-1), x.float().amin(-1)
    scale = (top - bottom) / 15
    offset = 7 - top / scale
    y = torch.round(x.float() / scale[:, None] + offset[:, None]).clamp(-8, 7)
    expected = (joined(y), scale, offset)
    check(lambda x: torch_npu.npu_dynamic_quant_asymmetric(x, dst_type=torch.quint4x2), [x], expected, EVERY)


def test_anti_quant() -> None:
    x, scale, offset = nibbles(3, 16), torch.rand(16), torch.randn(16)
    y = ((x.float() + offset) * scale).half()
    check(
        lambda x, s, o: torch_npu.npu_anti_quant(x, s, offset=o, dst_dtype=torch.float16),
        [joined(x), scale, offset],
        y,
        EVERY,
    )


@pytest.mark.parametrize(("group", "transposed"), [(0, False), (0, True), (32, False)])
def test_weight_quant_batchmatmul(group: int, transposed: bool) -> None:
    """Groups of rows are for weights that are not transposed."""
    x, weight = torch.randn(5, 64).half(), nibbles(64, 16)
    shape = (2, 16) if group else (1, 16)
    scale, offset = (torch.rand(shape) * 0.1).half(), torch.randint(-4, 4, shape).half()
    wide = [p.float().repeat_interleave(32, 0) if group else p.float() for p in (scale, offset)]
    y = x.float() @ ((weight.float() + wide[1]) * wide[0])

    def product(x: T, w: T, s: T, o: T) -> T:
        if transposed:
            w, s, o = (t.transpose(-1, -2) for t in (w, s, o))
        return torch_npu.npu_weight_quant_batchmatmul(x, w, s, o, antiquant_group_size=group)

    given = [joined(weight), scale, offset]
    if transposed:
        given = [joined(weight.t()), scale.t().contiguous(), offset.t().contiguous()]
    check(product, [x, *given], y.half(), "eager captured ge ge_dynamic")  # npugraph_ex: see test_quantization.py


@pytest.mark.parametrize("groups", [1, 2])
def test_grouped_matmul(groups: int) -> None:
    """Rows of three experts; antiquant parameters by column, or by group of rows and column."""
    x, weight = torch.randn(6, 32).half(), nibbles(3, 32, 16)
    shape = (3, 16) if groups == 1 else (3, groups, 16)
    scale, offset = (torch.rand(shape) * 0.1).half(), torch.randint(-4, 4, shape).half()
    ends = torch.tensor([1, 4, 6])
    wide = [p.float().reshape(3, groups, 16).repeat_interleave(32 // groups, 1) for p in (scale, offset)]
    dense = (weight.float() + wide[1]) * wide[0]
    expert = [0, 1, 1, 1, 2, 2]
    y = torch.stack([row.float() @ dense[e] for row, e in zip(x, expert, strict=True)])

    def product(x: T, w: T, s: T, o: T, g: T) -> T:
        return torch_npu.npu_grouped_matmul(
            [x], [w], antiquant_scale=[s], antiquant_offset=[o], group_list=g, split_item=3, group_type=0
        )[0]

    check(product, [x, joined(weight), scale, offset, ends], y.half(), EVERY)


def test_grouped_matmul_of_whole_numbers_is_refused() -> None:
    """A device takes int4 with int4 in FRACTAL_NZ alone, and never with int8."""
    x, w, ends = nibbles(6, 32).npu(), joined(nibbles(3, 32, 16)).npu(), torch.tensor([1, 4, 6]).npu()
    with pytest.raises(RuntimeError, match="weights of 4 bits need an antiquant_scale and x of float16 or bfloat16"):
        torch_npu.npu_grouped_matmul(
            [x],
            [w],
            scale=[torch.rand(3, 16).npu()],
            group_list=ends,
            split_item=3,
            group_type=0,
            output_dtype=torch.float16,
        )


@pytest.mark.parametrize("bias", [False, True])
def test_quant_matmul(bias: bool) -> None:
    a, b, scale = nibbles(5, 32), nibbles(32, 16), torch.rand(16) * 0.1
    rows, added = torch.rand(5), torch.randint(-50, 50, (16,), dtype=torch.int32)
    y = (a.long() @ b.long() + (added if bias else 0)) * scale.double() * rows.double()[:, None]
    check(
        lambda a, b, s, r, *c: torch_npu.npu_quant_matmul(
            a, b, s, pertoken_scale=r, bias=c[0] if c else None, output_dtype=torch.bfloat16
        ),
        [joined(a), joined(b), scale, rows, *([added] if bias else [])],
        y.bfloat16(),
        EVERY,
    )


def test_from_floats_to_a_product() -> None:
    """Quantized and multiplied in one graph, so that words go from node to node."""
    x, weight, scale = torch.randn(5, 32).half(), nibbles(32, 16), torch.rand(16) * 0.1
    rows = x.float().abs().amax(-1) / 7
    y = (torch.round(x.float() / rows[:, None]).long() @ weight.long()) * scale.double() * rows.double()[:, None]

    def linear(x: T, w: T, s: T) -> T:
        numbers, rows = torch_npu.npu_dynamic_quant(x, dst_type=torch.quint4x2)
        return torch_npu.npu_quant_matmul(numbers, w, s, pertoken_scale=rows, output_dtype=torch.bfloat16)

    check(linear, [x, joined(weight), scale], y.bfloat16(), EVERY)


@pytest.mark.parametrize("both", [False, True])
def test_add_rms_norm_dynamic_quant(both: bool) -> None:
    x1, x2, gamma = torch.randn(4, 16).half(), torch.randn(4, 16).half(), torch.rand(16).half()
    smooth = [torch.rand(16).half() + 0.5, torch.rand(16).half() + 0.5][: 2 if both else 1]
    x = x1 + x2
    y = x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6) * gamma.float()
    scales = [(y * s.float()).abs().amax(-1) / 7 for s in smooth]
    numbers = [joined(torch.round(y * s.float() / scale[:, None])) for s, scale in zip(smooth, scales, strict=True)]
    second = (numbers[1], scales[1]) if both else (None, None)

    names = ("smooth_scale1", "smooth_scale2")[: len(smooth)]

    def fused(x1: T, x2: T, gamma: T, *smooth: T) -> tuple[T, ...]:
        results: tuple[T, ...] = torch_npu.npu_add_rms_norm_dynamic_quant(
            x1, x2, gamma, **dict(zip(names, smooth, strict=True)), y_dtype=torch.quint4x2
        )
        return results

    expected = (numbers[0], second[0], x, scales[0], second[1])
    check(fused, [x1, x2, gamma, *smooth], expected, EVERY)

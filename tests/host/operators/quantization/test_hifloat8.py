"""HiFloat8, a number at a time: the fields of each code are read by their prefix, and a number is looked for among all
that there are.

Documented: https://arxiv.org/abs/2409.16626 (the format, its table of dot fields); https://gitcode.com/cann/ops-nn,
quant/dynamic_quant
(docs/aclnnDynamicQuant.md, docs/aclnnDynamicQuantV4.md).
"""

from __future__ import annotations

import math

import pytest
import torch
import torch_npu
from float_codes import hifloat8_of
from operator_modes import ASCEND_950, check

pytestmark = ASCEND_950

T = torch.Tensor


FINITE = {n: c for c in range(256) if math.isfinite(n := hifloat8_of(c))}


def code_of(x: float) -> int:
    """The nearest number, of two the one further from 0; all are within the range here."""
    return FINITE[min(FINITE, key=lambda n: (abs(n - x), -abs(n)))]


def quantized(x: T, scale: T, offset: T | float = 0.0) -> T:
    numbers = x.float() / scale.unsqueeze(-1) + offset
    return torch.tensor([code_of(n) for n in numbers.flatten().tolist()], dtype=torch.uint8).reshape(x.shape)


def drawn(dtype: torch.dtype) -> T:
    """Rows with numbers of every size: exponents from -26 to 15 below the row's largest, ties among them."""
    sizes = torch.ldexp(torch.ones(4, 64), torch.randint(-26, 15, (4, 64))).float()
    x = sizes * (1 + torch.randint(0, 16, (4, 64)) / 16) * (torch.randint(0, 2, (4, 64)) * 2 - 1)
    x[:, 0] = 32768
    return x.to(dtype)


def test_every_code_occurs_once() -> None:
    assert len(FINITE) == 253
    assert max(FINITE) == 32768
    assert min(n for n in FINITE if n > 0) == 2.0**-22


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_dynamic_quant(dtype: torch.dtype) -> None:
    x = drawn(dtype)
    scale = x.float().abs().amax(-1) / 32768
    check(
        lambda x: torch_npu.npu_dynamic_quant(x, dst_type=torch_npu.hifloat8),
        (x,),
        [quantized(x, scale), scale],
        "eager captured",
    )


def test_dynamic_quant_of_zeros_and_of_rows_by_smoothing_scales() -> None:
    x, smooth = drawn(torch.bfloat16), (torch.rand(64) + 0.5).bfloat16()
    x[0] = 0
    wide = x.float() * smooth.float()
    scale = wide.abs().amax(-1) / 32768
    check(
        lambda x, s: torch_npu.npu_dynamic_quant(x, smooth_scales=s, dst_type=torch_npu.hifloat8),
        (x, smooth),
        [quantized(wide, torch.where(scale == 0, 1, scale)), scale],
        "eager captured",
    )


def test_dynamic_quant_from_the_least_to_the_largest_number() -> None:
    x = torch.randn(4, 64).half() * 3 + 1
    top, bottom = x.float().amax(-1), x.float().amin(-1)
    scale = (top - bottom) / 65536
    offset = 32768 - top / scale
    check(
        lambda x: torch_npu.npu_dynamic_quant_asymmetric(x, dst_type=torch_npu.hifloat8),
        (x,),
        [quantized(x, scale, offset.unsqueeze(-1)), scale, offset],
        "eager captured",
    )


def test_given_scales_are_refused() -> None:
    """What becomes of numbers beyond the largest is not documented."""
    x = torch.randn(4, 64).npu()
    with pytest.raises(RuntimeError, match=r"dst_type 34 \(hifloat8\) by given scales"):
        torch_npu.npu_quantize(x, torch.ones(1).npu(), None, torch_npu.hifloat8, -1, False)

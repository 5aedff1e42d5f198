"""Quantization to microscaling formats.

Documented: https://gitcode.com/cann/ops-nn, quant/dynamic_mx_quant, quant/anti_mx_quant,
quant/grouped_dynamic_mx_quant,
quant/dynamic_mx_quant_with_dual_axis, norm/rms_norm_dynamic_mx_quant and norm/add_rms_norm_dynamic_mx_quant
(README.md); the formats:
OCP Microscaling Formats (MX) Specification, 1.0.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_npu
from microscaling_reference import DTYPES, E1M2, E2M1, E4M3, E5M2, NUMBERS, drawn, modes, reference
from operator_modes import ASCEND_950, check

pytestmark = ASCEND_950

T = torch.Tensor


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("source", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("shape", "axis"), [((3, 128), -1), ((2, 3, 70), -1), ((70, 4), 0), ((2, 64, 6), 1)])
def test_dynamic_mx_quant(dtype: Any, source: torch.dtype, shape: tuple[int, ...], axis: int) -> None:
    x = drawn(*shape, dtype=source)

    def quantized(x: T) -> Any:
        return torch_npu.npu_dynamic_mx_quant(x, axis=axis, dst_type=dtype)

    check(quantized, (x,), reference(x, dtype, axis), modes(dtype))


@pytest.mark.parametrize("dtype", [E2M1, E1M2])
@pytest.mark.parametrize("mode", ["rint", "round", "floor"])
def test_ties_of_4_bit_floats(dtype: Any, mode: str) -> None:
    x = torch.arange(-64, 64).reshape(2, 64) / 8.0
    check(
        lambda x: torch_npu.npu_dynamic_mx_quant(x, dst_type=dtype, round_mode=mode),
        (x,),
        reference(x, dtype, mode=mode),
        "eager",
    )


@pytest.mark.parametrize("dtype", [E4M3, E5M2])
def test_scales_with_which_all_numbers_fit(dtype: Any) -> None:
    x = drawn(4, 256)
    x[1, :32], x[1, 32] = 0, torch.finfo(dtype).max
    check(
        lambda x: torch_npu.npu_dynamic_mx_quant(x, dst_type=dtype, scale_alg=1, block_size=64),
        (x,),
        reference(x, dtype, block=64, algorithm=1),
        "eager captured ge npugraph_ex",
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_both_dimensions(dtype: Any) -> None:
    x = drawn(2, 64, 128)
    check(
        lambda x: torch_npu.npu_dynamic_mx_quant_with_dual_axis(x, dst_type=dtype),
        (x,),
        [*reference(x, dtype, -1), *reference(x, dtype, -2)],
        modes(dtype),
    )


@pytest.mark.parametrize("dtype", [E4M3, E2M1])
def test_groups(dtype: Any) -> None:
    x, ends = drawn(150, 4), [30, 30, 130, 150]
    parts = [reference(x[a:b], dtype, 0) for a, b in itertools.pairwise([0, *ends]) if b > a]
    scales = torch.zeros(150 // 64 + 4, 4, 2, dtype=torch.uint8)
    for number, (start, end) in enumerate(itertools.pairwise([0, *ends])):
        if end > start:
            own = reference(x[start:end], dtype, 0)[1]
            scales[start // 64 + number :][: own.size(0)] = own
    expected = [torch.cat([y for y, _ in parts]), scales]
    check(
        lambda x, ends: torch_npu.npu_grouped_dynamic_mx_quant(x, ends, dst_type=dtype),
        (x, torch.tensor(ends, dtype=torch.int32)),
        expected,
        modes(dtype),
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", [torch.float16, torch.bfloat16, torch.float32])
def test_back_to_floats(dtype: Any, target: torch.dtype) -> None:
    y, scales = reference(torch.randn(3, 128), dtype)
    if dtype in NUMBERS:
        codes = torch.stack([y & 15, y >> 4], -1).flatten(-2).long()
        numbers = torch.tensor([*NUMBERS[dtype], *(-n for n in NUMBERS[dtype])])[codes]
    else:
        numbers = y.float()
    powers = (2.0 ** (scales.flatten(1).float() - 127)).repeat_interleave(32, 1)

    def back(y: T, scales: T) -> T:
        return torch_npu.npu_anti_mx_quant(y, scales, dst_type=target, src_type=dtype)

    result = (numbers * powers).to(target)
    check(back, (y, scales), result, "eager captured npugraph_ex")
    if dtype not in NUMBERS:  # the wheel's converter takes scales by their dtype alone
        check(back, (y, scales.view(torch.float8_e8m0fnu)), result, "ge")


@pytest.mark.parametrize("dtype", [E5M2, E2M1])
@pytest.mark.parametrize("shifted", [True, False])
def test_norms(dtype: Any, shifted: bool) -> None:
    """float32 in between, powers of two so that nothing is rounded differently."""
    x1, x2, gamma = torch.randn(3, 64).half(), torch.randn(3, 64).half(), torch.rand(64).half()
    beta = torch.rand(64).half() if shifted else None

    def norm(x: T) -> T:
        y = F.rms_norm(x.float(), (64,), gamma.float(), 1e-6)
        return y if beta is None else y + beta.float()

    def alone(x: T, gamma: T, beta: T | None) -> Any:
        return torch_npu.npu_rms_norm_dynamic_mx_quant(x, gamma, beta=beta, dst_type=dtype)[:2]

    def with_sum(x1: T, x2: T, gamma: T, beta: T | None) -> Any:
        return torch_npu.npu_add_rms_norm_dynamic_mx_quant(x1, x2, gamma, beta=beta, dst_type=dtype)[:3]

    check(alone, (x1, gamma, beta), reference(norm(x1), dtype), modes(dtype))
    y, scales = reference(norm(x1.float() + x2.float()), dtype)
    check(with_sum, (x1, x2, gamma, beta), [y, x1 + x2, scales], modes(dtype))


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("axis", [-1, 0])
def test_gated_unit(left: bool, axis: int) -> None:
    x = torch.randn(64, 128)
    gate, other = x.chunk(2, -1) if left else x.chunk(2, -1)[::-1]
    check(
        lambda x: torch_npu.npu_swiglu_mx_quant(x, activate_left=left, axis=axis, dst_type=E4M3),
        (x.half(),),
        [None, reference(F.silu(gate.half().float()) * other.half().float(), E4M3, axis)[1]],
        modes(E4M3),
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"scale_alg": 1, "dst_type": E2M1}, "scale_alg 1 with dst_type 40"),
        ({"round_mode": "floor", "dst_type": E4M3}, "round_mode 'floor' is not one of"),
        ({"dst_type_max": 8.0, "dst_type": E2M1}, "dst_type_max 8.0 is not supported"),
        ({"max_low_bound": 1.0, "dst_type": E4M3}, "max_low_bound 1.0 with scale_alg 0"),
    ],
)
def test_what_is_not_documented_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        torch_npu.npu_dynamic_mx_quant(torch.ones(2, 64).npu(), **options)

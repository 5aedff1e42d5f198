"""Products of 8- and 4-bit floats (torch_npu.npu_quant_matmul on an Ascend 950), with NumPy: each code is read by its fields.

Documented: https://gitcode.com/cann/ops-nn, matmul/quant_batch_matmul_v4/docs/aclnnQuantMatmulV5.md (formulas, shapes and dtypes of each
mode); the formats: OCP 8-bit Floating Point Specification (OFP8), OCP Microscaling Formats (MX) Specification 1.0, and HiFloat8,
https://arxiv.org/abs/2409.16626.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
import torch_npu
from npu_ways import ASCEND_950, check

pytestmark = ASCEND_950

T = torch.Tensor
Array = npt.NDArray[np.float64]

HIF8, E2M1 = torch_npu.hifloat8, torch_npu.float4_e2m1fn_x2
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
EIGHT_BITS = [E4M3, E5M2, HIF8]
TARGETS = [torch.float16, torch.bfloat16, torch.float32]


def field_of(code: int, exponent: int, mantissa: int) -> float:
    """A float of a sign, an exponent and a mantissa, finite."""
    sign = -1.0 if code >> (exponent + mantissa) else 1.0
    power, fraction = code >> mantissa & ((1 << exponent) - 1), code & ((1 << mantissa) - 1)
    bias = (1 << (exponent - 1)) - 1
    if power == 0:
        return sign * float(fraction * 2.0 ** (1 - bias - mantissa))
    return sign * float((1 + fraction / 2**mantissa) * 2.0 ** (power - bias))


def hifloat8_of(code: int) -> float:
    """By the prefix behind the sign: how many bits the exponent has."""
    if code in (0x80, 0x6F, 0xEF):  # not a number, and infinities
        return float("nan")
    bits = f"{code:08b}"
    sign, rest = -1.0 if bits[0] == "1" else 1.0, bits[1:]
    if rest.startswith("0000"):
        return sign * 2.0 ** (int(rest[4:], 2) - 23) if rest[4:] != "000" else 0.0
    prefix, width = next(
        (p, w) for p, w in {"0001": 0, "001": 1, "01": 2, "10": 3, "11": 4}.items() if rest.startswith(p)
    )
    field, fraction = rest[len(prefix) :][:width], rest[len(prefix) + width :]
    exponent = int("1" + field[1:], 2) * (-1 if field[0] == "1" else 1) if width else 0
    return sign * (1 + int(fraction, 2) / 2 ** len(fraction)) * 2.0**exponent


MEANING = {
    E4M3: [field_of(c, 4, 3) for c in range(256)],
    E5M2: [field_of(c, 5, 2) for c in range(256)],
    HIF8: [hifloat8_of(c) for c in range(256)],
    E2M1: [field_of(c, 2, 1) for c in range(16)],
}


def drawn(dtype: Any, *shape: int) -> tuple[T, Array]:
    """Codes of numbers that are not far apart, and what they mean; of 4 bits two in a byte, the first in the lower half."""
    usable = [c for c, n in enumerate(MEANING[dtype]) if 2**-6 <= abs(n) <= 8 or n == 0]
    places = torch.randint(len(usable), shape)
    codes = torch.tensor(usable, dtype=torch.uint8)[places]
    numbers = np.array(MEANING[dtype])[codes.numpy()]
    if dtype == E2M1:
        return codes[..., ::2] | codes[..., 1::2] << 4, numbers
    return (codes if dtype == HIF8 else codes.view(dtype)), numbers


def spread(scales: T, sizes: tuple[int, int], shape: tuple[int, int]) -> Array:
    """Scales of blocks, one for each number."""
    wide = scales.numpy().astype(np.float64).repeat(sizes[0], -2).repeat(sizes[1], -1)
    return wide[..., : shape[0], : shape[1]]


def powers(*shape: int) -> T:
    """Scales of microscaling: powers of two from 2**-4 to 2**3."""
    return torch.randint(123, 131, shape).to(torch.uint8)


def means(scales: T) -> T:
    return torch.ldexp(torch.ones(scales.shape), scales.int() - 127)


def kinds(dtype: Any) -> dict[str, Any]:
    """What torch_npu is told of tensors of bytes."""
    return {"x1_dtype": dtype, "x2_dtype": dtype} if dtype in (HIF8, E2M1) else {}


def expect(y: Array, target: torch.dtype) -> T:
    return torch.from_numpy(np.ascontiguousarray(y)).to(target)


@pytest.mark.parametrize("dtype", EIGHT_BITS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("batch", [(), (3,)])
def test_scales_of_rows_and_columns(dtype: Any, target: torch.dtype, batch: tuple[int, ...]) -> None:
    (a, left), (b, right) = drawn(dtype, *batch, 5, 48), drawn(dtype, 48, 8)
    rows, columns, bias = torch.rand(5) + 0.1, torch.rand(8) + 0.1, torch.randn(8)
    y = (left @ right) * columns.double().numpy() * rows.double().numpy()[:, None] + bias.double().numpy()
    check(
        lambda a, b, s, p, o: torch_npu.npu_quant_matmul(
            a, b, s, pertoken_scale=p, bias=o, output_dtype=target, **kinds(dtype)
        ),
        [a, b, columns, rows, bias],
        expect(y, target),
        "eager captured",
    )


@pytest.mark.parametrize("sizes", [(1, 1), (5, 1), (1, 8)])
def test_one_scale_for_all(sizes: tuple[int, int]) -> None:
    (a, left), (b, right) = drawn(E4M3, 5, 48), drawn(E5M2, 48, 8)
    rows, columns = torch.rand(sizes[0]) + 0.1, torch.rand(sizes[1]) + 0.1
    y = (left @ right) * columns.double().numpy() * rows.double().numpy()[:, None]
    check(
        lambda a, b, s, p: torch_npu.npu_quant_matmul(a, b, s, pertoken_scale=p, output_dtype=torch.bfloat16),
        [a, b, columns, rows],
        expect(y, torch.bfloat16),
        "eager",
    )


@pytest.mark.parametrize("dtype", EIGHT_BITS)
def test_packed_scales(dtype: Any) -> None:
    """Static quantisation: torch_npu packs scales of float32, 19 bits of each; the bias is scaled, too."""
    (a, left), (b, right) = drawn(dtype, 5, 48), drawn(dtype, 48, 8)
    scale, bias = torch.randint(1, 16, (8,)) / 8, torch.randn(8)
    y = (left @ right + bias.double().numpy()) * scale.double().numpy()
    check(
        lambda a, b, s, o: torch_npu.npu_quant_matmul(a, b, s, bias=o, output_dtype=torch.float16, **kinds(dtype)),
        [a, b, scale, bias],
        expect(y, torch.float16),
        "eager captured",
    )


@pytest.mark.parametrize("dtype", EIGHT_BITS)
@pytest.mark.parametrize(("rows", "transposed"), [(1, False), (1, True), (128, False)])
def test_scales_of_groups_and_blocks(dtype: Any, rows: int, transposed: bool) -> None:
    m, k, n = 130, 300, 140
    (a, left), (b, right) = drawn(dtype, m, k), drawn(dtype, n, k) if transposed else drawn(dtype, k, n)
    of_rows = torch.rand(-(-m // rows), 3) + 0.1
    of_columns = torch.rand(*((2, 3) if transposed else (3, 2))) + 0.1
    wide = spread(of_columns, (128, 128), (n, k) if transposed else (k, n)) * right
    y = (left * spread(of_rows, (rows, 128), (m, k))) @ (wide.T if transposed else wide)

    def product(a: T, b: T, p: T, s: T) -> T:
        b, s = (b.t(), s.t()) if transposed else (b, s)
        return torch_npu.npu_quant_matmul(
            a, b, s, pertoken_scale=p, output_dtype=torch.float32, group_sizes=[rows, 128, 128], **kinds(dtype)
        )

    check(product, [a, b, of_rows, of_columns], expect(y, torch.float32), "eager captured")


@pytest.mark.parametrize("dtype", [E4M3, E5M2, E2M1])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("k", [64, 160])
def test_microscaling(dtype: Any, transposed: bool, k: int) -> None:
    m, n, pairs = 6, 8, -(-k // 64)
    (a, left), (b, right) = drawn(dtype, m, k), drawn(dtype, n, k) if transposed else drawn(dtype, k, n)
    of_rows, of_columns = powers(m, pairs, 2), powers(*((n, pairs) if transposed else (pairs, n)), 2)
    bias = torch.randn(n)
    wide = means(of_columns) if transposed else means(of_columns).transpose(0, 1)  # [n, pairs, 2]
    columns = right if transposed else right.T
    scaled = columns * spread(wide.flatten(1), (1, 32), (n, k))
    y = (left * spread(means(of_rows).flatten(1), (1, 32), (m, k))) @ scaled.T + bias.double().numpy()

    def product(a: T, b: T, p: T, s: T, o: T) -> T:
        b, s = (b.t(), s.transpose(0, 1)) if transposed else (b, s)
        return torch_npu.npu_quant_matmul(
            a, b, s, pertoken_scale=p, bias=o, output_dtype=torch.float32, group_sizes=[1, 1, 32],
            pertoken_scale_dtype=torch_npu.float8_e8m0fnu, scale_dtype=torch_npu.float8_e8m0fnu, **kinds(dtype),
        )  # fmt: skip

    check(product, [a, b, of_rows, of_columns, bias], expect(y, torch.float32), "eager captured")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"pertoken_scale": torch.ones(4)}, r"x1Scale of shape \(4,\) is not \[1\] or \[5\]"),
        ({"scale": torch.ones(7)}, r"x2Scale of shape \(7,\) is not \[1\] or \[8\]"),
        ({"x2": torch.zeros(48, 8, dtype=torch.uint8), "x2_dtype": HIF8}, "on the host both are of one kind"),
        ({"bias": torch.ones(8).half()}, r"bias is torch.float16 \(float32\)"),
        ({"output_dtype": torch.int8}, r"the result is torch.int8 \(float16, bfloat16, float32\)"),
        (
            {"pertoken_scale": torch.ones(5, 1), "scale": torch.ones(1, 7), "group_sizes": [1, 128, 128]},
            "x2Scale|columns",
        ),
        (
            {"pertoken_scale": torch.ones(5, 1), "scale": torch.ones(1, 1), "group_sizes": [1, 64, 128]},
            "documents have",
        ),
    ],
)
def test_what_documents_leave_out_is_refused(change: dict[str, Any], text: str) -> None:
    valid = {
        "x1": drawn(E4M3, 5, 48)[0], "x2": drawn(E4M3, 48, 8)[0], "scale": torch.ones(8),
        "pertoken_scale": torch.ones(5), "output_dtype": torch.bfloat16,
    }  # fmt: skip
    given = {name: x.npu() if isinstance(x, T) else x for name, x in {**valid, **change}.items()}
    with pytest.raises(RuntimeError, match=text):
        torch_npu.npu_quant_matmul(**given)

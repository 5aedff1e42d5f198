"""Products of 8- and 4-bit floats (torch_npu.npu_quant_matmul on an Ascend 950), with NumPy: each code is read by its
fields.

Documented: https://gitcode.com/cann/ops-nn, matmul/quant_batch_matmul_v4/docs/aclnnQuantMatmulV5.md (formulas, shapes
and dtypes of each
mode); the formats: OCP 8-bit Floating Point Specification (OFP8), OCP Microscaling Formats (MX) Specification 1.0, and
HiFloat8,
https://arxiv.org/abs/2409.16626.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch_npu
from float_codes import E2M1, E4M3, E5M2, HIF8, Array, drawn
from operator_modes import ASCEND_950, check

pytestmark = ASCEND_950

T = torch.Tensor
EIGHT_BITS = [E4M3, E5M2, HIF8]
TARGETS = [torch.float16, torch.bfloat16, torch.float32]


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
    """Static quantization: torch_npu packs scales of float32, 19 bits of each; the bias is scaled, too."""
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
            a,
            b,
            s,
            pertoken_scale=p,
            bias=o,
            output_dtype=torch.float32,
            group_sizes=[1, 1, 32],
            pertoken_scale_dtype=torch_npu.float8_e8m0fnu,
            scale_dtype=torch_npu.float8_e8m0fnu,
            **kinds(dtype),
        )

    check(product, [a, b, of_rows, of_columns, bias], expect(y, torch.float32), "eager captured")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"pertoken_scale": torch.ones(4)}, r"x1Scale has the shape \[4\]; expected \[1\] or \[5\]"),
        ({"scale": torch.ones(7)}, r"x2Scale has the shape \[7\]; expected \[1\] or \[8\]"),
        (
            {"x2": torch.zeros(48, 8, dtype=torch.uint8), "x2_dtype": HIF8},
            "expected one kind of dtype for both on the host",
        ),
        ({"bias": torch.ones(8).half()}, r"bias is torch.float16 \(float32\)"),
        ({"output_dtype": torch.int8}, r"the result is torch.int8 \(float16, bfloat16, float32\)"),
        (
            {"pertoken_scale": torch.ones(5, 1), "scale": torch.ones(1, 7), "group_sizes": [1, 128, 128]},
            "x2Scale|columns",
        ),
        (
            {"pertoken_scale": torch.ones(5, 1), "scale": torch.ones(1, 1), "group_sizes": [1, 64, 128]},
            r"blocks of \(rows, columns, sum\) are \(1, 64, 128\); expected one of",
        ),
    ],
)
def test_what_documents_leave_out_is_refused(change: dict[str, Any], text: str) -> None:
    valid = {
        "x1": drawn(E4M3, 5, 48)[0],
        "x2": drawn(E4M3, 48, 8)[0],
        "scale": torch.ones(8),
        "pertoken_scale": torch.ones(5),
        "output_dtype": torch.bfloat16,
    }
    given = {name: x.npu() if isinstance(x, T) else x for name, x in {**valid, **change}.items()}
    with pytest.raises(RuntimeError, match=text):
        torch_npu.npu_quant_matmul(**given)


def transposed_product(a: T, b: T, rows: T | None, columns: T, target: torch.dtype, **options: Any) -> T:
    return torch_npu.npu_transpose_quant_batchmatmul(
        a, b, dtype=target, x1_scale=rows, x2_scale=columns, perm_x1=[1, 0, 2], perm_y=[1, 0, 2], **options
    )


@pytest.mark.parametrize("dtype", [E4M3, E5M2])
@pytest.mark.parametrize("target", [torch.float16, torch.bfloat16])
def test_batches_behind_rows_by_scales_of_rows_and_columns(dtype: Any, target: torch.dtype) -> None:
    (a, left), (b, right) = drawn(dtype, 5, 3, 512), drawn(dtype, 3, 512, 128)
    rows, columns = torch.rand(5) / 16, torch.rand(128) / 16
    y = np.einsum("mbk,bkn->mbn", left, right) * rows.double().numpy()[:, None, None] * columns.double().numpy()
    check(
        lambda a, b, r, c: transposed_product(a, b, r, c, target, perm_x2=[0, 1, 2]),
        [a, b, rows, columns],
        expect(y, target),
        "eager captured ge npugraph_ex",
    )


@pytest.mark.parametrize("turned", [False, True])
def test_batches_behind_rows_by_scales_of_blocks(turned: bool) -> None:
    (a, left), (b, right) = drawn(E4M3, 5, 3, 128), drawn(E4M3, *((3, 32, 128) if turned else (3, 128, 32)))
    rows, columns = powers(5, 3, 2, 2), powers(*((3, 32, 2, 2) if turned else (3, 2, 32, 2)))
    of_rows = means(rows).flatten(2).double().numpy().repeat(32, -1)
    of_columns = means(columns) if turned else means(columns).transpose(1, 2)  # [batch, columns, pairs of blocks, 2]
    scales = of_columns.flatten(2).double().numpy().repeat(32, -1)
    numbers = right if turned else right.swapaxes(1, 2)
    y = np.einsum("mbk,bnk->mbn", left * of_rows, numbers * scales)
    check(
        lambda a, b, r, c: transposed_product(
            a,
            b,
            r.view(torch.float8_e8m0fnu),
            c.view(torch.float8_e8m0fnu),
            torch.bfloat16,
            group_sizes=[0, 0, 32],
            perm_x2=[0, 2, 1] if turned else [0, 1, 2],
        ),
        [a, b, rows, columns],
        expect(y, torch.bfloat16),
        "eager captured",
    )


def test_batches_behind_rows_by_packed_scales() -> None:
    (a, left), (b, right) = drawn(HIF8, 5, 3, 48), drawn(HIF8, 3, 48, 8)
    columns = torch.rand(8).view(torch.int32).long() & 0xFFFFE000  # 19 bits of a float count
    y = np.einsum("mbk,bkn->mbn", left, right) * columns.int().view(torch.float32).double().numpy()
    check(
        lambda a, b, c: transposed_product(a, b, None, c, torch.float16, perm_x2=[0, 1, 2], **kinds(HIF8)),
        [a, b, columns],
        expect(y, torch.float16),
        "eager captured",
    )


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"perm_x2": [1, 0, 2]}, r"permX2 \[1, 0, 2\] \(\[0, 1, 2\], \[0, 2, 1\]\)"),
        ({"batch_split_factor": 3}, r"batchSplitFactor 3 \(1\)"),
        ({"x1_scale": torch.ones(4)}, r"x1Scale \(4,\), x2Scale \(128,\): \(5,\) and \(128,\) are expected"),
        ({"x2_scale": torch.ones(128).half()}, r"FLOAT16; expected|with x2Scale torch.float16"),
        ({"x1": drawn(E4M3, 5, 3, 256)[0], "x2": drawn(E4M3, 3, 256, 128)[0]}, r"sums of 256 \(512\)"),
    ],
)
def test_batches_behind_rows_that_documents_leave_out_are_refused(change: dict[str, Any], text: str) -> None:
    valid = {
        "x1": drawn(E4M3, 5, 3, 512)[0],
        "x2": drawn(E4M3, 3, 512, 128)[0],
        "dtype": torch.float16,
        "x1_scale": torch.ones(5),
        "x2_scale": torch.ones(128),
    }
    given = {name: x.npu() if isinstance(x, T) else x for name, x in {**valid, **change}.items()}
    with pytest.raises(RuntimeError, match=text):
        torch_npu.npu_transpose_quant_batchmatmul(**given)


@pytest.mark.parametrize("dtype", EIGHT_BITS)
@pytest.mark.parametrize("in_place", [True, False])
def test_products_that_are_added(dtype: Any, in_place: bool) -> None:
    """https://gitcode.com/cann/ops-nn, matmul/quant_batch_matmul_inplace_add; https://gitcode.com/Ascend/op-plugin
    has what callers turn."""
    (a, left), (b, right), y = drawn(dtype, 100, 6), drawn(dtype, 100, 8), torch.randn(6, 8)
    name = "npu_add_quant_matmul_" if in_place else "npu_add_quant_matmul"
    if dtype == HIF8:
        rows, columns = torch.rand(1), torch.rand(1)
        added = left.T @ right * float(rows) * float(columns)
        options: dict[str, Any] = {**kinds(HIF8), "group_sizes": [0, 0, 0]}
    else:
        rows, columns = powers(2, 6, 2), powers(2, 8, 2)
        factors = [spread_along(s, 100) for s in (rows, columns)]
        added = (left * factors[0]).T @ (right * factors[1])
        kind = torch_npu.float8_e8m0fnu
        options = {"x1_scale_dtype": kind, "x2_scale_dtype": kind, "group_sizes": [1, 1, 32]}

    def call(y: T, a: T, b: T, r: T, c: T) -> T:
        turned = r.transpose(0, 1) if r.dim() == 3 else r
        return getattr(torch_npu, name)(y, a.transpose(0, 1), b, c, x1_scale=turned, **options)

    check(call, [y, a, b, rows, columns], (y.double() + torch.from_numpy(added)).float(), "eager captured")


def spread_along(scales: T, length: int) -> Array:
    """Powers of two of [pairs of blocks, columns, 2], for each of [length, columns]."""
    pairs, columns, _ = scales.shape
    found = means(scales).double().numpy()
    wide = [found[i // 64, :, i // 32 % 2] for i in range(64 * pairs)]
    return np.array(wide).reshape(-1, columns)[:length]


@pytest.mark.parametrize("dtype", EIGHT_BITS)
@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("in_place", [True, False])
def test_products_of_groups_that_are_added(dtype: Any, counts: bool, in_place: bool) -> None:
    """https://gitcode.com/cann/ops-transformer, gmm/quant_grouped_matmul_inplace_add: what groups do not reach is
    left."""
    sizes, y = [70, 0, 50], torch.randn(3, 6, 8)
    (a, left), (b, right) = drawn(dtype, 128, 6), drawn(dtype, 128, 8)
    groups = torch.tensor(sizes if counts else [70, 70, 120])
    expected, options = y.double().numpy().copy(), dict(kinds(HIF8)) if dtype == HIF8 else {}
    if dtype == HIF8:
        rows, columns = torch.rand(3, 1), torch.rand(3, 8)
    else:
        rows, columns = powers(128 // 64 + 3, 6, 2), powers(128 // 64 + 3, 8, 2)
        kind = torch_npu.float8_e8m0fnu
        options = {"x1_scale_dtype": kind, "x2_scale_dtype": kind}
    start = 0
    for g, size in enumerate(sizes):
        part = slice(start, start + size)
        if dtype == HIF8:
            expected[g] += left[part].T @ right[part] * float(rows[g]) * columns[g].double().numpy()
        else:
            first = start // 64 + g
            factors = [spread_along(s[first:], size) for s in (rows, columns)]
            expected[g] += (left[part] * factors[0]).T @ (right[part] * factors[1])
        start += size
    name = "npu_add_quant_gmm_" if in_place else "npu_add_quant_gmm"
    check(
        lambda y, a, b, r, c, n: getattr(torch_npu, name)(
            y, a.transpose(0, 1), b, c, n, x1_scale=r, group_list_type=int(counts), **options
        ),
        [y, a, b, rows, columns, groups],
        torch.from_numpy(expected).float(),
        "eager captured",
    )


def test_products_of_what_is_not_turned_are_refused() -> None:
    y, a, b = torch.zeros(6, 8).npu(), drawn(HIF8, 6, 100)[0].npu(), drawn(HIF8, 100, 8)[0].npu()
    one = torch.ones(1).npu()
    with pytest.raises(
        RuntimeError, match=r"(?s)161002.*the transposed view of a matrix is expected, x1.transpose\(0, 1\)"
    ):
        torch_npu.npu_add_quant_matmul_(y, a, b, one, x1_scale=one, **kinds(HIF8))
    with pytest.raises(RuntimeError, match=r"(?s)161002.*x1Scale has the shape \[2\]; expected \[1\]"):
        torch_npu.npu_add_quant_matmul_(y, a.t().contiguous().t(), b, one, x1_scale=torch.ones(2).npu(), **kinds(HIF8))

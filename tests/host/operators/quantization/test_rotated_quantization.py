"""Quantization behind a rotation of groups of a row, with NumPy (https://gitcode.com/cann/ops-nn,
matmul/rotate_quant/docs)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch_npu
from float_codes import E4M3, E5M2
from operator_modes import ASCEND_950, check

T = torch.Tensor


def rotated(x: T, rotation: T) -> np.ndarray:
    groups = x.double().numpy().reshape(-1, rotation.size(-1))
    if rotation.dim() == 2:
        return (groups @ rotation.double().numpy()).reshape(x.shape)
    count = rotation.size(0)
    turned = [row @ rotation[i % count].double().numpy() for i, row in enumerate(groups)]
    return np.array(turned).reshape(x.shape)


def drawn(dtype: torch.dtype, size: int, *shape: int) -> tuple[T, T]:
    """Whole numbers, whose sums are exact."""
    return torch.randint(-8, 9, shape).to(dtype), torch.randint(-1, 2, (size, size)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("bits", [8, 4])
def test_rows_by_scales_of_their_own(dtype: torch.dtype, bits: int) -> None:
    x, rotation = drawn(dtype, 16, 5, 128)
    y, largest = rotated(x, rotation), 127 if bits == 8 else 7
    scale = np.abs(y).max(1).astype(np.float32) / np.float32(largest)
    whole = np.rint(y.astype(np.float32) / scale[:, None]).clip(-largest - 1, largest).astype(np.int64)
    if bits == 4:  # eight in an int32, the first in the lowest bits
        nibbles = (whole & 15).reshape(5, 16, 8) << (4 * np.arange(8))
        expected = torch.from_numpy(nibbles.sum(-1).astype(np.uint32).view(np.int32))
    else:
        expected = torch.from_numpy(whole.astype(np.int8))
    kind = torch.int8 if bits == 8 else torch.quint4x2
    check(
        lambda x, r: torch_npu.npu_rotate_quant(x, r, dst_dtype=kind),
        [x, rotation],
        [expected, torch.from_numpy(scale)],
        "eager captured ge npugraph_ex" if bits == 8 else "eager captured",
    )


@ASCEND_950
@pytest.mark.parametrize(("kind", "emax"), [(E4M3, 8), (E5M2, 15)])
@pytest.mark.parametrize("form", ["one", "each", "clamped"])
def test_rows_by_powers_of_two(kind: torch.dtype, emax: int, form: str) -> None:
    x, rotation = drawn(torch.bfloat16, 32, 3, 2, 128)
    if form == "each":
        rotation = torch.randint(-1, 2, (4, 32, 32)).bfloat16()
    y, alpha = rotated(x, rotation).reshape(-1, 32), torch.tensor([0.5]).bfloat16()
    if form == "clamped":
        limit = np.abs(y).max(1, keepdims=True) / 2
        y = y.clip(-limit, limit)
    exponent = np.floor(np.log2(np.abs(y).max(1))).astype(np.int64) - emax
    numbers = torch.from_numpy(y / 2.0 ** exponent[:, None]).float()
    largest = torch.finfo(kind).max
    expected = numbers.clamp(-largest, largest).to(kind).view(x.shape)
    scale = torch.from_numpy((exponent + 127).astype(np.uint8)).view(3, 2, 2, 2)
    given = [alpha] if form == "clamped" else []

    def call(x: T, r: T, *alpha: T) -> Any:
        y, scale = torch_npu.npu_rotate_quant(x, r, alpha=alpha[0] if alpha else None, dst_dtype=kind)
        return y, scale.view(torch.uint8)

    check(call, [x, rotation, *given], [expected, scale], "eager captured")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rotation": torch.ones(24, 24).half()}, r"a square whose size divides the rows of x"),
        ({"x": torch.ones(5, 64).half()}, r"rows of 128 to 16000"),
        ({"rotation": torch.ones(8, 8).half()}, r"\(16 to 1024\)"),
        ({"round_mode": "floor"}, r"roundMode 'floor' is not supported; expected '' or 'rint'"),
        ({"scale_alg": 1}, r"scaleAlg 1 is not supported; expected 0"),
        ({"alpha": torch.ones(1).bfloat16()}, r"alpha: not supported by this SoC; leave it out"),
        ({"axis": 0}, r"axis 0 is not supported; expected -1 or 1"),
    ],
)
def test_what_documents_leave_out_is_refused(change: dict[str, Any], message: str) -> None:
    valid = {"x": torch.ones(5, 128).half(), "rotation": torch.ones(16, 16).half(), "dst_dtype": torch.int8}
    given = {name: x.npu() if isinstance(x, T) else x for name, x in {**valid, **change}.items()}
    with pytest.raises(RuntimeError, match=rf"(?s)161002.*{message}"):
        torch_npu.npu_rotate_quant(**given)

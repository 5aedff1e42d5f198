"""Microscaling formats, a number at a time: the largest of a block gives the power of two, and each number is looked
for among
all that the dtype has: OCP Microscaling Formats (MX) Specification, 1.0."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch
import torch_npu

T = torch.Tensor

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
#: torch_npu's numbers of 4-bit floats.
E2M1, E1M2 = torch_npu.float4_e2m1fn_x2, torch_npu.float4_e1m2fn_x2
EMAX: dict[Any, int] = {E4M3: 8, E5M2: 15, E2M1: 2, E1M2: 0}
NUMBERS = {E2M1: [0, 0.5, 1, 1.5, 2, 3, 4, 6], E1M2: [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75]}
DTYPES = [E4M3, E5M2, E2M1, E1M2]


def code_of(x: float, dtype: Any, mode: str) -> int:
    """The code of a 4-bit float: sign, and the place among the positive ones."""
    signed = sorted(
        {(s * n, c | (8 if s < 0 else 0)) for c, n in enumerate(NUMBERS[dtype]) for s in (1, -1) if n or s > 0}
    )
    if mode == "floor":
        value, code = max((p for p in signed if p[0] <= x), default=signed[0])
    else:
        distance = min(abs(n - x) for n, _ in signed)
        near = [p for p in signed if abs(p[0] - x) == distance]
        value, code = min(near, key=lambda p: p[1] & 1) if mode == "rint" else max(near, key=lambda p: abs(p[0]))
    return 8 if value == 0 and math.copysign(1, x) < 0 else code


def block_of(block: list[float], dtype: Any, algorithm: int) -> int:
    """The exponent that a block shares, with its bias."""
    top = max(map(abs, block))
    if top == 0:
        return 0
    if algorithm == 1:
        ratio = torch.tensor(top) / torch.finfo(dtype).max
        return min(max(math.ceil(math.log2(ratio.item())), -127), 127) + 127
    return min(max(math.floor(math.log2(top)) - EMAX[dtype], -127), 127) + 127


def reference(x: T, dtype: Any, axis: int = -1, block: int = 32, algorithm: int = 0, mode: str = "rint") -> list[T]:
    rows = x.float().movedim(axis, -1)
    y, scales = torch.zeros(rows.shape), torch.zeros(*rows.shape[:-1], 2 * -(-rows.size(-1) // (2 * block)))
    for place in itertools.product(*map(range, rows.shape[:-1])):
        for number, start in enumerate(range(0, rows.size(-1), block)):
            numbers = rows[place][start : start + block]
            scales[place][number] = block_of(numbers.tolist(), dtype, algorithm)
            y[place][start : start + block] = numbers * 2.0 ** (127 - scales[place][number].item())
    pairs = scales.unflatten(-1, (-1, 2)).movedim(-2, axis % x.dim()).to(torch.uint8)
    y = y.movedim(-1, axis)
    if dtype in NUMBERS:
        codes = torch.tensor([code_of(v, dtype, mode) for v in y.flatten().tolist()]).reshape(y.shape)
        return [(codes[..., ::2] | codes[..., 1::2] << 4).to(torch.uint8), pairs]
    largest = torch.finfo(dtype).max
    return [y.clamp(-largest, largest).to(dtype), pairs]


def modes(dtype: Any) -> str:
    """Not in GE's graphs with two numbers in a byte, whose shapes count the numbers there."""
    return "eager captured npugraph_ex" + ("" if dtype in NUMBERS else " ge")


def drawn(*shape: int, dtype: torch.dtype = torch.bfloat16) -> T:
    """Blocks of very different sizes, one of them zeros."""
    x = torch.randn(shape) * torch.exp(3 * torch.randn(*shape[:-1], 1))
    x[0, :32] = 0
    return x.to(dtype)

"""What codes of 8- and 4-bit floats mean, read field by field: OCP 8-bit Floating Point Specification (OFP8), OCP
Microscaling Formats (MX)
Specification 1.0, and HiFloat8, https://arxiv.org/abs/2409.16626."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch_npu

T = torch.Tensor
Array = npt.NDArray[np.float64]

HIF8, E2M1 = torch_npu.hifloat8, torch_npu.float4_e2m1fn_x2
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


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
    bits = f"{code:08b}"
    if bits == "10000000":
        return math.nan
    sign, rest = -1.0 if bits[0] == "1" else 1.0, bits[1:]
    if rest == "1101111":
        return sign * math.inf
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
    """Codes of numbers that are not far apart, and what they mean; of 4 bits two in a byte, the first in the lower
    half."""
    usable = [c for c, n in enumerate(MEANING[dtype]) if 2**-6 <= abs(n) <= 8 or n == 0]
    places = torch.randint(len(usable), shape)
    codes = torch.tensor(usable, dtype=torch.uint8)[places]
    numbers = np.array(MEANING[dtype])[codes.numpy()]
    if dtype == E2M1:
        return codes[..., ::2] | codes[..., 1::2] << 4, numbers
    return (codes if dtype == HIF8 else codes.view(dtype)), numbers

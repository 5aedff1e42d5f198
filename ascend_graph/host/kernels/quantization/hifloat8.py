"""HiFloat8: eight bits whose exponent takes more of them the further it is from 0, and the mantissa the rest.

"Ascend HiFloat8 Format for Deep Learning" (https://arxiv.org/abs/2409.16626): after the sign a prefix, the dot field,
gives the exponent's number of bits. The exponent holds a sign and the bits after its leading one. The prefix 0000 is
for powers of two from 2**-22 to 2**-16, and for zero.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import torch

T = torch.Tensor

#: Largest finite number; the next one, 1.5 times as large, is the code of infinity.
LARGEST = 32768.0
_NAN, _INFINITY = 0x80, 0x6F
#: Prefix, its length and the mantissa's length, by the number of exponent bits.
_DOTS = {4: (0b11, 2, 1), 3: (0b10, 2, 2), 2: (0b01, 2, 3), 1: (0b001, 3, 3), 0: (0b0001, 4, 3)}


def _magnitude(code: int) -> float:
    """Return the value of the seven bits after the sign; infinity's code gives the number in its place."""
    for width, (prefix, length, mantissa) in _DOTS.items():
        if code >> (7 - length) == prefix:
            field = code >> mantissa & (1 << width) - 1
            leading = 1 << width >> 1
            exponent = (field | leading) * (-1 if field & leading else 1)
            fraction = 1 + (code & (1 << mantissa) - 1) / (1 << mantissa)
            return float(fraction * 2.0**exponent)
    return 2.0 ** (code - 23) if code else 0.0


@cache
def _order() -> tuple[list[int], list[float]]:
    """Return the codes of numbers from 0 upwards, and the midpoints between neighbors."""
    codes = sorted(range(128), key=_magnitude)
    numbers = [_magnitude(code) for code in codes]
    return codes, [(low + high) / 2 for low, high in pairwise(numbers)]


def encoded(x: T) -> T:
    """Return the codes of the nearest numbers as uint8; ties go to the larger one (CAST_ROUND).

    >>> [hex(code) for code in encoded(torch.tensor([0.0, 1.0, -1.0, 1.0625, 2**-22, 32768, 40960, float("nan")])).tolist()]
    ['0x0', '0x8', '0x88', '0x9', '0x1', '0x6e', '0x6f', '0x80']
    """
    codes, middles = _order()
    wide = x.float()
    places = torch.searchsorted(torch.tensor(middles, device=x.device), wide.abs().contiguous(), right=True)
    code = torch.tensor(codes, device=x.device)[places.clamp(max=len(codes) - 1)]
    signed = torch.where((wide < 0) & (code != 0), code | 0x80, code)
    return torch.where(wide.isnan(), _NAN, signed).to(torch.uint8)


def decoded(codes: T) -> T:
    """Return the values of codes as float32 of the same shape.

    >>> decoded(torch.tensor([0x00, 0x08, 0x88, 0x6E, 0x6F, 0x80], dtype=torch.uint8)).tolist()
    [0.0, 1.0, -1.0, 32768.0, inf, nan]
    """
    return torch.tensor(_meanings(), device=codes.device)[codes.long()]


@cache
def _meanings() -> list[float]:
    """Return the value of every code."""
    positive = [math.inf if code == _INFINITY else _magnitude(code) for code in range(128)]
    return [*positive, *(math.nan if code == 0 else -number for code, number in enumerate(positive))]

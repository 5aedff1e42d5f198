"""Python kernel of an operator package that launches a Triton kernel."""

import torch
import triton
import triton.language as tl


@triton.jit
def scaled_add_kernel(x, y, z, n, scale, block: tl.constexpr):
    places = tl.program_id(0) * block + tl.arange(0, block)
    mask = places < n
    tl.store(z + places, tl.load(x + places, mask) * scale + tl.load(y + places, mask), mask)


def scaled_add(x, y, *, scale=1.0):
    z = torch.empty_like(x)
    scaled_add_kernel[(triton.cdiv(x.numel(), 64),)](x, y, z, x.numel(), scale, block=64)
    return z

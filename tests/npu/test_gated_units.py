"""Gated linear units: torch_npu.npu_swiglu."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import torch_npu
from npu_ways import check

T = torch.Tensor


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_swiglu(dtype: torch.dtype, dim: int) -> None:
    x = torch.randn(4, 6, 8).to(dtype)
    a, b = x.float().chunk(2, dim)
    ways = "eager captured ge npugraph_ex" if dtype is torch.float32 and dim == -1 else "eager captured"
    check(lambda x: torch_npu.npu_swiglu(x, dim), [x], (F.silu(a) * b).to(dtype), ways)


def test_gradient_of_swiglu() -> None:
    x, grad = torch.randn(4, 8), torch.randn(4, 4)

    def gradients(x: T, grad: T) -> T:
        x = x.detach().requires_grad_()
        a, b = x.chunk(2, -1)
        y = torch_npu.npu_swiglu(x) if x.device.type == "npu" else F.silu(a) * b
        return torch.autograd.grad(y, x, grad)[0]

    check(gradients, [x, grad], gradients(x, grad), "eager captured")


def test_an_odd_dimension_is_refused() -> None:
    with pytest.raises(RuntimeError, match="SwiGlu"):
        torch_npu.npu_swiglu(torch.randn(4, 7).npu())

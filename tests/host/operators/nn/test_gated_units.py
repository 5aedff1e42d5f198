"""Gated linear units and activations: torch_npu.npu_swiglu, npu_geglu, npu_gelu and others."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import torch_npu
from operator_modes import check

T = torch.Tensor


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_swiglu(dtype: torch.dtype, dim: int) -> None:
    x = torch.randn(4, 6, 8).to(dtype)
    a, b = x.float().chunk(2, dim)
    modes = "eager captured ge npugraph_ex" if dtype is torch.float32 and dim == -1 else "eager captured"
    check(lambda x: torch_npu.npu_swiglu(x, dim), [x], (F.silu(a) * b).to(dtype), modes)


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


@pytest.mark.parametrize("approximate", [0, 1])
@pytest.mark.parametrize("left", [True, False])
def test_geglu(approximate: int, left: bool) -> None:
    x = torch.randn(4, 6, 8)
    a, b = x.chunk(2, -1) if left else reversed(x.chunk(2, -1))
    gelu = F.gelu(a, approximate="tanh" if approximate else "none")
    modes = "eager captured ge" if left else "eager captured ge npugraph_ex"
    check(lambda x: torch_npu.npu_geglu(x, -1, approximate, left), [x], (gelu * b, gelu), modes)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_mul(approximate: str) -> None:
    x = torch.randn(4, 8).half()
    a, b = x.float().chunk(2, -1)
    expected = (F.gelu(a, approximate=approximate) * b).half()
    check(lambda x: torch_npu.npu_gelu_mul(x, approximate=approximate), [x], expected, "eager captured ge npugraph_ex")


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_and_its_gradient(approximate: str) -> None:
    x, grad = torch.randn(4, 8), torch.randn(4, 8)

    def run(x: T, grad: T) -> tuple[T, ...]:
        x = x.detach().requires_grad_()
        y = (
            torch_npu.npu_gelu(x, approximate=approximate)
            if x.device.type == "npu"
            else F.gelu(x, approximate=approximate)
        )
        return y.detach(), torch.autograd.grad(y, x, grad)[0]

    check(run, [x, grad], run(x, grad), "eager captured")
    forward = F.gelu(x, approximate=approximate)
    check(lambda x: torch_npu.npu_gelu(x, approximate=approximate), [x], forward, "ge npugraph_ex")


def test_fast_gelu_and_its_gradient() -> None:
    x, grad = torch.randn(4, 8), torch.randn(4, 8)

    def run(x: T, grad: T) -> tuple[T, ...]:
        x = x.detach().requires_grad_()
        y = torch_npu.npu_fast_gelu(x) if x.device.type == "npu" else x * torch.sigmoid(1.702 * x)
        return y.detach(), torch.autograd.grad(y, x, grad)[0]

    check(run, [x, grad], run(x, grad), "eager captured")
    check(lambda x: torch_npu.npu_fast_gelu(x), [x], x * torch.sigmoid(1.702 * x), "ge npugraph_ex")

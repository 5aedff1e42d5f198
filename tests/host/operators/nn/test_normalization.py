"""Norms and what is fused with them, against their documented formulas.

https://www.hiascend.com/document, torch_npu.npu_rms_norm, npu_add_rms_norm, npu_add_rms_norm_cast.
"""

from __future__ import annotations

import pytest
import torch
import torch_npu
from operator_modes import check

T = torch.Tensor
DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def rms(x: T, gamma: T, epsilon: float = 1e-6) -> tuple[T, T]:
    """The norm in float32, and one over the root of the mean square."""
    dims = tuple(range(-gamma.dim(), 0))
    rstd = 1 / torch.sqrt(x.float().pow(2).mean(dims, keepdim=True) + epsilon)
    return x.float() * rstd * gamma.float(), rstd


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "gamma"), [((3, 8), (8,)), ((2, 3, 4), (3, 4)), ((5,), (5,))])
def test_rms_norm(dtype: torch.dtype, shape: tuple[int, ...], gamma: tuple[int, ...]) -> None:
    x, g = torch.randn(shape).to(dtype), torch.rand(gamma).to(dtype)
    y, rstd = rms(x, g, 1e-5)
    check(lambda x, g: torch_npu.npu_rms_norm(x, g, 1e-5), [x, g], (y.to(dtype), rstd), "eager captured")


def test_rms_norm_in_graphs() -> None:
    x, g = torch.randn(3, 8), torch.rand(8)
    check(lambda x, g: torch_npu.npu_rms_norm(x, g), [x, g], rms(x, g), "ge npugraph_ex")


def test_gradient_of_rms_norm() -> None:
    x, g, grad = torch.randn(3, 8), torch.rand(8), torch.randn(3, 8)

    def gradients(x: T, g: T, grad: T) -> tuple[T, ...]:
        x, g = x.detach().requires_grad_(), g.detach().requires_grad_()
        y = torch_npu.npu_rms_norm(x, g)[0] if x.device.type == "npu" else rms(x, g)[0]
        return torch.autograd.grad(y, (x, g), grad)

    check(gradients, [x, g, grad], gradients(x, g, grad), "eager captured")


@pytest.mark.parametrize("dtype", DTYPES)
def test_add_rms_norm(dtype: torch.dtype) -> None:
    a, b, g = torch.randn(2, 3, 8).to(dtype), torch.randn(2, 3, 8).to(dtype), torch.rand(8).to(dtype)
    total = a + b
    y, rstd = rms(total, g)
    modes = "eager captured ge npugraph_ex" if dtype is torch.float16 else "eager"
    check(lambda a, b, g: torch_npu.npu_add_rms_norm(a, b, g), [a, b, g], (y.to(dtype), rstd, total), modes)


def test_add_rms_norm_cast() -> None:
    a, b, g = (torch.randn(3, 8).half(), torch.randn(3, 8).half(), torch.rand(8).half())
    y, rstd = rms(a + b, g)
    check(lambda a, b, g: torch_npu.npu_add_rms_norm_cast(a, b, g), [a, b, g], (y, y.half(), rstd, a + b))


@pytest.mark.parametrize("gamma", [(5,), (3, 8)])
def test_a_gamma_of_another_shape_is_refused(gamma: tuple[int, ...]) -> None:
    with pytest.raises(RuntimeError, match=r"RmsNorm.*gamma"):
        torch_npu.npu_rms_norm(torch.randn(3, 7).npu(), torch.rand(gamma).npu())


def test_gemma_rms_norm() -> None:
    x, g = torch.randn(3, 8).half(), torch.rand(8).half()
    y, rstd = rms(x, g.float() + 1)
    check(lambda x, g: torch_npu.npu_gemma_rms_norm(x, g), [x, g], (y.half(), rstd), "eager captured ge npugraph_ex")


def test_add_rms_norm_in_place() -> None:
    a, b, g = torch.randn(3, 8).half(), torch.randn(3, 8).half(), torch.rand(8).half()
    y, rstd = rms(a + b, g)
    check(
        lambda a, b, g: (torch_npu.npu_add_rms_norm_v2(a, b, g), a, b),
        [a, b, g],
        (rstd, y.half(), a + b),
        "eager captured ge",
    )


def test_group_norm_silu() -> None:
    x, g, b = torch.randn(2, 6, 5), torch.rand(6), torch.randn(6)
    # In graphs an epsilon of 1e-5, which is the schema's default, is left away, and the wheel's converter has another:
    # 1e-4.
    groups = x.reshape(2, 3, -1)
    mean, rstd = groups.mean(-1), 1 / torch.sqrt(groups.var(-1, correction=0) + 1e-3)
    normal = ((groups - mean[..., None]) * rstd[..., None]).reshape(2, 6, 5) * g[:, None] + b[:, None]
    expected = (normal * torch.sigmoid(normal), mean, rstd)
    check(
        lambda x, g, b: torch_npu.npu_group_norm_silu(x, g, b, 3, 1e-3),
        [x, g, b],
        expected,
        "eager captured ge npugraph_ex",
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_add_layer_norm(dtype: torch.dtype) -> None:
    a, b, g, c = (torch.randn(shape).to(dtype) for shape in ((2, 3, 8), (2, 3, 8), (8,), (8,)))
    total = a.float() + b.float()
    mean, variance = total.mean(-1, keepdim=True), total.var(-1, correction=0, keepdim=True)
    y = torch.nn.functional.layer_norm(total, (8,), g.float(), c.float(), 1e-5)
    check(
        lambda a, b, g, c: torch_npu.npu_add_layer_norm(a, b, g, c, 1e-5, True),
        [a, b, g, c],
        (y.to(dtype), mean, 1 / torch.sqrt(variance + 1e-5), total.to(dtype)),
        "eager captured ge npugraph_ex",
    )


def test_group_norms_read_weights_by_their_strides() -> None:
    x, weights = torch.randn(2, 4, 3, 5), torch.randn(3, 8)

    def results(gamma: torch.Tensor, beta: torch.Tensor) -> list[torch.Tensor]:
        given = x.npu().requires_grad_()
        y = torch_npu.npu_group_norm_silu(given.detach(), gamma, beta, 2)[0]
        swish = torch_npu.npu_group_norm_swish(given, 2, gamma, beta)[0]
        return [t.detach().cpu() for t in (y, swish, torch.autograd.grad(swish.sum(), given)[0])]

    whole = weights.npu()
    strided, contiguous = results(whole[0, ::2], whole[1, ::2]), results(weights[0, ::2].npu(), weights[1, ::2].npu())
    for a, b in zip(strided, contiguous, strict=True):
        torch.testing.assert_close(a, b)

"""Hyper-connections: https://gitcode.com/cann/ops-transformer/tree/master/mhc (mhc_pre, mhc_pre_backward,
mhc_post_backward).

torch_npu calls these aclnn functions where CANN is 9.0.0 or newer; here they are called as libopapi calls them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.runtime.aclnn_functions.call import prepare

T = torch.Tensor

STREAMS, WIDTH = 4, 16


def pre_args(with_gamma: bool, is_residual: bool = True, *shape: int) -> list[Any]:
    count = 2 * STREAMS + STREAMS * STREAMS * is_residual
    gamma = [torch.rand(STREAMS, WIDTH) + 0.5] if with_gamma else []
    x = torch.randn(*(shape or (5,)), STREAMS, WIDTH).bfloat16()
    return [x, torch.randn(count, STREAMS * WIDTH) / 8, torch.randn(2 + is_residual), torch.randn(count), *gamma]


def pre(x: T, phi: T, alpha: T, bias: T, gamma: T | None = None) -> list[T]:
    """In the formula's order: normalized, projected, scaled by ``alpha``, gated."""
    wide = x.float().flatten(-2)
    scaled = wide if gamma is None else wide * gamma.flatten()
    rms = (wide.square().mean(-1) + 1e-6).sqrt()
    mixed = scaled @ phi.t() / rms.unsqueeze(-1)
    n = STREAMS
    h_pre = (alpha[0] * mixed[..., :n] + bias[:n]).sigmoid() + 1e-6
    h_post = 2 * (alpha[1] * mixed[..., n : 2 * n] + bias[n : 2 * n]).sigmoid()
    h_in = (h_pre.unsqueeze(-1) * x.float()).sum(-2)
    if len(alpha) == 2:
        return [h_in, h_post, torch.zeros(1), 1 / rms, scaled @ phi.t(), h_pre]
    h_res = (alpha[2] * mixed[..., 2 * n :] + bias[2 * n :]).unflatten(-1, (n, n))
    return [h_in, h_post, h_res, 1 / rms, scaled @ phi.t(), h_pre]


def pre_rounded(*args: T) -> list[T]:
    h_in, *rest = pre(*args)
    return [h_in.bfloat16(), *rest]


def pre_backward_args(with_gamma: bool, *shape: int) -> list[Any]:
    args = pre_args(with_gamma, True, *shape)
    results = pre(*args)
    grads = [torch.randn(r.shape) for r in results[:3]]
    return [*args, grads[0].bfloat16(), *grads[1:], *results[3:], results[1]]


def pre_gradients(*args: T) -> list[T]:
    leaves = [a.float().requires_grad_() for a in args[:-7]]
    grads = torch.autograd.grad(pre(*leaves)[:3], leaves, [g.float() for g in args[-7:-4]])
    return [grads[0].bfloat16(), *grads[1:]]


def post(x: T, h_res: T, h_out: T, h_post: T) -> T:
    return h_res.mT @ x + h_post.unsqueeze(-1) * h_out.unsqueeze(-2)


def post_gradients(grad: T, x: T, h_res: T, h_out: T, h_post: T) -> list[T]:
    given = (x, h_res, h_out, h_post)
    leaves = [t.float().requires_grad_() for t in given]
    found = torch.autograd.grad(post(*leaves), leaves, grad.float())
    return [g.to(t.dtype) for g, t in zip(found, given, strict=True)]


def called(name: str, arguments: Sequence[Any], outputs: Sequence[T]) -> list[T]:
    """What a function writes to outputs that look like these."""
    results = [torch.full_like(t, torch.nan) for t in outputs]
    prepare(name, [*arguments, *results])()
    return results


def assert_close(results: Sequence[T], expected: Sequence[T]) -> None:
    for result, wanted in zip(results, expected, strict=True):
        wide = {torch.bfloat16: (1.6e-2, 1.6e-2), torch.float16: (2e-3, 2e-3)}.get(wanted.dtype, (1e-4, 1e-5))
        torch.testing.assert_close(result, wanted, rtol=wide[0], atol=wide[1])


@pytest.mark.parametrize("shape", [(5,), (2, 3)])
@pytest.mark.parametrize("with_gamma", [False, True])
@pytest.mark.parametrize("is_residual", [False, True])
@pytest.mark.parametrize("version", ["MhcPre", "MhcPreV2"])
def test_before_a_layer(shape: tuple[int, ...], with_gamma: bool, is_residual: bool, version: str) -> None:
    args = pre_args(with_gamma, is_residual, *shape)
    expected = pre_rounded(*args)
    gamma = [] if with_gamma else [None]
    precision = [0] if version == "MhcPreV2" else []
    assert_close(called(version, [*args, *gamma, 1e-6, 1e-6, *precision], expected), expected)


@pytest.mark.parametrize("shape", [(5,), (2, 3)])
@pytest.mark.parametrize("with_gamma", [False, True])
def test_gradients_before_a_layer(shape: tuple[int, ...], with_gamma: bool) -> None:
    args = pre_backward_args(with_gamma, *shape)
    expected = pre_gradients(*args)
    x, phi, alpha, _, *gamma = args[:-7]
    given = [x, phi, alpha, *args[-7:], *(gamma or [None]), None, 1e-6]
    outputs = [*expected, *([] if gamma else [torch.zeros(STREAMS, WIDTH)])]
    found = called("MhcPreBackward", given, outputs)
    assert_close(found[: len(expected)], expected)
    if not gamma:
        assert found[-1].isnan().all()  # the document: written where there is a gamma
    more = torch.randn(x.shape).bfloat16()
    given[-2] = more
    assert_close(called("MhcPreBackward", given, outputs)[:1], [(expected[0].float() + more.float()).bfloat16()])


@pytest.mark.parametrize("shape", [(5,), (2, 3)])
def test_gradients_after_a_layer(shape: tuple[int, ...]) -> None:
    streams = [torch.randn(*shape, STREAMS, WIDTH).half() for _ in range(2)]
    rest = [torch.rand(*shape, STREAMS, STREAMS), torch.randn(*shape, WIDTH).half(), torch.rand(*shape, STREAMS)]
    args = [*streams, *rest]
    expected = post_gradients(*args)
    assert_close(called("MhcPostBackward", args, expected), expected)


def test_a_projection_of_another_size_is_refused() -> None:
    x, phi, alpha, bias = pre_args(False)
    expected = pre_rounded(x, phi, alpha, bias)
    with pytest.raises(HostRuntimeError, match=r"phi of shape \(24, 60\): with 3 factors in alpha valid is \(24, 64\)"):
        called("MhcPre", [x, phi[:, :60], alpha, bias, None, 1e-6, 1e-6], expected)

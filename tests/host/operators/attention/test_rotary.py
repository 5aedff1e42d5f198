"""Rotary embeddings.

Documented for torch_npu.npu_rotary_mul and npu_apply_rotary_pos_emb.
"""

from __future__ import annotations

import pytest
import torch
import torch_npu
from operator_modes import check

T = torch.Tensor


def rotate(x: T, cos: T, sin: T, mode: str = "half") -> T:
    """x cos + rotated(x) sin, where pairs of numbers are half a head apart, or next to each other."""
    width = x.size(-1)
    places = torch.arange(width)
    first, second = places.chunk(2) if mode == "half" else (places[::2], places[1::2])
    rotation = torch.zeros(width, width)
    rotation[second, first], rotation[first, second] = -1, 1
    return (x.float() * cos.float() + x.float() @ rotation * sin.float()).to(x.dtype)


def angles(*shape: int, dtype: torch.dtype = torch.float32) -> tuple[T, T]:
    angle = torch.randn(shape)
    return angle.cos().to(dtype), angle.sin().to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("mode", ["half", "interleave"])
@pytest.mark.parametrize("shared", [(1, 5, 1, 64), (2, 5, 1, 64), (1, 5, 3, 64)])
def test_rotary_mul(dtype: torch.dtype, mode: str, shared: tuple[int, ...]) -> None:
    x, (cos, sin) = torch.randn(2, 5, 3, 64).to(dtype), angles(*shared, dtype=dtype)
    check(
        lambda x, c, s: torch_npu.npu_rotary_mul(x, c, s, mode),
        [x, cos, sin],
        rotate(x, cos, sin, mode),
        "eager captured",
    )


def test_rotary_mul_in_graphs() -> None:
    x, (cos, sin) = torch.randn(2, 5, 3, 64), angles(1, 5, 1, 64)
    check(lambda x, c, s: torch_npu.npu_rotary_mul(x, c, s), [x, cos, sin], rotate(x, cos, sin), "ge npugraph_ex")


@pytest.mark.xfail(reason="the wheel's converter drops rotary_mode before Ascend950", strict=True)
def test_interleaved_rotary_mul_in_ge() -> None:
    x, (cos, sin) = torch.randn(2, 5, 3, 64), angles(1, 5, 1, 64)
    expected = rotate(x, cos, sin, "interleave")
    check(lambda x, c, s: torch_npu.npu_rotary_mul(x, c, s, "interleave"), [x, cos, sin], expected, "ge")


@pytest.mark.parametrize("mode", ["half", "interleave"])
def test_gradient_of_rotary_mul(mode: str) -> None:
    x, (cos, sin), grad = torch.randn(2, 5, 3, 64), angles(1, 5, 1, 64), torch.randn(2, 5, 3, 64)

    def gradients(x: T, cos: T, sin: T, grad: T) -> tuple[T, ...]:
        inputs = [t.detach().requires_grad_() for t in (x, cos, sin)]
        y = torch_npu.npu_rotary_mul(*inputs, mode) if x.device.type == "npu" else rotate(*inputs, mode)
        return torch.autograd.grad(y, inputs, grad)

    check(gradients, [x, cos, sin, grad], gradients(x, cos, sin, grad), "eager captured")


# Operators return what they write to, which PyTorch warns of where they are traced.
@pytest.mark.parametrize("mode", ["half", "interleave"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_apply_rotary_pos_emb(dtype: torch.dtype, mode: str) -> None:
    query, key = torch.randn(2, 5, 6, 128).to(dtype), torch.randn(2, 5, 2, 128).to(dtype)
    cos, sin = angles(2, 5, 1, 128, dtype=dtype)
    expected = tuple(rotate(x, cos, sin, mode) for x in (query, key))
    modes = "eager captured ge npugraph_ex" if dtype is torch.float16 and mode == "half" else "eager"
    check(
        lambda q, k, c, s: torch_npu.npu_apply_rotary_pos_emb(q, k, c, s, rotary_mode=mode),
        [query, key, cos, sin],
        expected,
        modes,
    )


def test_interleave_rope() -> None:
    """Pairs that lie next to each other come half a head apart, and are rotated as such."""
    x, (cos, sin) = torch.randn(2, 4, 3, 64).half(), angles(2, 1, 3, 64, dtype=torch.float16)
    apart = torch.cat([x[..., ::2], x[..., 1::2]], -1)
    check(
        lambda x, c, s: torch_npu.npu_interleave_rope(x, c, s),
        [x, cos, sin],
        rotate(apart, cos, sin),
        "eager captured ge npugraph_ex",
    )

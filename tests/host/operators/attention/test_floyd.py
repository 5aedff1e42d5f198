"""torch_npu.npu_fused_floyd_attention and its gradient: https://gitcode.com/cann/ops-transformer,
attention/fused_floyd_attention
(docs/aclnnFusedFloydAttention.md) and attention/fused_floyd_attention_grad (docs/aclnnFusedFloydAttentionGrad.md)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_npu
from operator_modes import check, naming_what_is_lacking

T = torch.Tensor
B, H, N, M, K, D = 2, 2, 16, 128, 128, 32
SHAPES = ((B, H, N, M, D), (B, H, N, K, D), (B, H, N, K, D), (B, H, K, M, D), (B, H, K, M, D))
SCALE = 0.2


def drawn(dtype: torch.dtype, with_mask: bool) -> list[T]:
    tensors = [torch.randn(shape).to(dtype) for shape in SHAPES]
    return [*tensors, torch.rand(B, 1, N, 1, K) < 0.3] if with_mask else tensors


def reference(q: T, k1: T, v1: T, k2: T, v2: T, mask: T | None = None) -> tuple[T, T, T]:
    """By products of matrices: the first ones for each n, the second ones for each m."""
    second = q.transpose(2, 3) @ k2.permute(0, 1, 3, 4, 2)  # [b, h, m, n, k]
    scores = (q @ k1.transpose(-1, -2) + second.transpose(2, 3)) * SCALE
    if mask is not None:
        scores = torch.where(mask.bool(), -torch.inf, scores)
    p = scores.softmax(-1)
    out = p @ v1 + (p.transpose(2, 3) @ v2.transpose(2, 3)).transpose(2, 3)
    top = scores.max(-1, keepdim=True).values
    total = torch.exp(scores - top).sum(-1, keepdim=True)
    return top.repeat_interleave(8, -1), total.repeat_interleave(8, -1), out


def attention(*args: T) -> tuple[T, T, T]:
    given = {"atten_mask": args[5]} if len(args) > 5 else {}
    return torch_npu.npu_fused_floyd_attention(*args[:5], scale_value=SCALE, **given)  # type: ignore[no-any-return]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("with_mask", [False, True])
def test_attention(dtype: torch.dtype, with_mask: bool) -> None:
    args = drawn(dtype, with_mask)
    top, total, out = reference(*(a.float() for a in args))
    modes = "eager captured ge npugraph_ex" if with_mask and dtype is torch.float16 else "eager captured"
    check(attention, args, [top, total, out.to(dtype)], modes)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("with_mask", [False, True])
def test_gradients(dtype: torch.dtype, with_mask: bool) -> None:
    args = drawn(dtype, with_mask)
    leaves = [a.float().requires_grad_() for a in args[:5]]
    out = reference(*leaves, *args[5:])[2]
    grad = torch.randn(out.shape).to(dtype)
    expected = [g.to(dtype) for g in torch.autograd.grad(out, leaves, grad.float())]

    def gradients(grad: T, *args: T) -> list[T]:
        leaves = [a.detach().requires_grad_() for a in args[:5]]
        return list(torch.autograd.grad(attention(*leaves, *args[5:])[2], leaves, grad))

    check(gradients, [grad, *args], expected, "eager")
    top, total, out = (x.detach() for x in reference(*leaves, *args[5:]))

    def backward(grad: T, *args: T) -> tuple[T, ...]:
        given = {"atten_mask": args[8]} if len(args) > 8 else {}
        backward = torch.ops.npu.npu_fused_floyd_attention_backward
        return backward(grad, *args[:8], scale_value=SCALE, **given)  # type: ignore[no-any-return]

    modes = "eager captured ge npugraph_ex" if with_mask and dtype is torch.float16 else "eager captured"
    check(backward, [grad, *args[:5], out.to(dtype), top, total, *args[5:]], expected, modes)


@pytest.mark.parametrize(
    ("number", "shape", "message"),
    [
        (0, (B, H, N, M, 48), "key1"),
        (1, (B, H, 32, K, D), "key1 has the shape"),
        (2, (B, H, N, 256, D), "value1 has the shape"),
        (3, (B, H, M, 256, D), "key2 has the shape"),
        (4, (B, H, K, M, 64), "value2 has the shape"),
        (5, (B, H, N, 1, K), "atten_mask has the shape"),
    ],
)
@naming_what_is_lacking()
def test_shapes_are_refused(number: int, shape: tuple[int, ...], message: str) -> None:
    args: list[Any] = [a.npu() for a in drawn(torch.float16, True)]
    args[number] = torch.zeros(shape, dtype=args[number].dtype).npu()
    with pytest.raises(RuntimeError, match=f"(?s)161002.*{message}"):
        attention(*args)


@naming_what_is_lacking()
def test_sizes_and_masks_are_refused() -> None:
    short = [torch.zeros(s).half().npu() for s in ((1, 1, 16, 64, 32), (1, 1, 16, 128, 32), (1, 1, 16, 128, 32))]
    short += [torch.zeros(1, 1, 128, 64, 32).half().npu()] * 2
    with pytest.raises(RuntimeError, match="m and k by 128"):
        attention(*short)
    args = [a.npu() for a in drawn(torch.float16, True)]
    with pytest.raises(RuntimeError, match="atten_mask leaves a query without a key"):
        attention(*args[:5], torch.ones_like(args[5]))

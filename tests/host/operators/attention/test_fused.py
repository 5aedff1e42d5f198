"""Attention of encoders, with dropout.

https://gitcode.com/Ascend/op-plugin/tree/master/docs/zh/custom_APIs/torch_npu (npu_dropout_with_add_softmax,
npu_fused_attention_score).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from operator_modes import check, listed
from test_plain import EAGER

from ascend_graph.host.kernels.attention.fused import axpy_with_softmax_and_drop_out_do_mask

T = torch.Tensor
npu = torch.ops.npu


def halves(*shape: int) -> T:
    return torch.randn(shape).half()


def bytes_of(*shape: int) -> T:
    """A mask that keeps about half of the elements."""
    return (torch.rand(shape) < 0.5).to(torch.uint8)


def dropped_as_masked(x: T) -> tuple[T, T]:
    """What differs from the mask's own result, and how far the kept part is from three quarters."""
    y, mask = npu._dropout_with_byte_mask(x, 0.25)
    return (y - x * mask / 0.75).abs(), ((mask.float().mean() - 0.75).abs() > 0.1).float()


def dropped_in_training(x: T) -> tuple[T, T]:
    """Every element is zero or what is scaled; some are, some are not; and in evaluation there is nothing to drop."""
    y = npu.dropout_with_byte_mask(x, 0.5, True)
    left = (y != 0).float().mean()
    return torch.where(y == 0, 0, y - 2 * x) + ((left - 0.5).abs() > 0.2), npu.dropout_with_byte_mask(x, 0.5, False)


def softmax_with_dropout(x: T, other: T) -> tuple[T, ...]:
    mask, softmax, result = npu.npu_dropout_with_add_softmax(x, other, 0.3, 0.4, -1)
    kept = mask[: softmax.numel()].reshape(softmax.shape)
    return softmax, (result - softmax * kept / 0.6).abs(), ((kept.float().mean() - 0.6).abs() > 0.05).float()


def softmax_of_sum(x: T, other: T) -> T:
    return (other + 0.3 * x).softmax(-1)


def softmax_gradient(grad: T, mask: T, x: T) -> T:
    """Of ``x``, through a softmax of which the mask keeps some."""
    return torch.autograd.functional.vjp(lambda v: (0.3 * v).softmax(-1) * mask / 0.6, x, grad)[1]


SCALE = 0.3


def attention(query: T, key: T, value: T, mask: T, kept: T | None = None, part: float = 1.0) -> tuple[T, T]:
    probabilities = (query @ key.mT * SCALE + mask).softmax(-1)
    used = probabilities if kept is None else probabilities * kept.reshape(probabilities.shape) / part
    return (used @ value).transpose(1, 2).flatten(2).flatten(0, 1), probabilities


def attention_args() -> list[T]:
    return [halves(2, 3, 16, 8), halves(2, 3, 16, 8), halves(2, 3, 16, 8), halves(2, 3, 16, 16)]


def attention_and_dropout(query: T, key: T, value: T, mask: T) -> tuple[T, T, T]:
    """The softmax, how far the result is from that of the returned mask, and whether half of it is kept."""
    result, softmax, kept = npu.npu_fused_attention_score_fwd(query, key, value, mask, SCALE, 0.5)
    expected = attention(query.float(), key.float(), value.float(), mask.float(), kept, 0.5)[0]
    return softmax, (result - expected).abs() > 0.02, (kept.float().mean() - 0.5).abs() > 0.1


def attention_gradient_args(part: float) -> list[T]:
    query, key, value, mask = attention_args()
    kept = torch.ones(2 * 3 * 16 * 16, dtype=torch.uint8) if part == 1 else bytes_of(2 * 3 * 16 * 16)
    softmax = attention(*(t.float() for t in (query, key, value, mask)))[1].half()
    return [halves(32, 24), softmax, query, key, value, kept, mask]


def attention_gradients(name: str, part: float) -> Callable[..., Any]:
    def run(grad: T, softmax: T, query: T, key: T, value: T, kept: T, mask: T) -> Any:
        return getattr(npu, name)(grad, softmax, query, key, value, kept, SCALE, part)

    return run


def attention_gradients_of(part: float, is_split: bool) -> Callable[..., list[T]]:
    def run(grad: T, softmax: T, query: T, key: T, value: T, kept: T, mask: T) -> list[T]:
        leaves = [t.float().requires_grad_() for t in (query, key, value)]
        result = attention(*leaves, mask.float(), kept, part)[0]
        grads = torch.autograd.grad(result, leaves, grad.float())
        return [(g if is_split else g.transpose(1, 2).flatten(2).flatten(0, 1)).half() for g in grads]

    return run


def projections(grad_query: T, grad_key: T, grad_value: T, query: T, key: T, value: T, x: T, more: T) -> list[T]:
    leaves = [t.float().requires_grad_() for t in (x, query, key, value)]
    biases = [torch.zeros(8, requires_grad=True) for _ in range(3)]
    results = [leaves[0] @ kernel + bias for kernel, bias in zip(leaves[1:], biases, strict=True)]
    first, *rest = torch.autograd.grad(
        results, [*leaves, *biases], [g.float() for g in (grad_query, grad_key, grad_value)]
    )
    return [(first + more.float()).half(), *(g.half() for g in rest)]


#: By name: the operator, its arguments, the reference, and the modes in which the wheel can run it.
CASES: dict[str, tuple[Callable[..., Any], Callable[[], list[Any]], Callable[..., Any], str]] = {
    "_dropout_with_byte_mask": (
        dropped_as_masked,
        lambda: [torch.rand(64, 32) + 1],
        lambda x: (torch.zeros_like(x), torch.tensor(0.0)),
        EAGER,
    ),
    "dropout_with_byte_mask": (
        dropped_in_training,
        lambda: [torch.rand(16, 32) + 1],
        lambda x: (torch.zeros_like(x), x),
        EAGER,
    ),
    "_dropout_with_byte_mask_backward": (
        lambda g, m: npu._dropout_with_byte_mask_backward(g, m, 0.25),
        lambda: [torch.randn(6, 8), bytes_of(6, 8)],
        lambda g, m: g * m / 0.75,
        EAGER,
    ),
    "npu_dropout_gen_mask": (
        lambda x: npu.npu_dropout_gen_mask([128], 0.0, device=x.device),
        lambda: [torch.randn(128)],
        lambda x: torch.full((16,), 255, dtype=torch.uint8),
        EAGER,
    ),
    "npu_dropout_with_add_softmax": (
        softmax_with_dropout,
        lambda: [torch.randn(4, 8, 128, 128), torch.randn(4, 8, 128, 128)],
        lambda x, other: (softmax_of_sum(x, other), torch.zeros_like(x), torch.tensor(0.0)),
        EAGER,
    ),
    "npu_dropout_with_add_softmax_backward": (
        lambda g, m, x: npu.npu_dropout_with_add_softmax_backward(g, m, (0.3 * x).softmax(-1), 0.3, 0.4, -1)[0],
        lambda: [torch.randn(1, 32, 128, 128), bytes_of(1, 32, 128, 128), torch.randn(1, 32, 128, 128)],
        softmax_gradient,
        EAGER,
    ),
    "npu_fused_attention_score": (
        lambda *args: npu.npu_fused_attention_score(*args, SCALE, 1.0),
        attention_args,
        lambda *args: attention(*(t.float() for t in args))[0].half(),
        EAGER,
    ),
    "npu_fused_attention_score_fwd": (
        attention_and_dropout,
        attention_args,
        lambda *args: (
            attention(*(t.float() for t in args))[1].half(),
            torch.zeros(32, 24, dtype=torch.bool),
            torch.tensor(False),
        ),
        EAGER,
    ),
    **{
        f"{name}-{part}": (
            attention_gradients(name, part),
            lambda part=part: attention_gradient_args(part),
            attention_gradients_of(part, is_split),
            EAGER,
        )
        for name, is_split in (("npu_fused_attention_score_backward", True), ("npu_fused_attention_score_grad", False))
        for part in (1.0, 0.5)
    },
    "npu_fused_attention_qkv_grad": (
        npu.npu_fused_attention_qkv_grad,
        lambda: [
            halves(6, 8),
            halves(6, 8),
            halves(6, 8),
            halves(8, 8),
            halves(8, 8),
            halves(8, 8),
            halves(6, 8),
            halves(6, 8),
        ],
        projections,
        EAGER,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_operator_is_as_documented(name: str) -> None:
    function, arguments, reference, modes = CASES[name]
    args = arguments()
    expected = reference(*[a.clone() if isinstance(a, T) else a for a in args])
    check(function, args, [t.detach() for t in listed(expected)], modes)


def test_a_mask_counts_where_nothing_is_to_be_dropped() -> None:
    """With a probability of 1 to keep, what the mask drops is dropped all the same, and a mask that is too short is
    refused."""
    x = torch.rand(4, 16)
    call = partial(axpy_with_softmax_and_drop_out_do_mask, x, x, alpha=1.0, input_keep_prob=1.0)
    softmax, result = call(mask=torch.tensor([0, 1]).repeat(32).to(torch.uint8))
    torch.testing.assert_close(softmax, (2 * x).softmax(-1))
    torch.testing.assert_close(result, softmax * torch.tensor([0.0, 1.0]).repeat(8))
    with pytest.raises(ValueError, match="a mask of 8 elements is too short; expected at least 64"):
        call(mask=torch.ones(8, dtype=torch.uint8))

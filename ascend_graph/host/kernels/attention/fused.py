"""Parts of encoder attention fused into one operator, with dropout."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ascend_graph.host.kernels.registry import host_kernel
from ascend_graph.host.kernels.tensor.creation import drop_out_do_mask_v3
from ascend_graph.host.kernels.tensor.elementwise import scalar

T = torch.Tensor


def _last(axes: Sequence[int] | int) -> None:
    if list(axes if isinstance(axes, Sequence) else [axes]) != [-1]:
        raise ValueError(f"softmax over the dimensions {axes} is not supported; -1 is")


def _dropped(x: T, mask: T | None, keep_prob: float) -> T:
    return x if mask is None else drop_out_do_mask_v3(x, mask, torch.tensor(keep_prob))


def _softmax_grad(grad: T, y: T) -> T:
    return y * (grad - (grad * y).sum(-1, keepdim=True))


@host_kernel("AxpyWithSoftmaxAndDropOutDoMask")
def axpy_with_softmax_and_drop_out_do_mask(
    x1: T, x2: T, mask: T, *, alpha: float, input_keep_prob: float, axis: Sequence[int] = (-1,)
) -> tuple[T, T]:
    """Return the softmax of ``x1 + alpha * x2``, and the same after dropout by the mask."""
    _last(axis)
    y = (x1.float() + alpha * x2.float()).softmax(-1)
    return y.to(x1.dtype), _dropped(y, mask, input_keep_prob).to(x1.dtype)


@host_kernel("DropoutWithMulsAndSoftmaxGrad")
def dropout_with_muls_and_softmax_grad(
    y_grad: T, mask: T, softmax_output: T, *, input_keep_prob: float, alpha: float, axes: Sequence[int] = (-1,)
) -> T:
    """Return the gradient of ``x2`` of AxpyWithSoftmaxAndDropOutDoMask."""
    _last(axes)
    grad = _softmax_grad(_dropped(y_grad.float(), mask, input_keep_prob), softmax_output.float())
    return (alpha * grad).to(y_grad.dtype)


@host_kernel("AttentionScore")
def attention_score(
    query: T,
    key: T,
    value: T,
    padding_mask: T,
    scale: T,
    drop_mask: T | None = None,
    *,
    keep_prob: float = 1.0,
    query_transpose: bool = False,
    key_transpose: bool = False,
    bmm_score_transpose_a: bool = False,
    bmm_score_transpose_b: bool = False,
    softmax_axes: Sequence[int] = (-1,),
) -> tuple[T, T]:
    """Compute attention of (batch, heads, length, width); return the result and the softmax.

    The result has its heads side by side: (batch * length, heads * width).
    """
    _last(softmax_axes)
    _not_transposed(query_transpose, key_transpose, bmm_score_transpose_a, bmm_score_transpose_b)
    scores = query.float() @ key.float().mT * scalar(scale) + padding_mask.float()
    probabilities = scores.softmax(-1)
    result = _side_by_side(_dropped(probabilities, drop_mask, keep_prob) @ value.float())
    return result.to(query.dtype), probabilities.to(query.dtype)


@host_kernel("AttentionScoreGrad")
def attention_score_grad(
    attention_score: T,
    dx: T,
    query: T,
    key: T,
    value: T,
    scale: T,
    drop_mask: T | None = None,
    *,
    keep_prob: float = 1.0,
    query_transpose: bool = False,
    key_transpose: bool = False,
    value_transpose: bool = False,
    dx_transpose: bool = False,
    softmax_axes: int = -1,
) -> tuple[T, T, T]:
    """Return the gradients of value, query and key, heads side by side.

    The prototype names its inputs in another order: torch_npu passes the softmax, the result's gradient, the value, the
    key and the query.
    """
    _last(softmax_axes)
    _not_transposed(query_transpose, key_transpose, value_transpose, dx_transpose)
    values, keys, queries = query.float(), key.float(), value.float()
    probabilities, grad = attention_score.float(), dx.float()
    grad_scores = _softmax_grad(_dropped(grad @ values.mT, drop_mask, keep_prob), probabilities) * scalar(scale)
    grads = (_dropped(probabilities, drop_mask, keep_prob).mT @ grad, grad_scores @ keys, grad_scores.mT @ queries)
    of_value, of_query, of_key = (_side_by_side(g).to(dx.dtype) for g in grads)
    return of_value, of_query, of_key


def _not_transposed(*flags: bool) -> None:
    if any(flags):
        raise ValueError(
            "transposed inputs are not documented, and not supported; expected False for each transpose flag"
        )


def _side_by_side(x: T) -> T:
    return x.transpose(1, 2).flatten(2).flatten(0, 1)


@host_kernel("AttentionQKVGradX")
def attention_qkv_grad_x(
    ln_dx: T,
    query_dx: T,
    key_dw: T,
    value_dw: T,
    kernel_query: T,
    kernel_key: T,
    kernel_value: T,
    *,
    trans_a: bool = False,
    trans_b: bool = True,
) -> T:
    """Add the gradient of the input of the query, key and value projections to ``ln_dx``."""
    if trans_a or not trans_b:
        raise ValueError(f"trans_a={trans_a}, trans_b={trans_b} is not supported; False and True are")
    pairs = ((query_dx, kernel_query), (key_dw, kernel_key), (value_dw, kernel_value))
    return (ln_dx.float() + sum(grad.float() @ kernel.float().t() for grad, kernel in pairs)).to(ln_dx.dtype)


@host_kernel("AttentionQKVGradW")
def attention_qkv_grad_w(
    x: T, query_dx: T, key_dw: T, value_dw: T, *, trans_a: bool = True, trans_b: bool = False, trans_dw: bool = False
) -> tuple[T, T, T, T, T, T]:
    """Return the gradients of the three kernels and of the three biases."""
    if not trans_a or trans_b or trans_dw:
        raise ValueError(
            f"trans_a={trans_a}, trans_b={trans_b}, trans_dw={trans_dw} is not supported; True, False, False is"
        )
    query, key, value = ((x.float().t() @ grad.float()).to(x.dtype) for grad in (query_dx, key_dw, value_dw))
    of_query, of_key, of_value = (grad.float().sum(0).to(x.dtype) for grad in (query_dx, key_dw, value_dw))
    return query, key, value, of_query, of_key, of_value

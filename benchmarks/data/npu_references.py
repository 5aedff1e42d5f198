"""Operators of torch_npu in plain PyTorch, as kernels for inference; their hand-written meta functions are the truth.

Each computes what the operator's documentation says. The operation itself thus decides which inputs are valid, not a
description of its shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

#: Operators whose kernels the host runtime has.
HOST_KERNELS = (
    "fast_gelu",
    "npu_fast_gelu",
    "npu_silu",
    "npu_transpose",
    "npu_linear",
    "_npu_dtype_cast",
    "_npu_dtype_cast_backward",
)


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    if x.shape[-1] % 2:
        raise ValueError("the last dimension must be even")
    a, b = x.chunk(2, -1)
    return a, b


def gelu_mul(input: Tensor, *, approximate: str = "none") -> Tensor:
    a, b = _halves(input)
    return functional.gelu(a, approximate=approximate) * b


def geglu(input: Tensor, dim: int = -1, approximate: int = 1, activate_left: bool = False) -> tuple[Tensor, Tensor]:
    if input.shape[dim] % 2:
        raise ValueError("the dimension must be even")
    left, right = input.chunk(2, dim)
    gelu = functional.gelu(left if activate_left else right)
    return gelu * (right if activate_left else left), gelu


def swiglu_backward(grad_output: Tensor, input: Tensor, dim: int = -1) -> Tensor:
    with torch.enable_grad():
        x = input.detach().requires_grad_()
        a, b = x.chunk(2, dim)
        (grad,) = torch.autograd.grad(functional.silu(a) * b, x, grad_output)
    return grad


def gelu_backward(grad_output: Tensor, input: Tensor, *, approximate: str = "none") -> Tensor:
    return torch.ops.aten.gelu_backward(grad_output, input, approximate=approximate)


def rms_norm_backward(dy: Tensor, input: Tensor, gamma: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    axes = list(range(input.dim() - gamma.dim()))
    if gamma.dim() > input.dim() or input.shape[input.dim() - gamma.dim() :] != gamma.shape or dy.shape != input.shape:
        raise ValueError("gamma has the last dimensions of input")
    normal = input * rstd.reshape(*input.shape[: input.dim() - gamma.dim()], *[1] * gamma.dim())
    dgamma = (dy * normal).float()
    return (dy * gamma * normal).to(input.dtype), dgamma.sum(axes) if axes else dgamma


def layer_norm_eval(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    return functional.layer_norm(input, normalized_shape, weight, bias, eps)


def bmm_v2(input: Tensor, mat2: Tensor, output_sizes: Sequence[int]) -> Tensor:
    return torch.bmm(input, mat2)


def softmax_cross_entropy(input: Tensor, labels: Tensor) -> Tensor:
    if input.dim() != 2 or input.shape != labels.shape:
        raise ValueError("input and labels are matrices of one shape")
    return -(labels * functional.log_softmax(input.float(), -1)).sum(-1).float()


def softmax_cross_entropy_backward(grad: Tensor, input: Tensor, labels: Tensor) -> Tensor:
    if input.dim() != 2 or input.shape != labels.shape or grad.shape != input.shape[:1]:
        raise ValueError("input and labels are matrices of one shape, grad has a number per row")
    return (functional.softmax(input, -1) - labels) * grad[:, None]


def batch_norm_reduce(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    axes = [n for n in range(input.dim()) if n != 1]
    if input.dim() < 2:
        raise ValueError("input has channels")
    return input.float().sum(axes), (input.float() ** 2).sum(axes)


def iou(bboxes: Tensor, gtboxes: Tensor, mode: int = 0) -> Tensor:
    if bboxes.shape[-1] != 4 or gtboxes.shape[-1] != 4 or bboxes.dim() != 2 or gtboxes.dim() != 2:
        raise ValueError("a box has four coordinates")
    low = torch.maximum(gtboxes[:, None, :2], bboxes[None, :, :2])
    high = torch.minimum(gtboxes[:, None, 2:], bboxes[None, :, 2:])
    return (high - low).clamp(min=0).prod(-1)


def moe_compute_expert_tokens(sorted_expert_for_source_row: Tensor, num_expert: int) -> Tensor:
    if sorted_expert_for_source_row.dim() != 1 or num_expert < 1:
        raise ValueError("a row of experts, of at least one")
    counts = torch.bincount(sorted_expert_for_source_row, minlength=num_expert)[:num_expert]
    return counts.cumsum(0).int()


def group_norm_swish(
    input: Tensor,
    num_groups: int,
    weight: Tensor,
    bias: Tensor,
    eps: float | None = 1e-5,
    swish_scale: float | None = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    n, c = input.shape[:2]
    y, mean, rstd = torch.native_group_norm(
        input, weight, bias, n, c, input[0, 0].numel(), num_groups, 1e-5 if eps is None else eps
    )
    y = y * torch.sigmoid(y * (1.0 if swish_scale is None else swish_scale))
    return y, mean.to(input.dtype), rstd.to(input.dtype)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    if input.dim() != 4 or len(stride) != 2 or len(padding) != 2 or len(dilation) != 2:
        raise ValueError("two dimensions")
    return functional.conv2d(input, weight, bias, stride, padding, dilation, groups)


def scaled_masked_softmax(x: Tensor, mask: Tensor, scale: float = 1, fixed_triu_mask: bool = False) -> Tensor:
    if x.dim() != 4 or mask.dim() != 4 or x.shape[2:] != mask.shape[2:]:
        raise ValueError("x and mask have four dimensions")
    return torch.softmax((x * scale).masked_fill(mask.bool(), -10000.0), -1)


def dropout_backward(grad_output: Tensor, mask: Tensor, p: float) -> Tensor:
    if mask.numel() * 8 < grad_output.numel() or mask.dim() != 1:
        raise ValueError("mask has a bit per element")
    return grad_output / (1 - p)


def rotary_mul(
    input: Tensor, r1: Tensor, r2: Tensor, rotary_mode: str = "half", rotate: Tensor | None = None
) -> Tensor:
    if input.dim() != 4 or r1.dim() != 4 or r2.dim() != 4 or rotate is not None:
        raise ValueError("four dimensions")
    a, b = _halves(input)
    y = r1 * input + r2 * torch.cat((-b, a), -1)
    if y.shape != input.shape:
        raise ValueError("r1 and r2 broadcast to input")
    return y


def linear_backward(grad: Tensor, input: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    if input.size(1) != weight.size(1):
        raise ValueError("input and weight have as many features")
    return torch.mm(grad, weight), torch.mm(grad.t(), input)


def l1_loss_backward(grad_output: Tensor, input: Tensor, target: Tensor, reduction: int) -> Tensor:
    if not grad_output.shape == input.shape == target.shape:
        raise ValueError("one shape")
    return torch.sign(input - target) * grad_output


def silu_backward(grad_output: Tensor, x0: Tensor, x1: Tensor) -> Tensor:
    if not grad_output.shape == x0.shape == x1.shape:
        raise ValueError("one shape")
    return torch.ops.aten.silu_backward(grad_output, x0)


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_gelu": functional.gelu,
    "npu_gelu_backward": gelu_backward,
    "npu_gelu_mul": gelu_mul,
    "npu_geglu": geglu,
    "npu_swiglu_backward": swiglu_backward,
    "npu_silu_backward": silu_backward,
    "npu_rms_norm_backward": rms_norm_backward,
    "npu_layer_norm_eval": layer_norm_eval,
    "npu_bmmV2": bmm_v2,
    "npu_softmax_cross_entropy_with_logits": softmax_cross_entropy,
    "npu_softmax_cross_entropy_with_logits_backward": softmax_cross_entropy_backward,
    "batch_norm_reduce": batch_norm_reduce,
    "npu_iou": iou,
    "npu_moe_compute_expert_tokens": moe_compute_expert_tokens,
    "npu_group_norm_swish": group_norm_swish,
    "npu_conv2d": conv2d,
    "npu_scaled_masked_softmax": scaled_masked_softmax,
    "npu_dropout_backward": dropout_backward,
    "npu_rotary_mul": rotary_mul,
    "npu_linear_backward": linear_backward,
    "l1_loss_backward": l1_loss_backward,
}

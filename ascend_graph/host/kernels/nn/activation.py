"""Activations and their gradients, including softmax."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from ascend_graph.host.kernels.registry import host_kernel, plain_kernels
from ascend_graph.host.kernels.tensor.elementwise import scalar

T = torch.Tensor
aten = torch.ops.aten

plain_kernels(
    ["x"],
    {
        "Gelu": F.gelu,
        "HardSwish": F.hardswish,
        "LogSigmoid": F.logsigmoid,
        "Mish": F.mish,
        "Relu": torch.relu,
        "Relu6": F.relu6,
        "Selu": torch.selu,
        "Sigmoid": torch.sigmoid,
        "Softplus": F.softplus,
        "Softsign": F.softsign,
    },
)


@host_kernel("MishGrad")
def mish_grad(grad: T, x: T, tanhx: T | None = None) -> T:
    wide = x.float()
    tanh = torch.tanh(F.softplus(wide)) if tanhx is None else tanhx.float()
    return (grad.float() * (tanh + wide * torch.sigmoid(wide) * (1 - tanh.square()))).to(x.dtype)


@host_kernel("GeluV2")
def gelu_v2(x: T, *, approximate: str | int = "none") -> T:
    """Compute GELU; aclnn functions give the approximation as a number."""
    return F.gelu(x, approximate={0: "none", 1: "tanh"}.get(approximate, approximate))  # type: ignore[arg-type]


@host_kernel("GeluGrad")
def gelu_grad(dy: T, x: T, y: T) -> T:
    return aten.gelu_backward(dy, x)


@host_kernel("GeluGradV2")
def gelu_grad_v2(dy: T, x: T, *, approximate: str = "none") -> T:
    return aten.gelu_backward(dy, x, approximate=approximate)


@host_kernel("FastGelu", "QuickGelu")
def fast_gelu(x: T) -> T:
    return x * torch.sigmoid(1.702 * x)


@host_kernel("FastGeluGrad")
def fast_gelu_grad(dy: T, x: T) -> T:
    sigmoid = torch.sigmoid(1.702 * x)
    return dy * (sigmoid + 1.702 * x * sigmoid * (1 - sigmoid))


@host_kernel("Swish")
def swish(x: T, *, scale: float = 1.0) -> T:
    return F.silu(x) if scale == 1.0 else x * torch.sigmoid(scale * x)


@host_kernel("SwishGrad")
def swish_grad(grad: T, x: T, y: T, *, scale: float = 1.0) -> T:
    sigmoid = torch.sigmoid(scale * x)
    return grad * (sigmoid + scale * x * sigmoid * (1 - sigmoid))


@host_kernel("SigmoidGrad", ignores=("complex_conj",))
def sigmoid_grad(y: T, dy: T) -> T:
    return aten.sigmoid_backward(dy, y)


@host_kernel("TanhGrad", ignores=("complex_conj",))
def tanh_grad(y: T, dy: T) -> T:
    return aten.tanh_backward(dy, y)


@host_kernel("ReluGrad")
def relu_grad(gradients: T, features: T) -> T:
    return aten.threshold_backward(gradients, features, 0)


@host_kernel("ThresholdV2")
def threshold(x: T, threshold: T, value: T | None = None) -> T:
    replacement = torch.zeros_like(x) if value is None else scalar(value).to(x.dtype)
    return torch.where(x <= scalar(threshold), replacement, x)  # NaN, which is neither above nor below, stays


@host_kernel("ThresholdGradV2D")
def threshold_grad(gradients: T, features: T, *, threshold: float) -> T:
    return aten.threshold_backward(gradients, features, threshold)


@host_kernel("LeakyRelu")
def leaky_relu(x: T, *, negative_slope: float = 0.0) -> T:
    return F.leaky_relu(x, negative_slope)


@host_kernel("LeakyReluGrad")
def leaky_relu_grad(gradients: T, features: T, *, negative_slope: float = 0.0) -> T:
    return torch.where(features > 0, gradients, gradients * negative_slope)


@host_kernel("Elu")
def elu(x: T, *, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> T:
    return aten.elu(x, alpha, scale, input_scale)


@host_kernel("EluGradV2")
def elu_grad(
    grads: T,
    activations: T,
    *,
    alpha: float = 1.0,
    scale: float = 1.0,
    input_scale: float = 1.0,
    is_result: bool = False,
) -> T:
    return aten.elu_backward(grads, alpha, scale, input_scale, is_result, activations)


@host_kernel("HardSigmoid")
def hard_sigmoid(input_x: T, *, alpha: float = 1 / 6, beta: float = 0.5) -> T:
    return torch.clamp(input_x * alpha + beta, 0, 1).to(input_x.dtype)


@host_kernel("HardSigmoidGrad")
def hard_sigmoid_grad(grads: T, input_x: T, *, alpha: float = 1 / 6, beta: float = 0.5) -> T:
    y = input_x * alpha + beta
    return torch.where((y > 0) & (y < 1), grads * alpha, 0)


@host_kernel("HardSwishGrad")
def hard_swish_grad(grad: T, x: T) -> T:
    return aten.hardswish_backward(grad, x)


@host_kernel("HardtanhGrad")
def hardtanh_grad(result: T, grad: T, *, min_val: float = -1.0, max_val: float = 1.0) -> T:
    return aten.hardtanh_backward(grad, result, min_val, max_val)


@host_kernel("LogSigmoidGrad")
def log_sigmoid_grad(grads: T, features: T) -> T:
    return grads * torch.sigmoid(-features)


@host_kernel("PRelu")
def prelu(x: T, weight: T) -> T:
    return torch.where(x > 0, x, _per_channel(weight, x) * x)


@host_kernel("PReluGrad")
def prelu_grad(grads: T, features: T, weights: T) -> tuple[T, T]:
    negative = features <= 0
    return torch.where(negative, _per_channel(weights, features) * grads, grads), torch.where(
        negative, features * grads, 0
    )


def _per_channel(weight: T, x: T) -> T:
    """Shape a weight for each channel, the second dimension, to broadcast against the input."""
    if weight.dim() == 1 and weight.numel() > 1 and x.dim() > 1:
        return weight.reshape(1, -1, *[1] * (x.dim() - 2))
    return weight


@host_kernel("GLU")
def glu(x: T, *, dim: int = -1) -> T:
    return F.glu(x, dim)


@host_kernel("GLUGrad")
def glu_grad(y_grad: T, x: T, *, dim: int = -1) -> T:
    return aten.glu_backward(y_grad, x, dim)


def _halves(x: T, dim: int) -> tuple[T, T]:
    if x.size(dim) % 2:
        raise ValueError(f"dimension {dim} of {tuple(x.shape)} is odd: it is split into halves")
    first, second = x.chunk(2, dim)
    return first, second


@host_kernel("SwiGlu")
def swiglu(x: T, *, dim: int = -1) -> T:
    left, right = _halves(x.float(), dim)
    return (F.silu(left) * right).to(x.dtype)


@host_kernel("SwiGluGrad")
def swiglu_grad(y_grad: T, x: T, *, dim: int = -1) -> T:
    left, right = _halves(x.float(), dim)
    grad = y_grad.float()
    return torch.cat([aten.silu_backward(grad * right, left), grad * F.silu(left)], dim).to(x.dtype)


@host_kernel("GeGluV2")
def geglu(x: T, *, dim: int = -1, approximate: int = 1, activate_left: bool = False) -> tuple[T, T]:
    left, right = x.chunk(2, dim)
    gated, other = (left, right) if activate_left else (right, left)
    gelu = F.gelu(gated, approximate="tanh" if approximate else "none")
    return gelu * other, gelu


@host_kernel("GeluMul")
def gelu_mul(x: T, *, approximate: str = "none") -> T:
    left, right = _halves(x.float(), -1)
    return (F.gelu(left, approximate=approximate) * right).to(x.dtype)


@host_kernel("SoftmaxV2")
def softmax(x: T, *, axes: list[int] = [-1], half_to_float: bool = False) -> T:
    (axis,) = axes
    return torch.softmax(x, axis, dtype=torch.float32 if half_to_float else None)


@host_kernel("SoftmaxGrad")
def softmax_grad(softmax: T, grad_softmax: T, *, axes: list[int] = [-1]) -> T:
    (axis,) = axes
    return aten._softmax_backward_data(grad_softmax, softmax, axis, softmax.dtype)


@host_kernel("LogSoftmaxV2")
def log_softmax(logits: T, *, axes: list[int] = [-1]) -> T:
    (axis,) = axes
    return torch.log_softmax(logits, axis)


@host_kernel("LogSoftmaxGrad")
def log_softmax_grad(grad: T, x: T, *, axis: list[int] = [-1]) -> T:
    (dim,) = axis
    return aten._log_softmax_backward_data(grad, x, dim, x.dtype)


@host_kernel("ClippedSwiglu")
def clipped_swiglu(
    x: T,
    group_index: T | None = None,
    *,
    dim: int = -1,
    alpha: float = 1.702,
    limit: float = 7.0,
    bias: float = 1.0,
    interleaved: bool = True,
) -> T:
    """Compute GPT-OSS's gated unit over pairs or halves of a dimension; rows after the groups are zeros."""
    axis = dim % x.dim()
    shape = list(x.shape)
    shape[axis] //= 2
    rows = math.prod(x.shape[:axis])
    flat = x.float().reshape(rows, -1)
    gate, other = (flat[:, ::2], flat[:, 1::2]) if interleaved else flat.chunk(2, -1)
    gate, other = gate.clamp(max=limit), other.clamp(-limit, limit)
    y = gate * torch.sigmoid(alpha * gate) * (other + bias)
    if group_index is not None:
        y = y * (torch.arange(rows, device=x.device) < group_index.sum()).unsqueeze(-1)
    return y.reshape(shape).to(x.dtype)


@host_kernel("GeGluGradV2")
def ge_glu_grad_v2(dy: T, x: T, gelu: T, *, dim: int = -1, approximate: int = 1, activate_left: bool = False) -> T:
    first, second = x.float().chunk(2, dim)
    gate, other = (first, second) if activate_left else (second, first)
    grad = dy.float()
    of_gate = torch.ops.aten.gelu_backward(grad * other, gate, approximate="tanh" if approximate else "none")
    of_other = grad * gelu.float()
    return torch.cat([of_gate, of_other] if activate_left else [of_other, of_gate], dim).to(x.dtype)


_MASKED = -10000.0


@host_kernel("ScaledMaskedSoftmax")
def scaled_masked_softmax(x: T, mask: T | None = None, *, scale: float = 1.0, fixed_triu_mask: bool = False) -> T:
    if fixed_triu_mask:
        raise ValueError("fixed_triu_mask is not supported; False is")
    scores = x.float() * scale
    if mask is not None:
        scores = torch.where(mask.bool(), _MASKED, scores)
    return torch.softmax(scores, -1).to(x.dtype)


@host_kernel("ScaledMaskedSoftmaxGrad")
def scaled_masked_softmax_grad(
    y_grad: T, y: T, mask: T | None = None, *, scale: float = 1.0, fixed_triu_mask: bool = False
) -> T:
    if fixed_triu_mask:
        raise ValueError("fixed_triu_mask is not supported; False is")
    wide, grad = y.float(), y_grad.float()
    dx = wide * (grad - (grad * wide).sum(-1, keepdim=True)) * scale
    return (dx if mask is None else torch.where(mask.bool(), 0, dx)).to(y_grad.dtype)


@host_kernel("MaskedSoftmaxWithRelPosBias", ignores=("inner_precision_mode",))
def masked_softmax_with_rel_pos_bias(
    x: T, atten_mask: T | None, relative_pos_bias: T, *, scale_value: float = 1.0
) -> T:
    """Compute the softmax of window scores plus a bias for each head and a mask for each window."""
    scores = x.float() * scale_value + relative_pos_bias.float()
    return torch.softmax(scores if atten_mask is None else scores + atten_mask.float(), -1).to(x.dtype)


@host_kernel("MaskedCausalConv1d")
def masked_causal_conv1d(input: T, weight: T, mask: T | None = None) -> T:
    """Convolve each channel of [length, batch, channels] over the tokens before; masked positions are 0."""
    y = _causal(input.float(), weight.float())
    return (y if mask is None else y * mask.t().unsqueeze(-1)).to(input.dtype)


def _causal(x: T, weight: T) -> T:
    width = weight.size(0)
    padded = F.pad(x, (0, 0, 0, 0, width - 1, 0))
    return torch.stack([padded[k : k + x.size(0)] * weight[k] for k in range(width)]).sum(0)


@host_kernel("MaskedCausalConv1dBackward")
def masked_causal_conv1d_backward(grad_y: T, x: T, weight: T, mask: T | None = None) -> tuple[T, T]:
    grad = grad_y.float() if mask is None else grad_y.float() * mask.t().unsqueeze(-1)
    length, width = x.size(0), weight.size(0)
    ahead = F.pad(grad, (0, 0, 0, 0, 0, width - 1))
    before = F.pad(x.float(), (0, 0, 0, 0, width - 1, 0))
    dx = torch.stack([ahead[width - 1 - k : width - 1 - k + length] * weight[k].float() for k in range(width)]).sum(0)
    dw = torch.stack([(grad * before[k : k + length]).sum((0, 1)) for k in range(width)])
    return dx.to(grad_y.dtype), dw.to(grad_y.dtype)

"""Layer, group and root-mean-square normalization, and their gradients."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from ascend_graph.host.kernels.checks import check_last, check_shape
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor
aten = torch.ops.aten


def widened(x: T) -> T:
    """Convert to the dtype of statistics: float32, or float64 for doubles."""
    return x if x.dtype is torch.float64 else x.float()


def channels(values: T, x: T) -> T:
    """Shape a value per channel, the second dimension, to broadcast against a tensor."""
    return widened(values).reshape(1, -1, *[1] * (x.dim() - 2))


# impl_mode chooses among roundings, which are one here: high precision, high performance, float16 throughout.
@host_kernel("LayerNormV4")
def layer_norm_v4(
    x: T,
    normalized_shape: T,
    gamma: T | None = None,
    beta: T | None = None,
    *,
    epsilon: float = 1e-5,
    impl_mode: int = 0,
) -> tuple[T, T, T]:
    if impl_mode not in (0, 1, 2):
        raise ValueError(f"impl_mode is {impl_mode}; it must be 0, 1 or 2")
    others = [t.dtype for t in (x, gamma, beta) if t is not None and t.dtype is not torch.float16]
    if impl_mode == 2 and others:
        raise ValueError(
            f"impl_mode is 2, which computes in float16, and an input is {others[0]}; expected float16 alone"
        )
    shape = x.shape[max(x.dim() - normalized_shape.numel(), 0) :]
    if not normalized_shape.is_meta and normalized_shape.tolist() != list(shape):
        raise ValueError(
            f"normalized_shape is {normalized_shape.tolist()}; it must end the shape of x, {list(x.shape)}"
        )
    y, mean, rstd = torch.native_layer_norm(widened(x), shape, _wide_or_none(gamma), _wide_or_none(beta), epsilon)
    return y.to(x.dtype), mean, rstd


# scale and shift have a row for each batch, (*batch, H) or (*batch, 1, H), that all positions of x (*batch, S, H) share.
@host_kernel("AdaLayerNormV2")
def ada_layer_norm_v2(
    x: T, scale: T, shift: T, weight: T | None = None, bias: T | None = None, *, epsilon: float = 1e-5
) -> tuple[T, T, T]:
    row = (*x.shape[:-2], 1, x.shape[-1])
    for name, value in (("scale", scale), ("shift", shift)):
        if tuple(value.shape) not in (row, (*row[:-2], row[-1])):
            raise ValueError(f"{name} has the shape {tuple(value.shape)}; expected {row} or {(*row[:-2], row[-1])}")
    y, mean, rstd = torch.native_layer_norm(
        widened(x), x.shape[-1:], _wide_or_none(weight), _wide_or_none(bias), epsilon
    )
    y = y * (1 + widened(scale).reshape(row)) + widened(shift).reshape(row)
    return y.to(x.dtype), mean.to(x.dtype), rstd.to(x.dtype)


def _wide_or_none(x: T | None) -> T | None:
    return None if x is None else widened(x)


@host_kernel("LayerNormGradV3")
def layer_norm_grad_v3(dy: T, x: T, rstd: T, mean: T, gamma: T) -> tuple[T, T, T]:
    weight = widened(gamma)
    dx, dgamma, dbeta = aten.native_layer_norm_backward(
        widened(dy), widened(x), gamma.shape, widened(mean), widened(rstd), weight, weight, [True] * 3
    )
    return dx.to(x.dtype), dgamma.to(gamma.dtype), dbeta.to(gamma.dtype)


def _group_norm(x: T, gamma: T | None, beta: T | None, groups: int, eps: float) -> tuple[T, T, T]:
    n, c = x.shape[:2]
    size = x.numel() // (n * c) if n * c else 1
    # ATen's kernel reads weights as if they were contiguous.
    weight, bias = (None if w is None else w.contiguous() for w in (_wide_or_none(gamma), _wide_or_none(beta)))
    y, mean, rstd = torch.native_group_norm(widened(x).contiguous(), weight, bias, n, c, size, groups, eps)
    return y.to(x.dtype), mean, rstd


# GroupNorm's data_format says NHWC by default while TorchAir's tensors are NCHW, as their descriptions say.
@host_kernel("GroupNorm", ignores=("data_format", "is_training"))
def group_norm(x: T, gamma: T, beta: T, *, num_groups: int, eps: float = 1e-4) -> tuple[T, T, T]:
    y, mean, rstd = _group_norm(x, gamma, beta, num_groups, eps)
    variance = rstd.square().reciprocal() - eps
    return y, mean.to(x.dtype), variance.to(x.dtype)


@host_kernel("GroupNormV2", ignores=("data_format", "is_training"))
def group_norm_v2(x: T, gamma: T, beta: T, *, num_groups: int, eps: float = 1e-5) -> tuple[T, T, T]:
    y, mean, rstd = _group_norm(x, gamma, beta, num_groups, eps)
    return y, mean.to(x.dtype), rstd.to(x.dtype)


@host_kernel("GroupNormSilu")
def group_norm_silu(
    x: T,
    gamma: T | None = None,
    beta: T | None = None,
    *,
    num_groups: int,
    eps: float = 1e-4,
    activate_silu: bool = True,
) -> tuple[T, T, T]:
    y, mean, rstd = _group_norm(widened(x), gamma, beta, num_groups, eps)
    return (F.silu(y) if activate_silu else y).to(x.dtype), mean.to(x.dtype), rstd.to(x.dtype)


@host_kernel("GroupNormGrad", ignores=("data_format", "dx_is_require", "dgamma_is_require", "dbeta_is_require"))
def group_norm_grad(dy: T, mean: T, rstd: T, x: T, gamma: T, *, num_groups: int) -> tuple[T, T, T]:
    n, c = x.shape[:2]
    dx, dgamma, dbeta = aten.native_group_norm_backward(
        widened(dy).contiguous(),
        widened(x).contiguous(),
        widened(mean).contiguous(),
        widened(rstd).contiguous(),
        widened(gamma).contiguous(),
        n,
        c,
        x.numel() // (n * c),
        num_groups,
        [True] * 3,
    )
    return dx.to(x.dtype), dgamma.to(gamma.dtype), dbeta.to(gamma.dtype)


def _rms_norm(x: T, gamma: T, epsilon: float) -> tuple[T, T]:
    """Return the normalized tensor in float32, and 1/rms with the normalized dimensions kept as 1."""
    check_last("gamma", gamma, x)
    wide = widened(x)
    rstd = torch.rsqrt(wide.square().mean(list(range(x.dim() - gamma.dim(), x.dim())), keepdim=True) + epsilon)
    return wide * rstd * widened(gamma), rstd


@host_kernel("RmsNorm")
def rms_norm(x: T, gamma: T, *, epsilon: float = 1e-6) -> tuple[T, T]:
    y, rstd = _rms_norm(x, gamma, epsilon)
    return y.to(x.dtype), rstd


@host_kernel("AddLayerNorm")
def add_layer_norm(
    x1: T,
    x2: T,
    gamma: T,
    beta: T,
    bias: T | None = None,
    *,
    epsilon: float = 1e-5,
    additional_output: bool = False,
) -> tuple[T, T, T, T]:
    """Return the norm of a sum, its mean and 1/deviation, and the sum if requested."""
    for name, values in (("gamma", gamma), ("beta", beta)):
        check_shape(name, values, tuple(x1.shape[-1:]), why="the size of a row of x1")
    total = widened(x1) + widened(x2)
    if bias is not None:
        total = total + widened(bias)
    mean = total.mean(-1, keepdim=True)
    rstd = torch.rsqrt(total.var(-1, correction=0, keepdim=True) + epsilon)
    y = (total - mean) * rstd * widened(gamma) + widened(beta)
    dtype = torch.promote_types(x1.dtype, x2.dtype)
    return y.to(dtype), mean, rstd, total.to(dtype) if additional_output else total.new_empty(0)


@host_kernel("GemmaRmsNorm")
def gemma_rms_norm(x: T, gamma: T, *, epsilon: float = 1e-6) -> tuple[T, T]:
    y, rstd = _rms_norm(x, widened(gamma) + 1, epsilon)
    return y.to(x.dtype), rstd


@host_kernel("InplaceAddRmsNorm", writes={"x1": 0, "x2": 2})
def inplace_add_rms_norm(x1: T, x2: T, gamma: T, *, epsilon: float = 1e-6) -> tuple[T, T, T]:
    """Write the norm of the sum to x1 and the sum to x2."""
    x = x1 + x2
    y, rstd = _rms_norm(x, gamma, epsilon)
    return x1.copy_(y), rstd, x2.copy_(x)


@host_kernel("AddRmsNorm")
def add_rms_norm(x1: T, x2: T, gamma: T, *, epsilon: float = 1e-6) -> tuple[T, T, T]:
    x = x1 + x2
    y, rstd = _rms_norm(x, gamma, epsilon)
    return y.to(x.dtype), rstd, x


@host_kernel("AddRmsNormCast")
def add_rms_norm_cast(x1: T, x2: T, gamma: T, *, epsilon: float = 1e-6) -> tuple[T, T, T, T]:
    x = x1 + x2
    y, rstd = _rms_norm(x, gamma, epsilon)
    return y, y.to(x.dtype, copy=True), rstd, x


@host_kernel("RmsNormGrad")
def rms_norm_grad(dy: T, x: T, rstd: T, gamma: T) -> tuple[T, T]:
    wide, grad = widened(x), widened(dy)
    normal = wide * rstd
    scaled = grad * widened(gamma)
    dims = list(range(x.dim() - gamma.dim(), x.dim()))
    dx = (scaled - normal * (scaled * normal).mean(dims, keepdim=True)) * rstd
    return dx.to(x.dtype), (grad * normal).sum(list(range(x.dim() - gamma.dim())))


@host_kernel("AddLayerNormGrad")
def add_layer_norm_grad(dy: T, x1: T, x2: T, rstd: T, mean: T, gamma: T, dsum: T | None = None) -> tuple[T, T, T]:
    """Return the gradients of both addends, of gamma and of beta; the sum's own gradient is added."""
    x = widened(x1) + widened(x2)
    dx, dgamma, dbeta = _layer_norm_gradients(widened(dy), (x - mean) * rstd, rstd, gamma)
    if dsum is not None:
        dx = dx + widened(dsum)
    return dx.to(x1.dtype), dgamma, dbeta


def _layer_norm_gradients(dy: T, normal: T, rstd: T, gamma: T) -> tuple[T, T, T]:
    """Return the gradients of the input, of gamma and of beta over the last dimensions."""
    inner = list(range(dy.dim() - gamma.dim(), dy.dim()))
    outer = list(range(dy.dim() - gamma.dim()))
    scaled = dy * widened(gamma)
    centered = scaled - scaled.mean(inner, keepdim=True) - normal * (scaled * normal).mean(inner, keepdim=True)
    return (
        (centered * rstd, (dy * normal).sum(outer), dy.sum(outer))
        if outer
        else (centered * rstd, dy * normal, dy.clone())
    )


@host_kernel("DeepNorm")
def deep_norm(x: T, gx: T, beta: T, gamma: T, *, alpha: float = 0.3, epsilon: float = 1e-6) -> tuple[T, T, T]:
    """Return the mean, 1/deviation and norm of ``alpha * x + gx``."""
    total = alpha * widened(x) + widened(gx)
    inner = list(range(x.dim() - gamma.dim(), x.dim()))
    mean = total.mean(inner, keepdim=True)
    rstd = torch.rsqrt((total - mean).square().mean(inner, keepdim=True) + epsilon)
    return mean, rstd, ((total - mean) * rstd * widened(gamma) + widened(beta)).to(x.dtype)


@host_kernel("DeepNormGrad")
def deep_norm_grad(dy: T, x: T, gx: T, gamma: T, mean: T, rstd: T, *, alpha: float = 0.3) -> tuple[T, T, T, T]:
    normal = (alpha * widened(x) + widened(gx) - mean) * rstd
    grad, dgamma, dbeta = _layer_norm_gradients(widened(dy), normal, rstd, gamma)
    return (alpha * grad).to(x.dtype), grad.to(x.dtype), dbeta, dgamma


@host_kernel("LayerNormV3", ignores=("begin_params_axis",))
def layer_norm_v3(x: T, gamma: T, beta: T, *, begin_norm_axis: int = 0, epsilon: float = 1e-5) -> tuple[T, T, T]:
    shape = x.shape[begin_norm_axis:]
    y, mean, rstd = torch.native_layer_norm(
        widened(x), shape, widened(gamma).reshape(shape), widened(beta).reshape(shape), epsilon
    )
    return y.to(x.dtype), mean, rstd


@host_kernel("GroupNormSwish", ignores=("data_format",))
def group_norm_swish(
    x: T,
    gamma: T,
    beta: T,
    *,
    num_groups: int,
    eps: float = 1e-5,
    activate_swish: bool = True,
    swish_scale: float = 1.0,
) -> tuple[T, T, T]:
    y, mean, rstd = _group_norm(widened(x), gamma, beta, num_groups, eps)
    if activate_swish:
        y = y * torch.sigmoid(swish_scale * y)
    return y.to(x.dtype), mean.to(gamma.dtype), rstd.to(gamma.dtype)


@host_kernel("GroupNormSwishGrad", ignores=("data_format", "dgamma_is_require", "dbeta_is_require"))
def group_norm_swish_grad(
    dy: T, mean: T, rstd: T, x: T, gamma: T, beta: T, *, num_groups: int, swish_scale: float = 1.0
) -> tuple[T, T, T]:
    n, c = x.shape[:2]
    size = x.numel() // (n * c)
    grouped = widened(x).reshape(n, num_groups, -1)
    normal = ((grouped - widened(mean).unsqueeze(-1)) * widened(rstd).unsqueeze(-1)).reshape(x.shape)
    y = normal * channels(gamma, x) + channels(beta, x)
    gate = torch.sigmoid(swish_scale * y)
    grad = widened(dy) * gate * (1 + swish_scale * y * (1 - gate))
    dx, dgamma, dbeta = aten.native_group_norm_backward(
        grad.contiguous(),
        widened(x).contiguous(),
        widened(mean).contiguous(),
        widened(rstd).contiguous(),
        widened(gamma).contiguous(),
        n,
        c,
        size,
        num_groups,
        [True] * 3,
    )
    return dx.to(x.dtype), dgamma.to(gamma.dtype), dbeta.to(beta.dtype)

"""Batch, layer, group and root-mean-square normalization, and their gradients."""

from __future__ import annotations

from functools import cache

import torch
from torch.nn import functional as F

from ascend_graph.host.ops.registry import host_kernel

T = torch.Tensor
aten = torch.ops.aten


def _wide(x: T) -> T:
    """The values in the dtype that statistics are computed in: float32, or float64 for doubles."""
    return x if x.dtype is torch.float64 else x.float()


def _channels(values: T, x: T) -> T:
    """A value per channel, the second dimension, against a tensor."""
    return _wide(values).reshape(1, -1, *[1] * (x.dim() - 2))


@cache
def _saves_rstd() -> bool:
    """Whether the device's batch normalization saves 1/sqrt(variance + epsilon), or the variance.

    Before Ascend950 devices save the variance: TorchAir's backward graph for them hands it to operators that take a
    variance.
    """
    from torchair._utils.check_platform import is_arch35

    return bool(is_arch35())


@host_kernel("BatchNormV3", writes={"running_mean": 3, "running_var": 4})
def batch_norm_v3(
    x: T,
    weight: T,
    bias: T,
    running_mean: T,
    running_var: T,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.1,
    is_training: bool = True,
) -> tuple[T, T, T, T, T]:
    # The prototype lists the running statistics before those of the batch; TorchAir hands the outputs on to
    # _native_batch_norm_legit_functional as they come, so a training step is right only in ATen's order, which has
    # them last.
    statistics = (_wide(running_mean), _wide(running_var))
    y, mean, rstd = aten.native_batch_norm(
        _wide(x), _wide(weight), _wide(bias), *statistics, is_training, momentum, epsilon
    )
    if is_training:
        running_mean.copy_(statistics[0])
        running_var.copy_(statistics[1])
    else:
        mean, rstd = statistics[0].clone(), torch.rsqrt(statistics[1] + epsilon)
    saved = rstd if _saves_rstd() else rstd.square().reciprocal() - epsilon
    return y.to(x.dtype), mean, saved, running_mean, running_var


@host_kernel("BNInfer")
def bn_infer(x: T, scale: T, offset: T, mean: T, variance: T, *, epsilon: float) -> T:
    y = F.batch_norm(_wide(x), _wide(mean), _wide(variance), _wide(scale), _wide(offset), eps=epsilon)
    return y.to(x.dtype)


@host_kernel("BNInferGrad")
def bn_infer_grad(grads: T, scale: T, batch_variance: T, *, epsilon: float = 1e-4) -> T:
    factor = _wide(scale) * torch.rsqrt(_wide(batch_variance) + epsilon)
    return (_wide(grads) * _channels(factor, grads)).to(grads.dtype)


@host_kernel("BNTrainingUpdateGrad", "BN3DTrainingUpdateGrad")
def bn_training_update_grad(grads: T, x: T, batch_mean: T, batch_variance: T, *, epsilon: float = 1e-4) -> tuple[T, T]:
    normal = _normalized(x, batch_mean, batch_variance, epsilon)
    dims = [0, *range(2, x.dim())]
    return (_wide(grads) * normal).sum(dims), _wide(grads).sum(dims)


def _normalized(x: T, mean: T, variance: T, epsilon: float) -> T:
    return (_wide(x) - _channels(mean, x)) * torch.rsqrt(_channels(variance, x) + epsilon)


@host_kernel("BNTrainingReduceGrad")
def bn_training_reduce_grad(
    grads: T,
    x: T,
    diff_scale: T,
    diff_offset: T,
    scale: T,
    batch_mean: T,
    batch_variance: T,
    *,
    epsilon: float = 1e-4,
) -> T:
    count = max(1, x.numel() // x.size(1)) if x.numel() else 1
    normal = _normalized(x, batch_mean, batch_variance, epsilon)
    factor = _wide(scale) * torch.rsqrt(_wide(batch_variance) + epsilon)
    centred = _wide(grads) - _channels(diff_offset, x) / count - normal * _channels(diff_scale, x) / count
    return (_channels(factor, x) * centred).to(grads.dtype)


@host_kernel("BatchNormGradV3")
def batch_norm_grad_v3(
    dy: T,
    x: T,
    weight: T,
    running_mean: T,
    running_var: T,
    save_mean: T,
    save_rstd: T,
    *,
    is_training: bool = True,
    epsilon: float = 1e-5,
) -> tuple[T, T, T]:
    dx, dweight, dbias = aten.native_batch_norm_backward(
        _wide(dy),
        _wide(x),
        _wide(weight),
        running_mean,
        running_var,
        save_mean,
        save_rstd,
        is_training,
        epsilon,
        [True] * 3,
    )
    return dx.to(x.dtype), dweight.to(weight.dtype), dbias.to(weight.dtype)


@host_kernel("SyncBatchNormBackwardElemt")
def sync_batch_norm_backward_elemt(
    grad_output: T, save_input: T, mean: T, invstd: T, weight: T, mean_dy: T, mean_dy_xmu: T
) -> T:
    return (grad_output - mean_dy - (save_input - mean) * invstd.square() * mean_dy_xmu) * invstd * weight


@host_kernel("SyncBatchNormBackwardReduce")
def sync_batch_norm_backward_reduce(sum_dy: T, sum_dy_dx_pad: T, mean: T, invert_std: T) -> tuple[T, T]:
    sum_dy_xmu = sum_dy_dx_pad - sum_dy * mean
    return sum_dy_xmu, sum_dy_xmu * invert_std


@host_kernel("SyncBatchNormGatherStats", writes={"mean": 2, "variance": 3})
def sync_batch_norm_gather_stats(
    total_sum: T,
    total_square_sum: T,
    sample_count: T,
    mean: T,
    variance: T,
    *,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> tuple[T, T, T, T]:
    count = sample_count.sum()
    batch_mean = total_sum.sum(0) / count
    batch_variance = total_square_sum.sum(0) / count - batch_mean.square()
    mean.mul_(1 - momentum).add_(batch_mean, alpha=momentum)
    variance.mul_(1 - momentum).add_(batch_variance * count / (count - 1), alpha=momentum)
    return batch_mean, torch.rsqrt(batch_variance + eps), mean, variance


@host_kernel("LayerNormV4")
def layer_norm_v4(
    x: T, normalized_shape: T, gamma: T | None = None, beta: T | None = None, *, epsilon: float = 1e-5
) -> tuple[T, T, T]:
    shape = x.shape[x.dim() - normalized_shape.numel() :]
    y, mean, rstd = torch.native_layer_norm(_wide(x), shape, _wide_or_none(gamma), _wide_or_none(beta), epsilon)
    return y.to(x.dtype), mean, rstd


def _wide_or_none(x: T | None) -> T | None:
    return None if x is None else _wide(x)


@host_kernel("LayerNormGradV3")
def layer_norm_grad_v3(dy: T, x: T, rstd: T, mean: T, gamma: T) -> tuple[T, T, T]:
    weight = _wide(gamma)
    dx, dgamma, dbeta = aten.native_layer_norm_backward(
        _wide(dy), _wide(x), gamma.shape, _wide(mean), _wide(rstd), weight, weight, [True] * 3
    )
    return dx.to(x.dtype), dgamma.to(gamma.dtype), dbeta.to(gamma.dtype)


def _group_norm(x: T, gamma: T | None, beta: T | None, groups: int, eps: float) -> tuple[T, T, T]:
    n, c = x.shape[:2]
    size = x.numel() // (n * c) if n * c else 1
    # ATen's kernel reads weights as if they were contiguous.
    weight, bias = (None if w is None else w.contiguous() for w in (_wide_or_none(gamma), _wide_or_none(beta)))
    y, mean, rstd = torch.native_group_norm(_wide(x).contiguous(), weight, bias, n, c, size, groups, eps)
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
    y, mean, rstd = _group_norm(_wide(x), gamma, beta, num_groups, eps)
    return (F.silu(y) if activate_silu else y).to(x.dtype), mean.to(x.dtype), rstd.to(x.dtype)


@host_kernel("GroupNormGrad", ignores=("data_format", "dx_is_require", "dgamma_is_require", "dbeta_is_require"))
def group_norm_grad(dy: T, mean: T, rstd: T, x: T, gamma: T, *, num_groups: int) -> tuple[T, T, T]:
    n, c = x.shape[:2]
    dx, dgamma, dbeta = aten.native_group_norm_backward(
        _wide(dy).contiguous(),
        _wide(x).contiguous(),
        _wide(mean).contiguous(),
        _wide(rstd).contiguous(),
        _wide(gamma).contiguous(),
        n,
        c,
        x.numel() // (n * c),
        num_groups,
        [True] * 3,
    )
    return dx.to(x.dtype), dgamma.to(gamma.dtype), dbeta.to(gamma.dtype)


def _rms_norm(x: T, gamma: T, epsilon: float) -> tuple[T, T]:
    """The normalized tensor in float32, and 1/rms with the normalized dimensions kept as 1."""
    if x.shape[x.dim() - gamma.dim() :] != gamma.shape:
        raise ValueError(f"gamma of shape {tuple(gamma.shape)} is not the end of the input's, {tuple(x.shape)}")
    wide = _wide(x)
    rstd = torch.rsqrt(wide.square().mean(list(range(x.dim() - gamma.dim(), x.dim())), keepdim=True) + epsilon)
    return wide * rstd * _wide(gamma), rstd


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
    """The norm of a sum, its mean and 1/deviation, and the sum where it is asked for."""
    if gamma.shape != x1.shape[-1:] or beta.shape != gamma.shape:
        raise ValueError(
            f"gamma {tuple(gamma.shape)} and beta {tuple(beta.shape)} are not the rows of {tuple(x1.shape)}"
        )
    total = _wide(x1) + _wide(x2)
    if bias is not None:
        total = total + _wide(bias)
    mean = total.mean(-1, keepdim=True)
    rstd = torch.rsqrt(total.var(-1, correction=0, keepdim=True) + epsilon)
    y = (total - mean) * rstd * _wide(gamma) + _wide(beta)
    dtype = torch.promote_types(x1.dtype, x2.dtype)
    return y.to(dtype), mean, rstd, total.to(dtype) if additional_output else total.new_empty(0)


@host_kernel("GemmaRmsNorm")
def gemma_rms_norm(x: T, gamma: T, *, epsilon: float = 1e-6) -> tuple[T, T]:
    y, rstd = _rms_norm(x, _wide(gamma) + 1, epsilon)
    return y.to(x.dtype), rstd


@host_kernel("InplaceAddRmsNorm", writes={"x1": 0, "x2": 2})
def inplace_add_rms_norm(x1: T, x2: T, gamma: T, *, epsilon: float = 1e-6) -> tuple[T, T, T]:
    """The norm of the sum comes to x1, the sum to x2."""
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
    wide, grad = _wide(x), _wide(dy)
    normal = wide * rstd
    scaled = grad * _wide(gamma)
    dims = list(range(x.dim() - gamma.dim(), x.dim()))
    dx = (scaled - normal * (scaled * normal).mean(dims, keepdim=True)) * rstd
    return dx.to(x.dtype), (grad * normal).sum(list(range(x.dim() - gamma.dim())))


@host_kernel("AddLayerNormGrad")
def add_layer_norm_grad(dy: T, x1: T, x2: T, rstd: T, mean: T, gamma: T, dsum: T | None = None) -> tuple[T, T, T]:
    """The gradient of both of the sum's parts, of gamma and of beta; what comes to the sum itself is added."""
    x = _wide(x1) + _wide(x2)
    dx, dgamma, dbeta = _layer_norm_gradients(_wide(dy), (x - mean) * rstd, rstd, gamma)
    if dsum is not None:
        dx = dx + _wide(dsum)
    return dx.to(x1.dtype), dgamma, dbeta


def _layer_norm_gradients(dy: T, normal: T, rstd: T, gamma: T) -> tuple[T, T, T]:
    """Of the input, of gamma and of beta, whose dimensions are the last ones."""
    inner = list(range(dy.dim() - gamma.dim(), dy.dim()))
    outer = list(range(dy.dim() - gamma.dim()))
    scaled = dy * _wide(gamma)
    centred = scaled - scaled.mean(inner, keepdim=True) - normal * (scaled * normal).mean(inner, keepdim=True)
    return (
        (centred * rstd, (dy * normal).sum(outer), dy.sum(outer))
        if outer
        else (centred * rstd, dy * normal, dy.clone())
    )


@host_kernel("DeepNorm")
def deep_norm(x: T, gx: T, beta: T, gamma: T, *, alpha: float = 0.3, epsilon: float = 1e-6) -> tuple[T, T, T]:
    """The mean, 1/deviation and norm of ``alpha * x + gx``."""
    total = alpha * _wide(x) + _wide(gx)
    inner = list(range(x.dim() - gamma.dim(), x.dim()))
    mean = total.mean(inner, keepdim=True)
    rstd = torch.rsqrt((total - mean).square().mean(inner, keepdim=True) + epsilon)
    return mean, rstd, ((total - mean) * rstd * _wide(gamma) + _wide(beta)).to(x.dtype)


@host_kernel("DeepNormGrad")
def deep_norm_grad(dy: T, x: T, gx: T, gamma: T, mean: T, rstd: T, *, alpha: float = 0.3) -> tuple[T, T, T, T]:
    normal = (alpha * _wide(x) + _wide(gx) - mean) * rstd
    grad, dgamma, dbeta = _layer_norm_gradients(_wide(dy), normal, rstd, gamma)
    return (alpha * grad).to(x.dtype), grad.to(x.dtype), dbeta, dgamma


@host_kernel("LayerNormV3", ignores=("begin_params_axis",))
def layer_norm_v3(x: T, gamma: T, beta: T, *, begin_norm_axis: int = 0, epsilon: float = 1e-5) -> tuple[T, T, T]:
    shape = x.shape[begin_norm_axis:]
    y, mean, rstd = torch.native_layer_norm(
        _wide(x), shape, _wide(gamma).reshape(shape), _wide(beta).reshape(shape), epsilon
    )
    return y.to(x.dtype), mean, rstd


@host_kernel("BNTrainingReduce", "BatchNormReduce")
def bn_training_reduce(x: T) -> tuple[T, T]:
    """The sum of each channel, and of its squares."""
    dims = [0, *range(2, x.dim())]
    return _wide(x).sum(dims), _wide(x).square().sum(dims)


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
    y, mean, rstd = _group_norm(_wide(x), gamma, beta, num_groups, eps)
    if activate_swish:
        y = y * torch.sigmoid(swish_scale * y)
    return y.to(x.dtype), mean.to(gamma.dtype), rstd.to(gamma.dtype)


@host_kernel("GroupNormSwishGrad", ignores=("data_format", "dgamma_is_require", "dbeta_is_require"))
def group_norm_swish_grad(
    dy: T, mean: T, rstd: T, x: T, gamma: T, beta: T, *, num_groups: int, swish_scale: float = 1.0
) -> tuple[T, T, T]:
    n, c = x.shape[:2]
    size = x.numel() // (n * c)
    grouped = _wide(x).reshape(n, num_groups, -1)
    normal = ((grouped - _wide(mean).unsqueeze(-1)) * _wide(rstd).unsqueeze(-1)).reshape(x.shape)
    y = normal * _channels(gamma, x) + _channels(beta, x)
    gate = torch.sigmoid(swish_scale * y)
    grad = _wide(dy) * gate * (1 + swish_scale * y * (1 - gate))
    dx, dgamma, dbeta = aten.native_group_norm_backward(
        grad.contiguous(),
        _wide(x).contiguous(),
        _wide(mean).contiguous(),
        _wide(rstd).contiguous(),
        _wide(gamma).contiguous(),
        n,
        c,
        size,
        num_groups,
        [True] * 3,
    )
    return dx.to(x.dtype), dgamma.to(gamma.dtype), dbeta.to(beta.dtype)

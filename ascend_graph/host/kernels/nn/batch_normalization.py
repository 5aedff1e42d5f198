"""Batch normalization, on one device and across several."""

from __future__ import annotations

from functools import cache

import torch
from torch.nn import functional as F

from ascend_graph.host.kernels.nn.normalization import aten, channels, widened
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


@cache
def _saves_rstd() -> bool:
    """Return whether the device's batch normalization saves 1/sqrt(variance + epsilon), not the variance.

    Before Ascend950 devices save the variance: TorchAir's backward graph for them passes it to operators that take a
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
    statistics = (widened(running_mean), widened(running_var))
    y, mean, rstd = aten.native_batch_norm(
        widened(x), widened(weight), widened(bias), *statistics, is_training, momentum, epsilon
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
    y = F.batch_norm(widened(x), widened(mean), widened(variance), widened(scale), widened(offset), eps=epsilon)
    return y.to(x.dtype)


@host_kernel("BNInferGrad")
def bn_infer_grad(grads: T, scale: T, batch_variance: T, *, epsilon: float = 1e-4) -> T:
    factor = widened(scale) * torch.rsqrt(widened(batch_variance) + epsilon)
    return (widened(grads) * channels(factor, grads)).to(grads.dtype)


@host_kernel("BNTrainingUpdateGrad", "BN3DTrainingUpdateGrad")
def bn_training_update_grad(grads: T, x: T, batch_mean: T, batch_variance: T, *, epsilon: float = 1e-4) -> tuple[T, T]:
    normal = _normalized(x, batch_mean, batch_variance, epsilon)
    dims = [0, *range(2, x.dim())]
    return (widened(grads) * normal).sum(dims), widened(grads).sum(dims)


def _normalized(x: T, mean: T, variance: T, epsilon: float) -> T:
    return (widened(x) - channels(mean, x)) * torch.rsqrt(channels(variance, x) + epsilon)


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
    factor = widened(scale) * torch.rsqrt(widened(batch_variance) + epsilon)
    centered = widened(grads) - channels(diff_offset, x) / count - normal * channels(diff_scale, x) / count
    return (channels(factor, x) * centered).to(grads.dtype)


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
        widened(dy),
        widened(x),
        widened(weight),
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


@host_kernel("BNTrainingReduce", "BatchNormReduce")
def bn_training_reduce(x: T) -> tuple[T, T]:
    """Return the sum of each channel, and the sum of its squares."""
    dims = [0, *range(2, x.dim())]
    return widened(x).sum(dims), widened(x).square().sum(dims)

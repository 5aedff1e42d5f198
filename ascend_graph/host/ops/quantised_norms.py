"""Root-mean-square normalization with its result quantised, and its gradient."""

from __future__ import annotations

import torch

from ascend_graph.host.ops.normalization import rms_norm_grad
from ascend_graph.host.ops.quantisation import INT8, dynamic, fitted, saturated
from ascend_graph.host.ops.registry import host_kernel

T = torch.Tensor


def normalised(x: T, gamma: T, beta: T | None, epsilon: float) -> T:
    if x.shape[x.dim() - gamma.dim() :] != gamma.shape:
        raise ValueError(f"gamma of shape {tuple(gamma.shape)} is not the end of the input's, {tuple(x.shape)}")
    wide = x.float()
    y = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon) * gamma.float()
    return y if beta is None else y + beta.float()


@host_kernel("AddRmsNormDynamicQuant")
def add_rms_norm_dynamic_quant(
    x1: T,
    x2: T,
    gamma: T,
    smooth_scale1: T | None = None,
    smooth_scale2: T | None = None,
    beta: T | None = None,
    *,
    epsilon: float = 1e-6,
    output_mask: list[bool] | None = None,
    dst_type: int = INT8,
) -> tuple[T, T, T, T, T]:
    """The norm of a sum, quantised by one or two smoothing scales; results that are not asked for are empty."""
    x = x1 + x2
    y = normalised(x, gamma, beta, epsilon)
    wanted = output_mask or [True, smooth_scale1 is not None and smooth_scale2 is not None]
    nothing = (fitted(y[:0], dst_type).flatten(), y.new_empty(0))

    def quantised(smooth: T | None) -> tuple[T, T]:
        numbers, scale = dynamic(y if smooth is None else y * smooth.float(), dst_type)
        return numbers, scale.squeeze(-1)

    (y1, scale1), (y2, scale2) = (
        quantised(smooth) if is_wanted else nothing
        for smooth, is_wanted in zip((smooth_scale1, smooth_scale2), wanted, strict=True)
    )
    return y1, y2, x, scale1, scale2


@host_kernel("AddRmsNormQuant")
def add_rms_norm_quant(
    x1: T,
    x2: T,
    gamma: T,
    scales1: T,
    scales2: T | None = None,
    zero_points1: T | None = None,
    zero_points2: T | None = None,
    beta: T | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-6,
    div_mode: bool = True,
    dst_type: int = INT8,
) -> tuple[T, T, T]:
    """The norm of a sum, quantised by one or two scales; the second result is empty where it has none."""
    if axis != -1:
        raise ValueError(f"axis {axis} is not supported; -1 is")
    x = x1 + x2
    y = normalised(x, gamma, beta, epsilon)

    def quantised(scales: T | None, zero_points: T | None) -> T:
        if scales is None:
            return saturated(y, dst_type).new_empty(0)
        scaled = y / scales.float() if div_mode else y * scales.float()
        return saturated(scaled if zero_points is None else scaled + zero_points.float(), dst_type)

    return quantised(scales1, zero_points1), quantised(scales2, zero_points2), x


@host_kernel("RmsNormQuant")
def rms_norm_quant(
    x: T,
    gamma: T,
    scale: T,
    beta: T | None = None,
    offset: T | None = None,
    *,
    epsilon: float = 1e-6,
    div_mode: bool = False,
    dst_type: int = INT8,
) -> T:
    """The norm, multiplied or divided by the scale."""
    y = normalised(x, gamma, beta, epsilon)
    y = y / scale.float() if div_mode else y * scale.float()
    return saturated(y if offset is None else y + offset.float(), dst_type)


@host_kernel("RmsNormGradQuant")
def rms_norm_grad_quant(
    dy: T,
    x: T,
    rstd: T,
    gamma: T,
    scale_x: T,
    offset_x: T | None = None,
    *,
    quant_mode: str = "static",
    div_mode: bool = True,
    dst_type: int = INT8,
) -> tuple[T, T]:
    """The gradient, quantised by a given scale."""
    if quant_mode != "static":
        raise ValueError(f"quant_mode {quant_mode!r} is not supported; static is")
    dx, dgamma = rms_norm_grad(dy.float(), x.float(), rstd, gamma)
    scaled = dx / scale_x.float() if div_mode else dx * scale_x.float()
    return saturated(scaled if offset_x is None else scaled + offset_x.float(), dst_type), dgamma

"""Root-mean-square normalization with quantized results, and its gradient."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.checks import check_choice, check_last
from ascend_graph.host.kernels.nn.normalization import rms_norm_grad
from ascend_graph.host.kernels.quantization.quantize import INT8, dynamic, fitted, saturated
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


def normalized(x: T, gamma: T, beta: T | None, epsilon: float) -> T:
    check_last("gamma", gamma, x)
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
    """Normalize a sum and quantize it by one or two smoothing scales; results not requested are empty."""
    x = x1 + x2
    y = normalized(x, gamma, beta, epsilon)
    wanted = output_mask or [True, smooth_scale1 is not None and smooth_scale2 is not None]
    nothing = (fitted(y[:0], dst_type).flatten(), y.new_empty(0))

    def quantized(smooth: T | None) -> tuple[T, T]:
        numbers, scale = dynamic(y if smooth is None else y * smooth.float(), dst_type)
        return numbers, scale.squeeze(-1)

    (y1, scale1), (y2, scale2) = (
        quantized(smooth) if is_wanted else nothing
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
    """Normalize a sum and quantize it by one or two scales; without second scales that result is empty."""
    if axis != -1:
        raise ValueError(f"axis {axis} is not supported; -1 is")
    x = x1 + x2
    y = normalized(x, gamma, beta, epsilon)

    def quantized(scales: T | None, zero_points: T | None) -> T:
        if scales is None:
            return saturated(y, dst_type).new_empty(0)
        scaled = y / scales.float() if div_mode else y * scales.float()
        return saturated(scaled if zero_points is None else scaled + zero_points.float(), dst_type)

    return quantized(scales1, zero_points1), quantized(scales2, zero_points2), x


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
    """Normalize, multiply or divide by the scale, and quantize."""
    y = normalized(x, gamma, beta, epsilon)
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
    """Return the gradient, quantized by a given scale, and that of gamma."""
    check_choice("quant_mode", quant_mode, "static")
    dx, dgamma = rms_norm_grad(dy.float(), x.float(), rstd, gamma)
    scaled = dx / scale_x.float() if div_mode else dx * scale_x.float()
    return saturated(scaled if offset_x is None else scaled + offset_x.float(), dst_type), dgamma

"""Convolutions, pooling, resizing and sampling of images, in the layouts NCHW and NCDHW."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import torch
from torch.nn import functional as F

from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.kernels.checks import check_choice, refuse_given
from ascend_graph.host.kernels.registry import host_kernel
from ascend_graph.host.kernels.tensor.shape import ints

T = torch.Tensor
aten = torch.ops.aten

_INTERPOLATION = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDING = {"zeros": 0, "border": 1, "reflection": 2}


def _spatial(sizes: list[int], data_format: str) -> list[int]:
    """Return the sizes of the spatial dimensions out of one per dimension."""
    check_choice("data_format", data_format, "NCHW", "NCDHW")
    return sizes[2:]


def _padded(x: T, pads: list[int]) -> tuple[T, list[int]]:
    """Return PyTorch's padding, the same on both sides; uneven padding is applied to the tensor here."""
    before, after = pads[::2], pads[1::2]
    if before == after:
        return x, before
    return F.pad(x, [amount for pair in reversed(list(zip(before, after, strict=True))) for amount in pair]), [0] * len(
        before
    )


def _symmetric(pads: list[int]) -> list[int]:
    if pads[::2] != pads[1::2]:
        raise ValueError(f"pads {pads} must be the same before and after each dimension")
    return pads[::2]


@host_kernel("Conv2D", "Conv3D", "Conv2DV2", "Conv3DV2", ignores=("offset_x", "pad_mode", "enable_hf32"))
def conv(
    x: T,
    filter: T,
    bias: T | None = None,
    offset_w: T | None = None,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int] | None = None,
    groups: int = 1,
    data_format: str = "NHWC",
) -> T:
    refuse_given("quantized weights are not supported", offset_w=offset_w)
    x, padding = _padded(x, pads)
    steps = _spatial(dilations or [1] * x.dim(), data_format)
    return torch.convolution(
        x, filter, bias, _spatial(strides, data_format), padding, steps, False, [0] * len(steps), groups
    )


@host_kernel("Conv2DTranspose", "Conv3DTranspose", values=("input_size",), ignores=("offset_x",))
def conv_transpose(
    input_size: T,
    x: T,
    filter: T,
    bias: T | None = None,
    offset_w: T | None = None,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int] | None = None,
    groups: int = 1,
    data_format: str = "NHWC",
    output_padding: list[int] | None = None,
) -> T:
    refuse_given("quantized weights are not supported", offset_w=offset_w)
    steps = _spatial(dilations or [1] * x.dim(), data_format)
    extra = _spatial(output_padding or [0] * x.dim(), data_format)
    y = torch.convolution(x, filter, bias, _spatial(strides, data_format), _symmetric(pads), steps, True, extra, groups)
    if list(y.shape) != ints(input_size):
        raise ValueError(f"input_size is {ints(input_size)}; expected {list(y.shape)}, the shape of the result")
    return y


def _backward(
    grad: T, x: T, filter: T, strides: list[int], pads: list[int], dilations: list[int], groups: int, wanted: int
) -> T:
    mask = [i == wanted for i in range(3)]
    padding = _symmetric(pads)
    zeros = [0] * len(padding)
    result: T = aten.convolution_backward(
        grad, x, filter, None, strides, padding, dilations, False, zeros, groups, mask
    )[wanted]
    return result


@host_kernel("Conv2DBackpropInput", "Conv3DBackpropInput", values=("input_size",))
def conv_backprop_input(
    input_size: T,
    filter: T,
    out_backprop: T,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int] | None = None,
    groups: int = 1,
    data_format: str = "NHWC",
) -> T:
    x = out_backprop.new_empty(ints(input_size))
    steps = _spatial(dilations or [1] * x.dim(), data_format)
    return _backward(out_backprop, x, filter, _spatial(strides, data_format), pads, steps, groups, 0)


@host_kernel("Conv2DBackpropFilter", "Conv3DBackpropFilter", values=("filter_size",))
def conv_backprop_filter(
    x: T,
    filter_size: T,
    out_backprop: T,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int] | None = None,
    groups: int = 1,
    data_format: str = "NHWC",
) -> T:
    filter = x.new_empty(ints(filter_size))
    steps = _spatial(dilations or [1] * x.dim(), data_format)
    # GE's gradient of a filter is float32 whatever the input is: it is not rounded to the input's dtype on the way.
    wide = (out_backprop.float(), x.float(), filter.float())
    return _backward(*wide, _spatial(strides, data_format), pads, steps, groups, 1)


@host_kernel("DepthwiseConv2DBackpropInput", values=("input_size",))
def depthwise_conv_backprop_input(
    input_size: T,
    filter: T,
    out_backprop: T,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int] | None = None,
    data_format: str = "NHWC",
) -> T:
    x = out_backprop.new_empty(ints(input_size))
    steps = _spatial(dilations or [1] * x.dim(), data_format)
    weight = filter.transpose(0, 1).reshape(-1, 1, *filter.shape[2:])  # from [filters of a channel, channels, …]
    return _backward(out_backprop, x, weight, _spatial(strides, data_format), pads, steps, x.size(1), 0)


@host_kernel("DepthwiseConv2DBackpropFilter", values=("filter_size",))
def depthwise_conv_backprop_filter(
    input: T,
    filter_size: T,
    out_backprop: T,
    *,
    strides: list[int],
    pads: list[int],
    dilations: list[int] | None = None,
    data_format: str = "NHWC",
) -> T:
    count, channels, *kernel = ints(filter_size)
    weight = input.new_empty(channels * count, 1, *kernel)
    steps = _spatial(dilations or [1] * input.dim(), data_format)
    wide = (out_backprop.float(), input.float(), weight.float())
    grad = _backward(*wide, _spatial(strides, data_format), pads, steps, channels, 1)
    return grad.reshape(channels, count, *kernel).transpose(0, 1).contiguous()


@host_kernel("AvgPoolV2")
def avg_pool(
    x: T,
    *,
    ksize: list[int],
    strides: list[int],
    padding_mode: str = "CALCULATED",
    pads: list[int] = [0, 0, 0, 0],
    data_format: str = "NCHW",
    global_pooling: bool = False,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: int = 0,
) -> T:
    if global_pooling:
        return x.mean([2, 3], keepdim=True)
    kernel, stride, padding = _window(x.shape, ksize, strides, padding_mode, pads, data_format)
    return F.avg_pool2d(x, kernel, stride, padding, ceil_mode, not exclusive, divisor_override or None)


@host_kernel("AvgPoolV2Grad", values=("orig_input_shape",))
def avg_pool_grad(
    orig_input_shape: T,
    input_grad: T,
    *,
    ksize: list[int],
    strides: list[int],
    padding_mode: str = "CALCULATED",
    pads: list[int] = [0, 0, 0, 0],
    data_format: str = "NCHW",
    global_pooling: bool = False,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: int = 0,
) -> T:
    x = input_grad.new_empty(ints(orig_input_shape))
    if global_pooling:
        return (input_grad / (x.size(-1) * x.size(-2))).expand(x.shape).contiguous()
    kernel, stride, padding = _window(x.shape, ksize, strides, padding_mode, pads, data_format)
    return aten.avg_pool2d_backward(
        input_grad, x, kernel, stride, padding, ceil_mode, not exclusive, divisor_override or None
    )


def _window(
    shape: torch.Size, ksize: list[int], strides: list[int], mode: str, pads: list[int], data_format: str
) -> tuple[list[int], list[int], list[int]]:
    kernel, stride = _spatial(ksize, data_format), _spatial(strides, data_format)
    if mode == "VALID":
        return kernel, stride, [0, 0]
    if mode != "CALCULATED":
        raise ValueError(f"padding_mode {mode!r} is not supported for {list(shape)}; CALCULATED and VALID are")
    return kernel, stride, _symmetric(pads)


@host_kernel("AdaptiveAvgPool2d")
def adaptive_avg_pool(x: T, *, output_size: list[int]) -> T:
    return torch.nn.functional.adaptive_avg_pool2d(x, (output_size[0], output_size[1]))


@host_kernel("AdaptiveAvgPool2dGrad")
def adaptive_avg_pool_grad(input_grad: T, *, orig_input_shape: list[int]) -> T:
    return aten._adaptive_avg_pool2d_backward(input_grad, input_grad.new_empty(orig_input_shape))


@host_kernel("MaxPoolWithArgmaxV1")
def max_pool_with_argmax_v1(
    x: T,
    *,
    ksize: list[int],
    strides: list[int],
    pads: list[int],
    dtype: int = 3,
    dilation: list[int] = [1, 1, 1, 1],
    ceil_mode: bool = False,
) -> tuple[T, T]:
    # The lists are NHWC, whatever the layout of the tensor is. A device gives the positions as bits; here they are
    # indices.
    window = (sizes[1:3] for sizes in (ksize, strides, pads, dilation))
    y, indices = aten.max_pool2d_with_indices(x, *window, ceil_mode)
    return y, indices.to(torch_dtype(dtype))


@host_kernel("MaxPoolGradWithArgmaxV1", ignores=("dtype",))
def max_pool_grad_with_argmax_v1(
    x: T,
    grad: T,
    argmax: T,
    *,
    ksize: list[int],
    strides: list[int],
    pads: list[int],
    dilation: list[int] = [1, 1, 1, 1],
    ceil_mode: bool = False,
) -> T:
    window = (sizes[1:3] for sizes in (ksize, strides, pads, dilation))
    return aten.max_pool2d_with_indices_backward(grad, x, *window, ceil_mode, argmax.to(torch.int64))


@host_kernel("MaxPoolWithArgmaxV3")
def max_pool_with_argmax_v3(
    x: T,
    *,
    ksize: list[int],
    strides: list[int],
    pads: list[int],
    dtype: int = 3,
    dilation: list[int] = [1, 1],
    ceil_mode: bool = False,
    data_format: str = "NCHW",
) -> tuple[T, T]:
    _spatial([], data_format)
    y, indices = aten.max_pool2d_with_indices(x, ksize, strides, pads, dilation, ceil_mode)
    return y, indices.to(torch_dtype(dtype))


@host_kernel("MaxPoolGradWithArgmaxV3", ignores=("dtype",))
def max_pool_grad_with_argmax_v3(
    x: T,
    grad: T,
    argmax: T,
    *,
    ksize: list[int],
    strides: list[int],
    pads: list[int],
    dilation: list[int] = [1, 1],
    ceil_mode: bool = False,
    data_format: str = "NCHW",
) -> T:
    _spatial([], data_format)
    return aten.max_pool2d_with_indices_backward(
        grad, x, ksize, strides, pads, dilation, ceil_mode, argmax.to(torch.int64)
    )


@host_kernel("MaxPool3DWithArgmaxV2")
def max_pool_3d_with_argmax(
    x: T,
    *,
    ksize: list[int],
    strides: list[int],
    pads: list[int],
    dilation: list[int] = [1, 1, 1],
    ceil_mode: bool = False,
    data_format: str = "NCDHW",
    dtype: int = 3,
) -> tuple[T, T]:
    _spatial([], data_format)
    y, indices = aten.max_pool3d_with_indices(x, ksize, strides, pads, dilation, ceil_mode)
    return y, indices.to(torch_dtype(dtype))


@host_kernel("ResizeNearestNeighborV2", values=("size",))
def resize_nearest(x: T, size: T, *, align_corners: bool = False, half_pixel_centers: bool = False) -> T:
    _plain_nearest(align_corners, half_pixel_centers)
    return F.interpolate(x, ints(size), mode="nearest")


@host_kernel("ResizeNearestNeighborV2Grad", values=("size",))
def resize_nearest_grad(grads: T, size: T, *, align_corners: bool = False, half_pixel_centers: bool = False) -> T:
    _plain_nearest(align_corners, half_pixel_centers)
    original = [*grads.shape[:2], *ints(size)]
    return aten.upsample_nearest2d_backward(grads, list(grads.shape[2:]), original, None, None)


def _plain_nearest(align_corners: bool, half_pixel_centers: bool) -> None:
    if align_corners or half_pixel_centers:
        raise ValueError(
            "align_corners and half_pixel_centers are not supported with the nearest neighbor; expected False for both"
        )


@host_kernel("GridSampler2D")
def grid_sampler_2d(
    x: T, grid: T, *, interpolation_mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> T:
    return aten.grid_sampler_2d(x, grid, _INTERPOLATION[interpolation_mode], _PADDING[padding_mode], align_corners)


@host_kernel("GridSampler2DGrad")
def grid_sampler_2d_grad(
    grad: T,
    x: T,
    grid: T,
    *,
    interpolation_mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> tuple[T, T]:
    result: tuple[T, T] = aten.grid_sampler_2d_backward(
        grad, x, grid, _INTERPOLATION[interpolation_mode], _PADDING[padding_mode], align_corners, [True, True]
    )
    return result


@host_kernel("GridSampler3D")
def grid_sampler_3d(
    x: T,
    grid: T,
    *,
    interpolation_mode: str = "bilinear",
    padding_mode: str = "zeros",
    data_format: str = "NCDHW",
    align_corners: bool = False,
) -> T:
    _spatial([], data_format)
    return aten.grid_sampler_3d(x, grid, _INTERPOLATION[interpolation_mode], _PADDING[padding_mode], align_corners)

"""Convolutions of 8-bit numbers, by a scale for each channel of the result.

Documented: https://gitcode.com/cann/ops-nn, conv/quant_conv2d/README.md and
conv/convolution_forward/docs/aclnnQuantConvolution.md. Sums are float64, so their order does not matter.
"""

from __future__ import annotations

import os

import torch

from ascend_graph.environment import processor
from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.kernels.checks import check_dtype
from ascend_graph.host.kernels.quantization import hifloat8
from ascend_graph.host.kernels.quantization.packed_parameters import unpacked_parameter
from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor

_HIFLOAT8 = 34
_PACKED = (torch.int64, torch.uint64)
_TARGETS = {
    torch.int8: (torch.float16,),
    torch.float8_e4m3fn: (torch.float16, torch.bfloat16, torch.float32),
    torch.uint8: (torch.float16, torch.bfloat16, torch.float32),  # HiFloat8
}
#: Bounds of stride, padding and dilation in an image's dimensions.
_MOST = {"stride": (1, 63), "padding": (0, 255), "dilation": (1, 255)}


def _numbers(x: T, name: str) -> T:
    if x.dtype in (torch.int8, torch.float8_e4m3fn):
        return x.double()
    if x.dtype is torch.uint8 and getattr(x, "ge_dtype", 0) == _HIFLOAT8:
        return hifloat8.decoded(x).double()
    raise ValueError(f"{name} is {x.dtype}; int8, float8_e4m3fn and hifloat8 are supported")


@host_kernel("QuantConvolution")
def quant_convolution(
    input: T,
    weight: T,
    scale: T,
    bias: T | None = None,
    *,
    dtype: int,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int = 1,
    offset_x: int = 0,
    round_mode: str = "rint",
) -> T:
    """Convolve images by packed scales; the padding value is ``offset_x``, int8's code for 0.

    The name and the order of parameters are the aclnn function's.
    """
    if (name := processor(os.environ)) != "Ascend950PR_9589":
        raise ValueError(
            f"{name}, which the host stands for, does not have this operator by the documents; expected "
            "ASCEND_GRAPH_HOST_SOC=Ascend950PR_9589, and images (volumes are not supported)"
        )
    if input.dim() != 4 or weight.dim() != 4:
        raise ValueError(
            f"input {tuple(input.shape)}, weight {tuple(weight.shape)}: images, of four dimensions, are supported"
        )
    check_dtype("input", input, "weight", weight.dtype)
    x, filters = _numbers(input, "input"), _numbers(weight, "weight")
    for name, values in {"stride": stride, "padding": padding, "dilation": dilation}.items():
        least, most = _MOST[name]
        if len(values) != 2 or not all(least <= value <= most for value in values):
            raise ValueError(f"{name} {values}: two numbers from {least} to {most} are expected")
    if groups <= 0 or groups * weight.size(1) != input.size(1) or weight.size(0) % groups:
        raise ValueError(
            f"weight {tuple(weight.shape)} of input {tuple(input.shape)}: expected as many channels of input as "
            f"groups, {groups}, times those of weight, and filters in equal groups"
        )
    if scale.shape != (weight.size(0),) or scale.dtype not in _PACKED:
        raise ValueError(
            f"scale {tuple(scale.shape)} of {scale.dtype}: [{weight.size(0)}] of int64 is expected (npu_trans_quant_param)"
        )
    if bias is not None:
        raise ValueError(
            "bias with packed scales: documents add it after the scale, torch_npu's matmuls before; without bias it is supported"
        )
    if not -128 <= offset_x <= 127 or (offset_x and input.dtype is not torch.int8):
        raise ValueError(f"offset_x {offset_x} of {input.dtype}: expected -128 to 127 with int8, and 0 otherwise")
    target = torch_dtype(dtype)
    if target not in (allowed := _TARGETS[input.dtype]) or dtype == _HIFLOAT8 or round_mode not in ("rint", ""):
        raise ValueError(
            f"the result is dtype {dtype} ({', '.join(map(str, allowed))}), round_mode {round_mode!r} (rint): no others are supported; "
            "documents do not say what becomes of numbers beyond hifloat8's largest"
        )
    (rows, columns), value = padding, float(offset_x)
    x = torch.nn.functional.pad(x, (columns, columns, rows, rows), value=value)
    y = torch.nn.functional.conv2d(
        x, filters, None, (stride[0], stride[1]), 0, (dilation[0], dilation[1]), groups
    ) * unpacked_parameter(scale)[0].double().reshape(-1, 1, 1)
    return y.to(target)


@host_kernel("QuantConv2D")
def quant_conv2d(
    x: T,
    filter: T,
    scale: T,
    bias: T | None = None,
    offset: T | None = None,
    *,
    dtype: int,
    strides: list[int],
    pads: list[int],
    dilations: list[int] = [1, 1, 1, 1],
    groups: int = 1,
    data_format: str = "NHWC",
    offset_x: int = 0,
    round_mode: str = "rint",
) -> T:
    if data_format != "NCHW" or offset is not None or strides[:2] != [1, 1] or dilations[:2] != [1, 1]:
        raise ValueError(
            f"data_format {data_format!r} (NCHW), offset (none), strides {strides}, dilations {dilations} ([1, 1, …]): no others are supported"
        )
    if pads[::2] != pads[1::2]:
        raise ValueError(f"pads {pads} must be the same before and after each dimension")
    return quant_convolution(
        x,
        filter,
        scale,
        bias,
        dtype=dtype,
        stride=strides[2:],
        padding=pads[::2],
        dilation=dilations[2:],
        groups=groups,
        offset_x=offset_x,
        round_mode=round_mode,
    )

"""Convolutions of 8 bits: https://gitcode.com/cann/ops-nn, conv/quant_conv2d/README.md and
conv/convolution_forward/docs/aclnnQuantConvolution.md."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
import torch_npu
from float_codes import E4M3, HIF8
from float_codes import drawn as drawn_codes
from operator_modes import ASCEND_950, check

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.runtime.aclnn_functions.call import prepare

T = torch.Tensor


def packed(scale: T) -> T:
    """As npu_trans_quant_param: the upper 19 bits of a float32."""
    return (scale.view(torch.int32).long() & 0xFFFFE000) | 1 << 46


def reference(x: T, w: T, scale: T, stride: Any, pad: Any, dilation: Any, groups: int, around: int) -> T:
    """Place by place, in float64."""
    batch, channels, height, width = x.shape
    filled = torch.full((batch, channels, height + 2 * pad[0], width + 2 * pad[1]), float(around)).double()
    filled[:, :, pad[0] : pad[0] + height, pad[1] : pad[1] + width] = x
    down, across = w.shape[2:]
    rows = (filled.size(2) - dilation[0] * (down - 1) - 1) // stride[0] + 1
    columns = (filled.size(3) - dilation[1] * (across - 1) - 1) // stride[1] + 1
    y = torch.zeros(batch, len(w), rows, columns).double()
    own, each = w.size(1), len(w) // groups
    for channel, i, j in product(range(len(w)), range(rows), range(columns)):
        first = channel // each * own
        top, left = i * stride[0], j * stride[1]
        part = filled[:, first : first + own, top :: dilation[0], left :: dilation[1]][:, :, :down, :across]
        y[:, channel, i, j] = (part * w[channel]).sum((1, 2, 3))
    kept = (scale.view(torch.int32) & -0x2000).view(torch.float32)
    return y * kept.double().reshape(-1, 1, 1)


CASES = [
    # stride, padding, dilation, groups, what is around
    ((1, 1), (0, 0), (1, 1), 1, 0),
    ((2, 1), (1, 2), (1, 1), 1, 0),
    ((1, 2), (2, 1), (2, 1), 2, -7),
]


@ASCEND_950
@pytest.mark.parametrize("case", CASES)
def test_int8(case: Any) -> None:
    stride, pad, dilation, groups, around = case
    x, w = (
        torch.randint(-128, 128, (2, 4, 6, 7)).to(torch.int8),
        torch.randint(-128, 128, (6, 4 // groups, 3, 2)).to(torch.int8),
    )
    scale = torch.rand(6) / 1000
    check(
        lambda x, w, s: torch_npu.npu_quant_conv2d(
            x, w, s, stride, pad, dilation, groups, offset_x=around, output_dtype=torch.float16
        ),
        [x, w, packed(scale)],
        reference(x, w, scale, *case).half(),
        "eager captured npugraph_ex",
    )


@ASCEND_950
@pytest.mark.parametrize("kind", [E4M3, HIF8])
@pytest.mark.parametrize("target", [torch.float16, torch.bfloat16, torch.float32])
def test_floats_of_8_bits(kind: Any, target: torch.dtype) -> None:
    (x, a), (w, b) = drawn_codes(kind, 2, 2, 5, 6), drawn_codes(kind, 3, 2, 2, 3)
    scale, case = torch.rand(3), ((1, 2), (1, 0), (1, 1), 1, 0)
    own = {"input_dtype": HIF8, "weight_dtype": HIF8} if kind == HIF8 else {}
    check(
        lambda x, w, s: torch_npu.npu_quant_conv2d(x, w, s, *case[:4], output_dtype=target, **own),
        [x, w, packed(scale)],
        reference(torch.from_numpy(a), torch.from_numpy(b), scale, *case).to(target),
        "eager captured npugraph_ex",
    )


@ASCEND_950
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"bias": torch.ones(3, dtype=torch.int32)}, "bias with packed scales"),
        ({"scale": torch.ones(3)}, r"scale \(3,\) of torch.float32: \[3\] of int64"),
        ({"strides": [64, 1]}, r"stride \[64, 1\]: two numbers from 1 to 63"),
        ({"dilations": [256, 1], "pads": [255, 0]}, r"dilation \[256, 1\]: two numbers from 1 to 255"),
        ({"groups": 2}, "expected as many channels of input as groups, 2, times those of weight"),
        ({"offset_x": 200}, "offset_x 200"),
        ({"output_dtype": torch.bfloat16}, r"the result is dtype 27 \(torch.float16\)"),
        ({"round_mode": "round"}, r"round_mode 'round' \(rint\)"),
    ],
)
def test_what_is_refused(options: dict[str, Any], text: str) -> None:
    given = {
        "input": torch.ones(1, 2, 5, 5, dtype=torch.int8),
        "weight": torch.ones(3, 2, 2, 2, dtype=torch.int8),
        "scale": packed(torch.ones(3)),
        "output_dtype": torch.float16,
        **options,
    }
    with pytest.raises(RuntimeError, match=text):
        torch_npu.npu_quant_conv2d(**{k: v.npu() if isinstance(v, T) else v for k, v in given.items()})


def test_it_is_of_newer_processors() -> None:
    x, w, scale = torch.ones(1, 2, 5, 5).to(torch.int8), torch.ones(3, 2, 2, 2).to(torch.int8), packed(torch.ones(3))
    text = "Ascend910B1, which the host stands for, does not have this operator by the documents"
    with pytest.raises(RuntimeError, match=text):
        torch_npu.npu_quant_conv2d(x.npu(), w.npu(), scale.npu(), output_dtype=torch.float16)
    sizes = [[1, 1], [0, 0], [1, 1], False, [], 1, 0, "rint"]
    with pytest.raises(HostRuntimeError, match=text):
        prepare("QuantConvolution", [x, w, None, scale, None, *sizes, torch.empty(1, 3, 4, 4).half()])

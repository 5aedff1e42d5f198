"""The operator in a GE graph with meta function and converter written by hand, as the document has them."""

from typing import Any

import torch
import torchair
from torch.library import impl
from torch_npu.op_plugin.meta._meta_registrations import m
from torch_npu.testing.testcase import TestCase, run_tests
from torchair import register_fx_node_ge_converter
from torchair.ge import Tensor

import op_plugin_patch_lib  # defines torch.ops.npu.npu_add_custom


@impl(m, "npu_add_custom")
def npu_add_custom_meta(x, y):
    return torch.empty_like(x)


@register_fx_node_ge_converter(torch.ops.npu.npu_add_custom.default)
def convert_npu_add_custom(x: Tensor, y: Tensor, z: Tensor = None, meta_outputs: Any = None):
    return torchair.ge.custom_op("AddCustom", inputs={"x": x, "y": y}, outputs=["z"])


class TestCustomAdd(TestCase):
    def test_add_custom(self):
        class Network(torch.nn.Module):
            def forward(self, x, y):
                return torch.ops.npu.npu_add_custom(x, y)

        x = torch.rand([8, 2048], dtype=torch.float16)
        y = torch.rand([8, 2048], dtype=torch.float16)
        model = torch.compile(Network().npu(), fullgraph=True, backend=torchair.get_npu_backend())
        self.assertRtolEqual(model(x.npu(), y.npu()), x + y)


if __name__ == "__main__":
    run_tests()

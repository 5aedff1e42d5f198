"""The operator in a GE graph with the converter written by hand, as the document has it."""

from typing import Any

import custom_ops
import torch
import torchair
from auto_generated_ge_raw_custom_ops import AddCustom
from torch_npu.testing.testcase import TestCase, run_tests
from torchair.ge_concrete_graph.fx2ge_converter import register_fx_node_ge_converter
from torchair.ge_concrete_graph.ge_graph import Tensor
from torchair.ge_concrete_graph.utils import dtype_promote


@register_fx_node_ge_converter(torch.ops.myops.my_op.default)
def conveter_custom_op(input1: Tensor, input2: Tensor, out: Tensor = None, meta_outputs: Any = None):
    input1, input2 = dtype_promote(input1, input2, target_dtype=meta_outputs.dtype)
    return AddCustom(input1, input2)


class TestCustomAdd(TestCase):
    def test_add_custom_graph(self):
        class PlugInAdd(torch.nn.Module):
            def forward(self, input1, input2):
                return torch.ops.myops.my_op(input1, input2)

        x = torch.rand([8, 2048], dtype=torch.float16)
        y = torch.rand([8, 2048], dtype=torch.float16)
        model = torch.compile(PlugInAdd().npu(), backend=torchair.get_npu_backend())
        with torch.no_grad():
            output = model(x.npu(), y.npu())
        self.assertRtolEqual(output, x + y)


if __name__ == "__main__":
    run_tests()

"""The operator in every graph mode, forward and backward, with the one call of custom_ops.graph."""

import torch
import torchair
from torchair import ge
from torch_npu.testing.testcase import TestCase, run_tests

import custom_ops.graph


@torchair.register_fx_node_ge_converter(torch.ops.myops.my_op_backward.default)
def convert_backward(grad, meta_outputs=None):
    return tuple(ge.custom_op("Identity", inputs={"x": grad}, outputs=["y"]) for _ in range(2))


def model(x, y):
    return torch.relu(torch.ops.myops.my_op(x, y) - 1).sum()


class TestRegistered(TestCase):
    def test_every_mode(self):
        modes = ((torchair.get_npu_backend(), False), (torchair.get_npu_backend(), True), ("npugraph_ex", False))
        for backend, dynamic in modes:
            torch._dynamo.reset()
            compiled = torch.compile(model, backend=backend, dynamic=dynamic, fullgraph=True)
            for rows in (4, 9):
                x, y = torch.rand(2, rows, 33, dtype=torch.float16)
                device = [t.npu().requires_grad_() for t in (x, y)]
                host = [t.requires_grad_() for t in (x.clone(), y.clone())]
                result, expected = compiled(*device), model_on_cpu(*host)
                result.backward()
                expected.backward()
                self.assertRtolEqual(result, expected, prec16=0.01)
                self.assertRtolEqual(device[0].grad, host[0].grad)
                self.assertRtolEqual(device[1].grad, host[1].grad)


def model_on_cpu(x, y):
    return torch.relu(torch.add(x, y) - 1).sum()


if __name__ == "__main__":
    run_tests()

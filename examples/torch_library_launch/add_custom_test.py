import torch
import torch_npu
from torch_npu.testing.testcase import TestCase, run_tests

torch.npu.config.allow_internal_format = False
torch.ops.load_library("build/libadd_custom.so")


class TestCustomAdd(TestCase):
    def test_add_custom_ops(self):
        length = [8, 2048]
        x = torch.rand(length, device="cpu", dtype=torch.float16)
        y = torch.rand(length, device="cpu", dtype=torch.float16)
        output = torch.ops.ascendc_ops.ascendc_add(x.npu(), y.npu())
        self.assertRtolEqual(output, torch.add(x, y))


if __name__ == "__main__":
    run_tests()

import torch
import torch_npu
from torch_npu.testing.testcase import TestCase, run_tests

import op_plugin_patch_lib  # defines torch.ops.npu.npu_add_custom

torch.npu.config.allow_internal_format = False


class TestCustomAdd(TestCase):
    def test_add_custom(self):
        length = [8, 2048]
        x = torch.rand(length, device="cpu", dtype=torch.float16)
        y = torch.rand(length, device="cpu", dtype=torch.float16)
        output = torch.ops.npu.npu_add_custom(x.npu(), y.npu()).cpu()
        self.assertRtolEqual(output, x + y)


if __name__ == "__main__":
    run_tests()

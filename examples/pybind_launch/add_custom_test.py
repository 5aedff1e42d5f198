import os
import sys

import torch
import torch_npu
from torch_npu.testing.testcase import TestCase, run_tests

sys.path.append(os.getcwd())
import add_custom

torch.npu.config.allow_internal_format = False


class TestCustomAdd(TestCase):
    def test_add_custom_ops(self):
        length = [8, 2048]
        x = torch.rand(length, device="cpu", dtype=torch.float16)
        y = torch.rand(length, device="cpu", dtype=torch.float16)
        x_npu = x.npu()
        y_npu = y.npu()
        output = add_custom.run_add_custom(x_npu, y_npu)
        cpuout = torch.add(x, y)
        self.assertRtolEqual(output, cpuout)


if __name__ == "__main__":
    run_tests()

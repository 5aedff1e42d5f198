import sys

sys.path.append("../../output/python_extension")
import torch_ascendct
import torch
import torch_npu
from torch_npu.testing.testcase import TestCase, run_tests


class AscendCTTest(TestCase):
    def test_basic_matmul(self):
        a = torch.ones((2, 3)).to(torch.float16).npu()
        b = torch.ones((3, 4)).to(torch.float16).npu()
        result = torch_ascendct.basic_matmul(a, b, "float16")
        golden = torch.mm(a, b)
        self.assertRtolEqual(result, golden)

    def test_basic_matmul_torch_lib(self):
        a = torch.ones((2, 3)).to(torch.float16).npu()
        b = torch.ones((3, 4)).to(torch.float16).npu()
        torch.ops.load_library("../../output/python_extension/libascendct_torch.so")
        result = torch.ops.AscendCTTorch.basic_matmul(a, b, "float16")
        golden = torch.mm(a, b)
        self.assertRtolEqual(result, golden)


if __name__ == "__main__":
    run_tests()

"""Run operators whose eager half launches a Triton kernel in GE graphs: ``python graph_program.py op_proto.h``."""

import sys

import package_kernel
import torch
import torchair

import ascend_graph


@torch.library.custom_op("ascend_graph_tests::scaled_add", mutates_args={})
def scaled_add(x: torch.Tensor, y: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    return package_kernel.scaled_add(x, y, scale=scale)


@scaled_add.register_fake
def _(x, y, scale=1.0):
    return torch.empty_like(x)


@torch.library.triton_op("ascend_graph_tests::triton_scaled_add", mutates_args={})
def triton_scaled_add(x: torch.Tensor, y: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    z = torch.empty_like(x)
    kernel = torch.library.wrap_triton(package_kernel.scaled_add_kernel)
    kernel[(-(-x.numel() // 64),)](x, y, z, x.numel(), scale, block=64)
    return z


ascend_graph.load_prototypes(sys.argv[1])
x, y = torch.randn(300).npu(), torch.randn(300).npu()
expected = (x * 2 + y) * 3
for operator in (scaled_add, triton_scaled_add):
    registered = ascend_graph.register_op("TritonScaledAdd", eager=operator._opoverload)
    assert torch.allclose(operator(x, y, 2.0) * 3, expected)
    for dynamic in (False, True):
        compiled = torch.compile(
            lambda a, b, operator=operator: operator(a, b, 2.0) * 3,
            backend=torchair.get_npu_backend(),
            fullgraph=True,
            dynamic=dynamic,
        )
        assert torch.allclose(compiled(x, y), expected)
        assert torch.allclose(compiled(x[:170], y[:170]), expected[:170])
    registered.unregister()
print("equal")

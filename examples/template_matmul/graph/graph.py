"""basic_matmul in graphs: one call, then torch.compile in every mode, for every dtype of the template."""

import torch
import torchair

import ascend_graph

torch.ops.load_library("../output/python_extension/libascendct_torch.so")

DTYPES = {"float16": torch.float16, "bf16": torch.bfloat16, "float32": torch.float32}

# The output's dtype is named by a string.
ascend_graph.register_op(
    "BasicMatmul",
    eager=torch.ops.AscendCTTorch.basic_matmul,
    shape='mat1[m, k], mat2[k, n] -> y[m, n]: float16 if outDType == "float16" else '
    'bfloat16 if outDType == "bf16" else float32',
)


def model(a, b, dtype):
    return torch.relu(torch.ops.AscendCTTorch.basic_matmul(a, b, dtype))


for backend, dynamic in (
    (torchair.get_npu_backend(), False),
    (torchair.get_npu_backend(), True),
    ("npugraph_ex", False),
):
    for name, dtype in DTYPES.items():
        torch._dynamo.reset()
        compiled = torch.compile(model, backend=backend, dynamic=dynamic, fullgraph=True)
        for m, k, n in ((2, 3, 4), (33, 65, 17)):
            a, b = torch.randn(m, k, dtype=dtype), torch.randn(k, n, dtype=dtype)
            expected = torch.relu(a.float() @ b.float()).to(dtype)
            torch.testing.assert_close(compiled(a.npu(), b.npu(), name).cpu(), expected, rtol=1e-2, atol=1e-2)
        print(f"{backend if isinstance(backend, str) else 'GE'}, dynamic={dynamic}, {name}: agrees with the CPU")

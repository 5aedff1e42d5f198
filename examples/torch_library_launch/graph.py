"""The operator in graphs: one call, then torch.compile in GE mode (static and dynamic) and in aclgraph mode."""

import torch
import torchair

import ascend_graph

torch.ops.load_library("build/libadd_custom.so")

# The prototype is found in the operator package, whose kernel is the one that eager calls launch.
ascend_graph.register_op("AddCustom", eager=torch.ops.ascendc_ops.ascendc_add, shape="x[...], y[...] -> z[...]")


def model(x, y):
    return torch.relu(torch.ops.ascendc_ops.ascendc_add(x, y) - 1)


for backend, dynamic in (
    (torchair.get_npu_backend(), False),
    (torchair.get_npu_backend(), True),
    ("npugraph_ex", False),
):
    torch._dynamo.reset()
    compiled = torch.compile(model, backend=backend, dynamic=dynamic, fullgraph=True)
    for rows in (8, 16):
        x, y = torch.rand(2, rows, 2048, dtype=torch.float16)
        torch.testing.assert_close(compiled(x.npu(), y.npu()).cpu(), torch.relu(x + y - 1))
    print(f"{backend if isinstance(backend, str) else 'GE'}, dynamic={dynamic}: agrees with the CPU")

"""The operator in graphs: one call in place of meta function and converter, then torch.compile in every mode."""

import torch
import torchair

import ascend_graph
import op_plugin_patch_lib  # defines torch.ops.npu.npu_add_custom

# The prototype is found in the installed operator package.
ascend_graph.register_op("AddCustom", eager=torch.ops.npu.npu_add_custom, shape="x[*s], y[*s] -> z[*s]")


def model(x, y):
    return torch.relu(torch.ops.npu.npu_add_custom(x, y) - 1)


for backend, dynamic in (
    (torchair.get_npu_backend(), False),
    (torchair.get_npu_backend(), True),
    ("npugraph_ex", False),
):
    torch._dynamo.reset()
    compiled = torch.compile(model, backend=backend, dynamic=dynamic, fullgraph=True)
    for rows in (8, 9):
        x, y = torch.rand(2, rows, 33, dtype=torch.float16)
        torch.testing.assert_close(compiled(x.npu(), y.npu()).cpu(), torch.relu(x + y - 1))
    print(f"{backend if isinstance(backend, str) else 'GE'}, dynamic={dynamic}: agrees with the CPU")

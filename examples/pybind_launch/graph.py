"""The module's function in graphs: an operator around it, one call, then torch.compile in every mode.

A function bound with pybind has no schema, so no graph can hold it; PyTorch's torch.library gives it one.
"""

import torch
import torchair

import add_custom
import ascend_graph

torch.library.define("my_add::add_custom", "(Tensor x, Tensor y) -> Tensor")
torch.library.impl("my_add::add_custom", "PrivateUse1", add_custom.run_add_custom)

# The prototype is found in the operator package, whose kernel is the one that eager calls launch.
ascend_graph.register_op("AddCustom", eager=torch.ops.my_add.add_custom, shape="x[...], y[...] -> z[...]")


def model(x, y):
    return torch.relu(torch.ops.my_add.add_custom(x, y) - 1)


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

"""AddCustom from its operator package alone: one call, then eager, every graph mode, and gradients."""

import torch
import torchair

import ascend_graph

ascend_graph.register_op("AddCustom", shape="x[*s], y[*s] -> z[*s]", backward=lambda ctx, grad: (grad, grad))


def model(x, y):
    return torch.relu(torch.ops.ascend.add_custom(x, y) - 1)


npu_backend = torchair.get_npu_backend()
for backend, dynamic in ((None, False), (npu_backend, False), (npu_backend, True), ("npugraph_ex", False)):
    torch._dynamo.reset()
    function = torch.compile(model, backend=backend, dynamic=dynamic, fullgraph=True) if backend else model
    for dtype in (torch.float16, torch.float32):
        for rows in (4, 9):
            host = [torch.rand(rows, 33, dtype=dtype, requires_grad=True) for _ in range(2)]
            device = [t.detach().npu().requires_grad_() for t in host]
            expected, result = torch.relu(torch.add(*host) - 1), function(*device)
            torch.testing.assert_close(result.detach().cpu(), expected.detach())
            gradients = torch.autograd.grad(result.sum(), device), torch.autograd.grad(expected.sum(), host)
            for ours, theirs in zip(*gradients, strict=True):
                torch.testing.assert_close(ours.cpu(), theirs)
    name = {None: "eager", "npugraph_ex": "aclgraph"}.get(backend, "GE")
    print(f"{name}, dynamic={dynamic}: agrees with the CPU")

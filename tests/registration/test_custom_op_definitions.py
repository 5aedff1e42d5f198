"""What ``torch.library.custom_op`` returns, in the place of a torch operator, as in torch.library's functions."""

from __future__ import annotations

import pytest
import torch

import ascend_graph
from ascend_graph.checks.kinds.graph_checks import compile_for_ge_once
from ascend_graph.registration.registered import find_registered

pytestmark = pytest.mark.filterwarnings("default")
T = torch.Tensor


@pytest.fixture(scope="module", autouse=True)
def _ge_first() -> None:
    compile_for_ge_once()


@torch.library.custom_op("custom_op_definitions::cube", mutates_args=(), device_types="npu")
def cube(x: T) -> T:
    return x**3


@torch.library.custom_op("custom_op_definitions::cube_grad", mutates_args=(), device_types="npu")
def cube_grad(x: T, grad: T) -> T:
    return 3 * x**2 * grad


def test_a_definition_is_registered_checked_and_a_gradient() -> None:
    gradient = ascend_graph.register_kernel(eager=cube_grad, shape="x[*s], grad[*s] -> grad_x[*s]")
    registered = ascend_graph.register_kernel(eager=cube, shape="x[*s] -> y[*s]", backward=cube_grad)
    try:
        x = torch.tensor([1.0, 2.0]).npu().requires_grad_()
        for function in (cube, torch.compile(cube, backend="npugraph_ex", fullgraph=True)):
            (grad,) = torch.autograd.grad(function(x).sum(), x)
            assert grad.tolist() == [3, 12]
        assert find_registered(cube) is registered
        assert ascend_graph.opcheck(cube, checks=("runs", "arguments", "meta", "gradient"), count=2).ok
    finally:
        registered.unregister()
        gradient.unregister()

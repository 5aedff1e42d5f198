"""What a graph does not compute passes TorchAir by, whatever the compiler is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch._dynamo.backends.common import aot_autograd

from ascend_graph.registration.dimensions.dtensor_backend import passing_by


class Layer(nn.Module):
    """A product whose gradient takes the transposed weight, and x as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(3, 5))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight


@pytest.fixture(autouse=True)
def _reset() -> None:
    torch._dynamo.reset()


def compiled(layer: Layer, outputs: list[int], captures: bool) -> Any:
    """By a compiler that notes how many outputs it computes and, as a capture does, reads inputs as copies that it
    keeps."""

    def compiler(graph: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        (node,) = (n for n in graph.graph.nodes if n.op == "output")
        outputs.append(len(node.args[0]))
        return lambda *args: graph(*(a.clone() if captures and isinstance(a, Tensor) else a for a in args))

    def by(graph: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        return passing_by(compiler, graph, inputs)

    return torch.compile(layer, backend=aot_autograd(fw_compiler=by, bw_compiler=by), dynamic=False)


def test_inputs_and_views_of_them_are_the_callers_own() -> None:
    """So a weight that moves between forward and backward is read where it is then: the gradient is that of the
    weight there."""
    layer, outputs = Layer(), []
    x = torch.rand(2, 3, requires_grad=True)
    y = compiled(layer, outputs, captures=True)(x)
    layer.weight.data.mul_(3)  # seen through its storage alone
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.ones_like(y) @ layer.weight.detach().t())
    assert outputs[0] == 1  # y; the weight and x, which the backward pass takes, pass by


def test_views_of_other_sizes_are_the_same_elements() -> None:
    def compiler(graph: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        return graph

    seen = {}

    def by(graph: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        seen["run"] = passing_by(compiler, graph, inputs)
        return seen["run"]

    def views(x: Tensor) -> tuple[Tensor, ...]:
        return x[1:, ::2], x.t(), x + 1, x.view(-1)[3:]

    x = torch.arange(12.0).reshape(3, 4)
    torch.compile(views, backend=aot_autograd(fw_compiler=by), dynamic=False)(x)
    for given, expected in zip(seen["run"](x), views(x), strict=True):
        torch.testing.assert_close(given, expected)
        assert given.stride() == expected.stride()
    assert [r.untyped_storage()._cdata == x.untyped_storage()._cdata for r in seen["run"](x)] == [
        True,
        True,
        False,
        True,
    ]

"""Graphs that are only looked at: what they lack is said all at once, and nothing of them runs."""

from __future__ import annotations

import pytest
import torch

from ascend_graph.host import lint_graph
from ascend_graph.host.runtime.engine import structure

T = torch.Tensor


def function(x: T) -> T:
    x.add_(1)
    return torch.relu(x).exp() + torch.relu(x * 2)


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host without two of its kernels."""
    found = structure.find_kernel
    monkeypatch.setattr(
        structure, "find_kernel", lambda op_type: None if op_type in ("Relu", "Exp") else found(op_type)
    )


@pytest.mark.usefixtures("without")
def test_all_that_a_graph_lacks_is_said_at_once_and_nothing_runs() -> None:
    x = torch.zeros(3).npu()
    missing = lint_graph(function, x)
    assert {name: len(nodes) for name, nodes in missing.items()} == {"Relu": 2, "Exp": 1}
    assert not x.any()


def test_a_graph_that_lacks_nothing_is_not_run_either() -> None:
    x = torch.zeros(3).npu()
    assert lint_graph(function, x) == {}
    assert not x.any()


def test_afterwards_graphs_are_compiled_again() -> None:
    import torchair

    lint_graph(function, torch.zeros(3).npu())
    y = torch.compile(function, backend=torchair.get_npu_backend(), dynamic=False)(torch.zeros(3).npu())
    torch.testing.assert_close(y.cpu(), torch.full((3,), torch.e + 2))


def test_a_function_that_becomes_no_graph_is_an_error() -> None:
    def breaks(x: T) -> T:
        torch._dynamo.graph_break()
        return x

    with pytest.raises(torch._dynamo.exc.Unsupported):
        lint_graph(breaks, torch.zeros(3).npu())

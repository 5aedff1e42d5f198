"""Buffers on the CPU that operators read in captures: a replay goes on with what they read at first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import ascend_graph
from ascend_graph.checks.kinds.graph_checks import compile_for_ge_once
from ascend_graph.registration.conversion.host_inputs import HostInputError, SameHostInputs

# TorchAir warns where a graph is captured for a second address.
pytestmark = pytest.mark.filterwarnings("default")
with_dynamic_sizes = pytest.mark.parametrize("dynamic", [False, True])


@pytest.fixture(scope="module", autouse=True)
def _ge_first() -> None:
    compile_for_ge_once()


@pytest.fixture
def model() -> Iterator[Any]:
    library = torch.library.Library("host_inputs", "DEF")
    library.define("times_sum(Tensor x, Tensor lengths) -> Tensor")
    library.impl("times_sum", lambda x, lengths: x * int(lengths.sum()), "PrivateUse1")
    operator = torch.ops.host_inputs.times_sum.default
    registered = ascend_graph.register_kernel(eager=operator, shape="x[*s], lengths[n] -> y[*s]")
    torch._dynamo.reset()

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("lengths", torch.tensor([1, 2]))

        def forward(self, x: torch.Tensor) -> Any:
            return operator(x, self.lengths) + 1

    yield Model()
    registered.unregister()
    library._destroy()


@with_dynamic_sizes
def test_a_capture_refuses_a_buffer_on_the_cpu_that_changed(model: Any, dynamic: bool) -> None:
    run = torch.compile(model, backend="npugraph_ex", dynamic=dynamic, fullgraph=True)
    assert [run(torch.ones(2).npu()).tolist() for _ in range(2)] == [[4, 4]] * 2
    model.lengths.fill_(5)
    with pytest.raises(Exception, match=r"an input on the CPU of size \[2\].*other values than in the first call"):
        run(torch.ones(2).npu())


def test_a_pinned_buffer_is_copied_anew_in_every_replay(model: Any) -> None:
    class Copying(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", torch.tensor([2.0, 3.0]).pin_memory())

        def forward(self, x: torch.Tensor) -> Any:
            return model(x) * self.scale.to("npu", non_blocking=True)

    copying = Copying()
    run = torch.compile(copying, backend="npugraph_ex", fullgraph=True)
    assert run(torch.ones(2).npu()).tolist() == [8, 12]
    copying.scale.fill_(5)
    assert run(torch.ones(2).npu()).tolist() == [20, 20]


def test_a_buffer_that_is_not_a_number_stays_the_same() -> None:
    given = torch.tensor([1.0, float("nan")])
    run = SameHostInputs(lambda x: x[0].item(), {0: "x"})
    assert (run(given), run(given)) == (1, 1)
    with pytest.raises(HostInputError, match=r"size \[1\]"):
        run(given[:1])


def test_a_buffer_in_the_place_of_another_is_read_anew(model: Any) -> None:
    run = torch.compile(model, backend="npugraph_ex", fullgraph=True)
    kept, found = [], []
    for length in (1, 5, 7):
        kept.append(model.lengths)  # no other tensor gets its address
        model.lengths = torch.tensor([length, 2])
        found.append(run(torch.ones(2).npu()).tolist())
    assert found == [[4, 4], [8, 8], [10, 10]]


@with_dynamic_sizes
def test_it_is_read_anew_without_a_capture(model: Any, dynamic: bool) -> None:
    run = torch.compile(model, backend="aot_eager", dynamic=dynamic, fullgraph=True)
    found = []
    for length in (1, 5):
        model.lengths.fill_(length)
        found.append(run(torch.ones(2).npu()).tolist())
    assert found == [[3, 3], [11, 11]]


@pytest.mark.xfail(strict=True, reason="buffers on the CPU, in docs/wheel-faults.md")
def test_operators_of_torch_library_alone_read_it_anew(model: Any) -> None:
    ascend_graph.registered_ops()[-1].unregister()
    torch.library.register_fake("host_inputs::times_sum", lambda x, lengths: torch.empty_like(x))
    run = torch.compile(model, backend="npugraph_ex", fullgraph=True)
    assert run(torch.ones(2).npu()).tolist() == [4, 4]
    model.lengths.fill_(5)
    assert run(torch.ones(2).npu()).tolist() == [11, 11]

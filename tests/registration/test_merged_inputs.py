"""Views of an input that overlaps with another, of which one is written: PyTorch compiles for the memory of both."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import writing_operators as writing
from writing_operators import MODES, assert_as_eager, captured, ge, numbers

import ascend_graph
from ascend_graph.registration.writing.merged_inputs import MergedInputsError

T = torch.Tensor
Program = Callable[..., Any]
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("compiled_anew")]


@pytest.fixture(scope="module")
def ops() -> Iterator[SimpleNamespace]:
    library = torch.library.Library("merged_inputs", "DEF")
    defined = writing.define(library, registered=True)
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "PrivateUse1")
    defined.twice = torch.ops.merged_inputs.twice.default
    defined.registrations.append(ascend_graph.register_kernel(eager=defined.twice, shape="x[*s] -> y[*s]"))
    yield defined
    for registration in reversed(defined.registrations):
        registration.unregister()
    library._destroy()


#: Two parts of a matrix of six rows and columns that overlap.
PARTS: dict[str, Callable[[T], tuple[T, T]]] = {
    "the whole and its rows": lambda m: (m, m[1:]),
    "rows of it": lambda m: (m[2:], m[3:]),
    "columns": lambda m: (m[:, 2:], m[1:, :3]),
}


@pytest.mark.parametrize("compiled", MODES)
@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("written", [0, 1], ids=["first written", "second written"])
def test_views_of_both_inputs_are_returned(
    ops: SimpleNamespace, compiled: Callable[[Program], Program], parts: Callable[[T], tuple[T, T]], written: int
) -> None:
    def run(*inputs: T) -> Any:
        first, second = inputs
        ops.total(inputs[written], inputs[written] * 2)
        return first[1], second[0], second.t()[1:], first.expand(2, *first.shape)

    program = compiled(run)
    for start in (0, 100):
        memory, on_device = numbers(6, 6) + start, (numbers(6, 6) + start).npu()
        expected, results = run(*parts(memory)), program(*parts(on_device))
        for given, right in zip([*results, on_device], [*expected, memory], strict=True):
            torch.testing.assert_close(given.cpu(), right)
        results[1].zero_()  # a view still
        parts(memory)[1][0].zero_()
        torch.testing.assert_close(on_device.cpu(), memory)


@pytest.mark.parametrize("dynamic", [False, True])
def test_views_of_what_aten_writes_are_returned(ops: SimpleNamespace, dynamic: bool) -> None:
    def run(first: T, second: T) -> Any:
        first.add_(1)  # the registered operator reads
        return second[0], ops.twice(second)

    matrix, on_device = numbers(4, 6), numbers(4, 6).npu()
    results, expected = captured(run, dynamic)(on_device, on_device[1:]), (matrix[1] + 1, (matrix[1:] + 1) * 2)
    torch.testing.assert_close([r.cpu() for r in results], list(expected))
    results[0].zero_()  # a view still
    assert on_device[1].tolist() == [0] * 6


@pytest.mark.skipif(
    importlib.util.find_spec("torch._functorch._aot_autograd.descriptors") is None,
    reason=f"torch {torch.__version__} does not say which inputs it merged",
)
def test_a_view_with_another_dtype_is_refused_in_ge_graphs(ops: SimpleNamespace) -> None:
    def run(first: T, second: T) -> T:
        ops.total(first, first * 2)
        return second[0].view(torch.int32)

    matrix = numbers(4, 6).npu()
    with pytest.raises(Exception, match="view of an input that overlaps with another input") as raised:
        ge(run)(matrix, matrix[1:])
    assert isinstance(getattr(raised.value, "inner_exception", raised.value), MergedInputsError)
    torch._dynamo.reset()
    result = captured(run)(matrix, matrix[1:])
    assert result.data_ptr() == matrix[1].data_ptr()


def test_inputs_that_are_apart_are_returned_as_before(ops: SimpleNamespace) -> None:
    def run(x: T, z: T) -> Any:
        ops.total(x, z)
        return x[1:], z.t(), x

    assert_as_eager(run, ge(run), (numbers(4, 6), numbers(4, 6)))


def test_an_input_with_strides_is_returned_as_before(ops: SimpleNamespace) -> None:
    """Its new value has other strides in the graph, and the view of it is made anew from the input."""

    def run(x: T) -> Any:
        view = x.permute(1, 0)
        view.sigmoid_()
        return view, ops.twice(x)

    matrix, on_device = numbers(4, 12)[:, ::3], numbers(4, 12).npu()[:, ::3]
    result, twice = captured(run)(on_device)
    torch.testing.assert_close((result.cpu(), twice.cpu()), (matrix.sigmoid().t(), matrix.sigmoid() * 2))
    assert result.data_ptr() == on_device.data_ptr()

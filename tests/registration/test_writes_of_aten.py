"""Graphs in which ATen writes and registered operators only read: what TorchAir gets wrong of writes is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from writing_operators import MODES, assert_as_eager, captured, ge, numbers

import ascend_graph
from ascend_graph.host.kernels import host_kernel

T = torch.Tensor
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("compiled_anew")]
HEADER = """
REG_OP(ReadsTwice)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(ReadsTwice)
"""


@host_kernel("ReadsTwice")
def _twice(x: T) -> T:
    return x * 2


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    library = torch.library.Library("reads", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    for key in ("CPU", "PrivateUse1"):
        library.impl("twice", _twice, key)
    ascend_graph.load_prototypes(HEADER)
    twice = torch.ops.reads.twice
    registration = ascend_graph.register_op("ReadsTwice", eager=twice, shape="x[*s] -> y[*s]", batch=("*s",))
    yield
    registration.unregister()
    library._destroy()


def _twice_of(x: T) -> T:
    result: T = torch.ops.reads.twice(x)
    return result


def one_value_for_two(a: T, b: T) -> None:
    z = _twice_of(a)
    a.copy_(z)
    b.copy_(z)


def the_value_is_returned(a: T, b: T) -> T:
    z = _twice_of(b)
    a.copy_(z)
    return z


def a_copy_of_what_is_written(a: T, b: T) -> Any:
    a.mul_(3)
    return a.clone(), _twice_of(b)


def a_copy_into_a_new_tensor(a: T, b: T) -> Any:
    z = _twice_of(b)
    return z, torch.empty_like(z).copy_(z)


def rows_of_what_is_written(a: T, b: T) -> Any:
    a.add_(1)
    return a[1:], _twice_of(b)


def an_expanded_view_of_it(a: T, b: T) -> Any:
    a.add_(1)
    return a.expand(2, *a.shape), _twice_of(a)


PROGRAMS = (
    one_value_for_two,
    the_value_is_returned,
    a_copy_of_what_is_written,
    a_copy_into_a_new_tensor,
    rows_of_what_is_written,
    an_expanded_view_of_it,
)


@pytest.mark.parametrize("compiled", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs_compute_as_eager_calls(
    program: Callable[..., Any], compiled: Callable[..., Any], request: pytest.FixtureRequest
) -> None:
    sizes = (4, 6, 4) if "dynamic" in request.node.callspec.id else (4, 4)
    assert_as_eager(program, compiled(program), *[(numbers(n, 3), numbers(n, 3) + 10) for n in sizes])


@pytest.mark.parametrize("compiled", MODES)
@pytest.mark.parametrize("program", PROGRAMS[1:4], ids=lambda p: p.__name__)
def test_results_stay_when_others_and_arguments_change(
    program: Callable[..., Any], compiled: Callable[..., Any]
) -> None:
    tensors = [numbers(4, 3).npu(), numbers(4, 3).npu() + 10]
    results = compiled(program)(*tensors)
    changed = [*tensors, *(results if isinstance(results, tuple) else [results])]
    for n, tensor in enumerate(changed):
        others = [other.cpu() for other in changed[n + 1 :]]
        tensor.zero_()
        assert all(torch.equal(o.cpu(), before) for o, before in zip(changed[n + 1 :], others, strict=True))


@pytest.mark.parametrize("compiled", [ge, captured])
def test_views_of_inputs_that_overlap_are_returned(compiled: Callable[..., Any]) -> None:
    def run(first: T, second: T) -> Any:
        first.add_(1)
        return second[0], _twice_of(second), first[1:]

    matrix, on_device = numbers(4, 6), numbers(4, 6).npu()
    expected, results = run(matrix, matrix[1:]), compiled(run)(on_device, on_device[1:])
    for given, right in zip([*results, on_device], [*expected, matrix], strict=True):
        torch.testing.assert_close(given.cpu(), right)
    results[0].zero_()  # a view still
    matrix[1].zero_()
    torch.testing.assert_close(on_device.cpu(), matrix)

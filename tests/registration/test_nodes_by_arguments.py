"""Calls that write as nodes that have the arguments themselves: under vLLM's configuration, in exported programs."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch._inductor.config
from writing_operators import MODES, assert_as_eager, captured, define, ge, numbers

import ascend_graph
from ascend_graph.checks.kinds.graph_checks import compile_for_ge_once
from ascend_graph.registration.writing import graph_passes

T = torch.Tensor


@pytest.fixture(scope="module")
def ops() -> Iterator[SimpleNamespace]:
    compile_for_ge_once()
    library = torch.library.Library("nodes_by_arguments", "DEF")
    found = define(library, registered=True)
    yield found
    for one in found.registrations:
        one.unregister()
    library._destroy()


@pytest.fixture(autouse=True)
def _by_arguments() -> Iterator[None]:
    torch._dynamo.reset()
    with torch._inductor.config.patch(enable_auto_functionalized_v2=False):
        yield
    torch._dynamo.reset()


def _part(ops: Any, x: T, y: T) -> T:
    ops.total(x[1:3], y[1:3])
    return x.t() * 2


def _parts(ops: Any, x: T, y: T) -> tuple[T, T]:
    ops.pair(x[:2], x[2:])
    return x[1:] + 1, y


def _list(ops: Any, x: T, y: T) -> T:
    z = x.clone()
    ops.list([z, x], y)
    return torch.cat([z, x, y])


def _empty_list(ops: Any, x: T, y: T) -> T:
    ops.list([], x)
    return x + y


def _optional(ops: Any, x: T, y: T) -> T:
    z = ops.optional(x, y)
    return z + ops.optional(y, None, x) + ops.optional(x)


def _own_input(ops: Any, x: T, y: T) -> tuple[T, T]:
    z = x * 2
    ops.total(x, z)
    x.copy_(z)
    return z, x[:, 1:]


PROGRAMS = [_part, _parts, _list, _empty_list, _optional, _own_input]


@pytest.mark.parametrize("compile_", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_graphs_write_as_eager(ops: Any, program: Callable[..., Any], compile_: Callable[..., Any]) -> None:
    def called(x: T, y: T) -> Any:
        return program(ops, x, y)

    calls = [(numbers(4, 3), numbers(4, 3) * 2), (numbers(4, 3) + 1, numbers(4, 3))]
    assert_as_eager(called, compile_(called), *calls)


@pytest.mark.parametrize("dynamic", [False, True])
def test_returned_values_are_apart_from_what_was_written(ops: Any, dynamic: bool) -> None:
    def called(x: T, y: T) -> tuple[T, T]:
        return _own_input(ops, x, y)

    for compile_ in (ge, captured):
        x, y = numbers(4, 3).npu(), numbers(4, 3).npu()
        z, view = compile_(called, dynamic)(x, y)
        before = z.clone()
        x.zero_()
        assert torch.equal(z, before)
        assert torch.equal(view, x[:, 1:])


@pytest.mark.parametrize("dynamic", [False, True])
def test_arguments_that_overlap_are_written_one_after_another(ops: Any, dynamic: bool) -> None:
    def called(x: T) -> T:
        ops.pair(x[:3], x[1:])
        return x * 2

    assert_as_eager(called, captured(called, dynamic), (numbers(4, 3),), (numbers(4, 3) + 1,))


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("compile_", MODES)
def test_an_exported_program_that_writes_compiles(ops: Any, compile_: Callable[..., Any]) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: T, y: T) -> T:
            return _list(ops, x, y)

    inputs = (numbers(4, 3), numbers(4, 3) * 2)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, AttributeError):  # older versions know no other form
            from torch._export import config

            stack.enter_context(config.patch(enable_auto_functionalized_v2_for_export=False))
        exported = torch.export.export(Module().npu(), tuple(t.npu() for t in inputs)).run_decompositions({})
    targets = {node.target for node in exported.graph.nodes}
    assert torch.ops.higher_order.auto_functionalized in targets
    assert_as_eager(Module(), compile_(exported.module()), inputs)


def test_names_of_pytorch_are_refused_with_what_to_write(ops: Any) -> None:
    def write(x: T, mode: int) -> None:
        x.mul_(mode)

    overload = ascend_graph.define_from_function("nodes_by_arguments::of_a_mode(Tensor(a!) x, int mode) -> ()", write)
    registered = ascend_graph.register_kernel(eager=overload)
    try:
        with pytest.raises(Exception, match=r"an argument is named 'mode'.*Expected another name"):
            captured(lambda x: overload(x, 2))(numbers(3).npu())
    finally:
        registered.unregister()


def test_a_node_becomes_one_with_bases(ops: Any) -> None:
    """The graph computes the same, with the new node in the place of the other."""

    graph = torch.fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    call = graph.call_function(torch.ops.higher_order.auto_functionalized, (ops.list,), {"xs": [x, None, y], "x": y})
    written = graph.call_function(operator.getitem, (call, 1))
    graph.output((graph.call_function(operator.getitem, (written, 0)), written))
    module = torch.fx.GraphModule({}, graph)
    made = graph_passes._described_by_bases(module)
    (node,) = [n for n in made.graph.nodes if n.target is torch.ops.higher_order.auto_functionalized_v2]
    assert {name: value for name, value in node.kwargs.items() if name.startswith("_xs")} == {
        "_xs_length": 3, "_xs_0_base_index": 0, "_xs_1_base_index": None, "_xs_2_base_index": 1,
    }  # fmt: skip
    (output,) = [n for n in made.graph.nodes if n.op == "output"]
    first, (again, none, last) = output.args[0]
    assert none is None
    assert [n.args for n in (first, again, last)] == [(node, 1), (node, 1), (node, 2)]

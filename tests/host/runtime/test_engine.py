"""The graph engine on graphs made by hand: what is constant, what is static, what is freed, and what is wrong with
bad graphs."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torchair._ge_concrete_graph.ge_ir_pb2 import DataType, OpDef

import ascend_graph
from ascend_graph.environment import HostRuntimeError
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.kernels import HostKernel, registry
from ascend_graph.host.runtime.engine import (
    GraphCompileError,
    compile_model,
    describe_operator,
)
from ascend_graph.host.runtime.engine.model import _split_dynamic

sys.path.insert(0, str(Path(__file__).parent))
from graphs import INT64, Graph


def sum_graph(shape: Sequence[int] = (2, 3)) -> Graph:
    graph = Graph()
    x, y = graph.data("x", shape), graph.data("y", shape)
    graph.output(graph.add("sum", "Add", [("x1", x), ("x2", y)]))
    return graph


def test_a_static_graph_knows_its_outputs() -> None:
    plan = sum_graph().compile()
    assert plan.is_static
    assert [(o.dtype, o.sizes) for o in plan.outputs] == [(0, (2, 3))]
    (result,) = plan.run(torch.ones(2, 3), torch.full((2, 3), 2.0))
    assert torch.equal(result, torch.full((2, 3), 3.0))


def test_unknown_sizes_make_a_graph_dynamic() -> None:
    plan = sum_graph((-1, 3)).compile()
    assert not plan.is_static
    for n in (1, 4):
        assert plan.run(torch.ones(n, 3), torch.ones(n, 3))[0].shape == (n, 3)


def test_numbers_come_as_tensors_of_one_element() -> None:
    graph = Graph()
    x, n = graph.data("x", [-1]), graph.data("n", [], INT64)
    graph.output(graph.add("one", "Gather", [("x", x), ("indices", n)]))
    assert graph.compile().run(torch.arange(4.0), torch.tensor([2]))[0].shape == ()


def test_a_size_that_is_data_makes_a_graph_dynamic() -> None:
    graph = Graph()
    graph.output(
        graph.add(
            "fill", "Fill", [("dims", graph.data("n", [1], INT64)), ("value", graph.const("v", torch.tensor(2.0)))]
        )
    )
    plan = graph.compile()
    assert not plan.is_static
    assert plan.outputs[0].dtype == 0
    assert plan.run(torch.tensor([3]))[0].tolist() == [2.0, 2.0, 2.0]


def test_outputs_whose_shape_depends_on_data_make_a_graph_dynamic() -> None:
    graph = Graph()
    graph.output(graph.add("found", "NonZero", [("x", graph.data("x", [4]))]), dtype=INT64)
    plan = graph.compile()
    assert not plan.is_static
    assert plan.run(torch.tensor([0.0, 1, 0, 2]))[0].tolist() == [[1], [3]]


def test_the_shape_of_a_static_input_is_a_constant() -> None:
    graph = Graph()
    x = graph.data("x", [2, 3])
    shape = graph.add("shape", "Shape", [("x", x)])
    graph.output(graph.add("zeros", "Fill", [("dims", shape), ("value", graph.const("v", torch.tensor(0.0)))]))
    plan = graph.compile()
    assert plan.is_static
    assert plan.run(torch.ones(2, 3))[0].shape == (2, 3)


@pytest.fixture
def counted() -> object:
    """A kernel that counts its runs."""
    runs: list[torch.Tensor] = []

    def kernel(x: torch.Tensor) -> torch.Tensor:
        runs.append(x)
        return x + 1

    registry._KERNELS["CountedOp"] = HostKernel("CountedOp", kernel, ("x",), frozenset(), pure=True)
    yield runs
    del registry._KERNELS["CountedOp"]


def test_nodes_of_constants_are_computed_once(counted: list[torch.Tensor]) -> None:
    graph = Graph()
    one = graph.add("one", "CountedOp", [("x", graph.const("c", torch.zeros(2)))])
    graph.output(graph.add("sum", "Add", [("x1", graph.data("x", [2])), ("x2", one)]))
    plan = graph.compile()
    for _ in range(3):
        assert plan.run(torch.ones(2))[0].tolist() == [2.0, 2.0]
    assert len(counted) == 1


def test_compiling_runs_no_kernel_on_data(counted: list[torch.Tensor]) -> None:
    graph = Graph()
    graph.output(graph.add("one", "CountedOp", [("x", graph.data("x", [2]))]))
    assert graph.compile().is_static
    assert [x.device.type for x in counted] == ["meta"]


@pytest.mark.parametrize("constant", [True, False])
def test_a_shape_that_follows_from_a_value_is_known_where_the_value_is(constant: bool) -> None:
    """Of a kernel that needs data and does not say which: one in Python, without a relation."""
    registry._KERNELS["HeadOp"] = HostKernel("HeadOp", lambda x, k: x[: int(k)], ("x", "k"), frozenset())
    try:
        graph = Graph()
        x = graph.data("x", [4])
        k = graph.const("c", torch.tensor(2)) if constant else graph.data("k", [], INT64)
        graph.output(graph.add("head", "HeadOp", [("x", x), ("k", k)]))
        plan = graph.compile()
    finally:
        del registry._KERNELS["HeadOp"]
    assert plan.is_static == constant
    assert plan.run(torch.arange(4.0), *([] if constant else [torch.tensor(2)]))[0].tolist() == [0, 1]


def test_in_place_operators_do_not_change_constants() -> None:
    graph = Graph()
    x = graph.data("x", [2])
    graph.output(graph.add("sum", "AssignAdd", [("ref", graph.const("c", torch.zeros(2))), ("value", x)]))
    plan = graph.compile()
    for _ in range(2):
        assert plan.run(torch.ones(2))[0].tolist() == [1.0, 1.0]


def test_in_place_operators_write_inputs_in_the_order_of_the_graph() -> None:
    graph = Graph()
    x, y = graph.data("x", [2]), graph.data("y", [2])
    before = graph.add("before", "Identity", [("x", x)])
    graph.add("write", "Assign", [("ref", x), ("value", y)])
    after = graph.add("after", "Add", [("x1", x), ("x2", x)])
    graph.node("NetOutput", "NetOutput", [("a", before), ("b", after), ("", "write:-1")], 0)
    plan = graph.compile()
    value = torch.zeros(2)
    old, doubled = plan.run(value, torch.ones(2))
    assert (value.tolist(), old.tolist(), doubled.tolist()) == ([1, 1], [0, 0], [2, 2])


def test_frozen_parameters_stay_where_they_are() -> None:
    parameter = torch.zeros(2)
    graph = Graph()
    graph.output(graph.add("sum", "Add", [("x1", graph.frozen("p", parameter)), ("x2", graph.data("x", [2]))]))
    plan = graph.compile()
    assert plan.is_static
    parameter.fill_(1)
    assert plan.run(torch.ones(2))[0].tolist() == [2, 2]


def test_intermediate_tensors_are_freed_after_their_last_use() -> None:
    alive: list[weakref.ref[torch.Tensor]] = []
    seen: list[int] = []

    def track(x: torch.Tensor) -> torch.Tensor:
        if not x.is_meta:
            seen.append(sum(r() is not None for r in alive))
        y = x + 1
        alive.append(weakref.ref(y))
        return y

    registry._KERNELS["TrackedOp"] = HostKernel("TrackedOp", track, ("x",), frozenset())
    try:
        graph = Graph()
        edge = graph.data("x", [-1])
        for i in range(5):
            edge = graph.add(f"n{i}", "TrackedOp", [("x", edge)])
        graph.output(edge)
        graph.compile().run(torch.zeros(3))
    finally:
        del registry._KERNELS["TrackedOp"]
    assert seen == [0, 1, 1, 1, 1]


def test_graphs_run_on_several_threads() -> None:
    graph = Graph()
    edge = x = graph.data("x", [8])
    for i in range(20):
        edge = graph.add(f"n{i}", "Add", [("x1", edge), ("x2", x)])
    graph.output(edge)
    plan = graph.compile()
    wrong: list[int] = []

    def work(n: int) -> None:
        for _ in range(50):
            if plan.run(torch.full((8,), float(n)))[0].tolist() != [21.0 * n] * 8:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_failing_node_is_named_with_its_inputs() -> None:
    graph = sum_graph((-1,))
    with pytest.raises(HostRuntimeError, match=r"node sum \(Add\): .*x1=float32\[2\], x2=float32\[3\]"):
        graph.compile().run(torch.ones(2), torch.ones(3))
    with pytest.raises(HostRuntimeError, match="takes 2 inputs and was given 1"):
        graph.compile().run(torch.ones(2))


def _edit(graph: Graph, name: str) -> OpDef:
    return next(op for op in graph.graph.op if op.name == name)


def _cycle(graph: Graph) -> None:
    graph.add("a", "Abs", [("x", "b:0")])
    graph.add("b", "Abs", [("x", "a:0")])


def _placeholder(graph: Graph, address: int, size: int) -> None:
    graph.placeholder("p", [2], address, size)


def _constant(graph: Graph) -> None:
    graph.const("c", torch.zeros(3))
    _edit(graph, "c").attr["value"].t.desc.shape.dim.append(1 << 40)


BAD_GRAPHS = {
    "two nodes are named 'x'": lambda g: g.data("x", [1]),
    "two graph inputs have index 0": lambda g: setattr(_edit(g, "y").attr["index"], "i", 0),
    "reads 'ghost', which is not in the graph": lambda g: g.add("n", "Abs", [("x", "ghost:0")]),
    "must name an output of a node before it": lambda g: g.add("n", "Abs", [("x", "x:7")]),
    "not of the form name:index": lambda g: g.add("n", "Abs", [("x", "x:first")]),
    "cycle": _cycle,
    "no kernel for GE operator NoSuchOp": lambda g: g.add("n", "NoSuchOp", [("x", "x:0")]),
    "does not know attr surprise": lambda g: setattr(g.node("n", "Abs", [("x", "x:0")]).attr["surprise"], "i", 1),
    "required attr dst_type is not set": lambda g: g.add("n", "Cast", [("x", "x:0")]),
    "lacks its required input x2": lambda g: g.add("n", "Add", [("x1", "x:0")]),
    "has inputs x1, who; the host kernel knows: x1, x2": lambda g: g.add("n", "Add", [("x1", "x:0"), ("who", "x:0")]),
    "must be memory of this process": lambda g: _placeholder(g, 16, 8),
    "4 bytes are too few": lambda g: _placeholder(g, 16, 4),
    "a constant has 12 bytes; expected": _constant,
    "must describe its tensor": lambda g: setattr(g.graph.op.add(name="d", type="Data").attr["index"], "i", 9),
    "operators with subgraphs": lambda g: g.node("n", "If", []).subgraph_name.append("then"),
    "expected at most 0, as it describes": lambda g: g.graph.op.add(name="n", type="Abs").input.append("x:0"),
    "has no dtype in PyTorch": lambda g: g.data("s", [1], DataType.DT_STRING),
}


@pytest.mark.parametrize("message", BAD_GRAPHS)
def test_what_is_wrong_with_a_graph(message: str) -> None:
    graph = sum_graph()
    BAD_GRAPHS[message](graph)
    with pytest.raises(GraphCompileError, match=message.replace("[", r"\[").replace("(", r"\(")):
        graph.compile()


def test_all_kernels_that_are_missing_are_named_at_once() -> None:
    graph = sum_graph()
    for name, op_type in [("a", "NoSuchOp"), ("b", "NoSuchOp"), ("c", "NorThis")]:
        graph.add(name, op_type, [("x", "x:0")])
    with pytest.raises(GraphCompileError, match=r"operators NoSuchOp \(node a and 1 more\), NorThis \(node c\); write"):
        graph.compile()


def test_bytes_that_are_no_graph() -> None:
    with pytest.raises(GraphCompileError, match="expected a serialized"):
        compile_model(b"\xff\xff\xff", {})
    with pytest.raises(GraphCompileError, match="no graph"):
        compile_model(b"", {})


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=6), st.integers(0, 400))
def test_damaged_graphs_compile_or_raise(changes: list[tuple[int, int]], cut: int) -> None:
    graph = sum_graph()
    graph.const("c", torch.arange(4))
    _placeholder(graph, 4096, 8)
    graph.add("m", "Reshape", [("x", "x:0"), ("shape", "c:0")])
    data = bytearray(graph.model.SerializeToString())
    for position, value in changes:
        data[position % len(data)] = value
    try:
        compile_model(bytes(data[: len(data) - cut] if cut < len(data) else data), {})
    except AscendGraphError as error:
        assert str(error)  # noqa: PT017


@given(st.lists(st.integers(1, 15), min_size=1, max_size=3))
def test_dynamic_inputs_are_told_apart_by_name(sizes: list[int]) -> None:
    dynamic = ["x", "x1", "x2"][: len(sizes)]
    equal = [sizes[0]] * len(sizes)
    names = [f"{name}{i}" for name, count in zip(dynamic, equal, strict=True) for i in range(count)]
    counts = _split_dynamic(names, dynamic)
    assert counts is not None
    assert 0 not in counts
    assert list(counts) == equal
    assert _split_dynamic([*names, "z0"], dynamic) is None


def test_the_operator_description_is_that_of_the_prototype() -> None:
    parameters = describe_operator("BatchMatMul")
    assert parameters[:3] == [("i", "x1", "required"), ("i", "x2", "required"), ("o", "y", "required")]
    assert ("a", "adj_x1", "VT_BOOL") in parameters
    with pytest.raises(HostRuntimeError, match="no prototype of NoSuchOp"):
        describe_operator("NoSuchOp")


ATTRS = """
REG_OP(KernelOfAttrs)
    .INPUT(x, TensorType({DT_FLOAT}))
    .OUTPUT(y, TensorType({DT_FLOAT}))
    .ATTR(eps, Float, 0.1)
    .ATTR(dims, ListInt, {1, 2})
    .REQUIRED_ATTR(mode, Int)
    .OP_END_FACTORY_REG(KernelOfAttrs)
"""


def test_an_attr_without_a_default_has_the_prototypes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KERNELS", {})
    ascend_graph.load_prototypes(ATTRS)
    registry.host_kernel("KernelOfAttrs")(lambda x, *, eps, dims, mode: x)
    kernel = registry.host_kernels()["KernelOfAttrs"]
    assert kernel.bind_attrs({"mode": 3}) == {"eps": 0.10000000149011612, "dims": (1, 2), "mode": 3}
    with pytest.raises(HostRuntimeError, match="required attr mode is not set on the node"):
        kernel.bind_attrs({})


def test_an_attr_among_the_inputs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KERNELS", dict(registry.host_kernels()))
    ascend_graph.load_prototypes(ATTRS)
    registry.host_kernel("KernelOfAttrs")(lambda x, eps, mode: x)
    graph = Graph()
    graph.data("x", [2])
    graph.add("n", "KernelOfAttrs", [("x", "x:0")])
    with pytest.raises(GraphCompileError, match=r"input eps, mode; eps is an attr, .*: write \(x, \*, eps, mode\)"):
        graph.compile()

"""What operators write to and what they leave alone, whatever memory values share on the host."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.kernels import HostKernel, registry
from ascend_graph.host.runtime.engine import EffectError
from ascend_graph.host.runtime.engine.effects import VARIABLE

sys.path.insert(0, str(Path(__file__).parent))
from graphs import INT64, Graph


def sizes(graph: Graph, name: str, values: list[int]) -> str:
    return graph.const(name, torch.tensor(values))


#: Nodes whose output may be a view of x on the host, of shape [2] where x has two elements.
VIEWS: dict[str, Callable[[Graph, str], str]] = {
    "Reshape": lambda g, x: g.add("view", "Reshape", [("x", x), ("shape", sizes(g, "s", [2]))]),
    "Slice": lambda g, x: g.add(
        "view", "Slice", [("x", x), ("offsets", sizes(g, "o", [0])), ("size", sizes(g, "s", [2]))]
    ),
    "StridedSlice": lambda g, x: g.add(
        "view",
        "StridedSlice",
        [("x", x), ("begin", sizes(g, "b", [0])), ("end", sizes(g, "e", [2])), ("strides", sizes(g, "s", [1]))],
    ),
    "Cast": lambda g, x: g.add("view", "Cast", [("x", x)], dst_type=0),
    "Transpose": lambda g, x: g.add("view", "Transpose", [("x", x), ("perm", sizes(g, "p", [0]))]),
    "BroadcastTo": lambda g, x: g.add("view", "BroadcastTo", [("x", x), ("shape", sizes(g, "s", [2]))]),
    "Split": lambda g, x: g.add("view", "Split", [("split_dim", sizes(g, "d", [0])), ("x", x)], num_split=1),
    "Tile": lambda g, x: g.add("view", "Tile", [("x", x), ("multiples", sizes(g, "m", [1]))]),
    "AsStrided": lambda g, x: g.add(
        "view",
        "AsStrided",
        [
            ("x", x),
            ("size", sizes(g, "s", [2])),
            ("stride", sizes(g, "t", [1])),
            ("storage_offset", sizes(g, "o", [0])),
        ],
    ),
}


@pytest.mark.parametrize("kind", VIEWS)
def test_a_value_stays_what_it_was_when_its_source_is_written(kind: str) -> None:
    graph = Graph()
    x = graph.data("x", [2])
    view = VIEWS[kind](graph, x)
    graph.add("write", "Assign", [("ref", x), ("value", graph.data("y", [2]))])
    graph.output(view, graph.add("later", "Add", [("x1", view), ("x2", view)]), x, "write:0")
    value = torch.zeros(2)
    old, doubled, new, written = graph.compile().run(value, torch.ones(2))
    assert (old.tolist(), doubled.tolist()) == ([0, 0], [0, 0])
    assert (new.tolist(), written.tolist(), value.tolist()) == ([1, 1], [1, 1], [1, 1])


@pytest.mark.parametrize("kind", VIEWS)
def test_a_write_to_a_view_is_none_to_its_source(kind: str) -> None:
    graph = Graph()
    x = graph.data("x", [2])
    graph.add("write", "AssignAdd", [("ref", VIEWS[kind](graph, x)), ("value", graph.data("y", [2]))])
    graph.output(x, "write:0")
    value = torch.zeros(2)
    source, written = graph.compile().run(value, torch.ones(2))
    assert (source.tolist(), written.tolist(), value.tolist()) == ([0, 0], [1, 1], [0, 0])


@pytest.mark.parametrize("known", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "constant"])
def test_constants_are_not_written_through_a_reshape(frozen: bool, known: bool) -> None:
    kept = torch.zeros(2)
    graph = Graph()
    x = graph.frozen("c", kept) if frozen else graph.const("c", kept)
    shape = sizes(graph, "s", [2]) if known else graph.data("s", [1], INT64)
    view = graph.add("view", "Reshape", [("x", x), ("shape", shape)])
    y = graph.data("y", [2])
    graph.add("write", "AssignAdd", [("ref", view), ("value", y)])
    graph.output("write:0", view, x)
    plan = graph.compile()
    for _ in range(3):
        results = plan.run(*([] if known else [torch.tensor([2])]), torch.ones(2))
        assert [r.tolist() for r in results] == [[1, 1], [1, 1], [0, 0]]
    assert kept.tolist() == [0, 0]


def test_constants_of_a_dynamic_input_are_not_written() -> None:
    graph = Graph()
    inputs = [(f"var{i}", graph.const(f"c{i}", torch.zeros(2, 1))) for i in range(2)]
    start, updates = graph.data("i", [2], INT64), graph.data("u", [2, 1, 1])
    graph.node("write", "ScatterList", [*inputs, ("indice", start), ("updates", updates)], 2)
    graph.output("write:0", "write:1")
    plan = graph.compile()
    for row in (0, 1):
        results = plan.run(torch.tensor([row, row]), torch.ones(2, 1, 1))
        assert [r.flatten().tolist() for r in results] == [[1 - row, row]] * 2


def test_what_is_written_is_seen_where_the_same_value_is_read_later() -> None:
    """TorchAir's way to write to a view: a copy of the base, a part of it, an operator that writes, and that part
    again."""
    graph = Graph()
    base = graph.add("copy", "TensorMove", [("x", graph.const("c", torch.zeros(2)))])
    part = VIEWS["AsStrided"](graph, base)
    graph.add("write", "AssignAdd", [("ref", part), ("value", graph.data("y", [2]))])
    graph.node("later", "Add", [("", "write:-1"), ("x1", part), ("x2", part)])
    graph.output("later:0", base)
    plan = graph.compile()
    for _ in range(2):
        assert [r.tolist() for r in plan.run(torch.ones(2))] == [[2, 2], [0, 0]]


def test_an_output_that_is_a_graph_input_is_written_as_one() -> None:
    graph = Graph()
    x, y = graph.data("x", [2]), graph.data("y", [2])
    once = graph.add("once", "AssignAdd", [("ref", x), ("value", y)])
    graph.output(graph.add("twice", "AssignAdd", [("ref", once), ("value", y)]))
    value = torch.zeros(2)
    graph.compile().run(value, torch.ones(2))
    assert value.tolist() == [2, 2]


PROGRAMS = st.lists(
    st.tuples(st.sampled_from(["write", *VIEWS]), st.integers(0, 7), st.integers(1, 9)), min_size=1, max_size=8
)


@settings(max_examples=200, deadline=None)
@given(PROGRAMS, st.booleans())
def test_values_are_values(program: list[tuple[str, int, int]], constant: bool) -> None:
    """Graphs of views and writes against the same on lists of numbers, where nothing shares memory."""
    graph = Graph()
    one = graph.data("one", [2])
    x = graph.const("x", torch.zeros(2)) if constant else graph.data("x", [2])
    edges, values, caller = [x], [0], [0]  # the caller's memory is that of the first edge
    for number, (kind, at, amount) in enumerate(program):
        source = at % len(edges)
        if kind == "write":
            scaled = graph.add(f"amount{number}", "Muls", [("x", one)], value=float(amount))
            graph.add(f"write{number}", "AssignAdd", [("ref", edges[source]), ("value", scaled)])
            values[source] += amount
            if source == 0 and not constant:
                caller[0] += amount
        else:
            part = Graph()
            part.graph, part.model = graph.graph, graph.model
            before = len(graph.graph.op)
            VIEWS[kind](graph, edges[source])
            for op in graph.graph.op[before:]:
                op.name = f"{op.name}_{number}"
                op.input[:] = [
                    f"{e.rpartition(':')[0]}_{number}:0" if e.rpartition(":")[0] in "soebptdm" else e for e in op.input
                ]
            edges.append(f"{graph.graph.op[-1].name}:0")
            values.append(values[source])
    graph.output(*edges)
    plan = graph.compile()
    for _ in range(2):
        given = torch.zeros(2)
        results = plan.run(torch.ones(2), *([] if constant else [given]))
        assert [r.tolist() for r in results] == [[v, v] for v in values]
        assert given.tolist() == caller * 2


@pytest.fixture
def add_kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Puts a kernel named Faulty into the table, in graphs whose kernels are checked."""
    monkeypatch.setenv(VARIABLE, "1")

    def add(function: Callable[..., Any], **options: Any) -> None:
        registry._KERNELS["Faulty"] = HostKernel("Faulty", function, ("x", "y"), frozenset(), **options)

    yield add
    registry._KERNELS.pop("Faulty", None)


def run_faulty(outputs: int = 1) -> list[torch.Tensor]:
    graph = Graph()
    graph.node("n", "Faulty", [("x", graph.data("x", [2])), ("y", graph.data("y", [2]))], outputs)
    graph.output(*(f"n:{i}" for i in range(outputs)))
    return list(graph.compile().run(torch.zeros(2), torch.tensor([1.0, float("nan")])))


@pytest.mark.parametrize(
    ("function", "outputs", "options", "message"),
    [
        (lambda x, y: x.add_(1) * y, 1, {}, "wrote to input x and must declare it"),
        (lambda x, y: x, 1, {}, "output 0 shares memory with input x"),
        (lambda x, y: y[:2], 1, {"views": frozenset({"x"})}, "output 0 shares memory with input y"),
        (lambda x, y: (z := x + 1, z), 2, {}, "outputs 0 and 1 share memory"),
        (
            lambda x, y: x + y,
            1,
            {"written_inputs": frozenset({"x"}), "references": {"x": 0}},
            "output 0 is declared to be input x and is another tensor",
        ),
    ],
)
def test_a_kernel_that_does_what_it_does_not_declare_is_found(
    add_kernel: Callable[..., None],
    function: Callable[..., Any],
    outputs: int,
    options: dict[str, Any],
    message: str,
) -> None:
    add_kernel(function, **options)
    with pytest.raises(HostRuntimeError, match=rf"node n \(Faulty\): Faulty: .*{message}") as caught:
        run_faulty(outputs)
    assert isinstance(caught.value.__cause__, EffectError)


def test_a_kernel_that_does_what_it_declares_passes(add_kernel: Callable[..., None]) -> None:
    add_kernel(lambda x, y: x.add_(y), written_inputs=frozenset({"x"}), references={"x": 0})
    assert run_faulty()[0].tolist()[0] == 1
    add_kernel(lambda x, y: (x[:1], y), views=frozenset({"x", "y"}))
    assert len(run_faulty(2)) == 2


def test_a_kernel_that_gives_another_shape_than_was_inferred_is_named() -> None:
    registry._KERNELS["Faulty"] = HostKernel(
        "Faulty", lambda x, y: torch.zeros(5), ("x", "y"), frozenset(), infer=lambda x, y: torch.zeros(2)
    )
    try:
        message = r"node n \(Faulty\): output 0 has shape \[5\]; \[2\] was inferred"
        with pytest.raises(HostRuntimeError, match=message):
            run_faulty()
    finally:
        del registry._KERNELS["Faulty"]

"""Operators that a class of C++ executes (GE's EagerExecuteOp), as nodes of graphs."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ascend_graph.environment import HostRuntimeError, toolkit_directory
from ascend_graph.host.runtime.engine import describe_operator

sys.path.insert(0, str(Path(__file__).parent))
from graphs import Graph

T = torch.Tensor
SOURCE = Path(__file__).with_name("custom_operators.cpp")


@pytest.fixture(scope="module", autouse=True)
def _library(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compiled as TorchAir compiles such sources: the toolkit's include directory is all that is named."""
    library, toolkit = tmp_path_factory.mktemp("custom") / "libcustom.so", toolkit_directory()
    options = ["-shared", "-fPIC", "-std=c++20", "-Wall", "-Werror", f"-I{toolkit}/include", f"-L{toolkit}/lib64"]
    libraries = ["-Wl,--no-as-needed", "-lascendcl", "-lge_runner", "-lopp_registry", "-lopapi"]
    subprocess.run(["g++", *options, "-o", library, SOURCE, *libraries], check=True)
    ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


def test_inputs_attrs_and_outputs() -> None:
    graph = Graph()
    a, b, c = (graph.data(name, (2, 3)) for name in "abc")
    graph.node("all", "WeightedSum", [("x0", a), ("x1", b), ("offset", c)], N=2, scale=0.5)
    graph.node("one", "WeightedSum", [("x0", a)], N=1)
    graph.output("all:0", "one:0")
    plan = graph.compile()
    x, y, z = torch.randn(2, 3), torch.randn(3, 2).t(), torch.randn(2, 3)
    both, one = plan.run(x, y, z)
    torch.testing.assert_close(both, 0.5 * (x + y) + 10 + z)
    torch.testing.assert_close(one, 2 * x + 10)
    assert not plan.is_static  # shapes are known when it has run


def test_what_is_written_in_place_is_seen_where_the_edge_is_read() -> None:
    graph = Graph()
    x = graph.data("x", (2, 3))
    graph.node("square", "Mul", [("x1", x), ("x2", x)])
    graph.node("turned", "Transpose", [("x", "square:0"), ("perm", graph.const("perm", torch.tensor([1, 0])))])
    graph.node("up", "CountUp", [("x", "turned:0")])
    graph.node("input", "CountUp", [("x", x)])
    value = torch.arange(6.0).reshape(2, 3)
    before = value.clone()
    graph.output("up:0", "input:0", "square:0")
    up, counted, square = graph.compile().run(value)
    torch.testing.assert_close(up, (before**2).t() + 1)
    torch.testing.assert_close(square, before**2)
    torch.testing.assert_close(counted, before + 1)
    torch.testing.assert_close(value, before + 1)  # the caller's memory


@pytest.mark.parametrize(
    ("kind", "shape", "message"),
    [
        ("Forgetful", (2,), r"node n \(Forgetful\): Forgetful: Execute must give memory to output 0"),
        ("Forgetful", (3,), r"Forgetful: Execute returned 50331649"),
    ],
)
def test_a_failure_names_the_node(kind: str, shape: tuple[int, ...], message: str) -> None:
    graph = Graph()
    graph.node("n", kind, [("x", graph.data("x", shape))], outputs=2)
    graph.output("n:0", "n:1")
    plan = graph.compile()
    with pytest.raises(HostRuntimeError, match=message):
        plan.run(torch.zeros(shape))


@pytest.mark.parametrize("what", ["", "unknown sizes", "unknown rank"])
def test_what_is_inferred_may_be_what_is_made(what: str) -> None:
    graph = Graph()
    graph.node("n", "Mistaken", [("x", graph.data("x", (2, 3)))], what=what)
    graph.output("n:0")
    x = torch.randn(2, 3)
    assert torch.equal(graph.compile().run(x)[0], x)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("fails", r"Mistaken: InferShape returned 4294967295"),
        ("sizes", r"Mistaken: InferShape says \[7, 3\] for output 0, Execute made \[2, 3\]"),
        ("rank", r"Mistaken: InferShape says \[2, 3, 1\] for output 0, Execute made \[2, 3\]"),
        ("dtype", r"Mistaken: InferDataType says dtype 1 for output 0, Execute made 0"),
        ("no dtype", r"Mistaken: InferDataType says dtype \d+ for output 0, Execute made 0"),
    ],
)
def test_what_is_inferred_and_not_made_is_an_error_of_the_node(what: str, message: str) -> None:
    graph = Graph()
    graph.node("n", "Mistaken", [("x", graph.data("x", (2, 3)))], what=what)
    graph.output("n:0")
    plan = graph.compile()
    with pytest.raises(HostRuntimeError, match=message):
        plan.run(torch.randn(2, 3))


def test_an_exception_of_the_class_is_the_error_of_the_node() -> None:
    graph = Graph()
    graph.node("n", "WeightedSum", [("x0", graph.data("x", (2,)))], N=1, mode="fancy")
    graph.output("n:0")
    plan = graph.compile()
    with pytest.raises(HostRuntimeError, match=r"node n \(WeightedSum\): WeightedSum: mode must be plain"):
        plan.run(torch.zeros(2))


def test_what_the_prototype_does_not_have_is_refused() -> None:
    graph = Graph()
    graph.node("n", "CountUp", [("x", graph.data("x", (2,)))], size=3)
    graph.output("n:0")
    with pytest.raises(HostRuntimeError, match="CountUp: the host kernel does not know attr size=3"):
        graph.compile()


def test_prototypes_are_those_of_the_library() -> None:
    assert describe_operator("WeightedSum") == [
        ("i", "x", "dynamic"),
        ("i", "offset", "optional"),
        ("o", "y", "required"),
        ("a", "N", "VT_INT"),
        ("a", "scale", "VT_FLOAT"),
        ("a", "shifts", "VT_LIST_INT"),
        ("a", "mode", "VT_STRING"),
    ]

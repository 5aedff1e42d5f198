"""Operators whose schema does not say what they write: compiled programs compute what eager calls do."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._subclasses.functional_tensor import FunctionalTensorMode
from torch.fx.node import _side_effectful_functions
from writing_operators import assert_as_eager, captured, ge, numbers

import ascend_graph
from ascend_graph.binding.op_schema import SchemaError
from ascend_graph.host.kernels import host_kernel

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what torch itself deprecates, in modules that torchair imports
    import torch_npu  # noqa: F401 - torchair can only be imported after it
    import torchair  # noqa: F401 - not within a test

T = torch.Tensor
# Compiling warns of much that is torch's and torchair's own affair.
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("compiled_anew")]

FLOAT = "TensorType({DT_FLOAT})"
HEADER = f"""
REG_OP(UnstatedPut)
    .INPUT(x, {FLOAT}).INPUT(cache, {FLOAT}).ATTR(n, Int, 0).OUTPUT(cache, {FLOAT})
    .OP_END_FACTORY_REG(UnstatedPut)
REG_OP(UnstatedTake)
    .INPUT(x, {FLOAT}).INPUT(cache, {FLOAT}).ATTR(n, Int, 0).OUTPUT(y, {FLOAT}).OUTPUT(cache, {FLOAT})
    .OP_END_FACTORY_REG(UnstatedTake)
REG_OP(UnstatedGive)
    .INPUT(x, {FLOAT}).INPUT(cache, {FLOAT}).OUTPUT(cache, {FLOAT})
    .OP_END_FACTORY_REG(UnstatedGive)
REG_OP(UnstatedReturn)
    .INPUT(x, {FLOAT}).INPUT(cache, {FLOAT}).OUTPUT(cache, {FLOAT})
    .OP_END_FACTORY_REG(UnstatedReturn)
"""


@host_kernel("UnstatedPut", writes=("cache",))
def _put(x: T, cache: T, *, n: int = 0) -> T:
    return cache.copy_(x + n)


@host_kernel("UnstatedTake", writes=("cache",))
def _take(x: T, cache: T, *, n: int = 0) -> tuple[T, T]:
    y = cache + n
    return y, cache.copy_(x)


@host_kernel("UnstatedReturn", writes=("cache",))
@host_kernel("UnstatedGive", writes=("cache",))
def _give(x: T, cache: T) -> T:
    return cache.add_(x)


#: Op type, schema, the schema with marks, kernel, relation.
OPERATORS = {
    "put": (
        "UnstatedPut",
        "(Tensor x, Tensor cache, int n=0) -> ()",
        "(Tensor x, Tensor(a!) cache, int n=0) -> ()",
        lambda x, cache, n=0: (cache.copy_(x + n), None)[1],
        "->",
    ),
    "take": (
        "UnstatedTake",
        "(Tensor x, Tensor cache, *, int n=0) -> Tensor",
        "(Tensor x, Tensor(a!) cache, *, int n=0) -> Tensor",
        lambda x, cache, n=0: _take(x, cache, n=n)[0],
        "cache -> y like cache",
    ),
    "give": (
        "UnstatedGive",
        "(Tensor x, Tensor cache) -> Tensor",
        "(Tensor x, Tensor(a!) cache) -> Tensor(a!)",
        lambda x, cache: cache.add_(x),
        "cache -> cache",
    ),
    "returned": (
        "UnstatedReturn",
        "(Tensor x, Tensor! cache) -> Tensor",
        "(Tensor x, Tensor(a!) cache) -> Tensor(a!)",
        lambda x, cache: cache.add_(x),
        "cache -> cache",
    ),
}


@pytest.fixture(scope="module")
def ops() -> Iterator[Any]:
    """The operators of another library, with those that stand for them registered."""
    ascend_graph.load_prototypes(HEADER)
    library = torch.library.Library("unstated", "DEF")
    registered = []
    for name, (op_type, plain, marked, kernel, relation) in OPERATORS.items():
        library.define(name + plain)
        for key in ("CPU", "PrivateUse1"):
            library.impl(name, kernel, key)
        eager = ascend_graph.define_from_function(f"unstated_writes::{name}{marked}", getattr(torch.ops.unstated, name))
        registered.append(ascend_graph.register_op(op_type, eager=eager, shape=relation))
    yield torch.ops.unstated
    for one in reversed(registered):
        one.unregister()
    for name in OPERATORS:
        overload = getattr(torch.ops.unstated, name).default
        assert FunctionalTensorMode not in overload.python_key_table
        assert overload not in _side_effectful_functions
    library._destroy()


PROGRAMS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "an input is written": lambda ops: lambda x, c: ops.put(x, c, n=2),
    "what is written is read": lambda ops: lambda x, c: (ops.put(x, c), c * 2, ops.put(x + 5, c, 1))[1],
    "one of two equal copies": lambda ops: lambda x, c: (a := x.clone(), ops.put(x + 1, a), x.clone())[::2],
    "a view of a tensor that was written": lambda ops: lambda x, c: (d := c + 0, d.add_(1), ops.put(x[1], d[0]))[0],
    "a transposed view": lambda ops: lambda x, c: (ops.put(c, x.t()), x + 0)[1],
    "a result and a written argument": lambda ops: lambda x, c: ops.take(ops.take(x, c, n=3), c),
    "a result that nothing reads": lambda ops: lambda x, c: (ops.take(x[0], c.view(-1)[:4]), c + 1)[1],
    "a marked argument that is returned": lambda ops: lambda x, c: (y := ops.returned(x, c), y.mul_(2), c + 1)[2],
    "an argument that is returned": lambda ops: lambda x, c: (y := ops.give(x, c), y.mul_(2), c + 1)[2],
}
MODES = [
    pytest.param(lambda f: ge(f, dynamic=True), id="GE"),
    pytest.param(captured, id="npugraph_ex"),
    pytest.param(lambda f: torch.compile(f, backend="aot_eager", fullgraph=True), id="aot_eager"),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_compiled_program_writes_what_an_eager_call_does(ops: Any, name: str, mode: Any) -> None:
    program = PROGRAMS[name](ops)
    with torch.inference_mode(name.startswith("a ")):
        assert_as_eager(program, mode(program), (numbers(4, 4), -numbers(4, 4)), (numbers(4, 4) + 7, numbers(4, 4)))


def test_a_mark_without_a_name_stays_in_the_functional_variant() -> None:
    library = torch.library.Library("unstated_names", "DEF")
    library.define("both(Tensor! x, Tensor! y) -> Tensor")
    library.impl("both", lambda x, y: (x.add_(1), y.add_(x))[1], "PrivateUse1")
    schema = "unstated_names_writes::both(Tensor! x, Tensor(a!) y) -> Tensor(a!)"
    eager = ascend_graph.define_from_function(schema, torch.ops.unstated_names.both)
    op = ascend_graph.register_kernel(eager=eager, shape="y -> y")
    x, y = torch.zeros(2).npu(), torch.zeros(2).npu()
    made = captured(lambda x, y: torch.ops.unstated_names.both(x, y).mul_(3))(x, y)
    assert (x.tolist(), y.tolist(), made.tolist()) == ([1, 1], [3, 3], [3, 3])
    op.unregister()
    library._destroy()


@pytest.mark.parametrize("strict", [False, True])
def test_an_exported_program_keeps_the_calls(ops: Any, strict: bool) -> None:
    class Net(torch.nn.Module):
        def forward(self, x: T, cache: T) -> T:
            ops.put(x, cache, n=1)
            ops.take(x, cache)
            return cache + 1

    call = (numbers(4, 4), -numbers(4, 4))
    exported = torch.export.export(Net(), tuple(one.npu() for one in call), strict=strict)
    assert_as_eager(Net(), exported.module(), call)
    assert_as_eager(Net(), exported.run_decompositions({}).module(), call)


def test_the_checks_call_the_operator_with_the_marks(ops: Any) -> None:
    found = {one.op_type: one for one in ascend_graph.registered_ops()}
    checks = ("arguments", "meta", "npugraph_ex", "export")
    assert ascend_graph.opcheck(found["UnstatedGive"], checks=checks, count=2).ok


def test_a_schema_that_differs_in_more_than_marks_is_refused(ops: Any) -> None:
    for schema, why in (
        ("(Tensor x, Tensor(a!) kv, int n=0) -> ()", "expected the same arguments and returns"),
        ("(Tensor x, Tensor(a!) cache, int n=0) -> Tensor", "expected the same arguments and returns"),
        ("(Tensor x, Tensor cache, int n=0) -> ()", "marks nothing more than"),
    ):
        with pytest.raises(SchemaError, match=why):
            ascend_graph.define_from_function(f"unstated_refused::put{schema}", ops.put)


def test_calls_of_an_operator_that_writes_nothing_stay_in_graphs() -> None:
    seen: list[T] = []
    library = torch.library.Library("unstated_notes", "DEF")
    library.define("note(Tensor x) -> ()")
    library.impl("note", lambda x: seen.append(x.cpu()), "PrivateUse1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        op = ascend_graph.register_kernel(eager=torch.ops.unstated_notes.note, shape="->")
    x = torch.ones(2).npu()

    def run(x: T) -> T:
        torch.ops.unstated_notes.note(x)
        torch.ops.unstated_notes.note(x + 1)
        return x * 2

    torch.compile(run, backend="aot_eager")(x)
    assert [one.tolist() for one in seen] == [[1, 1], [2, 2]]
    op.unregister()
    assert torch.ops.unstated_notes.note.default not in _side_effectful_functions
    library._destroy()

"""The shape program in C++ allocates what the relation says, and leaves to the meta function what it does not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from eager_package import prototype
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascend_graph import AscendGraphError
from ascend_graph.eager import EagerOperator, define_operator
from ascend_graph.eager.operators import EagerOperator as Operator
from ascend_graph.shapes import ShapeError, parse_relation

#: Relations of Probe(x, w, b?, n, flag, dtype) -> y, z, and whether the program knows them.
RELATIONS = {
    "x[*s], w[*t] -> y[*s], z[*t]": True,
    "x[a, c], w[c, d], b[d] -> y[a, d], z[d, a]": True,
    "x[..., a, c], w[..., c, d] -> y[..., a, d], z[...]: int64": True,
    "x[..., c], w[..., c] -> y[..., c, n], z[..., 1]: promote(x, w)": True,
    "x[a, *s], w[*s] -> y[*s, a * 2 + 1], z[a // 2, a % 2, ceildiv(a, 3)]": True,
    "x[a, _], w[3], b -> y[(a if b else 7)], z[(a if flag else n)]: dtype": True,
    "x[*s], w, b -> y like x, z like w if b is None else [1]: bool": True,
    "x[a, c], w[a, c] -> y[k], z[k - n] where k = max(a, c, n) + rank(x), a <= c": True,
    "x[n, c], w[c] -> y[c]: w, z[numel(x)]: bool": True,
    "x[*s]: T, w[*s]: T -> y[*s]: T, z[]": True,
    "x: (float32, float16), w, b -> y[2]: dtype(w), z[3] if flag and not b else [4] if n > 3 else [5]": True,
    "x[a, c], w[c@-1, ...] -> y[a], z[c]": False,
    "x[*s], w -> y[*reshape(s, (2, -1))], z[1]": False,
}


@pytest.fixture(scope="module")
def operators() -> Any:
    made: dict[str, Operator] = {}
    for number, relation in enumerate(RELATIONS):
        try:
            made[relation] = define_operator(
                prototype("Probe"), relation, namespace="eager_tests", name=f"probe{number}"
            )
        except AscendGraphError as error:
            raise AssertionError(relation) from error
    yield made
    for operator in made.values():
        operator.remove()


def test_which_relations_the_program_knows(operators: dict[str, EagerOperator]) -> None:
    assert {relation: operator.plan.shapes is not None for relation, operator in operators.items()} == RELATIONS


_DTYPES = ["float32", "float16", "int32"]


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), relation=st.sampled_from(list(RELATIONS)))
def test_outputs_are_those_of_the_relation(
    operators: dict[str, EagerOperator], data: st.DataObject, relation: str
) -> None:
    shapes = {name: tuple(data.draw(st.lists(st.integers(0, 4), max_size=4))) for name in ("x", "w")}
    shapes["b"] = data.draw(st.none() | st.just(shapes["w"][-1:]))
    if data.draw(st.booleans()):  # more often something that fits
        shapes["w"] = data.draw(st.sampled_from([shapes["x"], shapes["x"][-1:], shapes["x"][1:]]))
    dtypes = {name: data.draw(st.sampled_from(_DTYPES)) for name in ("x", "w", "b")}
    attrs = {"n": data.draw(st.integers(-2, 5)), "flag": data.draw(st.booleans()), "dtype": "bfloat16"}
    arguments = [
        None if s is None else torch.zeros(s, dtype=getattr(torch, dtypes[n]), device="npu") for n, s in shapes.items()
    ]
    parsed = parse_relation(relation)
    mine = set(parsed.inputs)
    try:
        expected: Any = parsed.infer(
            {n: s for n, s in shapes.items() if n in mine}, {n: d for n, d in dtypes.items() if n in mine}, attrs
        )
    except AscendGraphError:
        expected = None
    call = operators[relation].overload
    if expected is None:
        with pytest.raises((ShapeError, RuntimeError)):
            call(*arguments, n=attrs["n"], flag=attrs["flag"], dtype=torch.bfloat16)
        return
    got = call(*arguments, n=attrs["n"], flag=attrs["flag"], dtype=torch.bfloat16)
    assert [None if t is None else (tuple(t.shape), str(t.dtype).removeprefix("torch.")) for t in got] == list(expected)


def test_meta_compile_and_opcheck(define: Callable[..., EagerOperator]) -> None:
    operator = define("AddCustom", "x[..., n], y[..., n] -> z[..., n]")
    add = operator.overload
    assert add(torch.zeros(2, 3, device="meta"), torch.zeros(3, device="meta")).shape == (2, 3)
    x = torch.randn(2, 3).npu()
    torch.library.opcheck(add, (x, x), test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_dynamic"))
    compiled = torch.compile(lambda x, y: add(x, y) * 2, backend="aot_eager", fullgraph=True, dynamic=True)
    for size in (3, 4, 5):
        y = torch.randn(2, size).npu()
        torch.testing.assert_close(compiled(y, y).cpu(), 4 * y.cpu())


def test_a_captured_graph_replays_the_call(define: Callable[..., EagerOperator]) -> None:
    add = define("AddCustom", "x[*s], y[*s] -> z[*s]").overload
    x = torch.ones(4).npu()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        z = add(add(x, x), x)
    for value in (2.0, 5.0):
        x.fill_(value)
        graph.replay()
        torch.npu.synchronize()
        assert z.cpu().tolist() == [3 * value] * 4


def test_another_stream(define: Callable[..., EagerOperator]) -> None:
    add = define("AddCustom", "x[*s], y[*s] -> z[*s]").overload
    x = torch.ones(4).npu()
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        z = add(x, x)
    stream.synchronize()
    assert z.cpu().tolist() == [2] * 4


@pytest.mark.slow
def test_a_million_calls_use_constant_memory(define: Callable[..., EagerOperator]) -> None:
    import resource

    add = define("AddCustom", "x[*s], y[*s] -> z[*s]").overload
    failing = define("Failing", "x[*s] -> y[*s]").overload
    x = torch.ones(4).npu()

    def calls(count: int) -> int:
        for n in range(count):
            add(x, x)
            if n % 100 == 0:
                with pytest.raises(RuntimeError):
                    failing(x)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = calls(100_000)
    assert calls(1_000_000) - before < 2048, "kilobytes"

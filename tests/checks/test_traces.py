"""Costs in chrome traces: of what torch.profiler and torch_npu.profiler recorded, equal to what a call of the
operator says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ascend_graph
from ascend_graph.checks.traces import TraceCosts, TraceError

FLOAT = "TensorType({DT_FLOAT, DT_FLOAT16, DT_BF16})"
HEADER = f"""
REG_OP(TracesMm).INPUT(a, {FLOAT}).INPUT(b, {FLOAT}).OUTPUT(y, {FLOAT}).OP_END_FACTORY_REG(TracesMm)
REG_OP(TracesScaled).INPUT(a, {FLOAT}).OPTIONAL_INPUT(bias, {FLOAT}).OUTPUT(y, {FLOAT})
    .ATTR(times, Int, 2).ATTR(mode, String, "n").OP_END_FACTORY_REG(TracesScaled)
REG_OP(TracesRepeated).INPUT(a, {FLOAT}).OUTPUT(y, {FLOAT}).REQUIRED_ATTR(times, Int).OP_END_FACTORY_REG(TracesRepeated)
REG_OP(TracesCat).DYNAMIC_INPUT(xs, {FLOAT}).OUTPUT(y, {FLOAT}).OP_END_FACTORY_REG(TracesCat)
"""
#: By op type the schema, a kernel, the relation and the formula.
OPERATORS: dict[str, tuple[str, Callable[..., Any], str, str | None]] = {
    "TracesMm": ("mm(Tensor a, Tensor b) -> Tensor", torch.mm, "a[m, k], b[k, n] -> y[m, n]", "2 * m * n * k"),
    "TracesScaled": (
        'scaled(Tensor a, Tensor? bias=None, int times=2, str mode="n") -> Tensor',
        lambda a, bias=None, times=2, mode="n": a * times if bias is None else a * times + bias,
        "a[*s] -> y[*s]",
        None,
    ),
    "TracesRepeated": (
        "repeated(Tensor a, int times) -> Tensor",
        lambda a, times: a.repeat(times),
        "a[n] -> y[n * times]",
        "n * times",
    ),
    "TracesCat": ("cat(Tensor[] xs) -> Tensor", torch.cat, "xs[i][n[i]] -> y[sum(n)]", None),
}


@pytest.fixture(scope="module")
def operators() -> Iterator[dict[str, Any]]:
    ascend_graph.load_prototypes(HEADER)
    library, made = torch.library.Library("traces", "DEF"), {}
    for op_type, (schema, kernel, relation, flops) in OPERATORS.items():
        name = schema.partition("(")[0]
        library.define(schema)
        library.impl(name, kernel, "CPU")
        eager = getattr(torch.ops.traces, name)
        made[name] = ascend_graph.register_op(op_type, eager=eager, shape=relation, flops=flops)
    yield made
    for operator in made.values():
        operator.unregister()
    library._destroy()


def profiled(path: Path, body: Callable[[], object], **options: Any) -> list[dict[str, Any]]:
    options = {"record_shapes": True, "acc_events": True} | options
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **options) as profile:
        body()
    profile.export_chrome_trace(str(path))
    return events(path)


def events(path: Path) -> list[dict[str, Any]]:
    content = json.loads(path.read_text())
    every = content["traceEvents"] if isinstance(content, dict) else content
    return [event for event in every if str(event.get("name", "")).startswith("traces::")]


def test_calls_have_their_cost(operators: dict[str, Any], tmp_path: Path) -> None:
    a, b, half = torch.ones(2, 3), torch.ones(3, 4), torch.ones(5, 2, dtype=torch.float16)
    path = tmp_path / "trace.json"

    def body() -> None:
        torch.ops.traces.mm(a, b)
        torch.ops.traces.scaled(half)
        torch.ops.traces.scaled(half, half, 3, mode="other")
        torch.ops.traces.repeated(a[0], 7)

    assert len(profiled(path, body)) == 4
    assert ascend_graph.add_costs(path) == TraceCosts(4)
    found = [(e["name"], e["args"].get("FLOPs"), e["args"]["Bytes"]) for e in events(path)]
    assert found == [
        ("traces::mm", 2 * 2 * 4 * 3, 4 * (6 + 12 + 8)),
        ("traces::scaled", None, 2 * (10 + 10)),
        ("traces::scaled", None, 2 * (10 + 10 + 10)),
        ("traces::repeated", 21, 4 * (3 + 21)),
    ]
    for name, args in [("mm", (a, b)), ("scaled", (half,)), ("scaled", (half, half, 3)), ("repeated", (a[0], 7))]:
        cost = operators[name].cost(*(x.to("meta") if isinstance(x, torch.Tensor) else x for x in args))
        assert (f"traces::{name}", cost.flops, cost.bytes) in found


def test_what_traces_do_not_say_is_counted(operators: dict[str, Any], tmp_path: Path) -> None:
    path, output = tmp_path / "trace.json", tmp_path / "with_costs.json"
    x = torch.ones(3)
    profiled(path, lambda: (torch.ops.traces.cat([x, x]), torch.ops.traces.mm(x[None], x[:, None])))
    content = path.read_text()
    assert ascend_graph.add_costs(path, output) == TraceCosts(
        1, {"traces::cat: traces do not have the dtypes of lists of tensors; expected single tensors, not xs": 1}
    )
    assert path.read_text() == content
    assert [event["name"] for event in events(output) if "Bytes" in event["args"]] == ["traces::mm"]
    profiled(path, lambda: torch.ops.traces.mm(x[None], x[:, None]), record_shapes=False)
    reason = "traces::mm: the trace has no shapes; profile with record_shapes=True"
    assert ascend_graph.add_costs(path) == TraceCosts(0, {reason: 1})


def test_traces_as_torch_npu_writes_them(operators: dict[str, Any], tmp_path: Path) -> None:
    def event(name: str, dims: str, types: str) -> dict[str, Any]:
        return {"ph": "X", "name": f"traces::{name}", "dur": 1.0, "args": {"Input Dims": dims, "Input type": types}}

    path = tmp_path / "trace_view.json"
    calls = [
        event("mm", "8,16;\r\n16,4", "c10::Half;\r\nc10::Half"),
        event("scaled", ";\r\n;\r\n;\r\n", "float;\r\nNone;\r\nScalar;\r\nNone"),
        event("repeated", "8;\r\n", "float;\r\nScalar"),
    ]
    path.write_text(json.dumps(calls))
    reason = "traces::repeated: its cost depends on times, whose value the trace does not have; leave it out of flops="
    assert ascend_graph.add_costs(path) == TraceCosts(2, {reason: 1})
    mm, scaled, _ = events(path)
    assert (mm["args"]["FLOPs"], mm["args"]["Bytes"]) == (2 * 8 * 16 * 4, 2 * (128 + 64 + 32))
    assert scaled["args"]["Bytes"] == 4 + 4, "a tensor without dimensions, an absent one"
    path.write_text(json.dumps([event("mm", "0,16;\r\n16,4", "float;\r\nfloat")]))
    assert ascend_graph.add_costs(path) == TraceCosts(1)
    (empty,) = events(path)
    assert (empty["args"]["FLOPs"], empty["args"]["Bytes"]) == (0, 4 * 64), "a size of 0 is one"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("no json", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("{}", "has no list of events; pass what export_chrome_trace wrote"),
        ("7", "has no list of events"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, match: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(TraceError, match=match):
        ascend_graph.add_costs(path)
    assert path.read_text() == text
    with pytest.raises(TraceError, match="No such file"):
        ascend_graph.add_costs(tmp_path / "none.json")


@pytest.mark.parametrize(
    "arguments",
    [
        {"Input Dims": [[1, 2], [3, 4]], "Input type": ["float", "float"]},
        {"Input Dims": [[2, "x"], [2, 4]], "Input type": ["float", "float"]},
        {"Input Dims": [[2, 3], 7], "Input type": ["float", "float"]},
        {"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "Quaternion"]},
        {"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", ["float"]]},
        {"Input Dims": [[2, 3], [3, 4], []], "Input type": ["float", "float", "Scalar"]},
        {"Input Dims": {"a": 1}, "Input type": []},
        {"Input Dims": "2,3", "Input type": "float"},
        "text",
        None,
    ],
)
def test_events_that_make_no_sense_have_no_cost(operators: dict[str, Any], tmp_path: Path, arguments: Any) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([None, 3, {"ph": "X", "name": "traces::mm", "args": arguments}]))
    found = ascend_graph.add_costs(path)
    assert found.added == 0
    (reason,) = found.left
    assert reason.startswith("traces::mm: ")


_NUMBERS = st.one_of(st.none(), st.booleans(), st.integers(-2, 2**70), st.floats(), st.text(max_size=8))
_VALUES = st.recursive(_NUMBERS, lambda inner: st.lists(inner, max_size=4), max_leaves=8)


@given(
    dims=_VALUES,
    types=st.one_of(_VALUES, st.lists(st.sampled_from(["float", "Scalar", ""]), max_size=3)),
    values=_VALUES,
)
def test_no_event_is_an_error(
    operators: dict[str, Any], tmp_path_factory: Any, dims: Any, types: Any, values: Any
) -> None:
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    arguments = {"Input Dims": dims, "Input type": types, "Concrete Inputs": values}
    names = ["traces::mm", "traces::scaled", "traces::repeated", "traces::cat"]
    path.write_text(json.dumps([{"ph": "X", "name": name, "args": arguments} for name in names]))
    found = ascend_graph.add_costs(path)
    assert found.added + sum(found.left.values()) == len(names)


def test_a_cost_needs_a_relation(operators: dict[str, Any]) -> None:
    from ascend_graph.shapes import ShapeError

    with pytest.raises(ShapeError):
        operators["mm"].cost(torch.ones(2, 3), torch.ones(4, 4))

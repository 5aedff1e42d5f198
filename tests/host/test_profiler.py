"""PyTorch's and torch_npu's own profilers see host times of operators, of graphs' nodes and of what streams run."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = """
import sys
import torch, torch_npu
import torch_npu.dynamo.torchair as torchair
from torch_npu import profiler

x, layer = torch.ones(4, 16, device="npu"), torch.nn.Linear(16, 16).npu()
graph = torch.compile(lambda x: (x * 2).relu().sum(), backend=torchair.get_npu_backend(), dynamic=False)
graph(x)
captured = torch.npu.NPUGraph()
with torch.npu.graph(captured):
    y = x.tanh()
activities = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU]
handler = profiler.tensorboard_trace_handler(sys.argv[1])
with profiler.profile(activities=activities, on_trace_ready=handler, record_shapes=True, profile_memory=True):
    layer(x).sigmoid().sum().backward()
    graph(x)
    captured.replay()
"""


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What torch_npu's profiler writes of a step; in a process of its own, for it forks."""
    directory = tmp_path_factory.mktemp("profile")
    script = directory / "step.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "ascend_graph.host", "--quiet", str(script), str(directory / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    (found,) = (directory / "out").glob("*/ASCEND_PROFILER_OUTPUT")
    return found


def test_the_trace_has_operators_nodes_and_kernels(profiled: Path) -> None:
    events = json.loads((profiled / "trace_view.json").read_text())
    times = {event["name"]: float(event["dur"]) for event in events if event.get("ph") == "X"}
    operators = {"aten::sigmoid", "aten::sum", "aten::addmm"}
    nodes = {name.split(":")[0] for name in times if ": " in name}
    assert operators <= times.keys()
    assert {"Mul", "Relu"} <= nodes, "of the GE graph"
    assert any("tanh" in name for name in times), "of the captured graph"
    assert all(time >= 0 for time in times.values())


def test_tables_are_written(profiled: Path) -> None:
    with (profiled / "operator_details.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert any(row["Name"] == "aten::sigmoid" and "4,16" in row["Input Shapes"] for row in rows)
    with (profiled / "operator_memory.csv").open() as file:
        assert any(float(row["Size(KB)"]) > 0 for row in csv.DictReader(file))


def test_pytorchs_own_profiler_sees_kernels() -> None:
    x = torch.ones(8, device="npu")
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = x.exp()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        graph.replay()
    assert any("exp" in event.name for event in profile.events())
    assert y.tolist() == pytest.approx([torch.e] * 8)


def test_a_snapshot_of_memory_knows_who_allocated() -> None:
    torch.npu.memory._record_memory_history(stacks="python")
    try:
        x = torch.ones(1 << 16, device="npu")
        events = torch.npu.memory._snapshot()["device_traces"][0]
    finally:
        torch.npu.memory._record_memory_history(enabled=None)
    found = [event for event in events if event["action"] == "alloc" and event["addr"] == x.data_ptr()]
    assert any("test_profiler.py" in frame["filename"] for event in found for frame in event["frames"])

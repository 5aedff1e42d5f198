"""PyTorch's and torch_npu's own profilers see host times of operators, of graphs' nodes and of what streams run."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import preloaded
import pytest
import torch

from ascend_graph.environment import toolkit_directory

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
    command = [sys.executable, str(script), str(directory / "out")]
    done = preloaded.run(command, capture_output=True, text=True, check=False, timeout=600)
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
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True) as profile:
        graph.replay()
    assert any("exp" in event.name for event in profile.events())
    assert y.tolist() == pytest.approx([torch.e] * 8)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The events of PyTorch's profiler with the activities that it takes by itself, the device's among them."""
    import torch_npu
    from torch_npu.dynamo import torchair

    library = Path(torch_npu.__file__).parent / "lib/libtorch_npu.so"
    if b"libkineto17IActivityProfiler" not in library.read_bytes():
        pytest.skip(f"torch_npu {torch_npu.__version__} tells PyTorch's profiler nothing of the device")
    x, side = torch.ones(8, 16, device="npu"), torch.npu.Stream()
    graph = torch.compile(lambda x: x.relu().exp(), backend=torchair.get_npu_backend(), dynamic=False)
    graph(x)
    captured = torch.npu.NPUGraph()
    with torch.npu.graph(captured):
        y = x.tanh()
    torch.npu.synchronize()
    with torch.profiler.profile(acc_events=True) as profile:
        x.sigmoid()
        torch_npu.npu_swiglu(x)
        graph(x)
        captured.replay()
        with torch.npu.stream(side):
            x.cos()
        torch.npu.synchronize()
    assert y.shape == x.shape
    path = tmp_path_factory.mktemp("profile") / "trace.json"
    profile.export_chrome_trace(str(path))
    events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return events


def test_a_device_has_its_kernels_each_once(traced: list[dict[str, Any]]) -> None:
    kernels = [event for event in traced if event.get("cat") == "kernel"]
    names = [kernel["name"] for kernel in kernels]
    found = [name.split(":")[0] if ": " in name else name for name in names]
    assert sorted(found) == sorted(["aten::sigmoid", "SwiGlu", "Relu", "Exp", "aten::tanh", "aten::cos"])
    assert all(kernel["args"]["type"] == "HOST" and kernel["dur"] >= 0 for kernel in kernels)
    streams = {name: kernel["args"]["streamId"] for name, kernel in zip(names, kernels, strict=True)}
    assert streams["aten::sigmoid"] == streams["aten::tanh"] != streams["aten::cos"]


def test_a_kernel_is_linked_to_who_launched_it(traced: list[dict[str, Any]]) -> None:
    starts = {event["id"]: event for event in traced if event.get("cat") == "ac2g" and event["ph"] == "s"}
    ends = [event for event in traced if event.get("cat") == "ac2g" and event["ph"] == "f"]
    (sigmoid,) = (event for event in traced if event.get("cat") == "kernel" and event["name"] == "aten::sigmoid")
    (end,) = (event for event in ends if event["ts"] == sigmoid["ts"])
    calls = [event for event in traced if event.get("cat") == "cpu_op" and event["name"] == "aten::sigmoid"]
    call = min(calls, key=lambda event: float(event["ts"]))  # the others are within it
    assert call["ts"] <= starts[end["id"]]["ts"] <= call["ts"] + call["dur"]


def test_a_profiler_that_records_events_at_each_range_is_told_of_work_alone() -> None:
    x = torch.ones(8, 4, device="npu")
    with torch.autograd.profiler.profile(use_device="npu") as profile:
        x.t().contiguous()
        torch.npu.current_stream().record_event()
    names = {event.name for event in profile.function_events or []}
    assert "aten::clone" in names or "aten::contiguous" in names
    assert not any("record event" in name for name in names)
    # What torch 2.7 leaves out of its tables, for it looks for the backend under its first name.
    assert sum(event.privateuse1_elapsed_us() for event in profile.kineto_results.events()) > 0


class Records:
    """The records of the profiling tools interface, taken from it as a program in C would."""

    def __init__(self, *, buffer_bytes: int = 4096, most: int = 0) -> None:
        import ctypes

        self.library = ctypes.CDLL(str(toolkit_directory() / "lib64/libmspti.so"))
        self.kernels: list[str] = []
        self.external: list[int] = []
        self.last = -1
        self._memory = ctypes.create_string_buffer(max(buffer_bytes, 1))
        pointer, size = ctypes.c_void_p, ctypes.c_size_t

        def request(buffer: Any, bytes_: Any, records: Any) -> None:
            buffer[0] = ctypes.addressof(self._memory) if buffer_bytes else None
            bytes_[0], records[0] = buffer_bytes, most

        def complete(buffer: int, _size: int, valid: int) -> None:
            record = pointer()
            while True:
                self.last = self.library.msptiActivityGetNextRecord(pointer(buffer), size(valid), ctypes.byref(record))
                if self.last:
                    return
                kind = ctypes.c_int32.from_address(record.value).value
                if kind == 2:
                    name = ctypes.c_void_p.from_address(record.value + 44).value
                    self.kernels.append(ctypes.string_at(name).decode())
                else:
                    self.external.append(ctypes.c_uint64.from_address(record.value + 8).value)

        requests = ctypes.CFUNCTYPE(None, ctypes.POINTER(pointer), ctypes.POINTER(size), ctypes.POINTER(size))
        completes = ctypes.CFUNCTYPE(None, pointer, size, size)
        self._kept = requests(request), completes(complete)
        assert self.library.msptiActivityRegisterCallbacks(*self._kept) == 0

    def of(self, body: Callable[[], None]) -> Records:
        kinds = (2, 8)
        for kind in kinds:
            assert self.library.msptiActivityEnable(kind) == 0
            assert self.library.msptiActivityIsEnabled(kind)
        body()
        for kind in kinds:
            assert self.library.msptiActivityDisable(kind) == 0
        assert self.library.msptiActivityFlushAll(1) == 0
        return self


def test_the_profiling_interface_gives_every_record_once_whatever_the_buffers_hold() -> None:
    x = torch.ones(4, device="npu")

    def three() -> None:
        for _ in range(3):
            x.sin()

    for buffer_bytes, most in [(4096, 0), (56, 0), (4096, 2)]:
        records = Records(buffer_bytes=buffer_bytes, most=most).of(three)
        assert records.kernels == ["aten::sin"] * 3
        assert records.last == 3, "the end of a buffer: MSPTI_ERROR_MAX_LIMIT_REACHED"
    assert Records(buffer_bytes=0).of(three).kernels == [], "no buffer: the records are lost"
    assert Records(buffer_bytes=8).of(three).kernels == [], "not one record fits"
    x.sin()
    assert Records().of(lambda: None).kernels == [], "nothing is recorded that nobody asked for"


def test_the_profiling_interface_knows_the_calls_that_a_kernel_is_in() -> None:
    import ctypes

    x, library = torch.ones(4, device="npu"), Records().library

    def nested() -> None:
        x.sin()
        assert library.msptiActivityPushExternalCorrelationId(2, ctypes.c_uint64(7)) == 0
        assert library.msptiActivityPushExternalCorrelationId(2, ctypes.c_uint64(8)) == 0
        x.sin()
        assert library.msptiActivityPopExternalCorrelationId(2, None) == 0
        x.sin()
        last = ctypes.c_uint64()
        assert library.msptiActivityPopExternalCorrelationId(2, ctypes.byref(last)) == 0
        assert last.value == 7
        assert library.msptiActivityPopExternalCorrelationId(2, None) == 5, "MSPTI_ERROR_QUEUE_EMPTY"

    records = Records().of(nested)
    assert records.external == [8, 7]
    assert len(records.kernels) == 3


def test_the_profiling_interface_refuses_what_it_cannot_do() -> None:
    import ctypes

    library, subscriber = Records().library, ctypes.c_void_p()
    assert library.msptiSubscribe(None, None, None) == 1
    assert library.msptiSubscribe(ctypes.byref(subscriber), None, None) == 0
    assert library.msptiSubscribe(ctypes.byref(ctypes.c_void_p()), None, None) == 2, "one subscriber at a time"
    assert library.msptiUnsubscribe(subscriber) == 0
    assert library.msptiUnsubscribe(subscriber) == 1
    assert library.msptiActivityEnable(0) == 1
    assert library.msptiActivityEnable(99) == 1
    for kind in (0, 5):
        assert library.msptiActivityPushExternalCorrelationId(kind, ctypes.c_uint64(1)) == 1
        assert library.msptiActivityPopExternalCorrelationId(kind, None) == 1
    assert library.msptiActivityRegisterCallbacks(None, None) == 1
    assert library.msptiActivityGetNextRecord(None, ctypes.c_size_t(0), None) == 1


def test_a_snapshot_of_memory_knows_who_allocated() -> None:
    torch.npu.memory._record_memory_history(stacks="python")
    try:
        x = torch.ones(1 << 16, device="npu")
        events = torch.npu.memory._snapshot()["device_traces"][0]
    finally:
        torch.npu.memory._record_memory_history(enabled=None)
    found = [event for event in events if event["action"] == "alloc" and event["addr"] == x.data_ptr()]
    assert any("test_profiler.py" in frame["filename"] for event in found for frame in event["frames"])

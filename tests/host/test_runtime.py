"""Devices, memory, streams, events and captured models, as torch_npu sees them."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest
import torch

from ascend_graph.host.toolkit import toolkit_directory


@pytest.fixture(scope="module")
def acl() -> ctypes.CDLL:
    library = ctypes.CDLL(str(toolkit_directory() / "lib64/libascendcl.so"))
    library.aclGetRecentErrMsg.restype = ctypes.c_char_p
    return library


def test_copies_between_host_and_device() -> None:
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    d = x.npu()
    assert d.device.type == "npu"
    assert torch.equal(d.cpu(), x)
    assert torch.equal(d.t().contiguous().cpu(), x.t())
    assert torch.equal(d.clone().npu(), d)
    pinned = x.pin_memory()
    assert torch.equal(pinned.to("npu", non_blocking=True).cpu(), x)


def test_memory_is_accounted() -> None:
    free, total = torch.npu.mem_get_info()
    assert 0 < free <= total
    before = torch.npu.memory_allocated()
    x = torch.empty(1 << 20, dtype=torch.float32, device="npu")
    assert torch.npu.memory_allocated() - before >= 4 << 20
    del x
    assert torch.npu.memory_allocated() == before


def test_out_of_memory_is_an_exception_and_the_device_stays_usable() -> None:
    total = torch.npu.mem_get_info()[1]
    with pytest.raises(RuntimeError, match="out of memory"):
        torch.empty(2 * total, dtype=torch.uint8, device="npu")
    assert torch.ones(2, device="npu").sum().item() == 2


def test_streams_and_events() -> None:
    stream = torch.npu.Stream()
    start, end = (torch.npu.Event(enable_timing=True) for _ in range(2))
    with torch.npu.stream(stream):
        start.record()
        y = torch.ones(64, 64, device="npu") @ torch.ones(64, 64, device="npu")
        end.record()
    torch.npu.current_stream().wait_stream(stream)
    assert end.query()
    assert start.elapsed_time(end) > 0
    assert y[0, 0].item() == 64


def test_graph_capture_records_without_running() -> None:
    x = torch.ones(4, device="npu")
    y = torch.zeros(4, device="npu")
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y.add_(x)
        z = y * 2
    assert y.tolist() == [0] * 4  # recorded, not run
    graph.replay()
    graph.replay()
    assert y.tolist() == [2] * 4
    assert z.tolist() == [4] * 4
    x.fill_(5)
    graph.replay()
    assert z.tolist() == [14] * 4


def test_a_graph_may_live_as_long_as_the_process() -> None:
    code = (
        "import torch, torch_npu\nx = torch.ones(4).npu()\ngraph = torch.npu.NPUGraph()\n"
        "with torch.npu.graph(graph):\n    y = x + 1\n    torch.zeros(20, device='npu')\n"  # owned by the graph alone
        "graph.replay()\nprint(y.tolist())"
    )
    command = [sys.executable, "-m", "ascend_graph.host", "--quiet", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "[2.0, 2.0, 2.0, 2.0]\n"), result.stderr


def test_capture_refuses_to_synchronise() -> None:
    x = torch.ones(4, device="npu")
    graph = torch.npu.NPUGraph()
    with pytest.raises(RuntimeError, match="captur"), torch.npu.graph(graph):
        x.sum().item()
    assert x.sum().item() == 4


@pytest.mark.parametrize(
    ("call", "code", "text"),
    [
        (lambda acl: acl.aclrtFree(ctypes.c_void_p(12345)), 100000, b"not the start of a live allocation"),
        (lambda acl: acl.aclrtDestroyStream(ctypes.c_void_p(12345)), 200005, b"not a live stream"),
        (lambda acl: acl.aclrtDestroyEvent(ctypes.c_void_p(12345)), 200005, b"not a live event"),
        (lambda acl: acl.aclmdlRIExecuteAsync(ctypes.c_void_p(12345), None), 200005, b"not a live model"),
        (lambda acl: acl.aclrtSetDevice(99), 200002, b"device 99 is not in 0..0"),
        (lambda acl: acl.aclrtMemcpy(None, 4, None, 8, 0), 100000, b"8 bytes do not fit in 4"),
    ],
)
def test_bad_handles_are_errors_not_crashes(acl: ctypes.CDLL, call, code: int, text: bytes) -> None:
    assert call(acl) == code
    assert text in acl.aclGetRecentErrMsg()


def test_several_devices() -> None:
    code = "import torch; print(torch.npu.device_count(), torch.ones(2, device='npu:1').device)"
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=_environment(ASCEND_GRAPH_HOST_DEVICES="2"),
    )
    assert result.stdout.split() == ["2", "npu:1"]


def _environment(**changes: str) -> dict[str, str]:
    import os

    return {**os.environ, **changes}

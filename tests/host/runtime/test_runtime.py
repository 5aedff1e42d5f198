"""Devices, memory, streams, events and captured models, as torch_npu sees them."""

from __future__ import annotations

import ctypes
import os
import sys

import preloaded
import pytest
import torch

from ascend_graph.environment import toolkit_directory


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
    command = [sys.executable, "-c", code]
    result = preloaded.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "[2.0, 2.0, 2.0, 2.0]\n"), result.stderr


def test_capture_refuses_to_synchronize() -> None:
    x = torch.ones(4, device="npu")
    graph = torch.npu.NPUGraph()
    with pytest.raises(RuntimeError, match="captur"), torch.npu.graph(graph):
        x.sum().item()
    assert x.sum().item() == 4


@pytest.mark.parametrize(
    ("call", "code", "text"),
    [
        (lambda acl: acl.aclrtFree(ctypes.c_void_p(12345)), 100000, b"expected the address that an allocation"),
        (lambda acl: acl.aclrtDestroyStream(ctypes.c_void_p(12345)), 200005, b"not a live stream"),
        (lambda acl: acl.aclrtDestroyEvent(ctypes.c_void_p(12345)), 200005, b"not a live event"),
        (lambda acl: acl.aclmdlRIExecuteAsync(ctypes.c_void_p(12345), None), 200005, b"not a live model"),
        (lambda acl: acl.aclrtSetDevice(99), 200002, b"device 99 is not there; expected 0 to 0"),
        (lambda acl: acl.aclrtMemcpy(None, 4, None, 8, 0), 100000, b"8 bytes do not fit; expected at most 4"),
        (
            lambda acl: acl.aclrtCmoAsync(ctypes.c_void_p(12345), ctypes.c_size_t(4), 0, None),
            100000,
            b"of one allocation",
        ),
        (
            lambda acl: acl.aclrtCmoAsync(None, ctypes.c_size_t(4), 2, None),
            100000,
            b"type 2 is not supported; expected ACL_RT_CMO_TYPE_PREFETCH",
        ),
    ],
)
def test_bad_handles_are_errors_not_crashes(acl: ctypes.CDLL, call, code: int, text: bytes) -> None:
    assert call(acl) == code
    assert text in acl.aclGetRecentErrMsg()


def test_several_devices() -> None:
    code = "import torch; print(torch.npu.device_count(), torch.ones(2, device='npu:1').device)"
    result = preloaded.run(
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


def test_expandable_segments() -> None:
    """torch_npu's segments of virtual memory: tensors that lie across several pieces, give their memory back, and
    are captured."""
    code = """
import torch, torch_npu
kept = torch.randn(3 << 20, device="npu")
large = [torch.randn(n << 20, device="npu") for n in (7, 20, 11)]
assert all(float(x.sum()) == float(x.cpu().sum()) for x in large)
assert torch_npu.npu_swiglu(large[1].view(8, -1)).shape == (8, 20 << 16)
graph = torch.npu.NPUGraph()
with torch.npu.graph(graph):
    total = large[1].exp().sum()
graph.replay()
assert torch.allclose(total.cpu(), large[1].cpu().exp().sum(), rtol=1e-4)
free = torch.npu.mem_get_info()[0]
del large, graph, total
torch.npu.empty_cache()
assert torch.npu.mem_get_info()[0] - free >= 38 << 22
assert torch.npu.memory_reserved() < 64 << 20
assert kept.isfinite().all()
segments = torch.npu.memory_snapshot()
assert any(segment["is_expandable"] for segment in segments)
"""
    environment = os.environ | {"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"}
    preloaded.run([sys.executable, "-c", code], check=True, env=environment, timeout=600)


class Physical(ctypes.Structure):
    """aclrtPhysicalMemProp."""

    _fields_ = (
        ("handle_type", ctypes.c_int),
        ("allocation_type", ctypes.c_int),
        ("attribute", ctypes.c_int),
        ("device", ctypes.c_uint32),
        ("location", ctypes.c_int),
        ("reserved", ctypes.c_uint64),
    )


def test_virtual_memory(acl: ctypes.CDLL) -> None:
    unit, size = 2 << 20, ctypes.c_size_t
    pointer, zero = ctypes.c_void_p, ctypes.c_uint64(0)
    address, first, second = pointer(), pointer(), pointer()
    properties = Physical(location=1)

    def map_to(where: int, handle: ctypes.c_void_p, count: int = unit) -> int:
        return int(acl.aclrtMapMem(pointer(where), size(count), size(0), handle, zero))

    def refused(code: int, text: bytes) -> None:
        assert code == 100000
        assert text in acl.aclGetRecentErrMsg()

    assert acl.aclrtReserveMemAddress(ctypes.byref(address), size(5 * unit), size(0), None, ctypes.c_uint64(1)) == 0
    begin = address.value
    assert begin is not None
    assert begin % unit == 0
    used = torch.npu.mem_get_info()[0]
    for handle in (first, second):
        assert acl.aclrtMallocPhysical(ctypes.byref(handle), size(unit), ctypes.byref(properties), zero) == 0
    assert used - torch.npu.mem_get_info()[0] == 2 * unit
    assert map_to(begin, first) == 0
    assert map_to(begin + unit, second) == 0
    # Neighbors are one allocation, in which work may go from one to the other.
    base, extent = pointer(), size()
    acl.ascendgraphAllocationExtent.restype = ctypes.c_bool
    assert acl.ascendgraphAllocationExtent(pointer(begin + unit + 7), ctypes.byref(base), ctypes.byref(extent))
    assert (base.value, extent.value) == (begin, 2 * unit)
    assert acl.aclrtMemset(pointer(begin + unit - 4), size(8), 7, size(8)) == 0
    # Memory may be seen at two addresses.
    assert map_to(begin + 3 * unit, second) == 0
    assert ctypes.string_at(begin + 3 * unit, 5) == b"\7\7\7\7\0"
    assert acl.ascendgraphAllocationExtent(pointer(begin + 3 * unit), ctypes.byref(base), ctypes.byref(extent))
    assert (base.value, extent.value) == (begin + 3 * unit, unit)

    # Access to it may be given, and not be taken away: nothing here would refuse what a device then refuses.
    access = (ctypes.c_uint32 * 6)(3, 0, 1)  # aclrtMemAccessDesc: flags, device, location
    assert acl.aclrtMemSetAccess(pointer(begin), size(unit), access, size(1)) == 0
    for flags in (0, 1):
        access[0] = flags
        assert acl.aclrtMemSetAccess(pointer(begin), size(unit), access, size(1)) == 200001
        assert b"the host runtime protects no memory" in acl.aclGetRecentErrMsg()

    refused(map_to(begin, first), b"mapped to the address range already")
    refused(map_to(begin + 5 * unit, first), b"must be within one that aclrtReserveMemAddress reserved")
    refused(map_to(begin + 2 * unit, first, 2 * unit), b"size 4194304 must be the size of the physical memory, 2097152")
    refused(map_to(begin + 2 * unit + 512, first), b"must be a multiple of 2097152")
    refused(acl.aclrtFree(pointer(begin)), b"expected the address that an allocation")
    refused(acl.aclrtFreePhysical(second), b"call aclrtUnmapMem first")
    refused(acl.aclrtReleaseMemAddress(address), b"call aclrtUnmapMem first")
    refused(acl.aclrtUnmapMem(pointer(begin + 512)), b"expected the address that was given to aclrtMapMem")
    refused(
        acl.aclrtMallocPhysical(ctypes.byref(pointer()), size(512), ctypes.byref(properties), zero),
        b"must be a positive multiple",
    )
    for where in (begin, begin + unit, begin + 3 * unit):
        assert acl.aclrtUnmapMem(pointer(where)) == 0
    assert not acl.ascendgraphAllocationExtent(pointer(begin), ctypes.byref(base), ctypes.byref(extent))
    assert map_to(begin + 2 * unit, second) == 0
    assert ctypes.string_at(begin + 2 * unit, 4) == b"\7\7\7\7", "physical memory keeps what it holds"
    assert acl.aclrtUnmapMem(pointer(begin + 2 * unit)) == 0
    for handle in (first, second):
        assert acl.aclrtFreePhysical(handle) == 0
        refused(acl.aclrtFreePhysical(handle), b"not a live handle")
    assert torch.npu.mem_get_info()[0] == used
    assert acl.aclrtReleaseMemAddress(address) == 0
    refused(acl.aclrtReleaseMemAddress(address), b"expected the address that aclrtReserveMemAddress returned")


def test_saturating_arithmetic_is_not_claimed() -> None:
    code = "import torch, torch_npu; print(torch.ones(2, device='npu').sum())"
    environment = os.environ | {"INF_NAN_MODE_FORCE_DISABLE": "1"}
    done = preloaded.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr.count("the saturating arithmetic that INF_NAN_MODE_FORCE_DISABLE=1") == 1


def test_no_bytes_of_the_host_can_be_registered(acl: ctypes.CDLL) -> None:
    memory = ctypes.create_string_buffer(64)
    for function in (acl.aclrtHostRegisterV2, acl.aclrtHostRegister):
        seen = ctypes.c_void_p()
        assert function(memory, ctypes.c_uint64(64), 0, ctypes.byref(seen)) == 0
        assert function(memory, ctypes.c_uint64(0), 0, ctypes.byref(seen)) == 100000
        assert function(None, ctypes.c_uint64(64), 0, ctypes.byref(seen)) == 100000

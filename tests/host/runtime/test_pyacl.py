"""pyACL, CANN's Python module ``acl``: against torch_npu's view of devices and memory."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import acl
import numpy as np
import pytest
import torch
import torch_npu

TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 3
FLOAT32 = 11  # NumPy's own number


@pytest.fixture(autouse=True)
def _device() -> None:
    torch.npu.set_device(0)


def good(result: Any) -> Any:
    """The values of a call that has succeeded."""
    *values, ret = result if isinstance(result, tuple) else (result,)
    assert ret == 0, acl.get_recent_err_msg()
    return values[0] if len(values) == 1 else tuple(values) or None


# -------------------------------------------------------------------------------------------------- devices and memory


def test_devices_are_those_of_torch_npu() -> None:
    assert good(acl.rt.get_device_count()) == torch.npu.device_count()
    assert acl.init() == 100002  # torch_npu has initialized: ACL_ERROR_REPEAT_INITIALIZE
    assert acl.rt.get_soc_name() == acl.get_soc_name() == torch_npu.npu.get_device_name(0)
    assert good(acl.get_version()) == good(acl.rt.get_version())
    assert good(acl.rt.get_device()) == torch.npu.current_device() == 0
    assert good(acl.rt.get_run_mode()) == 1  # ACL_HOST
    assert acl.rt.set_device(10**6) == 200002


def test_memory_is_that_of_torch_npu() -> None:
    from acl.rt import memcpy

    x = torch.arange(24, dtype=torch.float32).npu()
    host = np.zeros(24, np.float32)
    assert memcpy(acl.util.numpy_to_ptr(host), host.nbytes, x.data_ptr(), host.nbytes, TO_HOST) == 0
    np.testing.assert_array_equal(host, np.arange(24, dtype=np.float32))

    device = good(acl.rt.malloc(host.nbytes, 0))
    pinned = good(acl.rt.malloc_host(host.nbytes))
    assert memcpy(device, host.nbytes, acl.util.bytes_to_ptr((host * 3).tobytes()), host.nbytes, TO_DEVICE) == 0
    assert memcpy(x.data_ptr(), host.nbytes, device, host.nbytes, ON_DEVICE) == 0
    assert x.tolist() == [3.0 * i for i in range(24)]
    assert memcpy(pinned, host.nbytes, device, host.nbytes, TO_HOST) == 0
    np.testing.assert_array_equal(acl.util.ptr_to_numpy(pinned, (4, 6), FLOAT32), (host * 3).reshape(4, 6))
    assert acl.util.ptr_to_bytes(pinned, host.nbytes) == (host * 3).tobytes()
    assert acl.rt.memset(device, host.nbytes, 0, host.nbytes) == 0
    assert memcpy(x.data_ptr(), host.nbytes, device, host.nbytes, ON_DEVICE) == 0
    assert not x.any()
    assert acl.rt.free(device) == 0
    assert acl.rt.free_host(pinned) == 0
    assert acl.rt.free(device) != 0
    assert memcpy(pinned, 4, x.data_ptr(), 8, TO_HOST) == 100000  # more than fits
    assert "aclrtMemcpy" in acl.get_recent_err_msg()


def test_memory_counts_as_torch_npu_counts_it() -> None:
    size = 1 << 22
    free, total = good(acl.rt.get_mem_info(1))
    assert total == torch.npu.mem_get_info()[1]
    device = good(acl.rt.malloc(size, 2))
    assert good(acl.rt.get_mem_info(1))[0] == torch.npu.mem_get_info()[0] <= free - size
    assert acl.rt.free(device) == 0


def test_work_on_a_stream_of_torch_npu() -> None:
    x = torch.zeros(4).npu()
    values = np.full(4, 2.5, np.float32)
    stream = torch.npu.Stream()
    pointer = acl.util.numpy_to_ptr(values)
    assert acl.rt.memcpy_async(x.data_ptr(), 16, pointer, 16, TO_DEVICE, stream.npu_stream) == 0
    assert acl.rt.synchronize_stream(stream.npu_stream) == 0
    assert x.tolist() == [2.5] * 4


# --------------------------------------------------------------------------------------------------- streams and events


def test_events() -> None:
    stream, start, end = good(acl.rt.create_stream()), good(acl.rt.create_event()), good(acl.rt.create_event())
    # An event that was never recorded counts as complete; the two functions number the same state the other way round.
    for event in (start, end):
        status, old = good(acl.rt.query_event_status(event)), good(acl.rt.query_event(event))
        assert status + old == 1
        assert acl.rt.record_event(event, stream) == 0
        time.sleep(0.02)
    assert acl.rt.synchronize_event(end) == 0
    assert (good(acl.rt.query_event_status(end)), good(acl.rt.query_event(end))) == (1, 0)
    assert 15 < good(acl.rt.event_elapsed_time(start, end)) < 2000
    assert acl.rt.stream_wait_event(stream, end) == 0
    assert [acl.rt.destroy_event(e) for e in (start, end)] == [0, 0]
    assert acl.rt.destroy_stream(stream) == 0
    assert acl.rt.destroy_stream(stream) != 0


def test_contexts() -> None:
    first = good(acl.rt.get_context())
    second = good(acl.rt.create_context(0))
    assert second != first
    assert good(acl.rt.get_context()) == second
    assert acl.rt.set_context(first) == 0
    assert acl.rt.destroy_context(second) == 0
    assert good(acl.rt.get_context()) == first


class Reports:
    """A thread that processes reports, subscribed to a stream of its own."""

    def __enter__(self) -> Reports:
        self.ends = False
        self.codes: set[int] = set()
        self.stream = good(acl.rt.create_stream())
        self.thread = good(acl.util.start_thread(self.process, [20]))
        assert acl.rt.subscribe_report(self.thread, self.stream) == 0
        return self

    def process(self, arguments: list[int]) -> None:
        while not self.ends:
            self.codes.add(acl.rt.process_report(arguments[0]))

    def __exit__(self, *_: object) -> None:
        assert acl.rt.unsubscribe_report(self.thread, self.stream) == 0
        self.ends = True
        assert acl.util.stop_thread(self.thread) == 0
        assert acl.rt.destroy_stream(self.stream) == 0


def test_callbacks_run_on_the_subscribed_thread() -> None:
    seen: list[Any] = []
    with Reports() as reports:
        for number in range(3):
            call = acl.rt.launch_callback(
                lambda given: seen.append((given, threading.get_ident())), [number], 1, reports.stream
            )
            assert call == 0
        assert acl.rt.synchronize_stream(reports.stream) == 0
        assert seen == [([number], reports.thread) for number in range(3)]
    assert reports.codes <= {0, 107012, 507012}  # done, not yet subscribed, none came in time


@pytest.mark.parametrize("blocks", [1, 0])
def test_a_callback_holds_its_stream_if_it_blocks(blocks: int) -> None:
    x = torch.zeros(1).npu()
    one = np.ones(1, np.float32)
    go, began, found = threading.Event(), threading.Event(), []

    def call(_: list[Any]) -> None:
        began.set()
        assert go.wait(30)
        found.append(x.item())

    with Reports() as reports:
        assert acl.rt.launch_callback(call, [], blocks, reports.stream) == 0
        assert acl.rt.memcpy_async(x.data_ptr(), 4, one.ctypes.data, 4, TO_DEVICE, reports.stream) == 0
        assert began.wait(30)
        assert good(acl.rt.stream_query(reports.stream)) == blocks  # 1: not ready
        go.set()
        assert acl.rt.synchronize_stream(reports.stream) == 0
        assert x.item() == 1
    assert found == [0.0 if blocks else 1.0]


def test_a_captured_callback_runs_at_each_replay() -> None:
    count, called = torch.zeros(1).npu(), []
    ends: list[int] = []
    stream = torch.npu.Stream()

    def process(_: list[Any]) -> None:
        while not ends:
            acl.rt.process_report(20)

    thread = good(acl.util.start_thread(process, []))
    assert acl.rt.subscribe_report(thread, stream.npu_stream) == 0
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph, stream=stream):
        count += 1
        assert acl.rt.launch_callback(lambda _: called.append(threading.get_ident()), [], 1, stream.npu_stream) == 0
        count *= 2
    for _ in range(3):
        graph.replay()
    torch.npu.synchronize()
    assert acl.rt.unsubscribe_report(thread, stream.npu_stream) == 0
    ends.append(1)
    assert acl.util.stop_thread(thread) == 0
    assert called == [thread] * 3
    assert count.item() == 14  # ((1 * 2 + 1) * 2 + 1) * 2


def test_callbacks_without_a_thread_are_refused() -> None:
    stream = good(acl.rt.create_stream())
    own = threading.get_ident()
    assert acl.rt.launch_callback(print, [], 1, stream) == 107015
    assert "aclrtSubscribeReport" in acl.get_recent_err_msg()
    assert acl.rt.process_report(10) == 107012
    assert acl.rt.unsubscribe_report(own, stream) == 107012
    assert acl.rt.subscribe_report(own, stream) == 0
    assert acl.rt.subscribe_report(own, stream) == 107011
    assert acl.rt.process_report(10) == 507012
    assert acl.rt.process_report(0) == 100000
    assert acl.rt.launch_callback(print, [], 2, stream) == 100000
    # Nobody processes it: on a device the synchronization would not return.
    assert acl.rt.launch_callback(lambda _: None, [], 1, stream) == 0
    assert acl.rt.synchronize_stream(stream) == 507046
    assert "aclrtProcessReport" in acl.get_recent_err_msg()
    assert acl.rt.process_report(-1) == 0
    assert acl.rt.synchronize_stream(stream) == 0
    assert acl.rt.unsubscribe_report(own, stream) == 0
    assert acl.rt.destroy_stream(stream) == 0
    assert acl.util.stop_thread(own) == 100000


# ------------------------------------------------------------------------------------------- descriptions and data sets


def test_tensor_descriptions() -> None:
    desc = acl.create_tensor_desc(1, [2, 3, 5], 2)  # float16, ND
    acl.set_tensor_desc_name(desc, "x")
    assert acl.get_tensor_desc_name(desc) == "x"
    assert (acl.get_tensor_desc_type(desc), acl.get_tensor_desc_format(desc)) == (1, 2)
    assert (acl.get_tensor_desc_element_count(desc), acl.get_tensor_desc_size(desc)) == (30, 60)
    assert [good(acl.get_tensor_desc_dim_v2(desc, i)) for i in range(acl.get_tensor_desc_num_dims(desc))] == [2, 3, 5]
    assert acl.get_tensor_desc_dim_v2(desc, 3)[1] == 100000
    assert acl.destroy_tensor_desc(desc) is None


def test_data_sets() -> None:
    dataset, memory = acl.mdl.create_dataset(), good(acl.rt.malloc(64, 0))
    buffers = [acl.create_data_buffer(memory + 16 * i, 16) for i in range(3)]
    desc = acl.create_tensor_desc(0, [4], 2)
    for buffer in buffers:
        assert good(acl.mdl.add_dataset_buffer(dataset, buffer)) == dataset
    assert acl.mdl.get_dataset_num_buffers(dataset) == 3
    assert [acl.mdl.get_dataset_buffer(dataset, i) for i in range(3)] == buffers
    assert acl.get_data_buffer_addr(buffers[2]) == memory + 32
    assert acl.get_data_buffer_size(buffers[2]) == 16
    assert good(acl.mdl.set_dataset_tensor_desc(dataset, desc, 1)) == dataset
    assert [acl.mdl.get_dataset_tensor_desc(dataset, i) for i in range(3)] == [0, desc, 0]
    assert acl.mdl.get_dataset_buffer(dataset, 3) == 0
    assert "the number of buffers, 3" in acl.get_recent_err_msg()
    assert acl.mdl.set_dataset_tensor_desc(dataset, desc, 3)[1] == 100000
    acl.destroy_tensor_desc(desc)
    assert [acl.destroy_data_buffer(b) for b in buffers] == [0, 0, 0]
    assert acl.mdl.destroy_dataset(dataset) == acl.rt.free(memory) == 0


# ------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: acl.rt.malloc("8", 0), TypeError, r"acl\.rt\.malloc: argument 1 is '8'; expected an integer"),
        (lambda: acl.rt.malloc(-1, 0), OverflowError, r"argument 1 is -1; expected an integer from 0 to"),
        (lambda: acl.rt.set_device(2**31), OverflowError, r"argument 1 is 2147483648"),
        (lambda: acl.rt.malloc(8), TypeError, r"acl\.rt\.malloc takes 2 arguments, and 1 were given"),
        (lambda: acl.init("a", "b"), TypeError, r"acl\.init takes 0 to 1 arguments, and 2 were given"),
        (lambda: acl.create_tensor_desc(0, 3, 2), TypeError, r"argument 2 is 3; expected a list"),
        (lambda: acl.create_tensor_desc(0, [1.5], 2), TypeError, r"argument 2\[0\] is 1\.5; expected an integer"),
        (lambda: acl.set_tensor_desc_name(0, 3), TypeError, r"argument 2 is 3; expected a string"),
        (lambda: acl.rt.launch_callback(3, [], 1, 0), TypeError, "3 is not callable"),
        (lambda: acl.rt.launch_callback(print, (), 1, 0), TypeError, r"the arguments are \(\); expected a list"),
        (lambda: acl.util.numpy_to_ptr([1.0]), TypeError, "is a list; expected a numpy.ndarray"),
        (lambda: acl.util.bytes_to_ptr("x"), TypeError, "is a str; expected bytes"),
        (lambda: acl.util.ptr_to_numpy(0, (1,), FLOAT32), ValueError, "the address is 0"),
        (lambda: acl.util.ptr_to_numpy(8, [1], FLOAT32), TypeError, r"the shape is \[1\]; expected a tuple"),
        (lambda: acl.util.ptr_to_numpy(8, (1,), 99), ValueError, "type 99 is not one of NumPy's"),
        (lambda: acl.media.dvpp_malloc(1), AttributeError, "acl.media.dvpp_malloc is not in the host runtime's pyACL"),
        (lambda: acl.rt.mallocs(1), AttributeError, "acl.rt.mallocs is not in the host runtime's pyACL"),
    ],
)
def test_bad_arguments_are_named(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


# ------------------------------------------------------------------------------------------------------------ processes


def test_a_plain_process_has_no_such_module() -> None:
    plain = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "ASCEND_GRAPH_HOST", "LD_LIBRARY_PATH")}
    done = subprocess.run(
        [sys.executable, "-c", "import acl"], env=plain, capture_output=True, text=True, check=False, cwd="/"
    )
    assert "ModuleNotFoundError: No module named 'acl'" in done.stderr


def test_a_program_without_torch_and_one_that_imports_it_later() -> None:
    program = """
import sys, acl
assert acl.init() == 0 and acl.rt.set_device(0) == 0
memory, ret = acl.rt.malloc(16, 0)
assert ret == 0 and "torch" not in sys.modules
import torch
import torch_npu
x = torch.arange(4.).npu() + 1
assert acl.rt.memcpy(memory, 16, x.data_ptr(), 16, 3) == 0
print(acl.util.ptr_to_numpy(memory, (4,), 11).tolist())
assert acl.rt.free(memory) == 0 and acl.finalize() == 0
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[1.0, 2.0, 3.0, 4.0]", done.stderr


def test_ctypes_of_the_same_library_see_the_same_state() -> None:
    """libascendcl is loaded once, whoever asks for it."""
    device = ctypes.c_int32(-1)
    assert ctypes.CDLL("libascendcl.so").aclrtGetDevice(ctypes.byref(device)) == 0
    assert device.value == good(acl.rt.get_device())

"""ASCEND_RT_VISIBLE_DEVICES: the devices that a process sees are those of the list, as CANN reads it."""

from __future__ import annotations

import os
import sys
import textwrap

import preloaded
import pytest

from ascend_graph.environment import toolkit_directory

NO_DEVICE = 207004

#: What a program of ACL alone counts: the code of aclrtGetDeviceCount, the number, the machine's number of each device.
COUNT = """
import ctypes, sys
acl = ctypes.CDLL(sys.argv[1])
acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
acl.aclInit(None)
count, machine = ctypes.c_uint32(99), ctypes.c_int32()
code = acl.aclrtGetDeviceCount(ctypes.byref(count))
ids = []
for device in range(count.value):
    assert acl.aclrtGetLogicDevIdByUserDevId(device, ctypes.byref(machine)) == 0
    ids.append(machine.value)
message = (acl.aclGetRecentErrMsg() or b"").decode() if code else ""
assert acl.aclrtSetDevice(count.value) != 0
print(code, count.value, ids, message, sep="|")
"""


def run(code: str, *arguments: str, devices: int = 3, visible: str | None = None) -> tuple[str, str]:
    """What a program writes to stdout and stderr."""
    environment = {**os.environ, "ASCEND_GRAPH_HOST_DEVICES": str(devices)}
    environment.pop("ASCEND_RT_VISIBLE_DEVICES", None)
    if visible is not None:
        environment["ASCEND_RT_VISIBLE_DEVICES"] = visible
    done = preloaded.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def count(visible: str | None) -> tuple[int, list[int], str, str]:
    """The code, the machine's numbers of the visible devices, the error and what stderr says."""
    out, err = run(COUNT, str(toolkit_directory() / "lib64/libascendcl.so"), visible=visible)
    code, number, ids, message = out.split("|")
    found = [int(text) for text in ids.strip("[]").split(",") if text]
    assert int(number) == len(found)
    return int(code), found, message, err


@pytest.mark.parametrize(
    ("visible", "ids"),
    [(None, [0, 1, 2]), ("0", [0]), ("2", [2]), ("0,2", [0, 2]), ("0,1,2", [0, 1, 2]), ("1,", [1])],
)
def test_a_list_is_what_a_process_sees(visible: str | None, ids: list[int]) -> None:
    assert count(visible) == (0, ids, "", "")


@pytest.mark.parametrize(
    ("visible", "ids"),
    [("1,,", [1]), ("1*", [1]), ("0,1$2", [0, 1]), ("1,-1", [1]), ("0,3", [0]), ("0,1,5,2", [0, 1])],
)
def test_a_list_ends_before_the_first_that_is_no_device(visible: str, ids: list[int]) -> None:
    code, found, message, err = count(visible)
    assert (code, found, message) == (0, ids, "")
    assert f"ASCEND_RT_VISIBLE_DEVICES={visible}: only the first {len(ids)} of the list" in err
    assert "expected ids of 0..2 in ascending order" in err


@pytest.mark.parametrize(
    ("visible", "why"),
    [
        ("", "the list is empty"),
        ("3", "'3' is left out"),
        (",0", "',0' is left out"),
        ("-1,2", "'-1,2' is left out"),
        ("npu:0", "'npu:0' is left out"),
        ("1,0", "the ids do not ascend"),
        ("0,1,1", "the ids do not ascend"),
        ("99999999999999999999", "is left out"),
    ],
)
def test_no_device_is_visible(visible: str, why: str) -> None:
    code, found, message, _ = count(visible)
    assert (code, found) == (NO_DEVICE, [])
    assert message.startswith("aclrtGetDeviceCount: ASCEND_RT_VISIBLE_DEVICES=")
    assert why in message
    assert "expected ids of 0..2 in ascending order" in message


def test_a_program_of_torch_counts_what_it_sees() -> None:
    """Until a device is used the list may change; then it is as it was."""
    code = """
    import os, torch, torch_npu
    os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "0,1"
    assert torch.npu.device_count() == 2
    os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "2"
    assert torch.npu.device_count() == 1
    assert torch.ones(2, device="npu").device.index == 0
    assert torch.npu.device_count() == 1
    os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "0,1,2"
    assert torch.npu.device_count() == 1
    try:
        torch.ones(2, device="npu:1")
    except RuntimeError as error:
        print(error)
    """
    out, _ = run(code)
    assert "device 1 is not there; expected 0 to 0; ASCEND_RT_VISIBLE_DEVICES hides 2 more" in out


def test_no_device_is_not_available() -> None:
    code = """
    import torch, torch_npu
    assert torch.npu.device_count() == 0 and not torch.npu.is_available()
    try:
        torch.ones(2, device="npu")
    except RuntimeError as error:
        print(error)
    """
    assert "ids do not ascend" in run(code, visible="1,0")[0]

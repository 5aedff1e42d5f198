"""ACL's functions beyond the plainest, called by programs in C++ that the toolkit's headers compile."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_graph.environment import toolkit_directory

PROGRAMS = Path(__file__).parent / "programs"


def _compiled(name: str, into: Path, library: str = "ascendcl") -> Path:
    home, program = toolkit_directory(), into / name
    options = ["-std=c++17", "-Wall", "-Werror", "-pthread", f"-I{home}/include", f"-L{home}/lib64", f"-l{library}"]
    subprocess.run(["g++", PROGRAMS / f"{name}.cpp", "-o", program, *options], check=True, timeout=900)
    return program


def _output(program: Path, *arguments: object) -> str:
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": f"{toolkit_directory()}/lib64",
        "ASCEND_GRAPH_HOST_DEVICES": "2",
    }
    command = [str(program), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900, env=environment)
    return result.stdout + result.stderr


def test_functions_do_what_they_are_documented_to(tmp_path: Path) -> None:
    # Linked as CANN's samples do it: by the runtime's own library alone.
    assert _output(_compiled("acl_functions", tmp_path, "acl_rt")) == "ok\n"


def test_kernels_are_launched_by_handles_of_a_binary(tmp_path: Path) -> None:
    binary, device_binary = tmp_path / "add_number.o", tmp_path / "device.o"
    bisheng: list[str | Path] = [
        toolkit_directory() / "bin/bisheng",
        "--npu-arch=dav-2201",
        "--cce-aicore-only",
        "-fPIC",
    ]
    subprocess.run([*bisheng, "-c", PROGRAMS / "add_number.asc", "-o", binary], check=True, timeout=900)
    device_binary.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x01\x00\x29\x10")
    program = _compiled("acl_kernels", tmp_path)
    assert _output(program, binary, device_binary, PROGRAMS / "acl_kernels.cpp") == "ok\n"


def test_every_function_of_the_public_headers_is_there() -> None:
    found = importlib.util.find_spec("torch_npu")
    if found is None or found.origin is None:
        pytest.skip("torch_npu has the public headers")
    headers = Path(found.origin).parent / "include/third_party/acl/inc/acl"
    text = "".join(path.read_text(encoding="utf-8", errors="replace") for path in headers.rglob("*.h"))
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    declared = set(re.findall(r"ACL_FUNC_VISIBILITY[^;{}()]*?\b(acl\w+)\s*\(", text))
    libraries = (
        ctypes.CDLL(str(toolkit_directory() / f"lib64/lib{name}.so")) for name in ("ascendcl", "acl_tdt_channel")
    )
    assert len(declared) > 600
    missing = declared
    for library in libraries:
        missing = {name for name in missing if not hasattr(library, name)}
    assert sorted(missing) == []


def test_functions_of_the_runtime_under_acl_are_those_of_acl() -> None:
    """Libraries that CANN's ascendc_library made call them; ctypes loads only a library whose names are all there."""
    library = ctypes.CDLL(str(toolkit_directory() / "lib64/libruntime.so"))
    library.aclGetRecentErrMsg.restype = ctypes.c_char_p

    def call(name: str, *arguments: object) -> int:
        return int(getattr(library, name)(*arguments))

    device, cores = ctypes.c_int32(-1), ctypes.c_int64()
    stream, other, event, memory = (ctypes.c_void_p() for _ in range(4))
    assert call("rtSetDevice", 0) == 0
    assert call("rtGetDevice", ctypes.byref(device)) == 0
    assert device.value == 0
    for module in (4, 7):
        assert call("rtGetDeviceInfo", 0, module, 3, ctypes.byref(cores)) == 0
        assert cores.value > 0
    assert call("rtGetDeviceInfo", 0, 1, 3, ctypes.byref(cores)) != 0
    assert b"rtGetDeviceInfo: information 3 of module 1 has no value" in library.aclGetRecentErrMsg()
    assert call("rtCtxGetCurrentDefaultStream", ctypes.byref(other)) == 0
    assert call("rtStreamCreateWithFlags", ctypes.byref(stream), 0, 0) == 0
    for flag in (0x0E, 0x08, 0x04):
        assert call("rtEventCreateWithFlag", ctypes.byref(event), flag) == 0
        assert call("rtEventRecord", event, stream) == 0
        assert call("rtStreamWaitEvent", other, event) == 0
        assert call("rtEventReset", event, other) == 0
        assert call("rtStreamSynchronizeWithTimeout", other, 1000) == 0
        assert call("rtEventDestroy", event) == 0
    assert call("rtMalloc", ctypes.byref(memory), ctypes.c_uint64(8), 0, 0) == 0
    text = ctypes.create_string_buffer(b"1234567")
    back = ctypes.create_string_buffer(8)
    assert call("rtMemcpy", memory, ctypes.c_uint64(8), text, ctypes.c_uint64(8), 1) == 0
    assert call("rtMemcpy", back, ctypes.c_uint64(8), memory, ctypes.c_uint64(8), 2) == 0
    assert back.raw == text.raw
    assert call("rtFree", memory) == 0
    assert call("rtStreamDestroy", stream) == 0
    assert call("rtEventDestroy", event) != 0


LAUNCH = """
import ctypes
library = ctypes.CDLL("libruntime.so")
library.aclGetRecentErrMsg.restype = ctypes.c_char_p
assert library.rtSetDevice(0) == 0
print(library.rtKernelLaunchWithHandleV2(None), library.aclrtSynchronizeDevice(), library.aclGetRecentErrMsg().decode())
"""


def test_a_launch_that_is_refused_fails_the_device() -> None:
    """Launchers in libraries print the status and go on: what the kernel should have written must not be read."""
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{toolkit_directory()}/lib64"}
    done = subprocess.run(
        [sys.executable, "-c", LAUNCH], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert re.match(
        "200001 200001 rtKernelLaunchWithHandleV2 is not implemented by the host runtime; a binary of a device",
        done.stdout,
    ), done.stdout + done.stderr

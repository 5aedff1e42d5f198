"""The libraries for aarch64, cross-compiled and run under emulation: ACL's functions, and kernels of Ascend C.

Needs Debian's g++-aarch64-linux-gnu and qemu-user-static.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .test_native import PROGRAM

TREE = Path(__file__).resolve().parents[2]
COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64-static"
LIBRARIES = "/usr/aarch64-linux-gnu"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which(COMPILER) and shutil.which(EMULATOR)), reason=f"needs {COMPILER} and {EMULATOR}"
    ),
]

KERNELS = r"""
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include "acl/acl.h"
using Run = void(uint8_t*, uint8_t*, uint8_t*, uint32_t, uint32_t);
extern "C" Run run_half, run_float, run_int;
template <typename T, typename Make>
int check(Run* run, Make make) {
    constexpr uint32_t n = 4096;
    T *x, *y, *z;
    for (T** p : {&x, &y, &z})
        if (aclrtMalloc(reinterpret_cast<void**>(p), n * sizeof(T), ACL_MEM_MALLOC_HUGE_FIRST) != 0) return 1;
    for (uint32_t i = 0; i < n; ++i) x[i] = make(i % 100), y[i] = make(7);
    run(reinterpret_cast<uint8_t*>(x), reinterpret_cast<uint8_t*>(y), reinterpret_cast<uint8_t*>(z), n, 8);
    if (aclrtSynchronizeStream(nullptr) != 0) return std::puts(aclGetRecentErrMsg()), 1;
    for (uint32_t i = 0; i < n; ++i)
        if (z[i] != make(i % 100 + 7)) return std::printf("element %u\n", i), 1;
    return 0;
}
int main() {
    if (aclInit(nullptr) != 0 || aclrtSetDevice(0) != 0) return 1;
    const int failures = check<uint16_t>(run_half, [](uint32_t v) { return aclFloatToFloat16(float(v)); }) +
                         check<float>(run_float, [](uint32_t v) { return float(v); }) +
                         check<int32_t>(run_int, [](uint32_t v) { return int32_t(v); });
    if (failures == 0) std::puts("ok");
    return failures;
}
"""


@pytest.fixture(scope="module")
def toolkit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toolkit as a wheel for aarch64 has it."""
    directory = tmp_path_factory.mktemp("aarch64")
    system = ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", f"-DCMAKE_CXX_COMPILER={COMPILER}"]
    options = [f"-DPython_EXECUTABLE={sys.executable}", f"-DCMAKE_INSTALL_PREFIX={directory}/installed"]
    cmake = [sys.executable, "-m", "cmake"]
    subprocess.run([*cmake, "-S", TREE, "-B", directory / "made", *system, *options], check=True, capture_output=True)
    done = subprocess.run(
        [*cmake, "--build", directory / "made", "--target", "install"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning:" not in done.stdout + done.stderr
    return directory / "installed/ascend_graph/host/toolkit"


def run(toolkit: Path, directory: Path, source: str, *arguments: str, libraries: tuple[str, ...] = ()) -> str:
    """What a program against the toolkit prints under emulation."""
    (directory / "main.cpp").write_text(source)
    options = [f"-I{toolkit}/include", f"-L{toolkit}/lib64", f"-L{directory}", *(f"-l{name}" for name in libraries)]
    subprocess.run(
        [COMPILER, "-std=c++17", "-pthread", "main.cpp", "-o", "program", *options, "-lascendcl", f"-Wl,-rpath-link,{toolkit}/lib64"],
        check=True, cwd=directory,
    )  # fmt: skip
    path = f"LD_LIBRARY_PATH={directory}:{toolkit}/lib64:{LIBRARIES}/lib"
    command = [EMULATOR, "-L", LIBRARIES, "-E", path, directory / "program", *arguments]
    environment = {**os.environ, "ASCEND_GRAPH_HOST_DEVICES": "2"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return done.stdout + done.stderr


def test_functions_of_acl(toolkit: Path, tmp_path: Path) -> None:
    assert run(toolkit, tmp_path, PROGRAM, "--flag") == "ok\n"


def test_kernels_of_ascend_c(toolkit: Path, tmp_path: Path) -> None:
    kernel = TREE / "tests/ascendc/kernels/add.asc"
    environment = {
        **os.environ,
        "ASCENDC_HOST_CXX": COMPILER,
        "ASCENDC_HOST_HOME": str(toolkit),
        "ASCEND_GRAPH_PYTHON": sys.executable,
    }
    options = ["-x", "asc", "--npu-arch=dav-2201", "-O1", "-shared", "-fPIC", "-std=c++17", kernel, "-o", "libadd.so"]
    subprocess.run([toolkit / "bin/bisheng", *options], check=True, cwd=tmp_path, env=environment)
    assert run(toolkit, tmp_path, KERNELS, libraries=("add",)) == "ok\n"

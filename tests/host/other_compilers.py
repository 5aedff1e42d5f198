"""The host runtime's libraries as another compiler builds them, and programs that run on those."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]

#: Runs kernels of tests/ascendc/kernels/add.asc for half, float and int32.
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


def build_toolkit(directory: Path, compiler: str, *options: str) -> Path:
    """Build and install the libraries with ``compiler``, without a warning; the toolkit's directory."""
    given = [f"-DCMAKE_CXX_COMPILER={compiler}", *options]
    place = [f"-DPython_EXECUTABLE={sys.executable}", f"-DCMAKE_INSTALL_PREFIX={directory}/installed"]
    cmake = [sys.executable, "-m", "cmake"]
    subprocess.run([*cmake, "-S", TREE, "-B", directory / "made", *given, *place], check=True, capture_output=True)
    done = subprocess.run(
        [*cmake, "--build", directory / "made", "--target", "install"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning:" not in done.stdout + done.stderr, done.stdout + done.stderr
    return directory / "installed/ascend_graph/host/toolkit"


def build_kernel(toolkit: Path, directory: Path, compiler: str) -> None:
    """Compile the kernels of ``KERNELS`` into ``directory``/libadd.so with a toolkit's own driver."""
    environment = {
        **os.environ,
        "ASCENDC_HOST_CXX": compiler,
        "ASCENDC_HOST_HOME": str(toolkit),
        "ASCEND_GRAPH_PYTHON": sys.executable,
    }
    kernel = TREE / "tests/ascendc/kernels/add.asc"
    options = ["-x", "asc", "--npu-arch=dav-2201", "-O1", "-shared", "-fPIC", "-std=c++17", kernel, "-o", "libadd.so"]
    subprocess.run([toolkit / "bin/bisheng", *options], check=True, cwd=directory, env=environment)


def run(
    toolkit: Path,
    directory: Path,
    compiler: str,
    source: str,
    *arguments: str,
    libraries: tuple[str, ...] = (),
    system_libraries: tuple[str, ...] = (),
    emulator: tuple[str, ...] = (),
) -> str:
    """What a program against the toolkit prints, compiled in ``directory``."""
    (directory / "main.cpp").write_text(source)
    options = [f"-I{toolkit}/include", f"-L{toolkit}/lib64", f"-L{directory}", *(f"-l{name}" for name in libraries)]
    subprocess.run(
        [
            compiler,
            "-std=c++17",
            "-pthread",
            "main.cpp",
            "-o",
            "program",
            *options,
            "-lascendcl",
            f"-Wl,-rpath-link,{toolkit}/lib64",
        ],
        check=True,
        cwd=directory,
    )
    path = ":".join(map(str, (directory, toolkit / "lib64", *system_libraries)))
    environment = {**os.environ, "ASCEND_GRAPH_HOST_DEVICES": "2"}
    if emulator:
        emulator = (*emulator, "-E", f"LD_LIBRARY_PATH={path}")
    else:
        environment["LD_LIBRARY_PATH"] = path
    done = subprocess.run(
        [*emulator, directory / "program", *arguments], capture_output=True, text=True, check=False, env=environment
    )
    return done.stdout + done.stderr

"""Kernels that never end, and other ways to take a process down: each ends as an error that names kernel and block.

Every kernel runs in a process of its own, with a limit.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ..conftest import Build, Toolkit

SOURCE = """
#include "kernel_operator.h"
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unistd.h>
using namespace AscendC;
#define KERNEL(name) extern "C" __global__ __aicore__ void name(GM_ADDR z)

static volatile int never = 0;
static volatile double sink = 0;
static volatile char* kept = nullptr;

KERNEL(good) { ((int*)z)[GetBlockIdx()] = 7; }
KERNEL(spin) { while (!never) {} }
KERNEL(last_spins) { if (GetBlockIdx() == GetBlockNum() - 1) while (!never) {} }
KERNEL(calls_apis) {
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> queue;
    pipe.InitBuffer(queue, 1, 256);
    while (!never) {
        auto local = queue.AllocTensor<float>();
        Duplicate(local, 1.0f, 64);
        queue.EnQue(local);
        queue.FreeTensor(queue.DeQue<float>());
    }
}
KERNEL(calculates) { for (double x = 0; !never; x += 1) sink = std::pow(std::sin(x), 1.3); }
KERNEL(allocates) { while (!never) { std::string text(100 + never, 'x'); kept = &text[0]; } }
KERNEL(sleeps) { while (!never) sleep(1000); }
KERNEL(polls) {
    GlobalTensor<int32_t> gm; gm.SetGlobalBuffer((__gm__ int32_t*)z, 8);
    while (gm.GetValue(0) != 12345) {}
}
KERNEL(locks) { static std::mutex mutex; mutex.lock(); mutex.lock(); }
KERNEL(others_wait) { if (GetBlockIdx() == 0) while (!never) {} SyncAll(); }
KERNEL(adds) {  // holds a page of global memory again and again
    TPipe pipe;
    TBuf<> buffer;
    pipe.InitBuffer(buffer, 256);
    auto local = buffer.Get<float>();
    Duplicate(local, 0.0f, 64);
    GlobalTensor<float> gm;
    gm.SetGlobalBuffer((__gm__ float*)z, 64);
    SetAtomicAdd<float>();
    while (!never) DataCopy(gm, local, 64);
}
static int deeper(int n) { volatile char room[4096]; room[n % 4096] = 1; return never ? 0 : deeper(n + 1) + room[0]; }
KERNEL(recurses) { sink = deeper(0); }
KERNEL(throws) { throw 5; }
"""

#: Loads the library, launches, and tells what came of it; then a good kernel on every block.
SCRIPT = """
import ctypes, sys
runtime, library, kernel, blocks = sys.argv[1:]
seam = ctypes.CDLL(runtime, mode=ctypes.RTLD_GLOBAL)
seam.seam_message.restype = ctypes.c_char_p
kernels = ctypes.CDLL(library)
z = (ctypes.c_float * 512)()
def launch(name, blocks):
    return getattr(kernels, "aclrtlaunch_" + name)(ctypes.c_uint32(blocks), None, z)
print("running", flush=True)
try:
    print(launch(kernel, int(blocks)), seam.seam_message().decode(), flush=True)
except KeyboardInterrupt:
    print("KeyboardInterrupt", seam.seam_message().decode(), flush=True)
print(launch("good", 16), ctypes.cast(z, ctypes.POINTER(ctypes.c_int))[15], flush=True)
"""


def start(tools: Toolkit, library: str, kernel: str, blocks: int, limit: str) -> subprocess.Popen[str]:
    runtime = str(next((tools.home / "lib64").glob("libascendc_runtime.so")))
    environment = {**os.environ, "ASCEND_GRAPH_KERNEL_TIMEOUT": limit}
    command = [sys.executable, "-c", SCRIPT, runtime, library, kernel, str(blocks)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=Path("/")
    )


def outcome(process: subprocess.Popen[str]) -> list[str]:
    try:
        output, errors = process.communicate(timeout=600)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 0, errors
    lines = output.splitlines()
    assert lines[0] == "running"
    return lines[1:]


@pytest.fixture(scope="session")
def library(build: Build) -> str:
    return build(SOURCE)._name


LIMIT = "0.5"
ENDLESS = r"did not end in 0.5 seconds, the limit of ASCEND_GRAPH_KERNEL_TIMEOUT"
KERNELS = {
    "spin": (1, "kernel spin, block 0 of 1: did not end"),
    "last_spins": (8, "kernel last_spins, block 7 of 8: did not end"),
    "calls_apis": (2, "of 2: did not end"),
    "calculates": (1, "block 0 of 1: did not end"),
    "allocates": (3, "of 3: did not end"),
    "sleeps": (1, "kernel sleeps, block 0 of 1: did not end"),
    "polls": (2, "of 2: did not end"),
    "locks": (2, "of 2: did not end"),
    "others_wait": (4, "kernel others_wait, block 0 of 4: did not end"),
    "adds": (2, "of 2: did not end"),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_ends_at_the_limit_and_the_next_one_runs(tools: Toolkit, library: str, kernel: str) -> None:
    blocks, text = KERNELS[kernel]
    ended, after = outcome(start(tools, library, kernel, blocks, LIMIT))
    code, message = ended.split(" ", 1)
    assert code == "507014"
    assert text in message
    assert ENDLESS in message
    assert after == "0 7"


@pytest.mark.parametrize("kernel", ["spin", "others_wait", "calls_apis"])
def test_ctrl_c_ends_a_kernel(tools: Toolkit, library: str, kernel: str) -> None:
    process = start(tools, library, kernel, 4, "")
    assert process.stdout is not None
    running = process.stdout.readline()
    time.sleep(0.7)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=600)
    assert (running.strip(), process.returncode) == ("running", 0), errors
    ended, after = output.splitlines()
    assert ended.startswith(f"KeyboardInterrupt kernel {kernel}, block ")
    assert "of 4: was interrupted (SIGINT)" in ended
    assert after == "0 7"


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        ("recurses", "kernel recurses, block 0 of 1: exhausts its stack"),
        ("throws", "kernel throws, block 0 of 1: throws a value that is not a std::exception"),
    ],
)
def test_other_ends(tools: Toolkit, library: str, kernel: str, text: str) -> None:
    ended, after = outcome(start(tools, library, kernel, 1, ""))
    assert ended.split(" ", 1)[0] == "507015"
    assert text in ended
    assert after == "0 7"


def test_what_ends_in_time_is_not_touched(tools: Toolkit, library: str) -> None:
    assert outcome(start(tools, library, "good", 16, "0.001")) == ["0 ", "0 7"]

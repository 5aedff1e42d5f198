"""Benchmark of Ascend C on the host: kernels against torch on the CPU, and the speedup from more blocks.

``python benchmarks/ascendc.py`` prints a table and, as its last line, the figures as JSON:

- ``add_ratio``: the time of add_custom over 16 Mi halfs, over that of ``torch.add`` on the CPU;
- ``two_blocks_speedup``: how many times faster the same launch is with two blocks than with one;
- ``api_entries``, ``api_tested``: names in the table of the API, and how many of them the tests' kernels use;
- ``matmul_ratio``: basic_matmul of 512 x 512 x 512 halfs, over ``torch.mm`` in float16 on the CPU;
- ``matmul_speed``: the CPU time of that ``torch.mm`` over the kernel's, on which other work on the machine has less effect.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")  # plain CPU torch, with or without torch_npu

import torch

from benchmarks import _kernel_api

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/ascendc"))
from standalone import assemble

ROOT = Path(__file__).resolve().parents[1]
COUNT = 16 * 1024 * 1024
TILE = 8192  # halfs: six buffers of 16 KiB
SIDE = 512

MATMUL = """
#include "lib/matmul_intf.h"
using namespace matmul;
extern "C" __global__ __cube__ void basic_matmul(GM_ADDR a, GM_ADDR b, GM_ADDR c, TCubeTiling tiling) {
    TPipe pipe;
    GlobalTensor<half> ag, bg, cg;
    ag.SetGlobalBuffer((__gm__ half*)a, tiling.M * tiling.Ka);
    bg.SetGlobalBuffer((__gm__ half*)b, tiling.Kb * tiling.N);
    cg.SetGlobalBuffer((__gm__ half*)c, tiling.M * tiling.N);
    using Type = MatmulType<TPosition::GM, CubeFormat::ND, half>;
    MatmulImpl<Type, Type, Type> mm;
    mm.Init(&tiling, &pipe);
    const int first = GetBlockIdx() * tiling.singleCoreM;
    mm.SetTensorA(ag[first * tiling.Ka]);
    mm.SetTensorB(bg);
    mm.IterateAll(cg[first * tiling.N]);
}
"""


def _build(directory: Path) -> tuple[ctypes.CDLL, ctypes.CDLL]:
    """Build the add kernel of the tests and the matmul above, with a runtime that launches immediately."""
    home = directory / "home"
    assemble(home)
    (directory / "matmul.asc").write_text(MATMUL)
    built = []
    for source in (ROOT / "tests/ascendc/kernels/add.asc", directory / "matmul.asc"):
        target = directory / f"lib{source.stem}.so"
        command = [home / "bin/bisheng", "-x", "asc", "--npu-arch=dav-2201", "-O2", "-shared", "-fPIC", "-std=c++17",
                   f"--launch-stubs={directory}", source, "-o", target]  # fmt: skip
        subprocess.run(list(map(str, command)), check=True)
        built.append(ctypes.CDLL(str(target)))
    return built[0], built[1]


def _best(run: Callable[[], object], repeats: int = 15) -> float:
    """Return the seconds of the fastest of several runs, after two to warm up."""
    times = []
    for repeat in range(repeats + 2):
        start = time.perf_counter()
        run()
        if repeat >= 2:
            times.append(time.perf_counter() - start)
    return min(times)


def _pointer(tensor: torch.Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())


def _add(library: ctypes.CDLL) -> tuple[dict[int, float], float]:
    x, y = torch.rand(COUNT).half(), torch.rand(COUNT).half()
    z = torch.empty_like(x)

    def launch(blocks: int) -> float:
        start = time.perf_counter()
        status = library.aclrtlaunch_add_half(blocks, None, _pointer(x), _pointer(y), _pointer(z), COUNT, TILE)
        if status != 0:
            raise RuntimeError(f"add_half over {blocks} blocks failed with {status}")
        return time.perf_counter() - start

    seconds = {}
    for blocks in (1, 2, 4, 8):
        z.zero_()
        seconds[blocks] = launch(blocks)
        if not torch.equal(z, x + y):
            raise RuntimeError(f"add_half over {blocks} blocks computed something else than torch.add")
    # In turns, so that other work on the machine meets all of them alike.
    for _ in range(25):
        for blocks, best in seconds.items():
            seconds[blocks] = min(best, launch(blocks))
    return seconds, _best(lambda: torch.add(x, y, out=z), 25)


def _processor_time(run: Callable[[], object], repeats: int = 40) -> float:
    """Return the CPU seconds of all threads in the fastest of several runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def _matmul(library: ctypes.CDLL, blocks: int = 2) -> tuple[float, float, float]:
    a, b = torch.randn(SIDE, SIDE).half(), torch.randn(SIDE, SIDE).half()
    c = torch.zeros(SIDE, SIDE, dtype=torch.half)
    tiling = (ctypes.c_int32 * 50)()
    # usedCoreNum, M, N, Ka, Kb, singleCore M, N, K and base M, N, K
    tiling[:11] = [blocks, SIDE, SIDE, SIDE, SIDE, SIDE // blocks, SIDE, SIDE, 128, 256, 64]
    launch = lambda: library.aclrtlaunch_basic_matmul(blocks, None, _pointer(a), _pointer(b), _pointer(c), tiling)  # noqa: E731
    seconds = _best(launch)
    torch.testing.assert_close(c.float(), a.float() @ b.float(), rtol=2e-3, atol=2e-2)
    mm = lambda: torch.mm(a, b)  # noqa: E731
    return seconds, _best(mm), _processor_time(mm) / _processor_time(launch)


def main() -> dict[str, float]:
    """Measure, print the table and the JSON line, and return the figures."""
    with tempfile.TemporaryDirectory() as directory:
        add_library, matmul_library = _build(Path(directory))
        add, torch_add = _add(add_library)
        matmul, torch_mm, speed = _matmul(matmul_library)
    names = {entry.name for entry in _kernel_api.entries()}
    tests = ROOT / "tests/ascendc"
    tested = _kernel_api.tested(names, [path for path in tests.rglob("*") if path.suffix in (".py", ".asc")])

    fastest = min(add.values())
    print(f"add_custom, {COUNT // 2**20} Mi halfs, tiles of {TILE}")
    for blocks, seconds in add.items():
        name = f"{blocks} block{'s' if blocks > 1 else ' '}"
        print(f"  {name}   {seconds * 1e3:8.2f} ms   {seconds / torch_add:5.2f} x torch.add")
    print(f"  torch.add  {torch_add * 1e3:8.2f} ms   {torch.get_num_threads()} threads")
    print(f"basic_matmul, {SIDE}^3 halfs, 2 blocks")
    print(f"  kernel     {matmul * 1e3:8.2f} ms   {matmul / torch_mm:5.2f} x torch.mm")
    print(f"  torch.mm   {torch_mm * 1e3:8.2f} ms; in processor time the kernel runs at {speed:.2f} of its speed")
    print(f"API: {len(names)} names, {len(tested)} used by the tests' kernels")
    figures = {
        "add_ratio": round(fastest / torch_add, 3),
        "two_blocks_speedup": round(add[1] / add[2], 3),
        "api_entries": len(names),
        "api_tested": len(tested),
        "matmul_ratio": round(matmul / torch_mm, 3),
        "matmul_speed": round(speed, 3),
    }
    print(json.dumps(figures))
    return figures


if __name__ == "__main__":
    sys.exit(0 if main() else 1)

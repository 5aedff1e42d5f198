"""Benchmark of the host runtime's collectives: equality with gloo on the CPU, relative cost, and reports of dead ranks.

    make bench NAME=distributed

Each part runs in separate processes, under torchrun.

- ``collectives``, ``equal``, ``wrong``: the cases of ``tests/distributed/collectives.py`` on four ranks, compared to the bit.
- ``programs``: the parallelisms of ``tests/distributed/programs.py`` on four ranks, compared to the bit.
- ``overhead``: all_reduce of 1 MiB on two ranks, on npu tensors with hccl against CPU tensors with gloo: the median of the ratios
  of adjacent rounds (target: at most 1.3). Every other round begins with the other side, so that other work on the machine
  affects both. ``overhead_best``: the ratio of both sides' fastest rounds.
- ``growth_mib``: resident memory that 10,000 all_reduces in a row add, after the first 2,000. Those fill PyTorch's flight recorder,
  which keeps the last 2,000 collectives of a process (``TORCH_FR_BUFFER_SIZE``). The benchmark synchronizes every 100: queued
  calls take memory, on a device too.
- ``vmap_ratio``: a batch of 64 rows of a normalization (64 by 64 by 1024) through the rule that ``batch=`` gives, against one call of
  the stacked tensor (target: at most 1.3), and ``loop_ratio``: the loop against it; the best of alternating rounds, on the CPU.
- ``sharded``: placements of ``tests/distributed/sharding.py`` whose results on four ranks equal those of the whole call.
- ``compiled``: programs of ``tests/distributed/compiled.py`` on two ranks, in GE graphs and captured, that are equal to eager ones.
- ``simulated``: the ranks of ``scale.py``, and ``flat``: the slowest derivation of placements there against the fastest.
- ``killed``: number of 20 groups of three ranks with one killed rank that both others reported within 10 seconds.
"""

from __future__ import annotations

import json
import re
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from _common import run
from rich.console import Console

TESTS = Path(__file__).parent.parent / "tests" / "distributed"
sys.path.insert(0, str(TESTS))

from ranks import environment, started, under_torchrun  # noqa: E402

ROUNDS, CALLS, TRIALS = 15, 20, 20
#: Numbers of rounds of collectives, calls per round, and collectives that fill PyTorch's flight recorder.
PAIRS, PAIRED_CALLS, RECORDED = 60, 10, 2_000


def output_under_torchrun(script: Path, ranks: int, *arguments: str) -> str:
    done = under_torchrun(script, ranks, *arguments)
    if done.returncode != 0:
        print(done.stdout + done.stderr, file=sys.stderr)
    return done.stdout


def measure() -> None:
    """Run a rank's part in the measurements of time and memory."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("cpu:gloo,npu:hccl")
    rank = dist.get_rank()
    torch.npu.set_device(rank)
    small = torch.ones(16, device="npu")
    resident = []
    for count_ in (RECORDED, 10_000):
        for number in range(count_):
            dist.all_reduce(small, dist.ReduceOp.MAX)
            if number % 100 == 99:
                torch.npu.synchronize()
        resident.append(resident_mib())
    tensors = {device: torch.ones(1 << 18, device=device) for device in ("cpu", "npu")}
    samples: dict[str, list[float]] = {device: [] for device in tensors}
    for number in range(PAIRS + 2):
        for device in sorted(tensors, reverse=number % 2 == 1):
            tensors[device].fill_(1)
            torch.npu.synchronize()
            dist.barrier()
            start = time.perf_counter()
            for _ in range(PAIRED_CALLS):
                dist.all_reduce(tensors[device])
            torch.npu.synchronize()
            samples[device].append((time.perf_counter() - start) / PAIRED_CALLS)
    cpu, npu = (samples[device][2:] for device in ("cpu", "npu"))  # without the first of both orders
    ratio = statistics.median(b / a for a, b in zip(cpu, npu, strict=True))
    if rank == 0:
        figures = f"ratio {ratio:.2f} cpu {min(cpu) * 1e6:.0f} npu {min(npu) * 1e6:.0f}"
        print(f"{figures} growth {resident[1] - resident[0]:.1f}", flush=True)
    dist.destroy_process_group()


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def killed() -> bool:
    """Return whether both other ranks reported a killed rank within 10 seconds of its end."""
    with started("killed_far_away", 3) as processes:
        processes[2].wait()
        start = time.monotonic()
        outputs = [process.communicate()[0] for process in processes[:2]]
        return time.monotonic() - start < 10 and all("rank 2 (process" in output for output in outputs)


def alone(part: str, module: str = Path(__file__).name) -> str:
    """Run a part of this module, or of another one, in a separate process and return its output."""
    command = [sys.executable, "-m", "ascend_graph.host", str(Path(__file__).parent / module), *filter(None, [part])]
    return subprocess.run(command, check=True, env=environment(), capture_output=True, text=True).stdout


def count(pattern: str, text: str) -> int:
    return min(map(int, re.findall(pattern, text)), default=0)


def vmap() -> None:
    """Print the seconds of the rule, of one call, and of a loop."""
    import torch

    import ascend_graph
    from ascend_graph.registration.dimensions.batching import batching_rule
    from ascend_graph.registration.dimensions.independent_dims import read_independent_dims

    library = torch.library.Library("vmapped", "DEF")
    library.define("norm(Tensor x, Tensor gamma) -> Tensor")
    library.impl("norm", lambda x, gamma: x / x.norm(dim=-1, keepdim=True) * gamma, "CPU")
    operator = torch.ops.vmapped.norm.default
    independent = read_independent_dims(
        "norm", ascend_graph.parse_relation("x[*s, n], gamma[n] -> y[*s, n]"), ("s",), {}
    )
    torch.library.register_vmap("vmapped::norm", batching_rule(operator, independent), lib=library)
    x, gamma = torch.rand(64, 64, 1024), torch.rand(1024)
    mapped = torch.vmap(operator, (0, None))
    ways = (
        lambda: mapped(x, gamma),
        lambda: operator(x, gamma),
        lambda: torch.stack([operator(row, gamma) for row in x]),
    )
    seconds: list[list[float]] = [[], [], []]
    for _ in range(ROUNDS * 4):
        for way, found in zip(ways, seconds, strict=True):
            start = time.perf_counter()
            way()
            found.append(time.perf_counter() - start)
    print("seconds", *(f"{min(found):.9f}" for found in seconds))


def main() -> dict[str, Any]:
    """Return all figures."""
    console = Console()
    output = output_under_torchrun(TESTS / "collectives.py", 4)
    equal, wrong = count(r"(\d+) cases are equal", output), len(re.findall(r": cpu .*, npu ", output))
    programs = count(r"(\d+) programs are equal", output_under_torchrun(TESTS / "programs.py", 4))
    pattern = r"ratio ([\d.]+) cpu (\d+) npu (\d+) growth (-?[\d.]+)"
    figures = re.search(pattern, output_under_torchrun(Path(__file__), 2, "--rank"))
    if figures is None:
        raise SystemExit("the measurement of time and memory has ended without figures")
    overhead, cpu, npu, growth = map(float, figures.groups())
    sharded = count(r"(\d+) placements are equal", output_under_torchrun(TESTS / "sharding.py", 4))
    compiled = count(r"(\d+) cases are equal", output_under_torchrun(TESTS / "compiled.py", 2, "ge", "aclgraph"))
    scale = json.loads(alone("", "scale.py").splitlines()[-1])
    rule, whole, loop = map(float, alone("--vmap").split()[-3:])
    reported = sum(killed() for _ in range(TRIALS))
    console.print(f"collectives: {equal} equal, {wrong} wrong; {programs} programs equal")
    console.print(
        f"all_reduce of 1 MiB: {overhead} of gloo's time on the CPU; at best {npu:.0f} µs, {cpu:.0f} µs; 10,000 add {growth:.1f} MiB"
    )
    console.print(f"sharded as declared: {sharded} placements equal; compiled: {compiled} cases equal")
    console.print(
        f"vmap of 64: {rule * 1e6:.0f} µs by the rule, {whole * 1e6:.0f} µs as one call, {loop * 1e6:.0f} µs in a loop"
    )
    console.print(f"killed ranks reported within 10 s: {reported} of {TRIALS}")
    return {
        "collectives": equal + wrong,
        "equal": equal,
        "wrong": wrong,
        "programs": programs,
        "overhead": overhead,
        "overhead_best": round(npu / cpu, 2),
        "growth_mib": growth,
        "sharded": sharded,
        "compiled": compiled,
        "simulated": scale["ranks"],
        "flat": scale["flat"],
        "vmap_ratio": round(rule / whole, 2),
        "loop_ratio": round(loop / whole, 2),
        "killed": reported,
        "trials": TRIALS,
    }


if __name__ == "__main__":
    if "--rank" in sys.argv:
        measure()
    elif "--vmap" in sys.argv:
        vmap()
    else:
        run(main)

"""Collectives of the host runtime: whether they are those of gloo on the CPU, what they cost beside it, and whether dead ranks are reported.

    make bench NAME=distributed

Each part runs in processes of its own, under torchrun.

- ``collectives``, ``equal``, ``wrong``: the cases of ``tests/distributed/collectives.py`` on four ranks, compared to the bit.
- ``programs``: the parallelisms of ``tests/distributed/programs.py`` on four ranks, compared to the bit.
- ``overhead``: all_reduce of 1 MiB on two ranks, on npu tensors with hccl against CPU tensors with gloo, medians of alternating
  rounds (target: at most 1.3).
- ``growth_mib``: resident memory that 10,000 all_reduces in a row add, behind the first 1,000.
- ``killed``: of 20 groups of three ranks of which one is killed, how many were reported by both others within 10 seconds.
"""

from __future__ import annotations

import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from _common import run
from rich.console import Console

TESTS = Path(__file__).parent.parent / "tests" / "distributed"
ROUNDS, CALLS, TRIALS = 15, 20, 20


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def environment(**more: str) -> dict[str, str]:
    given = {"ASCEND_GRAPH_HOST_DEVICES": "4", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return {**os.environ, **given, **more}


def under_torchrun(script: Path, ranks: int, *arguments: str) -> str:
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", "--master-addr=127.0.0.1"]
    command += [f"--master-port={free_port()}", str(script), *arguments]
    done = subprocess.run(command, check=False, env=environment(), capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout + done.stderr, file=sys.stderr)
    return done.stdout


def measure() -> None:
    """A rank's part in the measurements of time and memory."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("cpu:gloo,npu:hccl")
    rank = dist.get_rank()
    torch.npu.set_device(rank)
    tensors = {device: torch.ones(1 << 18, device=device) for device in ("cpu", "npu")}
    samples: dict[str, list[float]] = {device: [] for device in tensors}
    for _ in range(ROUNDS):
        for device, tensor in tensors.items():
            dist.barrier()
            start = time.perf_counter()
            for _ in range(CALLS):
                dist.all_reduce(tensor)
            torch.npu.synchronize()
            samples[device].append((time.perf_counter() - start) / CALLS)
            tensor.fill_(1)
    cpu, npu = (statistics.median(samples[device]) for device in ("cpu", "npu"))
    small = torch.ones(16, device="npu")
    peaks = []
    for count in (1_000, 10_000):
        for _ in range(count):
            dist.all_reduce(small, dist.ReduceOp.MAX)
        torch.npu.synchronize()
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    if rank == 0:
        print(f"cpu {cpu * 1e6:.0f} npu {npu * 1e6:.0f} growth {peaks[1] - peaks[0]:.1f}", flush=True)
    dist.destroy_process_group()


def killed() -> bool:
    """Whether both others reported a killed rank within 10 seconds of its end."""
    port = str(free_port())
    processes = [
        subprocess.Popen(
            [sys.executable, str(TESTS / "failures.py"), "killed_far_away"],
            env=environment(RANK=str(rank), WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", MASTER_PORT=port),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(3)
    ]
    processes[2].wait()
    start = time.monotonic()
    outputs = [process.communicate()[0] for process in processes[:2]]
    return time.monotonic() - start < 10 and all("rank 2 (process" in output for output in outputs)


def count(pattern: str, text: str) -> int:
    return min(map(int, re.findall(pattern, text)), default=0)


def main() -> dict[str, Any]:
    """All figures."""
    console = Console()
    output = under_torchrun(TESTS / "collectives.py", 4)
    equal, wrong = count(r"(\d+) cases are equal", output), len(re.findall(r": cpu .*, npu ", output))
    programs = count(r"(\d+) programs are equal", under_torchrun(TESTS / "programs.py", 4))
    figures = re.search(r"cpu (\d+) npu (\d+) growth (-?[\d.]+)", under_torchrun(Path(__file__), 2, "--rank"))
    cpu, npu, growth = map(float, figures.groups()) if figures else (0.0, 0.0, 0.0)
    reported = sum(killed() for _ in range(TRIALS))
    console.print(f"collectives: {equal} equal, {wrong} wrong; {programs} programs equal")
    console.print(f"all_reduce of 1 MiB: {npu:.0f} µs, gloo on the CPU {cpu:.0f} µs; 10,000 more add {growth:.1f} MiB")
    console.print(f"killed ranks reported within 10 s: {reported} of {TRIALS}")
    return {
        "collectives": equal + wrong,
        "equal": equal,
        "wrong": wrong,
        "programs": programs,
        "overhead": round(npu / cpu, 2) if cpu else None,
        "growth_mib": growth,
        "killed": reported,
        "trials": TRIALS,
    }


if __name__ == "__main__":
    if "--rank" in sys.argv:
        measure()
    else:
        run(main)

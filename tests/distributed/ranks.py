"""Ranks as processes of this machine: started without a launcher, or under torchrun.

The port where they meet is kept from other programs of the machine from before they start: it takes them seconds to get
there.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import preloaded

HERE = Path(__file__).parent


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port of this machine that the system gives to nobody, while a server that reuses addresses, as PyTorch's
    store, can have it."""
    with socket.socket() as reserving:
        reserving.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserving.bind(("127.0.0.1", 0))
        yield int(reserving.getsockname()[1])


def environment(**more: str) -> dict[str, str]:
    given = {"ASCEND_GRAPH_HOST_DEVICES": "4", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return {**os.environ, **given, "HCCL_EXEC_TIMEOUT": "300", **more}


def under_torchrun(script: Path, ranks: int, *arguments: str, port: int) -> subprocess.CompletedProcess[str]:
    """Run a script in ``ranks`` processes of torchrun that meet at a port."""
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", "--master-addr=127.0.0.1"]
    command += [f"--master-port={port}", str(script), *arguments]
    return subprocess.run(command, check=False, env=environment(), capture_output=True, text=True)


@contextmanager
def started(
    script: Path,
    ranks: int,
    *arguments: str,
    of_rank: Callable[[int], Mapping[str, str]] = lambda rank: {},
    **variables: str,
) -> Iterator[list[preloaded.Process]]:
    """Start a script as ranks; variables of all ranks, and of one. None of its processes outlives the block."""
    with reserved_port() as port, ExitStack() as running:
        shared = {
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks),
            **variables,
        }  # fmt: skip
        processes = []
        for rank in range(ranks):
            process = preloaded.Process(
                [sys.executable, str(script), *arguments],
                env=environment(**{"RANK": str(rank), "LOCAL_RANK": str(rank), **shared, **of_rank(rank)}),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            processes.append(running.enter_context(process))
            running.callback(process.kill)
        yield processes


def in_ranks(script: Path, ranks: int, *arguments: str) -> str:
    """Run a script in ranks that all must end with status 0, and return what they print; one that fails ends the others."""
    with started(script, ranks, *arguments) as processes, ThreadPoolExecutor(ranks) as pool:
        outputs = [pool.submit(process.communicate) for process in processes]
        while any(process.poll() is None for process in processes):
            if any(process.poll() for process in processes):
                time.sleep(5)  # in which the others tell why they end
                for process in processes:
                    process.kill()
            time.sleep(0.02)
        said = "".join(output.result()[0] for output in outputs)
        assert [process.wait() for process in processes] == [0] * ranks, said
    return said

"""Ranks as processes of this machine: under torchrun, or started without a launcher that would end the others.

The port where they meet is kept from other programs of the machine from before they start: it takes them seconds to get there.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

HERE = Path(__file__).parent

#: Errors of an older PyTorch or TorchAir, as patterns, the first version without, and what it lacks.
_LACKING = (
    (
        r"aten::_foreach_copy_: argument 'src' .* whose memory was freed",
        (2, 10),
        "TorchAir copies parameters into a captured graph that FSDP has not gathered",
    ),
    (
        r"Split sizes dosen't match total dim 0 size",
        (2, 10),
        "TorchAir's converter of all_to_all_single takes no even split",
    ),
    (r"Operator aten\.\w+\.\w+ does not have a sharding strategy registered", (2, 8), "DTensor has no rule for cumsum"),
    (
        r"Attempted to flatten (sharded dimension|multiple dimensions)|Sharding propagation failed for Op\(op=aten\.view",
        (2, 13),
        "DTensor reshapes no tensor of which a later dimension is sharded",
    ),
    (r"Unknown keyword argument 'comm_mode' for operator", (2, 13), "products with communication have no comm_mode"),
)


def lacking(error: BaseException, version: str) -> str | None:
    """What this torch_npu lacks, where that is why a case failed: said in the place of the error, and no failure."""
    number = tuple(map(int, version.split(".")[:2]))
    for pattern, since, what in _LACKING:
        if number < since and re.search(pattern, str(error), re.DOTALL):
            return f"{LACKS}{what}"
    return None


#: How a line of a rank begins that says what the version lacks.
LACKS = "not with this version: "


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port of this machine that the system gives to nobody, while a server that reuses addresses, as PyTorch's store, can have it."""
    with socket.socket() as reserving:
        reserving.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserving.bind(("127.0.0.1", 0))
        yield int(reserving.getsockname()[1])


def environment(**more: str) -> dict[str, str]:
    given = {"ASCEND_GRAPH_HOST_DEVICES": "4", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return {**os.environ, **given, "HCCL_EXEC_TIMEOUT": "300", **more}


def under_torchrun(
    script: Path, ranks: int, *arguments: str, port: int | None = None
) -> subprocess.CompletedProcess[str]:
    """A script in ``ranks`` processes of torchrun, and what they print; at a port of its own, or at a given one."""
    if port is None:
        with reserved_port() as own:
            return under_torchrun(script, ranks, *arguments, port=own)
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", "--master-addr=127.0.0.1"]
    command += [f"--master-port={port}", str(script), *arguments]
    return subprocess.run(command, check=False, env=environment(), capture_output=True, text=True)


@contextmanager
def started(
    program: str, ranks: int, of_rank: Callable[[int], Mapping[str, str]] = lambda rank: {}, **variables: str
) -> Iterator[list[subprocess.Popen[str]]]:
    """A program of failures.py; variables of all ranks, and of one. None of its processes outlives the block."""
    with reserved_port() as port, ExitStack() as running:
        shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks), **variables}
        processes = []
        for rank in range(ranks):
            process = subprocess.Popen(
                [sys.executable, str(HERE / "failures.py"), program],
                env=environment(**{"RANK": str(rank), "LOCAL_RANK": str(rank), **shared, **of_rank(rank)}),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            processes.append(running.enter_context(process))
            running.callback(process.kill)
        yield processes

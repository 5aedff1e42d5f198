"""Several processes on one machine: collectives, PyTorch's parallelisms, and what happens when a rank fails."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
#: How a rank ends that is told of another's failure: by the error of its own call, or by torch_npu's watchdog, if that is first.
REPORTED = {3, -6}


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def environment(**more: str) -> dict[str, str]:
    given = {"ASCEND_GRAPH_HOST_DEVICES": "4", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return {**os.environ, **given, "HCCL_EXEC_TIMEOUT": "300", **more}


def run_under_torchrun(script: str, ranks: int, *arguments: str) -> str:
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", "--master-addr=127.0.0.1"]
    command += [f"--master-port={free_port()}", str(HERE / script), *arguments]
    done = subprocess.run(command, check=False, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_ranks(program: str, ranks: int, **variables: str) -> tuple[list[int], list[str], float]:
    """A program of failures.py without a launcher that would end the others: exit codes, outputs, and the seconds from the first
    end of a rank to the last."""
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(ranks), **variables}
    processes = [
        subprocess.Popen(
            [sys.executable, str(HERE / "failures.py"), program],
            env=environment(RANK=str(rank), LOCAL_RANK=str(rank), **shared),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(ranks)
    ]
    ends: dict[int, float] = {}
    while len(ends) < ranks:
        ends |= {i: time.monotonic() for i, p in enumerate(processes) if i not in ends and p.poll() is not None}
        time.sleep(0.05)
    outputs = [process.communicate()[0] for process in processes]
    return [p.returncode for p in processes], outputs, max(ends.values()) - min(ends.values())


def test_collectives_are_those_of_gloo() -> None:
    output = run_under_torchrun("collectives.py", 4)
    assert output.count("cases are equal") == 4


def test_parallel_programs_are_those_of_gloo() -> None:
    output = run_under_torchrun("programs.py", 4)
    assert output.count("programs are equal") == 4


def test_operators_are_sharded_on_what_is_declared() -> None:
    output = run_under_torchrun("sharding.py", 4)
    assert output.count("placements are equal") == 4


def test_compiled_programs_of_sharded_operators_are_those_outside_of_graphs() -> None:
    output = run_under_torchrun("compiled.py", 2, "ge", "aclgraph")
    assert output.count("cases are equal") == 2


def test_collectives_in_graphs_are_those_outside() -> None:
    output = run_under_torchrun("graphs.py", 2)
    assert output.count("cases are equal") == 2


def test_a_rank_that_is_killed_is_named_by_all_others() -> None:
    codes, outputs, seconds = run_ranks("killed_far_away", 3)
    assert codes[2] == -9
    assert set(codes[:2]) <= REPORTED, outputs
    assert seconds < 10
    assert "rank 0 of 3: HcclBroadcast failed: " in outputs[0], outputs[0]
    assert "rank 1 of 3: HcclAllReduce failed: " in outputs[1], outputs[1]
    # Where the machine is busy a connection may be seen to end well before its process is, and one that is told late finds two ended.
    assert re.search(r"failed: (rank [01] \(process \d+\), )?rank 2 \(process \d+\) ", "".join(outputs)), outputs


def test_a_rank_that_does_not_come_ends_the_wait_of_the_others() -> None:
    codes, outputs, _ = run_ranks("late", 2, HCCL_EXEC_TIMEOUT="2")
    assert codes[0] in REPORTED, outputs
    assert "rank 0 of 2: HcclAllReduce failed: " in outputs[0]
    assert "imed out" in outputs[0]


def test_ranks_that_do_not_agree_are_told_so() -> None:
    codes, outputs, _ = run_ranks("disagreeing", 2, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    assert codes == [3, 3], outputs
    assert all("Collectives differ" in output for output in outputs), outputs


def test_what_the_device_refuses_is_refused(tmp_path: Path) -> None:
    """Among processes of torch.multiprocessing.spawn that meet in a file."""
    command = [sys.executable, str(HERE / "failures.py"), "spawn", "refused", "2", str(tmp_path / "store")]
    done = subprocess.run(command, check=False, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

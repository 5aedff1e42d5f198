"""Several processes on one machine: collectives, PyTorch's parallelisms, and what happens when a rank fails."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch_npu
from lacks import LACKS
from ranks import HERE, environment, in_ranks, reserved_port, started, under_torchrun

#: How a rank ends that is told of another's failure: by the error of its own call, or by torch_npu's watchdog, if that
#: is first.
REPORTED = {3, -6}
#: Seconds within which who is told ends, however busy the machine is: below all limits of waiting (120 and more).
SOON = 60


def check_ranks(script: str, ranks: int, said: str, *arguments: str) -> None:
    """Each rank says that all is equal; what a version lacks is named when the rest was compared."""
    output = in_ranks(HERE / script, ranks, *arguments)
    assert output.count(said) == ranks, output
    if lacks := {line.partition(LACKS)[2] for line in output.splitlines() if LACKS in line}:
        pytest.skip(f"torch_npu {torch_npu.__version__}: {'; '.join(sorted(lacks))}")


def run_ranks(program: str, ranks: int, **given: Any) -> tuple[list[int], list[str], float]:
    """Exit codes and outputs of a program of failures.py, and the seconds from the first end of a rank to the last."""
    with started(HERE / "failures.py", ranks, program, **given) as processes:
        ends: dict[int, float] = {}
        while len(ends) < len(processes):
            ends |= {i: time.monotonic() for i, p in enumerate(processes) if i not in ends and p.poll() is not None}
            time.sleep(0.05)
        outputs = [process.stdout.read() for process in processes if process.stdout is not None]
        return [process.returncode for process in processes], outputs, max(ends.values()) - min(ends.values())


def test_collectives_are_those_of_gloo() -> None:
    check_ranks("collectives.py", 4, "cases are equal")


@pytest.mark.slow
def test_torchrun_starts_ranks() -> None:
    with reserved_port() as port:
        done = under_torchrun(HERE / "collectives.py", 4, port=port)
    assert (done.returncode, done.stdout.count("cases are equal")) == (0, 4), done.stdout + done.stderr


@pytest.mark.slow
def test_parallel_programs_are_those_of_gloo() -> None:
    check_ranks("programs.py", 4, "programs are equal")


@pytest.mark.slow
def test_operators_are_sharded_on_what_is_declared() -> None:
    check_ranks("sharding.py", 4, "placements are equal")


@pytest.mark.slow
def test_everyday_operators_and_their_gradients_are_sharded_in_every_way() -> None:
    check_ranks("everyday.py", 2, "gradients are equal")


@pytest.mark.slow
def test_compiled_programs_of_sharded_operators_are_those_outside_of_graphs() -> None:
    check_ranks("compiled.py", 2, "cases are equal", "ge", "aclgraph")


def test_collectives_in_graphs_are_those_outside() -> None:
    check_ranks("graphs.py", 2, "cases are equal")


def test_a_rank_that_is_killed_is_named_by_all_others() -> None:
    codes, outputs, seconds = run_ranks("killed_far_away", 3)
    assert codes[2] == -9
    assert set(codes[:2]) <= REPORTED, outputs
    assert seconds < SOON
    assert "rank 0 of 3: HcclBroadcast failed: " in outputs[0], outputs[0]
    assert "rank 1 of 3: HcclAllReduce failed: " in outputs[1], outputs[1]
    # Where the machine is busy a connection may be seen to end well before its process is, and one that is told late
    # finds two ended.
    assert re.search(r"failed: (rank [01] \(process \d+\), )?rank 2 \(process \d+\) ", "".join(outputs)), outputs


@pytest.mark.slow
def test_a_rank_that_does_not_come_ends_the_wait_of_the_others() -> None:
    codes, outputs, _ = run_ranks("late", 2, HCCL_EXEC_TIMEOUT="2")
    assert codes[0] in REPORTED, outputs
    assert "rank 0 of 2: HcclAllReduce failed: " in outputs[0]
    assert "imed out" in outputs[0]


@pytest.mark.parametrize(
    ("differs", "said"),
    [("elements", "2, 6"), ("shape", "5, 2"), ("dtype", "Half"), ("order", "BROADCAST")],
)
def test_ranks_that_do_not_agree_are_told_so(differs: str, said: str) -> None:
    codes, outputs, _ = run_ranks("disagreeing", 2, TORCH_DISTRIBUTED_DEBUG="DETAIL", DIFFERS=differs)
    assert codes == [3, 3], outputs
    for output in outputs:
        assert "Collectives differ" in output, output
        assert said in output, output


def test_processes_that_do_not_agree_how_many_they_are_are_told_so() -> None:
    """Two of three ranks say two: nobody waits for a third one of theirs."""
    codes, outputs, seconds = run_ranks("meeting", 2, of_rank=lambda rank: {"WORLD_SIZE": str(2 + rank)})
    assert codes == [3, 3], outputs
    assert "rank 0 takes part in a group of 2 ranks, and rank 1 in one of 3" in outputs[1], outputs
    assert seconds < SOON


class LeavingStore:
    """Store whose process ends as soon as this one, rank 1 of 3, has said that it leaves; rank 0 is one of 2."""

    def __init__(self) -> None:
        self.left = False

    def set(self, name: str, _: str) -> None:
        self.left = self.left or name.startswith("left")

    def add(self, _: str, number: int) -> int:
        return number

    def get(self, _: str) -> bytes:
        return b"1 0 2 0"

    def check(self, _: list[str]) -> bool:
        if self.left:
            raise ConnectionResetError("Connection reset by peer")
        return True


def test_a_rank_that_refuses_asks_nothing_of_a_store_that_may_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    from ascend_graph.host.runtime import collectives

    store = LeavingStore()
    monkeypatch.setattr(collectives, "TCPStore", lambda *_, **__: store)
    monkeypatch.setattr(collectives, "PrefixStore", lambda _, inner: inner)
    with pytest.raises(ValueError, match="rank 0 takes part in a group of 2 ranks, and rank 1 in one of 3"):
        collectives.connect("127.0.0.1:1/0", 3, 1, 0, 0)
    assert store.left


@pytest.mark.slow
def test_processes_with_one_rank_are_told_so() -> None:
    codes, outputs, _ = run_ranks(
        "meeting", 3, of_rank=lambda rank: {"RANK": str(min(rank, 1))}, HCCL_CONNECT_TIMEOUT="5"
    )
    assert codes == [3, 3, 3], outputs
    assert "rank 1 of 3 is taken by process" in "".join(outputs), outputs


def test_a_rank_that_is_never_started_ends_the_meeting() -> None:
    codes, outputs, seconds = run_ranks("meeting", 2, WORLD_SIZE="3", MEETING_SECONDS="3")
    assert codes == [3, 3], outputs
    assert "2/3" in outputs[0], outputs
    assert seconds < SOON


@pytest.mark.slow
def test_more_ranks_than_devices_are_refused() -> None:
    codes, outputs, _ = run_ranks("meeting", 2, ASCEND_GRAPH_HOST_DEVICES="1", HCCL_CONNECT_TIMEOUT="5")
    assert codes[1] not in (0, None), outputs
    assert re.search(r"device.*(1|0, 1)", outputs[1]), outputs


@pytest.mark.slow
def test_a_port_in_use_is_said() -> None:
    """Where ranks meet is PyTorch's own store. Rank 0 cannot open it; others would wait for an answer, and torchrun
    ends them."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        done = under_torchrun(HERE / "failures.py", 2, "meeting", port=other.getsockname()[1])
    assert done.returncode != 0
    assert "address already in use" in done.stdout + done.stderr, done.stdout + done.stderr


def test_two_jobs_at_once_do_not_meet() -> None:
    with started(HERE / "failures.py", 2, "meeting") as two, started(HERE / "failures.py", 3, "meeting") as three:
        for job in (two, three):
            outputs = [process.communicate()[0] for process in job]
            assert [process.returncode for process in job] == [0] * len(job), outputs
            assert all(f"rank {rank} met" in output for rank, output in enumerate(outputs)), outputs


@pytest.mark.slow
def test_what_the_device_refuses_is_refused(tmp_path: Path) -> None:
    """Among processes of torch.multiprocessing.spawn that meet in a file."""
    command = [sys.executable, str(HERE / "failures.py"), "spawn", "refused", "2", str(tmp_path / "store")]
    done = subprocess.run(command, check=False, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

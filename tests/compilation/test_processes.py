"""Programs of this process end with all that they started: when the wait for them ends, and when a signal comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ascend_graph.compilation.processes import started

#: Two threads wait for a program that has started another; each writes its id.
PROGRAM = """
import sys
from concurrent.futures import ThreadPoolExecutor
from ascend_graph.compilation.processes import ended_by_signals, started

def work(number):
    with started(["sh", "-c", f"sleep 300 & echo $! > {sys.argv[1]}/{number}; wait"]) as process:
        process.wait()

with ended_by_signals(), ThreadPoolExecutor(2) as pool:
    list(pool.map(work, range(6)))
"""

#: A program that starts another in a group of its own, as ninja does with each of its commands.
CHILD = """
import os, subprocess, sys
child = subprocess.Popen(["sleep", "300"], preexec_fn=os.setpgrp)
open(sys.argv[1], "w").write(str(child.pid))
child.wait()
"""

SLOW_COMPILER = """#!/bin/sh
case "$*" in *" -c "*) sleep 300 & echo $! > {pid}; wait;; esac
exec g++ "$@"
"""

OPERATOR = """
#include "register/op_def_registry.h"
namespace ops {
class Slow : public OpDef {
  public:
    explicit Slow(const char* name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).Format({ge::FORMAT_ND});
        this->AICore().AddConfig("ascend910b");
    }
};
OP_ADD(Slow);
}
"""


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(*files: Path) -> list[int]:
    until = time.monotonic() + 120
    while not all(file.exists() and file.read_text().strip() for file in files):
        assert time.monotonic() < until, files
        time.sleep(0.05)
    return [int(file.read_text()) for file in files]


def ended(pids: list[int]) -> bool:
    until = time.monotonic() + 20
    while any(map(is_running, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(is_running, pids))


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 128 + 15), (signal.SIGHUP, 128 + 1), (signal.SIGINT, -signal.SIGINT)]
)
def test_a_signal_ends_what_all_threads_wait_for(number: signal.Signals, status: int, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, tmp_path], stderr=subprocess.PIPE, start_new_session=True
    )
    pids = wait_for(tmp_path / "0", tmp_path / "1")
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == status
    assert ended(pids)
    assert {path.name for path in tmp_path.iterdir()} == {"0", "1"}  # none is started any more


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_build_that_is_ended_leaves_no_compiler(number: signal.Signals, tmp_path: Path) -> None:
    project, script, pid = tmp_path / "slow", tmp_path / "compiler", tmp_path / "pid"
    for name, text in (("op_host/slow_def.cpp", OPERATOR), ("op_kernel/slow.cpp", '#include "kernel_operator.h"\n')):
        path = project / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    script.write_text(SLOW_COMPILER.format(pid=pid))
    script.chmod(0o755)
    environment = {**os.environ, "CXX": str(script), "ASCEND_GRAPH_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "ascend_graph.cli", "build", project, "-o", tmp_path / "opp"]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    pids = wait_for(pid)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert ended(pids)
    assert not (tmp_path / "opp").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_launcher_that_is_ended_leaves_no_compiler(number: signal.Signals, tmp_path: Path) -> None:
    script, pid = tmp_path / "compiler", tmp_path / "pid"
    script.write_text(SLOW_COMPILER.format(pid=pid))
    script.chmod(0o755)
    environment = {**os.environ, "CXX": str(script), "ASCEND_GRAPH_CACHE": str(tmp_path / "cache")}
    environment.pop("ASCEND_GRAPH_HOST_BRIDGE", None)  # that of the process that runs the tests
    command = [sys.executable, "-m", "ascend_graph.host", "-c", "print('started')"]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    pids = wait_for(pid)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert output == b""
    assert ended(pids)


def test_what_is_left_is_killed_with_its_children_in_whatever_group(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with started([sys.executable, "-c", CHILD, pid]) as process:
        pids = wait_for(pid)
        assert os.getpgid(pids[0]) != process.pid == os.getsid(pids[0])
    assert process.returncode == -signal.SIGKILL
    assert ended(pids)

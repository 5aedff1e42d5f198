"""Worker processes that may die: each job reports its progress; a fatal comparison is named and the rest continues."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch

from benchmarks.operators.checks import OPERATORS, CheckMismatch, CheckPlan, CheckTally, check_operator, database
from benchmarks.operators.comparison import ComparisonVerdict

#: Number of deaths after which an operator's other comparisons are abandoned.
DEATHS = 3
#: Seconds that a new process may take to import everything and to initialize the device.
START = 300.0

_PRELOAD = ["torch", "torch_npu", "benchmarks.operators.checks", "torch.testing._internal.common_methods_invocations"]


@dataclass(frozen=True)
class Job:
    """Job for one operator and dtype; comparisons that ended a process before are skipped."""

    operator: str
    dtype: str
    database: str = OPERATORS
    skip: frozenset[tuple[int, str]] = frozenset()
    deaths: tuple[CheckMismatch, ...] = ()


def _work(connection: Connection, plan: CheckPlan, setup: str, errors: str) -> None:
    os.dup2(os.open(errors, os.O_WRONLY | os.O_TRUNC), 2)
    os.dup2(2, 1)
    torch.set_num_threads(1)  # the other workers have the other cores, and sums keep their order
    torch.zeros(1, device=plan.device)
    if setup:
        module, _, function = setup.partition(":")
        getattr(importlib.import_module(module), function)()
    while (job := connection.recv()) is not None:
        start = time.monotonic()
        tally = check_operator(
            database(job.database)[job.operator],
            getattr(torch, job.dtype),
            plan,
            skip=job.skip,
            starting=lambda sample, check: connection.send((sample, check)),
        )
        tally.seconds = time.monotonic() - start
        connection.send(tally)


@dataclass
class _Worker:
    process: Any
    connection: Connection
    errors: Path
    job: Job
    at: tuple[int, str] = (0, "samples")
    since: float = field(default_factory=time.monotonic)

    def last_words(self) -> str:
        """Return the signal or status that ended the process, and the last line it wrote that is not a warning."""
        lines = [line for line in self.errors.read_text(errors="replace").splitlines() if line.strip()]
        said = [line for line in lines if "Warning" not in line]
        code = self.process.exitcode or 0
        return f"{signal.Signals(-code).name if code < 0 else f'exit status {code}'} {said[-1][:300] if said else ''}"


class Pool:
    """Pool that runs jobs in separate processes; use it as a context manager.

    Args:
        setup: ``module:function``, called in each worker once the device is initialized, for instance to plant a fault.
        limit: the seconds a single comparison may take.
    """

    def __init__(self, plan: CheckPlan, *, workers: int = 0, setup: str = "", limit: float = 120.0) -> None:
        self._plan, self._setup, self._limit = plan, setup, limit
        self._count = workers or len(os.sched_getaffinity(0))
        # Workers are forked from a process that has imported everything and initialized no device: this one, if it is such.
        self._context: Any = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(_PRELOAD)
        if hasattr(torch, "npu") and not torch.npu.is_initialized():
            self._context = multiprocessing.get_context("fork")
        self._running: list[_Worker] = []
        self._directory = tempfile.TemporaryDirectory()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._running:
            self._end(worker)
        self._directory.cleanup()

    def _end(self, worker: _Worker) -> None:
        worker.process.kill()
        worker.process.join()
        worker.connection.close()

    def _start(self, job: Job, number: int) -> _Worker:
        ours, theirs = self._context.Pipe()
        errors = Path(self._directory.name) / f"{number}"
        errors.touch()
        process = self._context.Process(target=_work, args=(theirs, self._plan, self._setup, str(errors)), daemon=True)
        process.start()
        theirs.close()
        ours.send(job)
        return _Worker(process, ours, errors, job, since=time.monotonic() + START)

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, CheckTally]]:
        """Yield each job's tally as it ends."""
        waiting, started = deque(jobs), 0
        while waiting or self._running:
            while waiting and len(self._running) < self._count:
                self._running.append(self._start(waiting.popleft(), started))
                started += 1
            ready = wait([w.connection for w in self._running], timeout=1.0)
            for worker in list(self._running):
                tally: CheckTally | None = None
                if worker.connection in ready:
                    try:
                        said = worker.connection.recv()
                    except (EOFError, ConnectionResetError):
                        tally = self._died(worker, waiting, "")
                    else:
                        if isinstance(said, CheckTally):
                            tally = said
                            tally.outcomes += worker.job.deaths
                        else:
                            worker.at, worker.since = said, time.monotonic()
                elif time.monotonic() - worker.since > self._limit:
                    tally = self._died(worker, waiting, f"no result after {self._limit:.0f} seconds")
                if tally is None:
                    continue
                job = worker.job
                if worker in self._running:
                    if waiting:
                        worker.job, worker.since = waiting.popleft(), time.monotonic()
                        worker.connection.send(worker.job)
                    else:
                        self._end(worker)
                        self._running.remove(worker)
                yield job, tally

    def _died(self, worker: _Worker, waiting: deque[Job], why: str) -> CheckTally | None:
        """Record a death; the operator's other comparisons are retried, unless there were too many deaths."""
        job, (sample, check) = worker.job, worker.at
        self._end(worker)
        self._running.remove(worker)
        why = why or worker.last_words()
        deaths = (*job.deaths, CheckMismatch(job.operator, job.dtype, sample, check, ComparisonVerdict.DIED, why))
        if len(deaths) < DEATHS and check != "samples":
            waiting.appendleft(replace(job, skip=job.skip | {(sample, check)}, deaths=deaths))
            return None
        return CheckTally(outcomes=list(deaths))


def progress(text: str) -> None:
    """Print a line of progress."""
    print(text, file=sys.stderr, flush=True)

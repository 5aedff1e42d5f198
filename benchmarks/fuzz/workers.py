"""Worker processes that may die: each runs a batch of items; a fatal item is reported and the rest continues."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from benchmarks.fuzz.findings import FuzzFinding, FuzzTally

#: Seconds that a new process may take before its first item.
START = 300.0
#: Number of dead processes after which a batch is abandoned.
DEATHS = 8
#: Share of a processor below which a process that takes long is idle: it waits for what does not come.
IDLE = 0.02
_PRELOAD = [
    "torch",
    "torch_npu",
    "torch.testing",
    "torch._dynamo",
    "torch._inductor.compile_fx",
    "benchmarks.fuzz.check",
]


@dataclass(frozen=True)
class Batch:
    """Batch of items for one process.

    ``work`` is ``module:function``, called with the items, a function that reports progress, and the options. It returns a
    function of an item's index and of modes to skip, which returns a tally. ``skip`` has the pairs of item and mode that
    ended a process before; ``setup`` is ``module:function:argument``, called first.
    """

    work: str
    items: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...] = ()
    setup: str = ""
    skip: frozenset[tuple[int, str]] = frozenset()
    start: int = 0
    deaths: int = 0


def overdue(elapsed: float, used: float, limit: float) -> str:
    """Return why a process has taken too long, or an empty text: a busy machine is not its fault.

    >>> [overdue(seconds, used, 180.0) for seconds, used in ((400, 100), (400, 190), (400, 1))]
    ['', 'no result after 180 seconds of processor time', 'no result after 400 seconds, idle']

    Args:
        elapsed: Seconds since it began.
        used: Seconds of processor time that it had of them.
        limit: Seconds that it may take.
    """
    if used > limit:
        return f"no result after {limit:.0f} seconds of processor time"
    return f"no result after {elapsed:.0f} seconds, idle" if elapsed > limit and used < IDLE * elapsed else ""


def processor_time(process: int) -> float:
    """Return the seconds of processor time that a process and its finished children had; 0 once it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def load(path: str) -> Callable[..., Any]:
    """Return the function that ``module:function`` names."""
    module, _, function = path.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def _work(connection: Connection, batch: Batch, errors: str) -> None:
    os.dup2(os.open(errors, os.O_WRONLY | os.O_TRUNC | os.O_APPEND), 2)
    os.dup2(2, 1)
    import torch

    torch.set_num_threads(1)  # the other workers have the other cores, and sums keep their order
    if batch.setup:
        path, _, argument = batch.setup.rpartition(":")
        load(path)(argument)
    at = 0

    def starting(mode: str) -> None:
        connection.send((at, mode))

    work = load(batch.work)(batch.items, starting, dict(batch.options))
    for at in range(batch.start, len(batch.items)):
        starting("start")
        connection.send(work(at, frozenset(mode for i, mode in batch.skip if i == at)))
    connection.send(None)


@dataclass
class _Worker:
    process: Any
    connection: Connection
    errors: Path
    batch: Batch
    at: tuple[int, str] = (0, "start")
    since: float = field(default_factory=time.monotonic)
    used: float = 0.0

    def started(self, at: tuple[int, str]) -> None:
        """Note what the process does from now on."""
        self.at, self.since, self.used = at, time.monotonic(), processor_time(self.process.pid)

    def overdue(self, limit: float) -> str:
        """Return why what the process does has taken too long, or an empty text."""
        return overdue(time.monotonic() - self.since, processor_time(self.process.pid) - self.used, limit)

    def last_words(self) -> str:
        """Return the signal or status that ended the process, and the last line that it wrote."""
        self.process.join()
        lines = [
            line
            for line in self.errors.read_text(errors="replace").splitlines()
            if line.strip() and "Warning" not in line
        ]
        code = self.process.exitcode or 0
        return (
            f"{signal.Signals(-code).name if code < 0 else f'exit status {code}'}: {lines[-1][:300] if lines else ''}"
        )

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


class Workers:
    """Pool that runs batches in separate processes; use it as a context manager.

    Args:
        limit: The seconds of processor time that a single mode of an item may take.
    """

    def __init__(self, count: int = 0, limit: float = 120.0) -> None:
        self._count, self._limit = count or len(os.sched_getaffinity(0)), limit
        # Forked from a process that has imported everything and initialized no device.
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(_PRELOAD)
        self._running: list[_Worker] = []
        self._directory = tempfile.TemporaryDirectory()
        self._started = 0

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._directory.cleanup()

    def stop(self) -> None:
        """End all processes."""
        for worker in self._running:
            worker.end()
        self._running.clear()

    def _start(self, batch: Batch) -> _Worker:
        ours, theirs = self._context.Pipe()
        self._started += 1
        errors = Path(self._directory.name) / f"{self._started}"
        errors.touch()
        process = self._context.Process(target=_work, args=(theirs, batch, str(errors)), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours, errors, batch, (batch.start, "start"), time.monotonic() + START)

    def run(self, batches: Sequence[Batch], until: float = float("inf")) -> Iterator[FuzzTally]:
        """Yield the tally of each item as it ends; nothing is started after the monotonic time ``until``."""
        waiting = deque(batches)
        while (waiting and time.monotonic() < until) or self._running:
            while waiting and len(self._running) < self._count and time.monotonic() < until:
                self._running.append(self._start(waiting.popleft()))
            ready = wait([w.connection for w in self._running], timeout=1.0)
            for worker in list(self._running):
                if worker.connection in ready:
                    yield from self._heard(worker, waiting)
                elif why := worker.overdue(self._limit):
                    yield self._died(worker, waiting, why)
                if time.monotonic() > until and worker in self._running and worker.at[1] == "start":
                    worker.end()
                    self._running.remove(worker)

    def _heard(self, worker: _Worker, waiting: deque[Batch]) -> Iterator[FuzzTally]:
        try:
            said = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            yield self._died(worker, waiting, "")
            return
        if said is None:
            worker.end()
            self._running.remove(worker)
        elif isinstance(said, FuzzTally):
            yield said
            worker.at = (worker.at[0] + 1, "start")
        else:
            worker.started(said)

    def _died(self, worker: _Worker, waiting: deque[Batch], why: str) -> FuzzTally:
        """Record a death; the item's other modes and the other items are retried."""
        batch, (item, mode) = worker.batch, worker.at
        if why:
            worker.process.kill()
        why = why or worker.last_words()
        worker.end()
        self._running.remove(worker)
        given_up = mode == "start" or batch.deaths >= DEATHS
        start = item + 1 if given_up else item
        if start < len(batch.items):
            skip = batch.skip | {(item, mode)}
            waiting.appendleft(replace(batch, start=start, skip=skip, deaths=batch.deaths + 1))
        kind = "program" if str(batch.items[item]).startswith("program") else "operator"
        return FuzzTally(
            items=int(given_up), kind=kind, findings=[FuzzFinding(str(batch.items[item]), mode, "died", why)]
        )


def progress(text: str) -> None:
    """Print a line of progress."""
    print(text, file=sys.stderr, flush=True)

"""Programs with all that they start, such as ninja with its compilers: whatever ends the wait for one ends all of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any


class _Programs:
    """Those of this process: the sessions that run, by the id of their first process, and whether a signal has ended all."""

    def __init__(self) -> None:
        self.running: set[int] = set()
        self.ended = False
        self.lock = threading.RLock()  # a signal may come to the thread that holds it


_programs = _Programs()


@contextmanager
def started(command: Sequence[str | os.PathLike[str]], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A program in a session of its own, killed with all that it started if the block ends before the program does.

    Args:
        command: the program and its arguments.
        options: those of :class:`subprocess.Popen`.

    Raises:
        KeyboardInterrupt: a signal has ended this process's programs; none is started any more.

    >>> with started(["sleep", "60"]) as sleeping:
    ...     pass
    >>> sleeping.returncode
    -9
    """
    with _programs.lock:
        if _programs.ended:
            raise KeyboardInterrupt
        process = subprocess.Popen(command, start_new_session=True, **options)
        _programs.running.add(process.pid)
    try:
        with process:  # closes its pipes
            try:
                yield process
            finally:
                end(process)
    finally:
        with _programs.lock:
            _programs.running.discard(process.pid)


def end(process: subprocess.Popen[Any]) -> None:
    """Kill a program of :func:`started` that has not ended, with all that it started."""
    if process.poll() is None:
        _kill(process.pid)
        process.wait()


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Within it Ctrl-C, SIGTERM and SIGHUP end every program of :func:`started`, in whichever thread it is waited for.

    Those programs are in sessions of their own, which no terminal signals, and a thread that waits for one is not told of a
    signal. After SIGTERM and SIGHUP the process exits with 128 and the signal's number, as a shell says it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread has handlers
        return
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, _end_all) for number in signals}
    try:
        yield
    finally:
        _programs.ended = False
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_all(number: int, frame: FrameType | None) -> None:
    _programs.ended = True
    with _programs.lock:
        for session in _programs.running:
            _kill(session)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def _kill(session: int) -> None:
    """Kill what is in a session, also what is started meanwhile. Not by groups: ninja has one for each of its commands."""
    while members := [pid for pid, its_session in _processes() if its_session == session]:
        for pid in members:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, signal.SIGKILL)


def _processes() -> Iterator[tuple[int, int]]:
    """The processes of this machine that run, each with its session."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it has just ended
                state, _, _, session, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
                if state not in "ZX":
                    yield int(entry.name), int(session)

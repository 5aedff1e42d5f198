"""Programs with all their children, such as ninja with its compilers: the end of a wait for one ends them all."""

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
    """Programs of this process: the running sessions, by the id of their first process, and a flag for their end."""

    def __init__(self) -> None:
        self.running: set[int] = set()
        self.ended = False
        self.lock = threading.RLock()  # a signal may come to the thread that holds it


_programs = _Programs()


@contextmanager
def started(command: Sequence[str | os.PathLike[str]], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a program in a session of its own; kill it with all its children if the block ends first.

    Args:
        command: The program and its arguments.
        options: Those of :class:`subprocess.Popen`.

    Raises:
        KeyboardInterrupt: A signal has ended this process's programs, so that no other is started.

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
    """Kill a program of :func:`started` that has not ended, with all its children."""
    if process.poll() is None:
        _kill(process.pid)
        process.wait()


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Make Ctrl-C, SIGTERM and SIGHUP end every program of :func:`started` in any thread, within the context.

    These programs have sessions of their own, which no terminal signals, and a thread that waits for one does not get
    the signal. After SIGTERM and SIGHUP the process exits with 128 plus the signal's number, the convention of shells.
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
    """Kill all processes of a session, including new ones. Not by groups: ninja has one for each of its commands."""
    while members := [pid for pid, its_session in _processes() if its_session == session]:
        for pid in members:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, signal.SIGKILL)


def _processes() -> Iterator[tuple[int, int]]:
    """Yield the running processes of this machine, each with its session."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it has just ended
                state, _, _, session, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
                if state not in "ZX":
                    yield int(entry.name), int(session)

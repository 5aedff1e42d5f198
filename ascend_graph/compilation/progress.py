"""Progress of long work, on stderr: steps done, the time so far, and the time of the previous run."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Time below which work is not announced, in seconds.
QUIET_SECONDS = 2.0
#: Seconds between two lines if stderr is not a terminal.
LINE_SECONDS = 15.0

_TIMES = "times"
_BAR = 24
_CLEARED = "\r\x1b[K"


class _Works:
    """Counter of the announced works of this process; a terminal has room for the bar of one alone."""

    def __init__(self) -> None:
        self.running = 0
        self.lock = threading.Lock()

    def add(self, change: int) -> None:
        with self.lock:
            self.running += change


_works = _Works()


@dataclass(slots=True)
class BuildSteps:
    """Steps of some work: written by the worker, read by the reporter."""

    done: int = 0
    all: int = 0


@contextlib.contextmanager
def announced(what: str, detail: str, cache: Path, *, whole: bool = True, bar: bool = True) -> Iterator[BuildSteps]:
    """Report on stderr the progress of some work, once it takes a while.

    A terminal shows a bar that moves every second; other outputs get a line every 15 seconds. The cache keeps the
    duration, which is shown the next time.

    Args:
        what: The work, such as ``compiling libcust_opapi``; its time is kept under this text.
        detail: The reason, and the place of the result.
        cache: The directory of the times.
        whole: If false, part of the work was done before, and its time is not kept.
        bar: If false, a terminal gets lines, too: another process may write to it.
    """
    steps = BuildSteps()
    started = time.monotonic()
    done = threading.Event()
    before = _times(cache).get(what)
    teller = threading.Thread(
        target=_tell,
        args=(what, detail, before, steps, started, done, bar and _is_terminal()),
        daemon=True,
        name="ascend_graph progress",
    )
    _works.add(1)
    teller.start()
    succeeded = False
    try:
        yield steps
        succeeded = True
    finally:
        done.set()
        teller.join()
        _works.add(-1)
        seconds = time.monotonic() - started
        if seconds > QUIET_SECONDS:
            _line(f"{what} {'took' if succeeded else 'ended after'} {seconds:.0f} s")
            if succeeded and whole:
                _remember(cache, what, seconds)


def _tell(
    what: str, detail: str, before: float | None, steps: BuildSteps, started: float, done: threading.Event, bar: bool
) -> None:
    if done.wait(QUIET_SECONDS):
        return
    last = f"; last time {before:.0f} s" if before is not None else ""
    _line(f"{what} ({detail}{last}) …" if detail else f"{what}{last} …")
    said = time.monotonic()
    while not done.wait(1.0 if bar else LINE_SECONDS):
        now = time.monotonic()
        draws = bar and _works.running == 1
        if not draws and now - said < LINE_SECONDS:
            continue
        said = now
        seconds = now - started
        parts = [f"{steps.done} of {steps.all} steps"] if steps.all else []
        parts.append(f"{seconds:.0f} s" + (f" (last time {before:.0f} s)" if before is not None else ""))
        if draws:
            _write(f"{_CLEARED}ascend_graph: {_drawn(steps, seconds, before)} {', '.join(parts)}")
        else:
            _line(f"{what}: {', '.join(parts)}")


def _drawn(steps: BuildSteps, seconds: float, before: float | None) -> str:
    """Return a bar, filled by the duration of the previous run, or else by the steps."""
    share = seconds / before if before else steps.done / max(steps.all, 1)
    full = round(min(share, 0.99) * _BAR)
    return f"[{'#' * full}{'.' * (_BAR - full)}]"


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (ValueError, AttributeError):  # closed, or absent
        return False


def _line(text: str) -> None:
    _write(f"{_CLEARED if _is_terminal() else ''}ascend_graph: {text}\n")


def _write(text: str) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr may be closed
        sys.stderr.write(text)
        sys.stderr.flush()


def _times(cache: Path) -> dict[str, float]:
    """Return the seconds that each work took in its last run, by name."""
    try:
        times = json.loads((cache / _TIMES).read_text())
        return {name: float(seconds) for name, seconds in times.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _remember(cache: Path, what: str, seconds: float) -> None:
    """Save a time atomically; of two processes at once, one may lose its own."""
    times = {**_times(cache), what: round(seconds, 1)}
    with contextlib.suppress(OSError):
        cache.mkdir(parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(prefix=f"{_TIMES}-", dir=cache)
        try:
            with os.fdopen(descriptor, "w") as file:
                json.dump(times, file)
            Path(draft).replace(cache / _TIMES)
        except OSError:
            Path(draft).unlink(missing_ok=True)

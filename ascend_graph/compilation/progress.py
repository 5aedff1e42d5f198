"""What is being compiled, said only where it takes a while."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

#: A compilation that is done by then says nothing.
QUIET_SECONDS = 2.0


@contextlib.contextmanager
def announced(what: str, why: str, where: Path) -> Iterator[None]:
    """Say on stderr that something takes a while, and how long it took; on a terminal, how long it has taken so far.

    Args:
        what: What is compiled.
        why: What it is compiled for, and how long that takes, if that is known.
        where: The directory that it is kept in.
    """
    once = f"compiling {what} (once{f' {why}' if why else ''}; kept in {where}) …"
    started = time.monotonic()
    done = threading.Event()

    def line(text: str, end: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # stderr may be closed
            print(f"{chr(13) if sys.stderr.isatty() else ''}ascend_graph: {text}", end=end, file=sys.stderr, flush=True)

    def tell() -> None:
        if done.wait(QUIET_SECONDS):
            return
        terminal = sys.stderr.isatty()
        line(once, "" if terminal else "\n")
        while not done.wait(1.0):
            if terminal:
                line(f"{once} {time.monotonic() - started:.0f} s", "")

    teller = threading.Thread(target=tell, daemon=True, name="ascend_graph build progress")
    teller.start()
    outcome = "failed"
    try:
        yield
        outcome = "compiled"
    finally:
        done.set()
        teller.join()
        seconds = time.monotonic() - started
        if seconds > QUIET_SECONDS:
            line(f"{outcome} {what} in {seconds:.0f} s" + " " * 24 * sys.stderr.isatty(), "\n")

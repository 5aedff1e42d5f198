"""Shutdown of a process: autograd's device threads finish before Python ends.

A backward pass returns when its last gradient is there. The device's thread then releases what the pass kept, for which
it takes the GIL. If the interpreter is ending by then, it ends the thread, and C++ ends the process with SIGABRT
("terminate called without an active exception"). PyTorch behaves so with other devices too; on a busy host it hits
scripts that end with a backward pass.
"""

from __future__ import annotations

import time
from pathlib import Path

#: Longest wait for threads in seconds, and the pause that all of them must sleep through twice.
LIMIT, PAUSE = 5.0, 0.001
_TASKS = Path("/proc/self/task")


def _at_work() -> bool | None:
    """Return whether one of autograd's threads runs, or None if there are none."""
    found = None
    for task in _TASKS.iterdir():
        try:
            _, _, rest = (task / "stat").read_text().partition("(")
            name, _, state = rest.rpartition(") ")
        except OSError:  # it has ended meanwhile
            continue
        if name.startswith("pt_autograd_"):
            found = bool(found) or not state.startswith("S")
    return found


def settle() -> None:
    """Wait until autograd's threads sleep, without the GIL, which they may need; return at once if there are none."""
    deadline, quiet = time.monotonic() + LIMIT, 0
    while quiet < 2 and time.monotonic() < deadline:
        at_work = _at_work()
        if at_work is None:
            return
        time.sleep(PAUSE)
        quiet = 0 if at_work else quiet + 1

"""Program ``python -m ascend_graph.compilation.waiting WHAT COMMAND…``: run a long command, and report its progress.

Its output is shown only if it fails: a sentence first, the errors, and a file with all of it. WHAT is a text such as
``installing torch``; in one directory one process at a time does it. Nothing but the standard library is needed.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ascend_graph.compilation.cache import cache_directory, locked
from ascend_graph.compilation.failures import build_error
from ascend_graph.compilation.processes import ended_by_signals, started
from ascend_graph.compilation.progress import announced
from ascend_graph.compilation.toolchain import BuildError


@contextmanager
def _alone(what: str) -> Iterator[None]:
    """Let other processes with the same work in this directory wait: two installations into one environment break it."""
    key = hashlib.sha256(f"{Path.cwd()}\n{what}".encode()).hexdigest()[:16]
    with ExitStack() as stack:
        with suppress(OSError):  # a cache that cannot be written is said by whoever needs it
            stack.enter_context(locked(cache_directory() / f"waiting-{key}.lock", what))
        yield


def wait(what: str, command: Sequence[str]) -> None:
    """Run a command to its end.

    Raises:
        BuildError: It fails, or does not start.
    """
    try:
        with (
            ended_by_signals(),
            _alone(what),
            announced(what, "", cache_directory(), bar=False),
            started(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process,
        ):
            output, _ = process.communicate()
            if process.returncode != 0:
                raise build_error(what, output, what)
    except OSError as error:
        raise BuildError(
            f"{what}: {command[0]} does not start: {error.strerror or error}; install it, or correct PATH"
        ) from None


def main(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit status: 0, 1 if the command fails, 2 if none is given."""
    if len(arguments) < 2:
        print("usage: python -m ascend_graph.compilation.waiting WHAT COMMAND…", file=sys.stderr)
        return 2
    try:
        wait(arguments[0], arguments[1:])
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

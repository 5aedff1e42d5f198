"""Adoption of whole repositories, and their own meta functions compared with what ``ascend-graph adopt`` registers.

``operators``, ``registered`` (the calls of the written module that ran), ``by_names`` and ``with_lines``, ``undecided``,
``impossible``; ``by_prototype``: those with a GE operator; ``with_relation`` and ``metas_kept``. ``kernels_equal``: operators whose shapes, dtypes and strides, and
whose written arguments, are those of the client's own compiled kernel in random calls that it accepts. ``metas_equal``: operators whose
relation gives the shapes and dtypes of the client's meta function in random calls that it accepts; ``metas_client_wrong``: those
where it contradicts what the client's kernel allocates; ``narrower``: those where a relation from the kernel refuses calls that the
meta function accepts; ``wrong``: all others, and registrations that fail. ``not_compared``: metas that neither compile nor stand
alone. ``lines_theirs`` counts schemas, kernels' adapters and metas that the registrations stand for.

    make bench NAME=adopt ARGS='CHECKOUT…'        # --no-kernels leaves the clients' kernels out, which take minutes
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks._common import run

WORK = Path(__file__).resolve().parent.parent / "build" / "adopt"
_COMPARED = Path(__file__).with_name("_adopted.py")
#: File that names the calls which ended earlier processes.
TRIED = WORK / "tried.txt"
COLUMNS = (
    "operators",
    "registered",
    "by_names",
    "with_lines",
    "undecided",
    "impossible",
    "wrong",
    "kernels_equal",
    "metas_equal",
    "narrower",
)


def main() -> dict[str, Any]:
    """Adopt each checkout in a process of its own, and return the summaries by directory."""
    WORK.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    flags = [one for one in sys.argv[1:] if one == "--no-kernels"]
    for directory in (Path(one) for one in sys.argv[1:] if one not in flags):
        command = [
            sys.executable,
            "-m",
            "ascend_graph.host",
            "--quiet",
            str(_COMPARED),
            str(directory),
            str(WORK),
            *flags,
        ]
        TRIED.unlink(missing_ok=True)
        before = None
        while True:
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
            # A division by zero in a client's kernel or meta ends the process; the next one leaves that function out.
            tried = TRIED.read_text() if TRIED.exists() else ""
            if done.returncode >= 0 or tried == before:
                break
            before = tried
        lines = [line for line in done.stdout.splitlines() if line.startswith('{"operators"')]
        found[directory.name] = json.loads(lines[-1]) if lines else {"failed": done.returncode}
    table = Table("repository", *COLUMNS)
    for name, summary in found.items():
        table.add_row(name, *(str(summary.get(column, "")) for column in COLUMNS))
    Console(stderr=True).print(table)
    return found


if __name__ == "__main__":
    run(main)

"""Launcher ``python -m benchmarks [--record[=LABEL]] [NAME [ARGUMENT…]]``: it runs one benchmark, or all, on the host runtime.

Each runs in a separate process. Trials (``trials/``: benchmarks of third-party checkouts) are found by their names, too.
With ``--record`` the figures of the last line go into benchmarks/results.json, under the name, or ``NAME:LABEL``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks._common import record

HERE = Path(__file__).parent
TRIALS = HERE.parent / "trials"


def programs() -> dict[str, list[str]]:
    """Return Python's arguments for each benchmark and trial by name: modules and runnable packages."""
    modules = {path.stem: [str(path)] for place in (HERE, TRIALS) for path in sorted(place.glob("[!_]*.py"))}
    packages = {path.parent.name: ["-m", f"benchmarks.{path.parent.name}"] for path in HERE.glob("*/__main__.py")}
    return dict(sorted((modules | packages).items()))


def followed(command: list[str]) -> tuple[int, dict[str, Any]]:
    """Run a command, show what it prints, and return its status and the JSON object of its last line."""
    last = ""
    variables = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line if line.strip() else last
    try:
        summary = json.loads(last)
    except ValueError:
        summary = {}
    return process.returncode, summary if isinstance(summary, dict) else {}


def main(arguments: list[str]) -> int:
    """Run the named benchmark, or all; return the first failure's status."""
    known = programs()
    option, _, label = arguments[0].partition("=") if arguments else ("", "", "")
    recording = option == "--record"
    arguments = arguments[recording:]
    wanted, rest = (arguments[:1], arguments[1:]) if arguments else (list(known), [])
    for name in wanted:
        if name not in known:
            print(f"benchmark {name!r} does not exist; expected one of {', '.join(known)}", file=sys.stderr)
            return 2
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", "ascend_graph.host", "--quiet", *known[name], *rest]
        if recording:
            status, summary = followed(command)
        else:
            status, summary = subprocess.run(command, check=False).returncode, {}
        if status != 0:
            return status
        if recording and not summary:
            print(f"benchmark {name!r}: its last line is not a JSON object, so nothing is recorded", file=sys.stderr)
            return 1
        if recording:
            shown = f" ARGS='{' '.join(named(rest))}'" if rest else ""
            record(f"{name}:{label}" if label else name, f"make bench NAME={name}{shown}", summary)
    return 0


def named(arguments: list[str]) -> list[str]:
    """Return the arguments with ``DIR`` for each path, which is of one machine alone."""
    return ["DIR" if Path(argument).exists() else argument for argument in arguments]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""Stock wheels on the host runtime: the libraries that load, the symbols that are missing, and what imports.

    make bench NAME=wheels ARGS='WHEEL…'
    python -m benchmarks wheels WHEEL… [--import]

A wheel is what ``ascend-graph survey`` takes: a .whl file, an unpacked directory or an installed distribution. Each
library that misses nothing is loaded, in a process of its own; ``died`` counts the processes that crashed. The
functions of its packages are then ``called`` with null arguments: one that answers with an error code was ``refused``.
``--import`` imports its modules and entry points, which executes their code. The last line is JSON by wheel: ``imports,
libraries, loaded, missing_symbols, operators, called, refused, died``.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ascend_graph.doctor.wheels import AvailableSymbols, WheelSurvey, opened, survey_wheel, try_imports

_PHASE = "GetWorkspaceSize"
_MOST_PARAMETERS = 64


def load(path: Path, functions: Sequence[str], for_torch: bool) -> Iterator[dict[str, Any]]:
    """Load a library and call the first phases of its functions with null arguments; each result is one JSON object."""
    command = [sys.executable, __file__, *(["--torch"] if for_torch else []), "--load", str(path), *functions]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    yield from (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        yield {"state": "failed" if done.returncode == 1 else "died", "detail": last[:300]}


def load_here(path: str, functions: Sequence[str]) -> None:
    """Load a library, and print a line for it and for each function."""
    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOW)
    except OSError as error:
        sys.exit(str(error))
    print(json.dumps({"state": "loaded"}), flush=True)
    for name in functions:
        status = getattr(library, name + _PHASE)(*[None] * _MOST_PARAMETERS)
        print(json.dumps({"state": "called", "function": name, "status": status}), flush=True)


def figures(wheel: str, machine: AvailableSymbols, imports: bool) -> dict[str, Any]:
    """Return the figures of one wheel."""
    with opened(wheel) as files:
        found = survey_wheel(files, machine)
        targets = [*found.modules, *(value for _, _, value in found.entry_points)] if imports else []
        imported = list(try_imports(files.root, targets, time_limit=300))
        states, statuses = _loaded(files.root, found)
    for one in imported:
        print(f"{one.target}: {one.state} {one.error}", file=sys.stderr)
    operators = {name for one in found.packages for name in one.prototypes}
    return {
        **({"imports": sum(one.state == "imported" for one in imported)} if imports else {}),
        "libraries": len(found.libraries),
        "loaded": states["loaded"],
        "missing_symbols": len(found.missing),
        "operators": len(operators),
        "called": states["called"],
        "refused": sum(statuses.values()) - statuses[0],
        "died": states["died"] + sum(one.state == "died" for one in imported),
        "statuses": {str(status): count for status, count in sorted(statuses.items())},
    }


def _loaded(root: Path, found: WheelSurvey) -> tuple[Counter[str], Counter[int]]:
    functions = {f"{one.path}/op_api/lib/libcust_opapi.so": one.functions for one in found.packages}
    states: Counter[str] = Counter()
    statuses: Counter[int] = Counter()
    for library in found.libraries:
        if not library.loads:
            continue
        for result in load(root / library.path, functions.get(library.path, ()), "torch" in library.role.lower()):
            states[result["state"]] += 1
            if result["state"] == "called":
                statuses[result["status"]] += 1
            elif result["state"] != "loaded":
                print(f"{library.path}: {result['state']}: {result['detail']}", file=sys.stderr)
    return states, statuses


def main() -> None:
    parser = argparse.ArgumentParser(description="Try wheels on the host runtime.")
    parser.add_argument("wheels", nargs="*", help="without any nothing is tried")
    parser.add_argument("--import", dest="imports", action="store_true")
    parser.add_argument("--torch", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--load", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.torch:
        import torch_npu  # noqa: F401 - with the libraries that it links
    if arguments.load:
        load_here(arguments.wheels[0], arguments.wheels[1:])
        return
    machine = AvailableSymbols()
    summary = {Path(wheel).name: figures(wheel, machine, arguments.imports) for wheel in arguments.wheels}
    for name, one in summary.items():
        print(f"{name}: {', '.join(f'{value} {key}' for key, value in one.items() if isinstance(value, int))}")
    print(json.dumps(summary))


if __name__ == "__main__":
    main()

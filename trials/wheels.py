"""Stock wheels on the host runtime: the libraries that load, the symbols that are missing, and what imports.

    make bench NAME=wheels ARGS='WHEEL…'
    python -m benchmarks wheels WHEEL… [--import]

A wheel is what ``ascend-graph survey`` takes: a .whl file, an unpacked directory or an installed distribution. Each
library that misses nothing is loaded, in a process of its own; ``died`` counts the processes that crashed. The
functions of its packages are then called with null arguments: ``null_calls``, of which ``null_refused`` answered with an
error code. Operators that a package has for the host's SoC are ``tried`` with the calls of ``_wheel_operators.py``, in eager
mode, GE graphs and npugraph_ex captures: ``called`` if all of them ran, ``equal`` if all agree with plain PyTorch,
``refused`` if one ended with an error; ``untried`` have no calls there. ``--import`` imports its modules and entry points,
which executes their code. The last line is JSON by wheel: ``imports, libraries, loaded, missing_symbols, operators,
null_calls, null_refused, tried, called, equal, refused, untried, died``.
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
from ascend_graph.codegen.msopgen_project import soc_config

from ascend_graph.doctor.wheels import AvailableSymbols, WheelSurvey, opened, survey_wheel, try_imports
from ascend_graph.environment import processor

_ROOT = Path(__file__).resolve().parents[1]
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
        tried = _tried(files.root, found)
    for one in imported:
        print(f"{one.target}: {one.state} {one.error}", file=sys.stderr)
    operators = {name for one in found.packages for name in one.prototypes}
    return {
        **({"imports": sum(one.state == "imported" for one in imported)} if imports else {}),
        "libraries": len(found.libraries),
        "loaded": states["loaded"],
        "missing_symbols": len(found.missing),
        "operators": len(operators),
        "null_calls": states["called"],
        "null_refused": sum(statuses.values()) - statuses[0],
        **{name: tried[name] for name in ("tried", "called", "equal", "refused", "untried")},
        "died": states["died"] + tried["died"] + sum(one.state == "died" for one in imported),
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


def _tried(root: Path, found: WheelSurvey) -> Counter[str]:
    """Call the operators of packages for the host's SoC; they are registered, compiled and compared in processes."""
    soc, counts = soc_config(f"ai_core-{processor(os.environ)}"), Counter[str]()
    known = _known_operators()
    for package in found.packages:
        for op_type in package.operators.get(soc, ()):
            if op_type not in known:
                counts["untried"] += 1
                continue
            results, ended = _try_operator(root / package.path, op_type)
            counts["tried"] += 1
            counts["died"] += ended < 0
            for one in results:
                text = one.get("refused") or one["problems"] or "equal"
                print(f"{op_type} {one['mode']}: {text}", file=sys.stderr, flush=True)
            ran = ended == 0 and all("refused" not in one for one in results)
            counts["called"] += ran
            counts["equal"] += ran and not any(one["problems"] for one in results)
            counts["refused"] += ended >= 0 and not ran
    return counts


def _try_operator(package: Path, op_type: str) -> tuple[list[dict[str, Any]], int]:
    """Return the results of an operator by mode, and how the process ended."""
    environment = os.environ | {"ASCEND_CUSTOM_OPP_PATH": str(package)}
    environment["LD_LIBRARY_PATH"] = f"{package}/op_api/lib:{environment.get('LD_LIBRARY_PATH', '')}"
    # As a module: next to it lies a triton.py, which is not the package of that name.
    command = [sys.executable, "-m", "trials._wheel_operators", op_type]
    done = subprocess.run(
        command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False, timeout=1800
    )
    if done.returncode:
        print(f"{op_type}: {done.stderr[-1000:]}", file=sys.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")], done.returncode


def _known_operators() -> frozenset[str]:
    """Return the operators that have calls; the module imports torch, which surveys do without."""
    from trials._wheel_operators import OPERATORS

    return frozenset(OPERATORS)


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

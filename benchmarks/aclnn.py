"""aclnn headers: how many functions are read, how fast, and whether a compiler reads the same.

With directories, ``make bench NAME=aclnn HEADERS="DIR…"``, the aclnn headers below them; without, random declarations in every
layout that real headers have. A second reader, g++ with a stub that records the types of every function, says what each header
declares; where the two differ the lines say how.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from _aclnn_compiler import compile_headers, disagreements
from _aclnn_headers import random_header
from _common import run
from rich.console import Console

from ascend_graph.aclnn import parse_file
from ascend_graph.aclnn.catalog import header_files
from ascend_graph.aclnn.parser import FIRST_PHASE
from ascend_graph.sources import SourceError

RANDOM_HEADERS = 300
#: So many headers are compiled as one program.
TOGETHER = 25
_SHOWN = 20

_MEASURED = """
import json, re, sys, time
from pathlib import Path
start = time.perf_counter()
from ascend_graph.aclnn import parse_file
imported = time.perf_counter()
for path in sys.stdin.read().splitlines():
    parse_file(path)
parsed = time.perf_counter()
print(json.dumps({
    "import": imported - start,
    "parse": parsed - imported,
    # Not ru_maxrss: that counts the memory of the process this one was forked from.
    "peak_mb": int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024,
}))
"""


def write_random(directory: Path, count: int = RANDOM_HEADERS) -> None:
    """Random headers, one to five functions each, some of them long."""
    for seed in range(count):
        rng = random.Random(seed)
        text, _ = random_header(rng, rng.randrange(1, 6), rng.choice([6, 12, 45]))
        (directory / f"aclnn_random_{seed}.h").write_text(text, newline="")


def aclnn_headers(directories: list[Path]) -> list[Path]:
    """The headers below the directories that declare aclnn functions."""
    found = [path for directory in directories for path in header_files(directory)]
    return [path for path in found if path.name.startswith("aclnn") and FIRST_PHASE.encode() in path.read_bytes()]


def measure_reading(paths: list[Path]) -> dict[str, float]:
    """The fastest of three processes that read all headers."""
    names = "\n".join(map(str, paths))
    runs = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", _MEASURED], input=names, capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(3)
    ]
    best: dict[str, float] = min(runs, key=lambda found: found["parse"])
    return best


def compare_with_compiler(paths: list[Path]) -> tuple[int, list[str], list[Path]]:
    """How many functions the compiler reads as we do, where it does not, and the headers it does not take."""
    agreeing, differing, failed = 0, [], []
    for first in range(0, len(paths), TOGETHER):
        compiled, not_compiled = compile_headers(paths[first : first + TOGETHER])
        failed += not_compiled
        for path, declared in compiled:
            ours = [
                (f.name, [(str(p.type.canonical), p.name) for p in f.parameters]) for f in parse_file(path).functions
            ]
            lines = disagreements(declared, ours)
            differing += [f"{path}: {line}" for line in lines]
            agreeing += len(declared) - len(lines)
    return agreeing, differing, failed


def main() -> dict[str, Any]:
    """Read the headers, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--headers", nargs="*", type=Path, default=[], help="directories with aclnn headers")
    parser.add_argument("--prototypes", nargs="*", type=Path, default=[], help="directories with prototypes")
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        if not options.headers:
            write_random(Path(name))
        paths = aclnn_headers(options.headers or [Path(name)])
        return reading(paths)


def reading(paths: list[Path]) -> dict[str, Any]:
    """What the front end makes of the headers."""
    functions, diagnostics, lines = [], [], 0
    for path in paths:
        try:
            result = parse_file(path)
        except SourceError as error:
            diagnostics.append(str(error))
            continue
        functions += result.functions
        diagnostics += map(str, result.diagnostics)
        lines += path.read_bytes().count(b"\n")
    agreeing, differing, failed = compare_with_compiler(paths)
    best = measure_reading(paths)
    console = Console(width=160, highlight=False)
    console.print(f"{len(paths)} headers, {lines:,} lines: {len(functions)} functions, {len(diagnostics)} diagnostics")
    for line in (*diagnostics[:_SHOWN], *differing[:_SHOWN], *(f"not compiled: {path}" for path in failed[:_SHOWN])):
        console.print(f"  {line}", markup=False)
    return {
        "headers": len(paths),
        "functions": len(functions),
        "diagnostics": len(diagnostics),
        "compiler_agrees": agreeing,
        "compiler_differs": len(differing),
        "not_compiled": len(failed),
        "us_per_line": round(best["parse"] / max(lines, 1) * 1e6, 2),
        "parse_seconds": round(best["parse"], 3),
        "peak_mb": round(best["peak_mb"], 1),
    }


if __name__ == "__main__":
    run(main)

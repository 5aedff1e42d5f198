"""Benchmark of reading aclnn headers: number of functions, speed, agreement with a compiler, and correct calls.

With directories, ``make bench NAME=aclnn HEADERS="DIR…" PROTOTYPES="DIR…"``, it reads the aclnn headers and prototypes under
them; without, random declarations in every layout of real headers, and random pairs of a prototype and a function. A second
reader, g++ with a stub that records the types of every function, reads each header; the output shows the differences.

Each function with a prototype of its name is bound, and called through the eager path. The called library exports it with
its declared C signature and records the received values. A parameter is wrong if it received another value than its bound
one; in random pairs also if it is bound to the wrong input, attr or output. Each function is also made an operator from its
declaration alone (``register_aclnn_derived``), and called and compared in the same way.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from _aclnn_calls import Truth, check, check_derived, random_pair
from _aclnn_compiler import compile_headers, disagreements
from _aclnn_headers import random_header
from _aclnn_recorder import RecordingPackage, is_recordable
from _common import run
from rich.console import Console

from ascend_graph.aclnn import AclnnFunction, parse_file
from ascend_graph.aclnn.catalog import header_files
from ascend_graph.aclnn.declaration import FIRST_PHASE
from ascend_graph.aclnn.parser import MAX_BYTES
from ascend_graph.prototypes import OpPrototype, read_prototypes
from ascend_graph.sources import Severity, SourceError

#: Lines that fill a header of the largest size that is read, one kind for each header.
LARGE = {
    "declarations": "int aclnnF{0}GetWorkspaceSize(const aclTensor *x, aclTensor *out, uint64_t *s, aclOpExecutor **e);\n"
    "int aclnnF{0}(void *w, uint64_t s, aclOpExecutor *e, aclrtStream t);\n",
    "wrong declarations": "int aclnnF{0}GetWorkspaceSize(const aclTensor 3, aclOpExecutor **e);\n",
    "open brackets": "int aclnnF{0}GetWorkspaceSize(const aclTensor *x, ",
    "macros": "#define M{0} int aclnnF{0}GetWorkspaceSize(const aclTensor *x)\n",
    "conditions": "#if A{0}\nint aclnnF{0}GetWorkspaceSize(const aclTensor *x);\n#endif\n",
    "comments": "/* {0} */\n",
}

Pair = tuple[OpPrototype, AclnnFunction, "Truth | None"]

RANDOM_HEADERS = 300
RANDOM_PAIRS = 300
#: Number of headers that are compiled as one program.
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


#: Code that reads a file; a refused file counts as read.
_READ = """
    from ascend_graph.errors import AscendGraphError
    try:
        parse_file(path)
    except AscendGraphError:
        pass
"""


def write_random(directory: Path, count: int = RANDOM_HEADERS) -> None:
    """Write random headers, one to five functions each, some of them long."""
    for seed in range(count):
        rng = random.Random(seed)
        text, _ = random_header(rng, rng.randrange(1, 6), rng.choice([6, 12, 45]))
        (directory / f"aclnn_random_{seed}.h").write_text(text, newline="")


def aclnn_headers(directories: list[Path]) -> list[Path]:
    """Return the headers under the directories that declare aclnn functions."""
    found = [path for directory in directories for path in header_files(directory)]
    return [path for path in found if path.name.startswith("aclnn") and FIRST_PHASE.encode() in path.read_bytes()]


def measure_reading(paths: list[Path]) -> dict[str, float]:
    """Return the measurements of the fastest of three processes that read all headers."""
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


def measure_large(directory: Path) -> dict[str, float]:
    """Return seconds and memory for the worst header of the largest size that is read, and for one of 50 MB."""
    found = []
    for n, line in enumerate((*LARGE.values(), LARGE["declarations"])):
        size = MAX_BYTES if n < len(LARGE) else 50_000_000
        path = directory / f"large_{n}.h"
        with path.open("w") as file:
            written = k = 0
            while written + len(line) + 32 < size or (n == len(LARGE) and written < size):
                written += file.write(line.format(k))
                k += 1
        run = subprocess.run(
            [sys.executable, "-c", _MEASURED.replace("    parse_file(path)", _READ)],
            input=str(path),
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(json.loads(run.stdout))
        path.unlink()
    *largest, refused = found
    return {
        "large_seconds": round(max(one["parse"] for one in largest), 2),
        "large_peak_mb": round(max(one["peak_mb"] for one in largest), 1),
        "refused_50mb_seconds": round(refused["parse"], 3),
        "refused_50mb_peak_mb": round(refused["peak_mb"], 1),
    }


def compare_with_compiler(paths: list[Path]) -> tuple[int, list[str], list[Path]]:
    """Return the number of functions on which the compiler agrees, the differences, and the headers it rejects."""
    agreeing, differing, failed = 0, [], []
    for first in range(0, len(paths), TOGETHER):
        compiled, not_compiled = compile_headers(paths[first : first + TOGETHER])
        failed += not_compiled
        for path, known in compiled:
            read = parse_file(path)
            ours = [(f.name, [(str(p.type.canonical), p.name) for p in f.parameters]) for f in read.functions]
            # A refusal with its reason is not a disagreement.
            errors = " ".join(str(d) for d in read.diagnostics if d.severity is Severity.ERROR)
            declared = {name: types for name, types in known.items() if name not in errors.split()}
            lines = disagreements(declared, ours)
            differing += [f"{path}: {line}" for line in lines]
            agreeing += len(declared) - len(lines)
    return agreeing, differing, failed


def main() -> dict[str, Any]:
    """Read the headers and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--headers", nargs="*", type=Path, default=[], help="directories with aclnn headers")
    parser.add_argument("--prototypes", nargs="*", type=Path, default=[], help="directories with prototypes")
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        if not options.headers:
            write_random(Path(name))
        paths = aclnn_headers(options.headers or [Path(name)])
        found = reading(paths)
        pairs = pairs_of(paths, options.prototypes) if options.prototypes else [] if options.headers else random_pairs()
        large = {} if options.headers else measure_large(Path(name))
        return (
            found | large | calling(pairs, Path(name) / "opp") | deriving(functions_of(paths), Path(name) / "derived")
        )


def functions_of(paths: list[Path]) -> list[AclnnFunction]:
    """Return each function once, by its first declaration."""
    functions: dict[str, AclnnFunction] = {}
    for path in paths:
        for function in parse_file(path).functions:
            functions.setdefault(function.name, function)
    return list(functions.values())


def pairs_of(paths: list[Path], directories: list[Path]) -> list[Pair]:
    """Return each function that has a prototype of its name, by their first declarations."""
    prototypes: dict[str, OpPrototype] = {}
    for directory in directories:
        for prototype in read_prototypes(directory).prototypes:
            prototypes.setdefault(prototype.op_type, prototype)
    named = {function.name.removeprefix("aclnn"): function for function in functions_of(paths)}
    return [(prototypes[name], function, None) for name, function in named.items() if name in prototypes]


def random_pairs(count: int = RANDOM_PAIRS) -> list[Pair]:
    """Return random pairs with their true mappings."""
    return [random_pair(random.Random(seed), seed) for seed in range(count)]


def calling(pairs: list[Pair], directory: Path) -> dict[str, Any]:
    """Bind and call every function in a package whose library records calls."""
    callable_pairs = [pair for pair in pairs if is_recordable(pair[1])]
    recorder = RecordingPackage(directory, [function for _, function, _ in callable_pairs])
    os.environ["ASCEND_CUSTOM_OPP_PATH"] = str(directory)
    verdicts = [check(recorder, prototype, function, truth=truth) for prototype, function, truth in callable_pairs]
    kinds = Counter(verdict.kind for verdict in verdicts)
    refused = [verdict for verdict in verdicts if verdict.kind == "refused"]
    console = Console(width=160, highlight=False)
    for verdict in verdicts:
        if verdict.kind == "wrong":
            console.print(f"  wrong: {verdict.text}", markup=False)
    for verdict in refused[:_SHOWN]:
        console.print(f"  refused: {verdict.text.splitlines()[0]}", markup=False)
    return {
        "with_prototype": len(pairs),
        "bound": kinds["bound"],
        # The binding has no type for what the recorder has no type for.
        "refused": len(refused) + len(pairs) - len(callable_pairs),
        "refused_with_a_line": sum(verdict.has_proposal for verdict in refused),
        "wrong": kinds["wrong"],
    }


def deriving(functions: list[AclnnFunction], directory: Path) -> dict[str, Any]:
    """Make an operator from each declaration alone, and call it in a package whose library records calls."""
    recorded = [function for function in functions if is_recordable(function)]
    recorder = RecordingPackage(directory, recorded)
    os.environ["ASCEND_CUSTOM_OPP_PATH"] = str(directory)
    verdicts = [(function, check_derived(recorder, function)) for function in recorded]
    console = Console(width=160, highlight=False)
    for function, verdict in verdicts:
        if verdict.kind != "bound":
            console.print(
                f"  not derived: {function.name}: {verdict.kind}: {verdict.text.splitlines()[0]}", markup=False
            )
    kinds = Counter(verdict.kind for _, verdict in verdicts)
    return {"register_aclnn_derived": kinds["bound"], "register_aclnn_wrong": kinds["wrong"]}


def reading(paths: list[Path]) -> dict[str, Any]:
    """Read the headers with the front end and compare with the compiler; return the figures."""
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

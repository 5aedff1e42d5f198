"""Third-party operator projects built by their own command on the host runtime: ``build.sh``, installer, library.

``python benchmarks/build_flow.py DIR… --sample 25 --seed 16`` finds the projects of each directory (``CMakePresets.json`` next
to ``build.sh``, ``op_host`` and ``op_kernel``; of several with the same sources the first) and draws some of them. It copies
each, runs its ``build.sh`` on the host runtime, installs the result (with ``--install-path``, or ``ASCEND_CUSTOM_OPP_PATH`` for
an older installer), and loads the installed library.
The last line is JSON: ``found``, ``tried``, ``built``, ``installed``, ``loaded``, and for each project ``path``, ``form``
(``template`` if it contains msOpGen's CMake functions, ``functions`` if it calls those of CANN), ``state``, ``error``, ``seconds``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ascend_graph.compilation.processes import started
from ascend_graph.host.projects.survey_errors import first_error

_STATES = ("failed", "built", "installed", "loaded")


def projects(root: Path) -> Iterator[Path]:
    """Yield the projects under a directory, by their paths."""
    for preset in sorted(root.rglob("CMakePresets.json")):
        here = preset.parent
        if all((here / name).exists() for name in ("build.sh", "CMakeLists.txt", "op_host", "op_kernel")):
            yield here


def form(project: Path) -> str:
    """Return the kind of CMake functions that build a project: template, functions or own."""
    if any("opbuild" in file.read_text(errors="replace") for file in (project / "cmake").glob("*.cmake")):
        return "template"
    texts = [file.read_text(errors="replace") for file in project.rglob("CMakeLists.txt")]
    return "functions" if any("npu_op_package" in text for text in texts) else "own"


def _digest(project: Path) -> str:
    files = sorted(path for name in ("op_host", "op_kernel") for path in (project / name).rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _run(command: Sequence[str], directory: Path, log: Path, limit: float) -> bool:
    with (
        log.open("a") as output,
        started(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=dict(os.environ)) as process,
    ):  # fmt: skip
        try:
            return process.wait(limit) == 0
        except subprocess.TimeoutExpired:
            output.write(f"\nerror: did not end in {limit:g} seconds\n")
            return False


def attempt(project: Path, work: Path, limit: float) -> tuple[str, str]:
    """Build, install and load a project; return the state it reaches, and the first error."""
    source, opp, log = work / "source", work / "opp", work / "log.txt"
    ignored = shutil.ignore_patterns("build_out", "_CPack_Packages", "*.run")
    shutil.copytree(project, source, symlinks=True, ignore_dangling_symlinks=True, ignore=ignored)
    host = (sys.executable, "-m", "ascend_graph.host", "--quiet")
    reached = "failed"
    if _run((*host, "bash", "build.sh"), source, log, limit):
        runs = sorted((source / "build_out").glob("*.run"))
        if runs:
            reached = "built"
            # Installers of early projects take no --install-path.
            by_option = ("bash", str(runs[0]), "--quiet", f"--install-path={opp}")
            by_variable = ("env", f"ASCEND_CUSTOM_OPP_PATH={opp}", "bash", str(runs[0]), "--quiet")
            if _run(by_option, work, log, 60) or _run(by_variable, work, log, 60):
                reached = "installed"
                library = next(opp.glob("vendors/*/op_api/lib/libcust_opapi.so"), None)
                load = f"import ctypes; ctypes.CDLL({str(library)!r})"
                if library is not None and _run((*host, "-c", load), work, log, 60):
                    return "loaded", ""
    text = log.read_text(errors="replace")
    return reached, first_error(text) or (text.strip().splitlines() or ["no output"])[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Build operator projects by their own build.sh.")
    parser.add_argument("directories", nargs="*", type=Path, help="without any nothing is tried")
    parser.add_argument("--sample", type=int, default=25)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--names", default="", help="only projects whose paths end so, with commas")
    parser.add_argument("--time-limit", type=float, default=1200.0)
    options = parser.parse_args()
    distinct: dict[str, Path] = {}
    for directory in options.directories:
        for project in projects(directory.resolve()):
            distinct.setdefault(_digest(project), project)
    found = list(distinct.values())
    chosen = random.Random(options.seed).sample(found, min(options.sample, len(found)))
    if options.names:
        chosen = [path for path in found if str(path).endswith(tuple(options.names.split(",")))]
    results: list[dict[str, Any]] = []
    work = Path(tempfile.mkdtemp(prefix="ascend-graph-build-flow-"))
    for number, project in enumerate(chosen):
        here = work / f"{number:03d}"
        here.mkdir()
        begin = time.monotonic()
        state, error = attempt(project, here, options.time_limit)
        seconds = round(time.monotonic() - begin, 1)
        results.append(
            {"path": str(project), "form": form(project), "state": state, "error": error, "seconds": seconds}
        )
        print(f"{project}: {state} [{seconds:g} s] {error}", file=sys.stderr, flush=True)
        shutil.rmtree(here / "source", ignore_errors=True)
    counts = {one: sum(_STATES.index(r["state"]) >= i for r in results) for i, one in enumerate(_STATES) if i}
    print(json.dumps({"found": len(found), "tried": len(results), **counts, "logs": str(work), "projects": results}))


if __name__ == "__main__":
    main()

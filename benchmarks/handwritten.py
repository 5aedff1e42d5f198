"""Number of operator projects of a repository whose hand-written aclnn functions compile.

    python benchmarks/handwritten.py DIR… [--only TEXT] [--jobs N] [--npu-arch ARCH]

Each project's sources of ``op_api`` are compiled against the host's headers of ``opdev/`` and the generated functions that
they call (``aclnnInner…``), and linked; neither tiling functions nor kernels are built. It prints a line for each project and, as
its last line, JSON: ``projects`` with such functions, ``compiled``, ``inner`` (those that call generated functions by their inner
names), ``failed`` with the first error of each.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from _common import run

from ascend_graph.compilation import BuildError
from ascend_graph.host.architecture import DAV_2201, architecture
from ascend_graph.host.projects.handwritten import (
    borrow_sources,
    find_handwritten,
    first_line,
    generate_functions,
    name_inner_operators,
)
from ascend_graph.host.projects.libraries import GENERATED_HEADERS
from ascend_graph.host.projects.model import BuildOptions, HandWrittenFunctions
from ascend_graph.host.projects.repository import Repository


def compile_functions(written: HandWrittenFunctions, options: BuildOptions) -> tuple[bool, str]:
    """Return whether a project's functions call generated ones, and the first error; empty if they compile."""
    repository = Repository.around(written.project, options)
    # Without the operators' definitions, which need a compiler: their generated functions by the names they are called by.
    written = name_inner_operators(written, (), repository)
    with tempfile.TemporaryDirectory(prefix="ascend-graph-aclnn-") as directory:
        work = Path(directory)
        generate_functions(written, (), work)
        try:
            borrow_sources(written, repository, work / GENERATED_HEADERS)
        except BuildError as error:
            return bool(written.inner), first_line(str(error))
    return bool(written.inner), ""


def survey(directories: Sequence[Path], only: str, jobs: int, npu_arch: str) -> dict[str, Any]:
    options = BuildOptions(architecture=architecture(npu_arch))
    found = {
        project: written
        for directory in directories
        for project in Repository.around(directory.resolve(), options).projects()
        if project.is_relative_to(directory.resolve()) and only in f"{project}/"
        if (written := find_handwritten(Repository.around(project, options)))
    }
    failed: dict[str, str] = {}
    inner = 0
    with ThreadPoolExecutor(jobs) as pool:
        for project, (calls, error) in zip(
            found, pool.map(partial(compile_functions, options=options), found.values()), strict=True
        ):
            inner += calls
            print(f"{project}: {error or 'compiles'}", flush=True)
            if error:
                failed[str(project)] = error
    return {"projects": len(found), "compiled": len(found) - len(failed), "inner": inner, "failed": failed}


def main() -> Callable[[], dict[str, Any]]:
    parser = argparse.ArgumentParser(description="Compile hand-written aclnn functions.")
    parser.add_argument("directories", nargs="*", type=Path, help="repositories; without any nothing is tried")
    parser.add_argument("--only", default="", help="projects whose paths contain this alone")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--npu-arch", default=DAV_2201.name)
    given = parser.parse_args()
    return partial(survey, given.directories, given.only, given.jobs, given.npu_arch)


if __name__ == "__main__":
    run(main())

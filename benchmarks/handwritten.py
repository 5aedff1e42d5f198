"""The aclnn functions that authors wrote themselves: in how many operator projects of a repository they compile.

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
from ascend_graph.codegen.operator_package import generate_project_package

from ascend_graph.compilation import BuildError
from ascend_graph.host.architecture import DAV_2201, architecture
from ascend_graph.host.handwritten import HandWritten, first_line
from ascend_graph.host.project import host_include_directories
from ascend_graph.host.repository import Given, Repository

LIMIT = 900.0


def tried(written: HandWritten) -> tuple[bool, str]:
    """Whether a project's functions call generated ones, and the first error; empty where they compile."""
    toolkit = host_include_directories()
    beneath = written.beneath(toolkit)
    with tempfile.TemporaryDirectory(prefix="ascend-graph-aclnn-") as directory:
        work = Path(directory)
        # Without the operators' definitions, which need a compiler: their generated functions by the names they are called by.
        generate_project_package((), work, written.functions, written.repository.prototypes(beneath))
        try:
            written.build(work / "op_api/include", toolkit, LIMIT)
        except BuildError as error:
            return bool(beneath), first_line(str(error))
    return bool(beneath), ""


def survey(directories: Sequence[Path], only: str, jobs: int, npu_arch: str) -> dict[str, Any]:
    given = Given(architecture=architecture(npu_arch))
    found = {
        project: written
        for directory in directories
        for repository in [Repository.around(directory.resolve(), given)]
        for project in repository.projects()
        if project.is_relative_to(directory.resolve()) and only in f"{project}/"
        if (written := HandWritten.of(project, repository))
    }
    failed: dict[str, str] = {}
    inner = 0
    with ThreadPoolExecutor(jobs) as pool:
        for project, (calls, error) in zip(found, pool.map(tried, found.values()), strict=True):
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

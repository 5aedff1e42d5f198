"""Build of one operator package from several operator projects of a repository."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_graph.compilation import BuildError, compiler
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.packages.build import staged_package, write_package_files
from ascend_graph.host.packages.format import LIBRARY, METADATA, OperatorPackageError, open_package
from ascend_graph.host.projects.build import build_project_package
from ascend_graph.host.projects.model import NO_OPTIONS, BuildOptions
from ascend_graph.host.projects.repository import Repository
from ascend_graph.prototypes import OpPrototype, parse_file


@dataclass(frozen=True, slots=True)
class BuildResult:
    """Result of building one project."""

    project: Path
    #: Its operators in the package.
    operators: tuple[str, ...]
    #: Reason why there are none.
    error: str
    seconds: float


def build_repository_package(
    directory: str | Path,
    repository: str | Path,
    *,
    ops: Sequence[str] = (),
    jobs: int = 1,
    progress: Callable[[BuildResult], None] = lambda _: None,
    options: BuildOptions = NO_OPTIONS,
) -> tuple[BuildResult, ...]:
    """Build one operator package from the operator projects of a repository; projects that fail are left out.

    Args:
        directory: the package's directory; an existing package there is replaced as a whole.
        repository: a directory with operator projects at any depth.
        ops: the names of the projects' directories; all projects by default.
        jobs: number of projects that are built at a time.
        progress: called with each result at once.
        options: include directories, macros and headers of CANN besides those of the repository.

    Returns:
        The result of each project, in the order of their paths.

    Raises:
        OperatorPackageError: no such project exists, or every one failed; no package is made then.
    """
    target, root = Path(directory).resolve(), Path(repository).resolve()
    chosen = _projects(root, ops)
    with staged_package(target) as work:
        parts = work / "parts"

        def build(number_and_project: tuple[int, Path]) -> tuple[Path, BuildResult]:
            number, project = number_and_project
            part, started, error = parts / f"{number:03d}_{project.name}", time.monotonic(), ""
            operators: tuple[str, ...] = ()
            try:
                build_project_package(part, project, options=options)
                package = open_package(part)
                operators = tuple(package.metadata) if package is not None else ()
            except AscendGraphError as failure:
                error = str(failure)
            result = BuildResult(project, operators, error, time.monotonic() - started)
            progress(result)
            return part, result

        with ThreadPoolExecutor(jobs) as pool:
            built = list(pool.map(build, enumerate(chosen)))
        good = [(part, result) for part, result in built if not result.error]
        if not good:
            raise OperatorPackageError(
                f"{root}: all {len(built)} projects fail to build; correct them, first {built[0][1].project}: "
                f"{built[0][1].error}"
            )
        _check_unique([result for _, result in good])
        _join([part for part, _ in good], work)
        shutil.rmtree(parts)
    return tuple(result for _, result in built)


def _projects(root: Path, ops: Sequence[str]) -> list[Path]:
    inside = [path for path in Repository.around(root).projects() if path.is_relative_to(root)]
    if not inside:
        raise OperatorPackageError(f"{root}: expected an operator project, a directory with op_host and op_kernel")
    names = {path.name for path in inside}
    unknown = sorted(set(ops) - names)
    if unknown:
        raise OperatorPackageError(
            f"{root} has no project called {', '.join(unknown)}; there are: {', '.join(sorted(names))}"
        )
    return [path for path in inside if not ops or path.name in ops]


def _check_unique(results: Sequence[BuildResult]) -> None:
    first: dict[str, Path] = {}
    for result in results:
        for operator in result.operators:
            other = first.setdefault(operator, result.project)
            if other != result.project:
                raise OperatorPackageError(
                    f"{operator} is defined by {other} and by {result.project}; choose projects by their names"
                )


def _join(parts: Sequence[Path], work: Path) -> None:
    """Join several packages: each keeps its library, and a new one links them all."""
    prototypes: list[OpPrototype] = []
    metadata: dict[str, Mapping[str, Any]] = {}
    libraries = []
    for part in parts:
        package = open_package(part)
        assert package is not None
        metadata.update(package.metadata)
        for header in sorted((part / "op_proto/inc").glob("*.h")):
            prototypes += parse_file(header).prototypes
        library = work / LIBRARY.with_name(f"{LIBRARY.stem}_{part.name}.so")
        library.parent.mkdir(parents=True, exist_ok=True)
        (part / LIBRARY).rename(library)
        libraries.append(library)
        for name in ("op_proto", str(METADATA)):
            path = part / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(part, work, dirs_exist_ok=True, symlinks=True)
    write_package_files(work, prototypes, metadata)
    # Functions that authors wrote come first, before CANN's of the same name, which every one of the libraries brings.
    written = sorted({*(work / LIBRARY.parent).glob("*.so")} - {*libraries})
    command = [*compiler(), "-shared", "-o", str(work / LIBRARY), "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"]
    done = subprocess.run([*command, *(f"-l:{p.name}" for p in (*written, *libraries)), f"-L{work / LIBRARY.parent}"],
                          capture_output=True, text=True, check=False)  # fmt: skip
    if done.returncode != 0:
        raise BuildError(
            f"the libraries of {len(parts)} projects do not link as one; build them one by one:\n{done.stderr.strip()}"
        )

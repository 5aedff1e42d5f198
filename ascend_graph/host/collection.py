"""Several operator projects of a repository as one operator package."""

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
from ascend_graph.host.package import (
    LIBRARY,
    METADATA,
    OperatorPackageError,
    open_package,
    staged_package,
    write_package_files,
)
from ascend_graph.host.project import build_project_package
from ascend_graph.host.repository import Given, Repository
from ascend_graph.prototypes import OpPrototype, parse_file


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one project."""

    project: Path
    #: The operators that the package has from it.
    operators: tuple[str, ...]
    #: Why there are none.
    error: str
    seconds: float


def build_repository_package(
    directory: str | Path,
    repository: str | Path,
    *,
    ops: Sequence[str] = (),
    jobs: int = 1,
    progress: Callable[[Outcome], None] = lambda _: None,
    given: Given = Given(),  # noqa: B008 - it is frozen
) -> tuple[Outcome, ...]:
    """Build one operator package from the operator projects of a repository; what fails is left out.

    Args:
        directory: where the package is made; replaced as a whole if it exists and is one.
        repository: a directory with operator projects at any depth.
        ops: the names of the projects' directories; all where none is given.
        jobs: how many projects are built at a time.
        progress: called with each outcome as it comes.
        given: directories, macros and headers of CANN beside what the repository has.

    Returns:
        The outcome of each project, in the order of their paths.

    Raises:
        OperatorPackageError: there is no such project, or every one failed; no package is made then.
    """
    target, root = Path(directory).resolve(), Path(repository).resolve()
    chosen = _projects(root, ops)
    with staged_package(target) as work:
        parts = work / "parts"

        def build(number_and_project: tuple[int, Path]) -> tuple[Path, Outcome]:
            number, project = number_and_project
            part, started, error = parts / f"{number:03d}_{project.name}", time.monotonic(), ""
            operators: tuple[str, ...] = ()
            try:
                build_project_package(part, project, given=given)
                package = open_package(part)
                operators = tuple(package.metadata) if package is not None else ()
            except AscendGraphError as failure:
                error = str(failure)
            outcome = Outcome(project, operators, error, time.monotonic() - started)
            progress(outcome)
            return part, outcome

        with ThreadPoolExecutor(jobs) as pool:
            built = list(pool.map(build, enumerate(chosen)))
        good = [(part, outcome) for part, outcome in built if not outcome.error]
        if not good:
            raise OperatorPackageError(
                f"none of the {len(built)} projects of {root} builds; the first, {built[0][1].project}: {built[0][1].error}"
            )
        _check_unique([outcome for _, outcome in good])
        _join([part for part, _ in good], work)
        shutil.rmtree(parts)
    return tuple(outcome for _, outcome in built)


def _projects(root: Path, ops: Sequence[str]) -> list[Path]:
    inside = [path for path in Repository.around(root).projects() if path.is_relative_to(root)]
    if not inside:
        raise OperatorPackageError(f"{root} has no operator project, a directory with op_host and op_kernel")
    names = {path.name for path in inside}
    unknown = sorted(set(ops) - names)
    if unknown:
        raise OperatorPackageError(
            f"{root} has no project called {', '.join(unknown)}; there are: {', '.join(sorted(names))}"
        )
    return [path for path in inside if not ops or path.name in ops]


def _check_unique(outcomes: Sequence[Outcome]) -> None:
    first: dict[str, Path] = {}
    for outcome in outcomes:
        for operator in outcome.operators:
            other = first.setdefault(operator, outcome.project)
            if other != outcome.project:
                raise OperatorPackageError(
                    f"{operator} is defined by {other} and by {outcome.project}; choose projects by their names"
                )


def _join(parts: Sequence[Path], work: Path) -> None:
    """One package of several: a library of its own for each, and one that brings them all."""
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
        raise BuildError(f"the libraries of {len(parts)} projects do not link as one:\n{done.stderr.strip()}")

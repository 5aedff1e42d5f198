"""Survey of a repository: everything in it that the host runtime builds is tried, and each failure gets a cause.

Three kinds are recognized by their files: operator projects (``op_host`` and ``op_kernel``), extensions of PyTorch (a
``setup.py`` that builds for torch_npu) and samples (a ``CMakeLists.txt`` that compiles Ascend C). Each is built in processes
of its own, in the survey's directory, within a time limit; the repository is never written to.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from ascend_graph.compilation.processes import started
from ascend_graph.environment import PROCESSOR_VARIABLE
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.architecture import ARCHITECTURES, Architecture, processor_with
from ascend_graph.host.projects.model import NO_OPTIONS, BuildOptions
from ascend_graph.host.projects.repository import Repository
from ascend_graph.host.projects.source_text import text_of
from ascend_graph.host.projects.survey_errors import OTHER_DEVICE, cause_of, first_error, left_out_reason
from ascend_graph.host.toolkit import host_environment


class SurveyError(AscendGraphError):
    """Survey that cannot begin: the directory does not exist, or has nothing that the host runtime builds."""


class ProjectKind(Enum):
    """Kind of project that a survey tries."""

    OPERATOR = "operator project"
    EXTENSION = "extension"
    SAMPLE = "sample"


class SurveyState(Enum):
    """State that a project reached."""

    FAILED = "failed"
    BUILT = "built"
    LOADED = "loaded"
    RAN = "ran"
    #: The project is for devices that the host does not stand for.
    OTHER_DEVICE = "other device"

    @property
    def is_built(self) -> bool:
        """True if there is a package, extension or program."""
        return self in (SurveyState.BUILT, SurveyState.LOADED, SurveyState.RAN)


@dataclass(frozen=True, slots=True)
class SurveyResult:
    """Result of trying one project of a repository."""

    path: str
    kind: ProjectKind
    state: SurveyState
    #: Failed step: build, load or run.
    step: str
    #: First error in one line; empty if every step succeeded.
    error: str
    #: The error without the project's own names; results with the same cause need the same fix.
    cause: str
    #: Missing header, name or program, if that is the cause.
    missing: str
    #: Reason why its hand-written aclnn functions were left out; empty if they were not.
    left_out: str
    seconds: float
    log: str


@dataclass(frozen=True, slots=True)
class RepositorySurvey:
    """Results of all projects of a repository."""

    root: Path
    results: tuple[SurveyResult, ...]

    @property
    def built(self) -> int:
        """The number of built projects."""
        return sum(one.state.is_built for one in self.results)

    @property
    def ran(self) -> int:
        """The number of projects whose own tests passed."""
        return sum(one.state is SurveyState.RAN for one in self.results)

    @property
    def causes(self) -> dict[str, int]:
        """The number of results by cause, the most frequent first."""
        return dict(Counter(one.cause for one in self.results if one.cause).most_common())

    def as_json(self) -> dict[str, Any]:
        """Return the value that ``--format json`` prints."""
        projects = [{**asdict(one), "kind": one.kind.value, "state": one.state.value} for one in self.results]
        counts = {"found": len(self.results), "built": self.built, "ran": self.ran}
        return {"root": str(self.root), **counts, "causes": self.causes, "projects": projects}


@dataclass(frozen=True, slots=True)
class _Step:
    """Command of an attempt, and the state that its success reaches."""

    name: str
    command: tuple[str, ...]
    directory: Path
    reaches: SurveyState


@dataclass(frozen=True, slots=True)
class _Found:
    """Directory to try."""

    path: Path
    kind: ProjectKind


def survey(
    directory: Path,
    work: Path,
    *,
    kinds: Iterable[ProjectKind] = tuple(ProjectKind),
    names: Iterable[str] = (),
    jobs: int = 1,
    time_limit: float = 900.0,
    progress: Callable[[SurveyResult], None] = lambda _: None,
    options: BuildOptions = NO_OPTIONS,
) -> RepositorySurvey:
    """Try everything of a directory that the host runtime builds.

    Args:
        directory: a repository, or a part of one.
        work: where packages, copies and logs are made; a directory of its own.
        kinds: kinds of projects that are tried.
        names: the names of the directories that are tried; all by default.
        jobs: number of projects that are tried at a time.
        time_limit: seconds for each.
        progress: called with each result at once.
        options: include directories, macros and headers of CANN for builds of operator projects.

    Raises:
        SurveyError: the directory does not exist, or has no project of these kinds.
    """
    root = directory.resolve()
    if not root.is_dir():
        raise SurveyError(f"{directory} is not a directory; name one that exists")
    work = work.resolve()
    if work.is_relative_to(root) and work != root / work.name:
        raise SurveyError(f"{work} lies inside {root}; give a directory outside it")
    chosen, wanted = frozenset(kinds), frozenset(names)
    found = [one for one in _find(root) if one.kind in chosen and (not wanted or one.path.name in wanted)]
    if not found:
        tried = ", ".join(kind.value for kind in ProjectKind if kind in chosen)
        what = f" called {', '.join(sorted(wanted))}" if wanted else ""
        raise SurveyError(
            f"{directory} has no {tried}{what}; expected op_host next to op_kernel, or a setup.py or "
            "CMakeLists.txt that compiles Ascend C"
        )
    work.mkdir(parents=True, exist_ok=True)
    copy = _Copy(Repository.around(root).root, work / "source")

    def attempt(number_and_item: tuple[int, _Found]) -> SurveyResult:
        number, item = number_and_item
        result = _attempt(root, item, work / f"{number:03d}-{item.path.name}", copy, time_limit, options)
        progress(result)
        return result

    with ThreadPoolExecutor(max(1, jobs)) as pool:
        return RepositorySurvey(root, tuple(pool.map(attempt, enumerate(found))))


class _Copy:
    """Copy of the repository for builds that write next to their sources; made on first use."""

    def __init__(self, root: Path, target: Path) -> None:
        self._root, self._target, self._lock = root, target, threading.Lock()

    def of(self, path: Path) -> Path:
        """Return the path in the copy."""
        with self._lock:
            if not self._target.exists():
                draft = self._target.with_name(f".{self._target.name}")
                shutil.copytree(
                    self._root, draft, symlinks=True, ignore_dangling_symlinks=True,
                    ignore=shutil.ignore_patterns(".git", "*.pyc", self._target.parent.name),
                )  # fmt: skip
                draft.rename(self._target)
        return self._target / path.relative_to(self._root)


# ---- projects of a repository -----------------------------------------------------------------------------------------

#: Messages of samples with a wrong result that return 0.
_WRONG = re.compile(
    r"^.*(\[?\b(?:test|case|verify|result|accuracy|precision)[^\n]*\b(?:failed|error)\b|\[ERROR\]).*$",
    re.MULTILINE | re.IGNORECASE,
)
_EXTENSION = re.compile(r"\bNpuExtension\b|\btorch_npu\b|\bcpp_extension\b")
_SAMPLE = re.compile(
    r"find_package\s*\(\s*ASC\b|LANGUAGES[^)]*\bASC\b|\bascendc_library\s*\(|\bascendc\.cmake\b|\bbisheng\b|\.asc\b"
)
_PROJECT = re.compile(r"^\s*project\s*\(", re.MULTILINE | re.IGNORECASE)


def _find(root: Path) -> list[_Found]:
    repository = Repository.around(root)
    operators = [path for path in repository.projects() if path.is_relative_to(root)]
    found = [_Found(path, ProjectKind.OPERATOR) for path in operators]
    taken = set(operators)
    for directory, names, files in os.walk(root):
        here = Path(directory)
        names[:] = sorted(n for n in names if not n.startswith(".") and n not in ("build", "build_out", "docs"))
        if here in taken:
            names[:] = []
            continue
        if "setup.py" in files and _EXTENSION.search(text_of(here / "setup.py")):
            found.append(_Found(here, ProjectKind.EXTENSION))
        elif "CMakeLists.txt" in files and not any(one.is_relative_to(here) for one in operators):
            text = text_of(here / "CMakeLists.txt")
            if _PROJECT.search(text) and _SAMPLE.search(text):
                found.append(_Found(here, ProjectKind.SAMPLE))
    return found


# ---- one attempt ------------------------------------------------------------------------------------------------------


def _attempt(
    root: Path, item: _Found, work: Path, copy: _Copy, time_limit: float, options: BuildOptions
) -> SurveyResult:
    """Run the steps of a project until one fails."""
    if work.exists():
        shutil.rmtree(work)
    work.mkdir(parents=True)
    log = work / "log.txt"
    error, failed = "", ""
    started = time.monotonic()
    steps = {
        ProjectKind.OPERATOR: _operator_steps,
        ProjectKind.EXTENSION: _extension_steps,
        ProjectKind.SAMPLE: _sample_steps,
    }[item.kind]
    reached: SurveyState | None = None
    for step in steps(item.path, work, copy, options):
        left = time_limit - (time.monotonic() - started)
        status = _run(step, log, left, options.architecture)
        if status != 0:
            failed = step.name
            limit = f"did not end in {time_limit:g} seconds"
            error = limit if status is None else first_error(text_of(log)) or f"ended with status {status}"
            break
        reached = step.reaches
    if failed == "run" and item.kind is ProjectKind.SAMPLE:
        named = _named(item.path)
        if named and options.architecture not in named:
            names = ", ".join(one.name for one in named)
            error = f"its kernels are for {names}, and the host stands for {options.architecture.name}"
    # A project that fails one of its own tests counts as built.
    state = SurveyState.BUILT if failed == "run" else reached or SurveyState.FAILED
    if OTHER_DEVICE.search(error):
        state = SurveyState.OTHER_DEVICE
    cause, missing = cause_of(error, failed)
    return SurveyResult(
        path=str(item.path.relative_to(root)),
        kind=item.kind,
        state=state,
        step=failed,
        error=error,
        cause=cause,
        missing=missing,
        left_out=left_out_reason(text_of(log)),
        seconds=round(time.monotonic() - started, 1),
        log=str(log),
    )


def _operator_steps(path: Path, work: Path, copy: _Copy, options: BuildOptions) -> Iterable[_Step]:
    package = work / "package"
    given = (
        *(f"-I{one}" for one in options.include_directories),
        *options.definition_flags,
        *(f"--cann={one}" for one in options.cann),
        f"--npu-arch={options.architecture.name}",
    )
    build = (sys.executable, "-m", "ascend_graph.cli", "build", str(path), "-o", str(package), *given)
    yield _Step("build", build, work, SurveyState.BUILT)
    load = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    library = package / "op_api/lib/libcust_opapi.so"
    yield _Step("load", (sys.executable, "-c", load, str(library)), work, SurveyState.LOADED)


def _extension_steps(path: Path, work: Path, copy: _Copy, options: BuildOptions) -> Iterable[_Step]:
    source, built = copy.of(path), work / "built"
    host = (sys.executable, "-m", "ascend_graph.host")
    generate = _generating(source)
    if generate is not None:
        yield _Step("build", generate, source, SurveyState.FAILED)
    yield _Step("build", (*host, "setup.py", "build", "--build-lib", str(built)), source, SurveyState.BUILT)
    named = ((name, pattern) for name in ("test", "tests") for pattern in ("test*.py", "*_test.py"))
    tests = sorted({path for name, pattern in named for path in (source / name).glob(pattern)})
    for test in tests:
        yield _Step("run", ("env", f"PYTHONPATH={built}", *host, str(test)), test.parent, SurveyState.RAN)


#: A command that generates sources, in a document or script: ``bash gen.sh operators.yaml``.
_GENERATE = re.compile(r"^\s*(?:bash|sh)\s+(?:\./)?(gen\w*\.sh)((?:[ \t]+[\w./-]+)*)\s*$", re.MULTILINE)


def _generating(source: Path) -> tuple[str, ...] | None:
    """Return the command in an extension's script or document that generates sources before its setup.py runs."""
    for name in ("build_and_run.sh", "build.sh", "README.md"):
        if (source / name).is_file():
            for script, arguments in _GENERATE.findall(text_of(source / name)):
                if (source / script).is_file():
                    python = f"PATH={Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
                    # The script reads torch's version, without a device.
                    return ("env", python, "TORCH_DEVICE_BACKEND_AUTOLOAD=0", "bash", script, *arguments.split())
    return None


def _named(sample: Path) -> list[Architecture]:
    """Return the architectures that a sample's build files name."""
    text = text_of(sample / "CMakeLists.txt")
    return [one for one in ARCHITECTURES if one.name in text]


def _sample_steps(path: Path, work: Path, copy: _Copy, options: BuildOptions) -> Iterable[_Step]:
    source = copy.of(path)
    build = work / "build"
    # Build files that do not name the architecture build for their own.
    known = options.architecture in _named(source)
    chosen = (f"-DCMAKE_ASC_ARCHITECTURES={options.architecture.name}",) if known else ()
    yield _Step("build", ("cmake", "-S", str(source), "-B", str(build), *chosen), work, SurveyState.FAILED)
    yield _Step("build", ("cmake", "--build", str(build)), work, SurveyState.BUILT)
    generate, verify = (sorted((source / "scripts").glob(f"{name}*.py")) for name in ("gen_data", "verify_result"))
    for name in ("input", "output"):
        (build / name).mkdir(exist_ok=True)
    for script in generate:
        yield _Step("run", ("python3", str(script)), build, SurveyState.BUILT)
    programs = [p for p in sorted(build.iterdir()) if p.is_file() and os.access(p, os.X_OK) and ".so" not in p.name]
    for program in programs:
        yield _Step("run", (str(program),), build, SurveyState.BUILT if verify else SurveyState.RAN)
    results = build / "output/output.bin", build / "output/golden.bin"
    for script in verify:
        yield _Step("run", ("python3", str(script), *map(str, results)), build, SurveyState.RAN)


def _run(step: _Step, log: Path, limit: float, target: Architecture) -> int | None:
    """Run a step with its output in the log, and return its exit status, or None after the time limit."""
    with log.open("a", encoding="utf-8") as output:
        output.write(f"$ {' '.join(step.command)}\n")
        output.flush()
        begin = output.tell()
        processor = {PROCESSOR_VARIABLE: processor_with(target, os.environ)}
        environment = host_environment({**os.environ, **processor}, None)
        environment.pop("ASCEND_GRAPH_HOST", None)
        with started(
            step.command, cwd=step.directory, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env=environment,
        ) as process:  # fmt: skip
            try:
                status = process.wait(max(limit, 0.1))
            except subprocess.TimeoutExpired:
                return None
    if status == 0 and step.name == "run" and _WRONG.search(log.read_bytes()[begin:].decode(errors="replace")):
        return 1
    return status

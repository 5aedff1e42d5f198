"""A survey of a repository: everything in it that can be built for the host runtime is tried, and what stops it is named.

Three kinds are recognised by their files: operator projects (``op_host`` and ``op_kernel``), extensions of PyTorch (a
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
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.architecture import ARCHITECTURES, Architecture, processor_with
from ascend_graph.host.repository import Given, Repository
from ascend_graph.host.toolkit import PROCESSOR_VARIABLE, host_environment


class SurveyError(AscendGraphError):
    """A survey cannot begin: there is no directory, or nothing in it that the host runtime builds."""


class Kind(Enum):
    """What can be tried."""

    OPERATOR = "operator project"
    EXTENSION = "extension"
    SAMPLE = "sample"


class State(Enum):
    """How far something came."""

    FAILED = "failed"
    BUILT = "built"
    LOADED = "loaded"
    RAN = "ran"
    #: It is for devices that the host does not stand for.
    OTHER_DEVICE = "other device"

    @property
    def is_built(self) -> bool:
        return self in (State.BUILT, State.LOADED, State.RAN)


@dataclass(frozen=True, slots=True)
class Result:
    """One project of a repository, and what became of it."""

    path: str
    kind: Kind
    state: State
    #: The step that failed: build, load or run.
    step: str
    #: The first error in one line; empty where there is none.
    error: str
    #: The error without what is particular to the project; results with the same cause need the same thing.
    cause: str
    #: The header, name or program that is missing, where that is the cause.
    missing: str
    #: Why its hand-written aclnn functions are not in what was built; empty where they are, or there are none.
    left_out: str
    seconds: float
    log: str


@dataclass(frozen=True, slots=True)
class Survey:
    """The results of a repository."""

    root: Path
    results: tuple[Result, ...]

    @property
    def built(self) -> int:
        return sum(one.state.is_built for one in self.results)

    @property
    def ran(self) -> int:
        return sum(one.state is State.RAN for one in self.results)

    @property
    def causes(self) -> dict[str, int]:
        """How many stopped for each cause, the most frequent first."""
        return dict(Counter(one.cause for one in self.results if one.cause).most_common())

    def as_json(self) -> dict[str, Any]:
        """What ``--format json`` prints."""
        projects = [{**asdict(one), "kind": one.kind.value, "state": one.state.value} for one in self.results]
        counts = {"found": len(self.results), "built": self.built, "ran": self.ran}
        return {"root": str(self.root), **counts, "causes": self.causes, "projects": projects}


@dataclass(frozen=True, slots=True)
class _Step:
    """A command of an attempt, and the state that is reached where it succeeds."""

    name: str
    command: tuple[str, ...]
    directory: Path
    reaches: State


@dataclass(frozen=True, slots=True)
class _Found:
    """Something to try."""

    path: Path
    kind: Kind


def survey(
    directory: Path,
    work: Path,
    *,
    kinds: Iterable[Kind] = tuple(Kind),
    names: Iterable[str] = (),
    jobs: int = 1,
    time_limit: float = 900.0,
    progress: Callable[[Result], None] = lambda _: None,
    given: Given = Given(),  # noqa: B008 - it is frozen
) -> Survey:
    """Try everything of a directory that the host runtime builds.

    Args:
        directory: a repository, or a part of one.
        work: where packages, copies and logs are made; a directory of its own.
        kinds: what is tried.
        names: the names of the directories that are tried; all where none is given.
        jobs: how many are tried at a time.
        time_limit: seconds for each.
        progress: called with each result as it comes.
        given: what builds of operator projects get beside what the repository has.

    Raises:
        SurveyError: there is no such directory, or nothing in it is of these kinds.
    """
    root = directory.resolve()
    if not root.is_dir():
        raise SurveyError(f"{directory} is no directory")
    work = work.resolve()
    if work.is_relative_to(root) and work != root / work.name:
        raise SurveyError(f"{work} lies inside {root}; a survey writes to a directory of its own")
    chosen, wanted = frozenset(kinds), frozenset(names)
    found = [one for one in _find(root) if one.kind in chosen and (not wanted or one.path.name in wanted)]
    if not found:
        looked = ", ".join(kind.value for kind in Kind if kind in chosen)
        what = f" called {', '.join(sorted(wanted))}" if wanted else ""
        raise SurveyError(
            f"{directory} has no {looked}{what}: neither op_host beside op_kernel, nor a setup.py or "
            "CMakeLists.txt that compiles Ascend C"
        )
    work.mkdir(parents=True, exist_ok=True)
    copy = _Copy(Repository.around(root).root, work / "source")

    def attempt(number_and_item: tuple[int, _Found]) -> Result:
        number, item = number_and_item
        result = _attempt(root, item, work / f"{number:03d}-{item.path.name}", copy, time_limit, given)
        progress(result)
        return result

    with ThreadPoolExecutor(max(1, jobs)) as pool:
        return Survey(root, tuple(pool.map(attempt, enumerate(found))))


class _Copy:
    """The repository's copy for builds that write beside their sources; made when the first needs it."""

    def __init__(self, root: Path, target: Path) -> None:
        self._root, self._target, self._lock = root, target, threading.Lock()

    def of(self, path: Path) -> Path:
        with self._lock:
            if not self._target.exists():
                draft = self._target.with_name(f".{self._target.name}")
                shutil.copytree(
                    self._root, draft, symlinks=True, ignore_dangling_symlinks=True,
                    ignore=shutil.ignore_patterns(".git", "*.pyc", self._target.parent.name),
                )  # fmt: skip
                draft.rename(self._target)
        return self._target / path.relative_to(self._root)


# ---- what there is ----------------------------------------------------------------------------------------------------

_EXTENSION = re.compile(r"\bNpuExtension\b|\btorch_npu\b|\bcpp_extension\b")
_SAMPLE = re.compile(
    r"find_package\s*\(\s*ASC\b|LANGUAGES[^)]*\bASC\b|\bascendc_library\s*\(|\bascendc\.cmake\b|\bbisheng\b|\.asc\b"
)
_PROJECT = re.compile(r"^\s*project\s*\(", re.MULTILINE | re.IGNORECASE)


def _find(root: Path) -> list[_Found]:
    repository = Repository.around(root)
    operators = [path for path in repository.projects() if path.is_relative_to(root)]
    found = [_Found(path, Kind.OPERATOR) for path in operators]
    taken = set(operators)
    for directory, names, files in os.walk(root):
        here = Path(directory)
        names[:] = sorted(n for n in names if not n.startswith(".") and n not in ("build", "build_out", "docs"))
        if here in taken:
            names[:] = []
            continue
        if "setup.py" in files and _EXTENSION.search(_text(here / "setup.py")):
            found.append(_Found(here, Kind.EXTENSION))
        elif "CMakeLists.txt" in files and not any(one.is_relative_to(here) for one in operators):
            text = _text(here / "CMakeLists.txt")
            if _PROJECT.search(text) and _SAMPLE.search(text):
                found.append(_Found(here, Kind.SAMPLE))
    return found


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


# ---- one attempt ------------------------------------------------------------------------------------------------------


def _attempt(root: Path, item: _Found, work: Path, copy: _Copy, time_limit: float, given: Given) -> Result:
    if work.exists():
        shutil.rmtree(work)
    work.mkdir(parents=True)
    log = work / "log.txt"
    state, error, failed = State.FAILED, "", ""
    started = time.monotonic()
    steps = {Kind.OPERATOR: _operator_steps, Kind.EXTENSION: _extension_steps, Kind.SAMPLE: _sample_steps}[item.kind]
    reached: State | None = None
    for step in steps(item.path, work, copy, given):
        left = time_limit - (time.monotonic() - started)
        status = _run(step, log, left, given.architecture)
        if status != 0:
            failed = step.name
            limit = f"did not end in {time_limit:g} seconds"
            error = limit if status is None else first_error(_text(log)) or f"ended with status {status}"
            break
        reached = step.reaches
    if failed == "run" and item.kind is Kind.SAMPLE:
        named = _named(item.path)
        if named and given.architecture not in named:
            names = ", ".join(one.name for one in named)
            error = f"its kernels are for {names}, and the host stands for {given.architecture.name}"
    # What builds but does not pass all of its own tests is no more than built.
    state = State.BUILT if failed == "run" else reached or State.FAILED
    if _OTHER_DEVICE.search(error):
        state = State.OTHER_DEVICE
    cause, missing = _cause(error, failed)
    path = item.path.relative_to(root)
    without = _LEFT_OUT.search(_text(log))
    left_out = without[1] if without is not None else ""
    seconds = round(time.monotonic() - started, 1)
    return Result(str(path), item.kind, state, failed, error, cause, missing, left_out, seconds, str(log))


def _operator_steps(path: Path, work: Path, copy: _Copy, given: Given) -> Iterable[_Step]:
    package = work / "package"
    options = [f"-I{one}" for one in given.directories]
    options += [f"-D{name}={value}" for name, value in given.definitions]
    options += [f"--cann={one}" for one in given.cann]
    options += [f"--npu-arch={given.architecture.name}"]
    build = (sys.executable, "-m", "ascend_graph.cli", "build", str(path), "-o", str(package), *options)
    yield _Step("build", build, work, State.BUILT)
    load = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    library = package / "op_api/lib/libcust_opapi.so"
    yield _Step("load", (sys.executable, "-c", load, str(library)), work, State.LOADED)


def _extension_steps(path: Path, work: Path, copy: _Copy, given: Given) -> Iterable[_Step]:
    source, built = copy.of(path), work / "built"
    host = (sys.executable, "-m", "ascend_graph.host")
    generate = _generating(source)
    if generate is not None:
        yield _Step("build", generate, source, State.FAILED)
    yield _Step("build", (*host, "setup.py", "build", "--build-lib", str(built)), source, State.BUILT)
    named = ((name, pattern) for name in ("test", "tests") for pattern in ("test*.py", "*_test.py"))
    tests = sorted({path for name, pattern in named for path in (source / name).glob(pattern)})
    for test in tests:
        yield _Step("run", ("env", f"PYTHONPATH={built}", *host, str(test)), test.parent, State.RAN)


#: A command of a document or script that makes sources: ``bash gen.sh operators.yaml``.
_GENERATE = re.compile(r"^\s*(?:bash|sh)\s+(?:\./)?(gen\w*\.sh)((?:[ \t]+[\w./-]+)*)\s*$", re.MULTILINE)


def _generating(source: Path) -> tuple[str, ...] | None:
    """The command that makes an extension's sources before its setup.py, as its own script or document says it."""
    for name in ("build_and_run.sh", "build.sh", "README.md"):
        if (source / name).is_file():
            for script, arguments in _GENERATE.findall(_text(source / name)):
                if (source / script).is_file():
                    python = f"PATH={Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
                    # It reads torch's version, for which it needs no device.
                    return ("env", python, "TORCH_DEVICE_BACKEND_AUTOLOAD=0", "bash", script, *arguments.split())
    return None


def _named(sample: Path) -> list[Architecture]:
    """The architectures that a sample's build files name."""
    text = _text(sample / "CMakeLists.txt")
    return [one for one in ARCHITECTURES if one.name in text]


def _sample_steps(path: Path, work: Path, copy: _Copy, given: Given) -> Iterable[_Step]:
    source = copy.of(path)
    build = work / "build"
    # Build files that know the architecture take it, the others build for their own.
    known = given.architecture in _named(source)
    chosen = (f"-DCMAKE_ASC_ARCHITECTURES={given.architecture.name}",) if known else ()
    yield _Step("build", ("cmake", "-S", str(source), "-B", str(build), *chosen), work, State.FAILED)
    yield _Step("build", ("cmake", "--build", str(build)), work, State.BUILT)
    generate, verify = (sorted((source / "scripts").glob(f"{name}*.py")) for name in ("gen_data", "verify_result"))
    for name in ("input", "output"):
        (build / name).mkdir(exist_ok=True)
    for script in generate:
        yield _Step("run", ("python3", str(script)), build, State.BUILT)
    programs = [p for p in sorted(build.iterdir()) if p.is_file() and os.access(p, os.X_OK) and ".so" not in p.name]
    for program in programs:
        yield _Step("run", (str(program),), build, State.BUILT if verify else State.RAN)
    results = build / "output/output.bin", build / "output/golden.bin"
    for script in verify:
        yield _Step("run", ("python3", str(script), *map(str, results)), build, State.RAN)


def _run(step: _Step, log: Path, limit: float, stands_for: Architecture) -> int | None:
    """Run a step with its output in the log; its exit status, or None where it took too long."""
    with log.open("a") as output:
        output.write(f"$ {' '.join(step.command)}\n")
        output.flush()
        begin = output.tell()
        processor = {PROCESSOR_VARIABLE: processor_with(stands_for, os.environ)}
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


# ---- what stopped it --------------------------------------------------------------------------------------------------

#: What samples print of a wrong result before they return 0.
_WRONG = re.compile(r"^.*(\[?\b(?:test|case|verify|result|accuracy|precision)[^\n]*\b(?:failed|error)\b|\[ERROR\]).*$",
                    re.MULTILINE | re.IGNORECASE)  # fmt: skip
_OTHER_DEVICE = re.compile(r"the host stands for")
_LEFT_OUT = re.compile(r"^ascend_graph: .*: its own aclnn functions are left out: (.*)$", re.MULTILINE)
_NAMES = r"[\u2018'`](?:(?:typename|class|struct)\s+)?(?P<name>[^\u2019'`]+)[\u2019'`]"
#: The form of an error, and what is missing by it.
_FORMS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"fatal error: (?P<name>\S+): No such file"), "header"),
    (re.compile(r"error: no matching function for call to " + _NAMES), "overload"),
    (re.compile(r"error: " + _NAMES + r" is not a member of"), "name"),
    (re.compile(r"error: " + _NAMES + r" (?:was not declared|has not been declared|does not name a type|is not a class)"), "name"),
    (re.compile(r"error: [^\n]*has no member named " + _NAMES), "member"),
    (re.compile(r"error: expected [^\n]* before " + _NAMES), "syntax"),
    (re.compile(r"undefined (?:symbol|reference to)[: ]+[\u2018'`]?(?P<name>[\w:~()<>, *&]+)"), "symbol"),
    (re.compile(r"Unknown CMake command \"(?P<name>\w+)\""), "CMake command"),
    (re.compile(r"provided by \"(?P<name>\w+)\""), "CMake package"),
    (re.compile(r"(?P<name>\S+): (?:command not found|not found$)"), "program"),
    (re.compile(r"No module named " + _NAMES), "Python module"),
)  # fmt: skip
_ERROR_LINE = re.compile(
    r"^.*(?:\berror:|\b\w*Error:|\bERROR\b|undefined symbol|undefined reference|CMake Error|ModuleNotFoundError|not found$).*$",
    re.MULTILINE,
)
_IN_PLACE = re.compile(r"^(?:\S+?:\d+(?::\d+)?:|/\S+:|Error:)\s*")


def first_error(log: str) -> str:
    """The line of a log that says first what went wrong, or its last line."""
    for match in _ERROR_LINE.finditer(log):
        line = match[0].strip()
        # What torch_npu says of any exception comes after the exception.
        if (
            not line.startswith(("$", "ascend_graph:", "Error: compiling", "Error: preprocessing", "ninja:", "FAILED:"))
            and "ERR99999" not in line
        ):
            return line[:500]
    lines = [line.strip() for line in log.splitlines() if line.strip() and not line.startswith("$")]
    return lines[-1][:500] if lines else ""


def _cause(error: str, step: str) -> tuple[str, str]:
    """The cause of an error, and what is missing by it."""
    if not error:
        return "", ""
    for form, what in _FORMS:
        found = form.search(error)
        if found is not None:
            name = found["name"].strip()
            if what == "overload":
                name = re.split(r"[(<]", name, maxsplit=1)[0]
            return f"{what} {name}", name
    text = error
    while True:
        shorter = _IN_PLACE.sub("", text)
        if shorter == text:
            break
        text = shorter
    if _OTHER_DEVICE.search(text):
        return "for other devices", ""
    return f"{step}: {text[:160]}", ""

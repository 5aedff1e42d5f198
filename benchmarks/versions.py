"""Test of every supported version of torch_npu: an environment for each, the demo, the suite, the symbols.

``python benchmarks/versions.py [VERSION…]`` (``make test-versions VERSIONS="…"``) needs no torch itself. For each version it
makes ``build/versions/VERSION/env`` with that torch_npu, the torch of its number and this tree (``.venv`` is used for the
version that it has). There it runs the demo, tests that are not slow (``--select``: which; ``--tests``: these files) and
``benchmarks/symbols.py``, and asks pip whether it would install another torch for this package. It prints a table and, as
its last line, JSON; ``--record`` writes that to ``benchmarks/data/versions.json`` and from it the table of
``docs/versions.md``. After a fix, ``--again`` runs only the tests that failed in the last run, and counts them in it.
Environments are kept for the next run and deleted with ``--delete``. With ``--optional`` a version that cannot be downloaded
is skipped.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TREE))

from ascend_graph.versions import TESTED, UNTESTED_VARIABLE, release  # noqa: E402
from benchmarks._torch_without_cuda import remove_cuda  # noqa: E402

PLACE = TREE / "build/versions"
DATA = TREE / "benchmarks/data/versions.json"
DOCUMENT = TREE / "docs/versions.md"
_BEGIN, _END = "<!-- table: make test-versions -->", "<!-- end of table -->"


#: Tests that never load torch, whatever its version: prototypes and headers, and kernels compiled and run on their own.
WITHOUT_TORCH = ("tests/aclnn", "tests/ascendc", "tests/prototypes")
#: Files there that compare numbers with PyTorch's on the CPU, which is no part of what they test.
WITH_TORCH_AS_REFERENCE = ("tests/ascendc/simt_api/test_functions.py",)

#: Selections of tests: all that are not slow and load torch; those that cover most of torch, torch_npu and torchair; the minimum.
SELECTIONS: dict[str, tuple[str, ...]] = {
    "all": tuple(f"--ignore={directory}" for directory in WITHOUT_TORCH),
    "torch": (
        "tests/test_versions.py",
        *(f"tests/{package}" for package in ("registration", "binding", "dispatch", "autograd", "raw_ops")),
        *(f"tests/host/aten/test_{name}.py" for name in ("operators", "devices", "state", "dtypes", "random")),
        *(f"tests/host/runtime/test_{name}.py" for name in ("symbols", "capture", "npugraphs", "engine", "effects")),
        *(f"tests/eager/test_{name}.py" for name in ("arguments", "shapes", "executor_cache")),
        "tests/distributed/test_distributed.py",
    ),
    "least": ("tests/test_versions.py", "tests/host/runtime/test_symbols.py"),
}


class DownloadError(Exception):
    """Wheel that cannot be downloaded."""


@dataclass(frozen=True, slots=True)
class VersionResult:
    """Result for one version."""

    version: str
    torch: str = ""
    python: str = ""
    machine: str = ""
    imports: bool = False
    #: True if pip installs this package and its extra ``torch`` without changing the version's torch and torch_npu.
    keeps_torch: bool | None = None
    demo_rows: int = 0
    demo_rows_equal: int = 0
    passed: int = 0
    failed: int = 0
    skipped_for_version: int = 0
    missing_symbols: int = 0
    tests: str = ""
    date: str = ""
    seconds: int = 0
    failures: tuple[str, ...] = ()
    #: Number of tests that were run again, alone, after a failure and a fix.
    again: int = 0

    @property
    def is_good(self) -> bool:
        """True if everything that was tried works."""
        demo = self.demo_rows == self.demo_rows_equal > 0
        return self.imports and self.keeps_torch is True and demo and self.failed == self.missing_symbols == 0


class _Run:
    """Runner of one version's commands, each with a log next to its environment."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.place = PLACE / version
        main = TREE / ".venv"
        self.is_main = any(main.glob(f"lib/python*/site-packages/torch_npu-{version}.dist-info"))
        self.home = main if self.is_main else self.place / "env"
        self.python = self.home / "bin/python"
        self.environment = {**os.environ, UNTESTED_VARIABLE: "1"}
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)  # the wheels' files warn when they are compiled

    def __call__(self, log: str, command: Sequence[str | Path]) -> tuple[int, str]:
        path = self.place / f"{log}.log"
        with path.open("w") as file:
            status = subprocess.run(
                command, cwd=TREE, stdout=file, stderr=subprocess.STDOUT, check=False, env=self.environment
            ).returncode
        return status, path.read_text(errors="replace")

    def pip(self, *arguments: str | Path) -> None:
        status, text = self("pip", [self.python, "-m", "pip", "--disable-pip-version-check", "-q", *arguments])
        if status != 0:
            raise RuntimeError(f"{self.version}: pip {' '.join(map(str, arguments))} failed:\n{text[-2000:]}")

    def download(self, *arguments: str | Path) -> None:
        try:
            self.pip("--retries", "2", "--timeout", "60", *arguments)
        except RuntimeError as error:
            raise DownloadError(str(error)) from None


def _requirements(torch: Path) -> list[str]:
    """Return torch's requirements without CUDA, and the requirements of this package's tests without torch."""
    metadata = next(torch.glob("torch-*.dist-info/METADATA")).read_text()
    own = [
        line.partition(" ")[2].partition(";")[0]
        for line in metadata.splitlines()
        if line.startswith("Requires-Dist:") and "extra ==" not in line
    ]
    cuda = re.compile(r"(nvidia|cuda|triton|pytorch-triton)")
    project = (TREE / "pyproject.toml").read_text()
    ours = re.findall(
        r'^    "((?!torch|ascend)[a-z]\w*[^"]*)",',
        project.partition("dependencies = [")[2].partition("docs = [")[0],
        re.MULTILINE,
    )
    return [*(r for r in own if not cuda.match(r.strip())), *ours]


def _environment(run: _Run) -> None:
    """Make the environment of a version, unless it exists."""
    done = run.home / "made"
    if run.is_main or done.exists():
        run.place.mkdir(parents=True, exist_ok=True)
        _install_tree(run)
        return
    for name in ("env", "demo"):
        shutil.rmtree(run.place / name, ignore_errors=True)
    run.place.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", run.home], check=True)
    wheels = run.place / "wheels"
    number = release(run.version)
    run.download("download", "--no-deps", "-d", wheels, f"torch_npu=={run.version}")
    try:
        run.download("download", "--no-deps", "-d", wheels, f"torch=={number}+cpu")
    except DownloadError:  # only a CUDA build is offered
        run.download("download", "--no-deps", "-d", wheels, f"torch=={number}")
    site = _site(run)
    with zipfile.ZipFile(next(wheels.glob("torch-*.whl"))) as archive:
        archive.extractall(site)
    for program in (site / "torch/bin").glob("*"):
        program.chmod(0o755)
    remove_cuda(site)
    run.download("install", *_requirements(site))
    run.pip("install", "--no-deps", *wheels.glob("torch_npu-*.whl"))
    shutil.rmtree(wheels)
    _install_tree(run)
    done.touch()


def _install_tree(run: _Run) -> None:
    run.pip("install", "--no-deps", "-e", TREE)
    # The editable install also puts the directory above this tree on the path, where anything may lie.
    for path in _site(run).glob("_editable_skbc_ascend_graph.pth"):
        path.write_text("".join(f"{line}\n" for line in path.read_text().splitlines() if line != str(TREE.parent)))


def _site(run: _Run) -> Path:
    return next(run.home.glob("lib/python*/site-packages"))


def _keeps_torch(run: _Run) -> bool:
    """Return whether this package and its extra keep the installed torch and torch_npu."""
    options = ["--disable-pip-version-check", "--dry-run", "--no-index"]
    status, text = run("keeps", [run.python, "-m", "pip", "install", *options, "ascend-graph[torch]"])
    return status == 0 and "Would install" not in text


def _ended(log: str) -> bool:
    """Return whether pytest reached its summary without an interruption.

    >>> _ended("===== 1 skipped in 20.64s ====="), _ended("!!!!! stopping !!!!!"), _ended("a.py::test PASSED")
    (True, False, False)
    """
    return re.search(r"^=+ \d+ \w+\b.* in ", log, re.MULTILINE) is not None and not re.search(
        "^!!!!", log, re.MULTILINE
    )


def _tests(run: _Run, tests: Sequence[str], jobs: int) -> dict[str, object]:
    report = run.place / "tests.xml"
    report.unlink(missing_ok=True)
    cache = f"cache_dir={run.place / 'cache'}"  # what tests build is kept there
    shared_out = ["-n", str(jobs), "--dist", "loadfile"] if jobs > 1 else []
    pytest = ["-m", "pytest", "-v", *shared_out, "-m", "not slow", "-o", cache, f"--junitxml={report}", *tests]
    _, text = run("tests", [run.python, "-m", "ascend_graph.host", "--quiet", *pytest])
    # Not the exit status: with a torch that CUDA was taken out of, a process may end with a signal after all it had to say.
    if not report.exists() or not _ended(text):
        return {"failures": ("the tests did not end: see tests.log",), "failed": 1}
    cases = list(ET.parse(report).getroot().iter("testcase"))
    bad = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    skipped = [c for c in cases if c.find("skipped") is not None]
    for_version = [c for c in skipped if re.search(r"torch(_npu)? \d", c.find("skipped").get("message", ""))]  # type: ignore[union-attr]
    return {
        "passed": len(cases) - len({id(c) for c in [*bad, *skipped]}),
        "failed": len(bad),
        "skipped_for_version": len(for_version),
        "failures": tuple(sorted({f"{c.get('classname')}::{c.get('name')}" for c in bad})),
    }


def _try(version: str, files: Sequence[str], selection: str, jobs: int) -> VersionResult:
    """Try one version completely; the tests are those of ``files``, or else those of a selection."""
    started = time.monotonic()
    run = _Run(version)
    _environment(run)
    found: dict[str, object] = {}
    code = (
        "import platform, torch, torch_npu, torchair; print('VERSIONS', torch.__version__, platform.python_version())"
    )
    status, text = run("import", [run.python, "-m", "ascend_graph.host", "--quiet", "-c", code])
    versions = re.search(r"VERSIONS (\S+) (\S+)", text)
    if versions is not None:
        found |= {"imports": status == 0, "torch": versions[1], "python": versions[2], "keeps_torch": _keeps_torch(run)}
        home, demo = (path.relative_to(TREE) for path in (run.home, run.place / "demo"))
        options = [f"BIN={home}/bin", f"DEMO={demo}", "-o", ".venv/installed"]
        _, text = run("demo", ["make", "-s", "demo", *options])
        rows = re.findall(r"│ *(yes|no)\b", text)
        found |= {"demo_rows": len(rows), "demo_rows_equal": rows.count("yes")}
        found |= _tests(run, files or SELECTIONS[selection], jobs)
    _, text = run("symbols", [run.python, "benchmarks/symbols.py", "--wheels", _site(run)])
    missing = re.search(r'"missing": (\d+)', text)
    return VersionResult(
        version,
        machine=platform.machine(),
        missing_symbols=int(missing[1]) if missing else -1,
        tests=" ".join(files) or selection,
        date=datetime.date.today().isoformat(),
        seconds=round(time.monotonic() - started),
        **found,  # type: ignore[arg-type]
    )


def _node(failure: str) -> str:
    """Return pytest's name of a test in a report, or of a file that it could not read.

    >>> _node("tests.eager.test_cache::test_slots[a::b]"), _node("::tests.eager.test_fused")
    ('tests/eager/test_cache.py::test_slots[a::b]', 'tests/eager/test_fused.py')
    """
    module, _, test = failure.partition("::")
    return f"{module.replace('.', '/')}.py::{test}" if module else f"{test.replace('.', '/')}.py"


def _again(before: VersionResult, jobs: int) -> VersionResult:
    """Run the failed tests of a version's last run again, and return the updated result."""
    started = time.monotonic()
    run = _Run(before.version)
    _environment(run)
    files = [_node(failure) for failure in before.failures]
    found = _tests(run, files, jobs)
    if any("::" not in failure for failure in found["failures"]):  # type: ignore[attr-defined]
        raise RuntimeError(f"{before.version}: what failed could not be run again: see {run.place}/tests.log")
    return replace(
        before,
        passed=before.passed + found["passed"],  # type: ignore[operator]
        failed=found["failed"],  # type: ignore[arg-type]
        failures=found["failures"],  # type: ignore[arg-type]
        skipped_for_version=before.skipped_for_version + found["skipped_for_version"],  # type: ignore[operator]
        date=datetime.date.today().isoformat(),
        seconds=before.seconds + round(time.monotonic() - started),
        again=before.again + len(files),
    )


#: Number of failures that are listed in the document; all are in the data.
_NAMED = 10
_KEEPS = {True: "yes", False: "no", None: "not asked"}


def table(results: Sequence[VersionResult]) -> str:
    """Return the results as Markdown, newest version first."""
    lines = [
        "| torch_npu | torch | Python, machine | imports | pip keeps it | demo rows equal | passed | failed | skipped for the version | missing symbols | date |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        cells = [
            r.version, r.torch, f"{r.python}, {r.machine}", "yes" if r.imports else "no", _KEEPS[r.keeps_torch],
            f"{r.demo_rows_equal} of {r.demo_rows}",
            r.passed, r.failed, r.skipped_for_version, r.missing_symbols, r.date,
        ]  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
    for tests in sorted({r.tests for r in results}):
        versions = [r.version for r in results if r.tests == tests]
        which = f"selection `{tests}`" if tests in SELECTIONS else tests
        lines.append(f"\nTests with {', '.join(versions)}: {which}.")
    lines += [
        f"\nWith {r.version} {r.again} of these had failed, and were run again alone after a fix."
        for r in results
        if r.again
    ]
    for r in results:
        more = f", and {len(r.failures) - _NAMED} more" if len(r.failures) > _NAMED else ""
        lines += [f"\nFailed with {r.version}: {', '.join(r.failures[:_NAMED])}{more}."] if r.failures else []
    return "\n".join(lines)


def recorded() -> list[VersionResult]:
    """Return the last result of each version, newest version first."""
    entries = json.loads(DATA.read_text()) if DATA.exists() else []
    results = [VersionResult(**{**entry, "failures": tuple(entry["failures"])}) for entry in entries]
    return sorted(results, key=lambda r: [int(n) for n in re.findall(r"\d+", r.version)], reverse=True)


def _record(results: Sequence[VersionResult]) -> None:
    """Write results to the data and the document."""
    kept = {r.version: r for r in recorded()} | {r.version: r for r in results}
    DATA.write_text(json.dumps([asdict(r) for r in kept.values()], indent=1) + "\n")
    document(recorded())


def document(results: Sequence[VersionResult]) -> None:
    """Write the table of ``docs/versions.md``."""
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(_BEGIN)
    DOCUMENT.write_text(f"{before}{_BEGIN}\n{table(results)}\n{_END}{rest.partition(_END)[2]}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Try versions of torch_npu.")
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"default: {' '.join(TESTED)}")
    tests = parser.add_mutually_exclusive_group()
    tests.add_argument("--select", choices=SELECTIONS, default="torch", help="which tests; default: torch")
    tests.add_argument("--tests", nargs="+", default=[], metavar="FILE", help="these test files")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="files of tests are shared out among N processes"
    )
    parser.add_argument("--optional", action="store_true", help="pass over a version that cannot be downloaded")
    parser.add_argument(
        "--record", action="store_true", help="write benchmarks/data/versions.json and docs/versions.md"
    )
    parser.add_argument(
        "--again", action="store_true", help="run only what failed in the recorded run, and count it there"
    )
    parser.add_argument("--delete", action="store_true", help="delete each environment when it is done")
    arguments = parser.parse_args()
    results = []
    for version in arguments.versions or TESTED:
        try:
            if arguments.again:
                result = _again(next(r for r in recorded() if r.version == version), arguments.jobs)
            else:
                result = _try(version, arguments.tests, arguments.select, arguments.jobs)
        except DownloadError as error:
            if not arguments.optional:
                raise
            print(f"NOT TRIED: torch_npu {version} cannot be downloaded here. {error}", flush=True)
            continue
        results.append(result)
        print(table([result]).splitlines()[2], *(f"\n  failed: {f}" for f in result.failures), flush=True)
        if arguments.record:
            _record([result])
        if arguments.delete:
            shutil.rmtree(PLACE / version / "env", ignore_errors=True)
    print(table(results))
    print(json.dumps([asdict(r) for r in results]))
    return int(not all(r.is_good for r in results))


if __name__ == "__main__":
    raise SystemExit(main())

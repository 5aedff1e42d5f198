"""Run, for each planted fault, the tests that reach it, until one fails; say which faults a list of tests alone finds."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

#: Seconds after which a run of tests is said to hang, which finds the fault.
LIMIT = 120.0
BATCH_SECONDS = 25.0
BATCH_TESTS = 12
#: Batches that a fault may survive: of the tests that stay, and then of the list.
BATCHES = 4


@dataclass(frozen=True, slots=True)
class RecordedTest:
    """A test of the run that recorded what each reaches."""

    name: str
    seconds: float
    reached: frozenset[int]


@dataclass(slots=True)
class Verdict:
    """What was found of a fault: the test that fails of it, and those that ran."""

    number: int
    by: str = ""
    ran: list[str] = field(default_factory=list)


def read_tests(directory: Path) -> list[RecordedTest]:
    """Return the tests that passed of the workers' lines."""
    lines = [json.loads(line) for path in directory.glob("*.jsonl") for line in path.read_text().splitlines()]
    return [RecordedTest(name, seconds, frozenset(reached)) for name, seconds, failed, reached in lines if not failed]


def batches(tests: Iterable[RecordedTest]) -> list[list[RecordedTest]]:
    """Return the tests in lots of some seconds each, those first that are quick and reach little else."""
    lots: list[list[RecordedTest]] = []
    seconds = 0.0
    for test in sorted(tests, key=lambda test: (test.seconds + 0.5) * (10 + len(test.reached))):
        if not lots or seconds + test.seconds > BATCH_SECONDS or len(lots[-1]) == BATCH_TESTS:
            lots.append([])
            seconds = 0.0
        lots[-1].append(test)
        seconds += test.seconds
    return lots


class Judge:
    """Runs tests of a planted tree, each fault with a copy of the cache that the recorded run left."""

    def __init__(self, tree: Path, cache: Path) -> None:
        self.tree = tree
        self.cache = cache

    def fails(self, number: int, tests: list[str], cache: Path, limit: float = LIMIT) -> str:
        """Return the first of the tests that fails with a fault switched on, or an empty text."""
        hidden = ("PYTEST", "AG_", "VIRTUAL", "ASCEND", "PYTHON", "LD_", "TORCH")
        variables = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        variables |= {"AG_FAULT": str(number), "XDG_CACHE_HOME": str(cache), "CI": "true"}
        python = self.tree / ".venv" / "bin" / "python"
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as names:
            names.write("\n".join(tests) + "\n")
            names.flush()
            options = ["-m", "pytest", "--maxfail=1", "-q", "-rfE", "--tb=no", "-o", f"cache_dir={cache}/pytest"]
            command = [str(python), "-m", "ascend_graph.host", "--quiet", *options, f"@{names.name}"]
            with subprocess.Popen(
                command,
                cwd=self.tree,
                env=variables,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            ) as running:
                try:
                    said, _ = running.communicate(timeout=limit)
                except subprocess.TimeoutExpired:
                    os.killpg(running.pid, signal.SIGKILL)
                    return tests[0]  # or one behind it, which does not end
        if running.returncode == 0:
            return ""
        failed = re.search(r"^(?:FAILED|ERROR) (tests/.*?)(?: - .*)?$", said, re.MULTILINE)
        return failed[1] if failed and failed[1] in tests else tests[0]  # or one behind it, of which pytest ended

    def judge(self, number: int, tests: list[RecordedTest], listed: frozenset[str]) -> Verdict:
        """Return what finds a fault, kept tests first."""
        verdict = Verdict(number)
        reaching = [test for test in tests if number in test.reached]
        kept = batches(test for test in reaching if test.name not in listed)[:BATCHES]
        moved = batches(test for test in reaching if test.name in listed)[:BATCHES]
        copy = Path(tempfile.mkdtemp(prefix=f"fault{number}-", dir=self.cache.parent))
        try:
            self.copy(copy)
            for lot in [*kept, *moved]:
                names = [test.name for test in lot]
                verdict.ran += names
                if failed := self.fails(number, names, copy):
                    verdict.by = failed
                    break
        finally:
            shutil.rmtree(copy, ignore_errors=True)
        return verdict

    def copy(self, target: Path) -> None:
        """Fill a directory with the cache and what pytest's cache holds, by links: files there are replaced, not changed."""
        subprocess.run(["cp", "-al", f"{self.cache}/.", target], check=True)
        subprocess.run(["cp", "-al", self.tree / ".pytest_cache", target / "pytest"], check=True)

    def false(self, verdicts: list[Verdict]) -> set[str]:
        """Return those of the tests that found faults which fail with all faults off, too."""
        asked = sorted({verdict.by for verdict in verdicts if verdict.by})
        found: set[str] = set()
        while failed := self.fails(0, [name for name in asked if name not in found], self.cache, limit=1800):
            found.add(failed)
        return found


def judge_all(
    tree: Path,
    tests: list[RecordedTest],
    cache: Path,
    listed: frozenset[str],
    numbers: Iterable[int],
    log: Path,
    processes: int = 2,
) -> list[Verdict]:
    """Judge faults, some at once, and append each verdict to a log, which a later call goes on from."""
    judge = Judge(tree.resolve(), cache.resolve())
    known = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    verdicts = [Verdict(*one) for one in known]
    open_numbers = [number for number in numbers if number not in {verdict.number for verdict in verdicts}]
    random.Random(0).shuffle(open_numbers)  # what an interrupted run has is a sample
    with ThreadPoolExecutor(processes) as pool, log.open("a", buffering=1) as lines:
        for done in as_completed(pool.submit(judge.judge, number, tests, listed) for number in open_numbers):
            verdict = done.result()
            verdicts.append(verdict)
            lines.write(json.dumps([verdict.number, verdict.by, verdict.ran]) + "\n")
    false = judge.false(verdicts)
    for verdict in verdicts:
        if verdict.by in false:
            verdict.by = ""
    return verdicts

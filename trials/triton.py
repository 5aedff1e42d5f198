"""Triton-Ascend's own tests on the host runtime: what passes, and the causes of the rest.

    make bench NAME=triton ARGS=CHECKOUT
    python -m benchmarks triton CHECKOUT [FILE…] [--seconds 10]

The checkout is one of triton-lang/triton-ascend, at the branch of the installed wheel; its directory of tests is
``ascend/examples/pytest_ut`` (``third_party/ascend/unittest/pytest_ut`` in later ones). A test that takes longer than
``--seconds`` is ended and counted as ``over_time``. The last line is JSON: tests by outcome.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

DIRECTORIES = ("ascend/examples/pytest_ut", "third_party/ascend/unittest/pytest_ut")

#: Causes by what an error says; the first that fits.
CAUSES = (
    ("over_time", r"^over \d+ s"),
    ("refused_by_host", r"is not there on the host"),
    (
        "refused_by_wheel",
        r"ConvertTritonIRToLinalgIR|was specified but unrecogni[sz]ed|CompilationError|UnsupportedLanguageConstruct",
    ),
    ("overruns", r"mask what is outside"),
    ("torch_on_cpu", r'"\w+" not implemented for|value cannot be converted to type'),
    ("missing_module", r"No module named|cannot import name|has no attribute"),
    ("different", r"AssertionError|not close|assert "),
)

_BOOT = """
import importlib.util, os, sys
spec = importlib.util.spec_from_file_location("triton_ascend_trial", os.environ["TRIAL"])
plugin = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plugin)
import pytest
sys.exit(pytest.main(sys.argv[1:], plugins=[plugin]))
"""


class _OverTime(BaseException):
    """Interruption of a test that takes too long."""


def _over_time(*_: Any) -> None:
    raise _OverTime(f"over {os.environ['TRIAL_SECONDS']} s")


def pytest_sessionstart(session: Any) -> None:
    """Import what the first kernel imports: a test that is ended in an import would fail all that follow."""
    import torch

    torch.npu.synchronize()
    for name in ("triton", "ascend_graph.host.triton.driver", "triton.backends.ascend.driver"):
        importlib.import_module(name)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: Any) -> Generator[None, Any, None]:
    """Give the test its time and not more, and let a kernel that failed fail the test that launched it."""
    signal.signal(signal.SIGALRM, _over_time)
    signal.alarm(int(os.environ["TRIAL_SECONDS"]))
    outcome = yield
    signal.alarm(0)
    import torch  # the program that counts runs without a device

    try:
        torch.npu.synchronize()
    except RuntimeError as error:
        if outcome.excinfo is None:
            outcome.force_exception(error)


def pytest_runtest_teardown(item: Any) -> None:
    signal.alarm(0)


def pytest_runtest_makereport(item: Any, call: Any) -> None:
    """Write a line for each test."""
    if call.when == "teardown" or (call.when == "setup" and call.excinfo is None):
        return
    signal.alarm(0)
    error = call.excinfo
    skipped = error is not None and error.typename == "Skipped"
    outcome = "passed" if error is None else "skipped" if skipped else "failed"
    text = "" if error is None else f"{error.value}\n{error.typename}"
    _write(item.nodeid, outcome, text)


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        _write(report.nodeid, "failed", str(report.longrepr))


def _write(test: str, outcome: str, text: str) -> None:
    with Path(os.environ["TRIAL_OUTPUT"]).open("a", encoding="utf-8") as file:
        print(json.dumps({"test": test, "outcome": outcome, "text": text[-4000:]}), file=file)


def cause(text: str) -> str:
    """Return the cause of a failure, ``other`` for one that is not known."""
    return next((name for name, pattern in CAUSES if re.search(pattern, text)), "other")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("files", nargs="*", help="files of tests, all without any")
    parser.add_argument("--seconds", type=int, default=10)
    given = parser.parse_args()
    tests = next((given.checkout / place for place in DIRECTORIES if (given.checkout / place).is_dir()), None)
    if tests is None:
        sys.exit(f"{given.checkout}: expected one of {', '.join(DIRECTORIES)} in it")
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "tests.jsonl"
        output.touch()
        environment = {
            **os.environ,
            "TRIAL": __file__,
            "TRIAL_OUTPUT": str(output),
            "TRIAL_SECONDS": str(given.seconds),
            "TRITON_CACHE_DIR": f"{directory}/cache",
        }
        options = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", "--tb=no", "-W", "ignore"]
        command = [sys.executable, "-m", "ascend_graph.host", "--quiet", "-c", _BOOT, *options, *(given.files or ["."])]
        subprocess.run(command, cwd=tests, env=environment, stdout=subprocess.DEVNULL, check=False)
        rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    report(rows)


def report(rows: list[dict[str, Any]]) -> None:
    """Print an example of each cause, and the counts as JSON."""
    examples: dict[str, list[str]] = defaultdict(list)
    counts: Counter[str] = Counter()
    for row in rows:
        name = row["outcome"] if row["outcome"] != "failed" else cause(row["text"])
        counts[name] += 1
        if row["outcome"] == "failed":
            examples[name].append(row["test"])
    for name, tests in sorted(examples.items(), key=lambda item: -len(item[1])):
        files = Counter(test.partition("::")[0] for test in tests)
        print(f"{name}: " + ", ".join(f"{file} ({n})" for file, n in files.most_common(12)))
    print(json.dumps({"tests": len(rows), **dict(sorted(counts.items()))}))


if __name__ == "__main__":
    main()

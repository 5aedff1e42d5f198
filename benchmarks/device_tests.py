"""Pass rate of PyTorch's device-generic tests on the host runtime, instantiated from a checkout for the device.

Classes that are instantiated with `instantiate_device_type_tests` (test_ops.py, test_torch.py, test_nn.py, …) are run for
`privateuse1` only. The wheel has no test files: without a checkout this runs PyTorch's databases of modules and of
`torch._foreach_*` operators, npu against CPU. With `--all` every test of the files is run, because torch_npu's own tests are
written for the device. A test that ends its process is counted, and the rest continues.

With `--disabled` failures that torch_npu's own list has, too, which devices have there, are counted apart: no runtime can fix them.

    make bench NAME=device_tests ARGS='PYTORCH/test/test_ops.py --sample 500'
    make bench NAME=device_tests ARGS='… --disabled TORCH_NPU/test/unsupported_test_cases/.pytorch-disabled-tests.json'
    make bench NAME=device_tests ARGS='--all TORCH_NPU/test/custom_ops/test_*.py'
    python -m ascend_graph.host benchmarks/device_tests.py [FILE…] [--all] [--sample N] [-k EXPRESSION] [--disabled LIST]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

#: Number of tests that share a process, and the seconds that a test may take.
CHUNK, LIMIT = 200, 120

#: The count of failures that torch_npu's list of tests has, too.
DISABLED = "disabled for devices"

#: pytest's words for a test's outcome.
_OUTCOMES = ("passed", "failed", "skipped", "xfail", "xpass", "error")


def _pytest(directory: Path, arguments: Sequence[str], output: Path, limit: float) -> bool:
    """Run pytest on a checkout's tests for the device; return false on a timeout.

    The checkout's conftest.py is left out: PyTorch's shards and reports only, by hooks of the pytest of its time.
    """
    environment = {
        **os.environ,
        "PYTORCH_TESTING_DEVICE_ONLY_FOR": "privateuse1",
        "PYTHONPATH": str(directory),
        "COLUMNS": "400",  # reasons of failures are cut at the terminal's width
    }
    command = [sys.executable, "-m", "pytest", "--noconftest", "-p", "no:cacheprovider"]
    command += ["--rootdir", str(directory), *arguments]
    with output.open("w") as stream:
        try:
            subprocess.run(
                command,
                cwd=directory,
                env=environment,
                stdout=stream,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            return False
    return True


def collect(file: Path, expression: str, output: Path, *, every: bool = False) -> list[str]:
    """Return the ids of a file's tests for the device, or of every test."""
    _pytest(file.parent, [file.name, "--collect-only", "-q", *(["-k", expression] if expression else [])], output, 1800)
    # The class of a device other than the CPU has its name appended.
    wanted = r"^\S+\.py::" if every else r"(PRIVATEUSE1|NPU)::"
    return [line for line in output.read_text().splitlines() if re.search(wanted, line)]


def run_tests(directory: Path, ids: Sequence[str], work: Path) -> dict[str, tuple[str, str]]:
    """Run tests and return each one's outcome, pytest's word or ``died``, with the reason of a failure."""
    outcomes: dict[str, tuple[str, str]] = {}
    waiting = list(ids)
    while waiting:
        chunk = waiting[:CHUNK]
        listed, output = work / "tests", work / "output"
        listed.write_text("\n".join(chunk))
        options = ["-v", "-rfE", "--tb=no", "--color=no"]
        in_time = _pytest(directory, [f"@{listed}", *options], output, LIMIT + 5 * len(chunk))
        text = output.read_text(errors="replace")
        for test in chunk:
            said = re.search(rf"^{re.escape(test)}.*?\b({'|'.join(w.upper() for w in _OUTCOMES)})\b", text, re.M)
            if said:
                reason = re.search(rf"^(?:FAILED|ERROR) {re.escape(test)} - (.*)$", text, re.M)
                outcomes[test] = said[1].lower(), reason[1].strip() if reason else ""
        left = [test for test in chunk if test not in outcomes]
        if left:  # the first without a word ended the process, or took its time
            outcomes[left[0]] = "died" if in_time else "over time", ""
        waiting = left[1:] + waiting[CHUNK:]
    return outcomes


def is_disabled(test: str, disabled: Collection[str]) -> bool:
    """Return whether torch_npu's list has a test, whose class ends there with either name of the device.

    >>> is_disabled("test_nn.py::TestNNNPU::test_x_npu", {"test_x_npu (__main__.TestNNPRIVATEUSE1)"})
    True
    """
    _, owner, name = test.split("::", 2) if test.count("::") > 1 else ("", "", test)
    base = re.sub("(PRIVATEUSE1|NPU)$", "", owner)
    return any(f"{name} (__main__.{base}{device})" in disabled for device in ("PRIVATEUSE1", "NPU"))


def main(arguments: Sequence[str]) -> dict[str, Any]:
    """Run the requested tests; return the rate and the failures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "files", nargs="*", type=Path, help="test files of a PyTorch checkout, of the installed version"
    )
    parser.add_argument(
        "--sample", type=int, default=0, help="only so many tests of each file, drawn with a fixed seed"
    )
    parser.add_argument("--all", action="store_true", help="every test of the files, also those of no device's class")
    parser.add_argument("--disabled", type=Path, help="torch_npu's list of tests that fail on devices, JSON")
    parser.add_argument("-k", dest="expression", default="", help="pytest's expression")
    chosen = parser.parse_args(arguments)
    start = time.monotonic()
    if not chosen.files:
        from benchmarks.op_db import jobs
        from benchmarks.op_db import run as run_operators
        from benchmarks.operators.checks import FOREACH, CheckPlan
        from benchmarks.operators.modules import run_modules

        foreach = run_operators(jobs(database=FOREACH), CheckPlan())
        return {"modules": run_modules(), "foreach": foreach, "seconds": round(time.monotonic() - start, 1)}
    disabled = json.loads(chosen.disabled.read_text()) if chosen.disabled else {}
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as work:
        for file in (f.resolve() for f in chosen.files):
            ids = collect(file, chosen.expression, Path(work) / "output", every=chosen.all)
            if not ids:
                print(f"{file}: no tests for the device; pytest said:\n{(Path(work) / 'output').read_text()[-2000:]}")
                counts["not collected"] += 1
                continue
            if chosen.sample and len(ids) > chosen.sample:
                ids = sorted(random.Random(0).sample(ids, chosen.sample))
            outcomes = run_tests(file.parent, ids, Path(work))
            for test, (outcome, reason) in outcomes.items():
                known = outcome in ("failed", "error") and is_disabled(test, disabled)
                counts[DISABLED if known else outcome] += 1
                if not known and outcome not in ("passed", "xfail", "skipped"):
                    print(f"{outcome}: {test}: {reason}" if reason else f"{outcome}: {test}")
    ran = sum(n for word, n in counts.items() if word not in ("skipped", "not collected", DISABLED))
    good = counts["passed"] + counts["xfail"]
    return {
        "tests": sum(counts.values()),
        "rate": round(good / ran, 4) if ran else 0.0,
        **counts,
        "seconds": round(time.monotonic() - start, 1),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])), flush=True)

"""Third-party samples run by the commands of their own READMEs, sources unmodified, under ``ascend-graph run``.

    make bench NAME=samples ARGS='CHECKOUT --under operator/AddCustomSample'
    python -m benchmarks samples CHECKOUT --under operator_contrib --draw 10 --seed 1

A sample is a directory with a README.md that has blocks of shell code. The blocks run in order, each in the directory that the
README named last; settings of one apply to those after it. ``[RUN_MODE]`` is each mode that the README lists,
``[SOC_VERSION]`` the SoC that the host emulates, and CANN's installation the host toolkit. A README with commands prepares
the samples under it (it builds and installs the operator that they call), so that they are one family; ``--draw`` chooses
among families.

The checkout is copied first, and nothing is written to it. Samples' pip installations go into a separate environment,
operator packages into the host toolkit, which is restored afterwards.

A sample ``passed`` if each block ended with status 0 and printed no line that reports a failure. It is ``refused`` if
ascend_graph reports an unsupported feature, ``unmet`` if the sample needs something that is missing here (another Python,
TensorFlow, a network), else ``failed``. A block that fails after a refused one of the same README counts as that one. The
output has a line for each sample, and as the last line JSON: ``samples, passed, refused, unmet, failed, results``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import site
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ascend_graph.compilation.processes import ended_by_signals, started
from ascend_graph.environment import processor, toolkit_directory
from trials._readmes import Commands, blocks, listed_directories, open_places

_STATES = ("passed", "refused", "unmet", "failed")
_SAYS_SO = re.compile(r"^.*(?:\b(?i:fail(?:ed|ure)?)\b|\[ERROR\]|\bERROR\b|\berror:|\w+Error\b).*$", re.MULTILINE)
#: Harmless lines: names of options and files, warnings, counts of zero.
_INNOCENT = re.compile(
    r"warning|-W(?:no-)?error|error_manager|\b0 fail|no error|\bpip\b|ErrorCode|set -e", re.IGNORECASE
)
_OURS = re.compile(
    r"^(?!--|ascend_graph: (?:compil|host runtime)|CMake Warning)(?:.*\bascend_graph(?:\.host)?: .*|(?:error: )?(?:atc|msopgen|bisheng|op_build|npu-smi): .*)$",
    re.MULTILINE,
)
_UNMET = re.compile(
    r"^.*(?:version is not \d|No module named '(?:tensorflow|npu_device|onnx)|Could not resolve host|unable to access '|"
    r"Could not find a version that satisfies|No matching distribution|msprof: command not found).*$",
    re.MULTILINE,
)


@dataclass(slots=True)
class Outcome:
    """Block of a README and its result."""

    commands: str
    status: str
    reason: str
    seconds: float


@dataclass(slots=True)
class Sample:
    """Directory with a README, and the results of its blocks."""

    path: str
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def status(self) -> str:
        return max((outcome.status for outcome in self.outcomes), key=_STATES.index)


def families(root: Path, under: Sequence[str]) -> dict[PurePosixPath, list[PurePosixPath]]:
    """Return the samples under directories of a checkout, by the topmost one that has commands."""
    values = {"CANN": "/cann", "SOC_VERSION": "chip"}
    found: dict[PurePosixPath, list[PurePosixPath]] = {}
    for directory in under:
        for readme in sorted((root / directory).rglob("README.md"), key=lambda path: path.parent.parts):
            here = PurePosixPath(readme.parent.relative_to(root))
            text = readme.read_text(errors="replace")
            if any(commands.does_something for commands in blocks(text, here, root, values, ["npu"])):
                head = next((parent for parent in reversed(here.parents) if parent in found), here)
                found.setdefault(head, []).append(here)
    return found


@contextmanager
def environment_of_its_own(directory: Path) -> Iterator[Path]:
    """Make a temporary Python environment with this one's packages; its installations end with the trial."""
    venv.create(directory, with_pip=True)
    packages = directory / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    lines = (
        f"import site; site.addsitedir({path!r})" for path in (*site.getsitepackages(), str(Path(__file__).parents[1]))
    )
    (packages / "this.pth").write_text("\n".join(lines))
    yield directory / "bin/python3"


@contextmanager
def vendors_kept(work: Path) -> Iterator[Path]:
    """Restore the operator packages of the host toolkit after the block."""
    vendors = toolkit_directory() / "opp/vendors"
    kept = work / "vendors"
    shutil.copytree(vendors, kept, symlinks=True)
    try:
        yield vendors
    finally:
        shutil.rmtree(vendors)
        shutil.copytree(kept, vendors, symlinks=True)


def without_host(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the host runtime, as the reader of a README has it."""
    toolkit = str(toolkit_directory())
    paths = {
        name: ":".join(entry for entry in value.split(":") if not entry.startswith(toolkit))
        for name, value in environment.items()
    }
    return {name: value for name, value in paths.items() if value and not name.startswith(("ASCEND", "TASK_QUEUE"))}


def outcome(commands: Commands, root: Path, python: Path, log: Path, limit: float) -> Outcome:
    """Run one block of commands."""
    if left := open_places(commands.script):
        return Outcome(commands.script, "unmet", f"the README leaves {', '.join(left)} to its reader", 0.0)
    prepare(commands, root)
    script = log.with_suffix(".sh")
    script.write_text("\n".join(("set -e", *commands.settings, commands.script, "")))
    begin = time.monotonic()
    with (
        log.open("w") as output,
        started(
            [python, "-m", "ascend_graph.host", "--quiet", str(script)],
            cwd=root / commands.directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=without_host(os.environ),
        ) as process,
    ):
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
    status, reason = judged(code, log.read_text(errors="replace"))
    return Outcome(commands.script, status, reason, round(time.monotonic() - begin, 1))


def prepare(commands: Commands, root: Path) -> None:
    """Set the execute permission of a copy's scripts, which git and mirrors may not keep."""
    for name in re.findall(r"(?<![\w/.])\./([\w/.]+\.sh)\b", commands.script):
        script = root / commands.directory / name
        if script.is_file():
            script.chmod(script.stat().st_mode | 0o111)


def judged(code: int | None, text: str) -> tuple[str, str]:
    """Return the status of a block and the line that explains it.

    >>> judged(0, "INFO: execute op!\\ntest pass\\n")
    ('passed', '')
    >>> judged(0, "ERROR: verify result failed!\\n")
    ('failed', 'ERROR: verify result failed!')
    >>> judged(1, "atc: there is no model compiler on the host\\n")
    ('refused', 'atc: there is no model compiler on the host')
    """
    said = [line[0].strip() for line in _SAYS_SO.finditer(text) if not _INNOCENT.search(line[0])]
    if code == 0 and not said:
        return "passed", ""
    if ours := _OURS.search(text):
        return "refused", ours[0].strip()
    if unmet := _UNMET.search(text):
        return "unmet", unmet[0].strip()
    if code is None:
        return "failed", "did not end in time"
    return "failed", said[0] if said else f"status {code}: {(text.strip().splitlines() or ['no output'])[-1]}"


def tried(
    head: PurePosixPath, members: Sequence[PurePosixPath], options: argparse.Namespace, root: Path, python: Path
) -> Iterator[Sample]:
    """Run the samples of one family, each README in the order of the directories."""
    values = {"CANN": str(toolkit_directory()), "SOC_VERSION": processor(os.environ)}
    for here in members:
        sample = Sample(str(here))
        text = (root / here / "README.md").read_text(errors="replace")
        for name in listed_directories(text):  # git has no empty directories
            (root / here / name).mkdir(exist_ok=True)
        for number, commands in enumerate(blocks(text, here, root, values, options.modes)):
            log = options.work / f"{str(here).replace('/', '+')}-{number}.log"
            found = outcome(commands, root, python, log, options.limit)
            before = next((one for one in sample.outcomes if one.status in ("refused", "unmet")), None)
            if found.status == "failed" and before is not None:
                found = replace(
                    found, status=before.status, reason=f"needs what an earlier block did not make: {found.reason}"
                )
            sample.outcomes.append(found)
        yield sample


def main() -> int:
    """Try the samples of a checkout."""
    parser = argparse.ArgumentParser(description="Run samples by the commands of their READMEs.")
    parser.add_argument("checkout", nargs="?", type=Path, help="without one nothing is tried")
    parser.add_argument("--under", nargs="*", default=["operator"], metavar="DIR", help="directories of it (operator)")
    parser.add_argument(
        "--names", nargs="*", default=[], metavar="TEXT", help="only families whose paths contain one of these"
    )
    parser.add_argument("--modes", nargs="*", default=["npu", "sim", "cpu"], help="run modes (npu sim cpu)")
    parser.add_argument("--draw", type=int, metavar="N", help="that many families, at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, help="where the copy and the logs go; default: a new directory in /tmp")
    parser.add_argument("--limit", type=float, default=1200.0, metavar="S", help="for one block of commands")
    options = parser.parse_args()
    if options.checkout is None:
        print('not tried: name a checkout with samples\n{"samples": 0}')
        return 0
    options.work = options.work or Path(tempfile.mkdtemp(prefix="ascend-graph-samples-"))
    root = options.work / "copy"
    for directory in options.under:
        shutil.copytree(options.checkout / directory, root / directory, symlinks=True, dirs_exist_ok=True)
    found = families(root, options.under)
    chosen = [head for head in found if not options.names or any(name in str(head) for name in options.names)]
    if options.draw is not None:
        chosen = sorted(random.Random(options.seed).sample(chosen, min(options.draw, len(chosen))))
    results: list[Sample] = []
    with (
        ended_by_signals(),
        environment_of_its_own(options.work / "python") as python,
        vendors_kept(options.work) as vendors,
    ):
        for head in chosen:
            for package in filter(Path.is_dir, list(vendors.iterdir())):
                shutil.rmtree(package)
            for sample in tried(head, found[head], options, root, python):
                results.append(sample)
                reasons = "; ".join(
                    dict.fromkeys(o.reason for o in sample.outcomes if o.status == sample.status and o.reason)
                )
                print(f"{sample.path}: {sample.status}{reasons and ': ' + reasons[:300]}", flush=True)
    counts = Counter(sample.status for sample in results)
    listed = [
        {"path": sample.path, "status": sample.status, "blocks": list(map(asdict, sample.outcomes))}
        for sample in results
    ]
    print(f"logs: {options.work}")
    print(json.dumps({"samples": len(results), **{state: counts[state] for state in _STATES}, "results": listed}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

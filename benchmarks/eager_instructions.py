"""Instruction counts of an eager call by part, from valgrind's callgrind, independent of the machine's load.

The ways are those of ``eager_calls.py``. The table splits a way's instructions per call into torch_npu's allocation of the
result, its ``RunAclCall``, its lookup of the stream, its query of determinism, and our library's own. A part includes its
callees; our own part does not.

    python -m ascend_graph.host benchmarks/eager_instructions.py

needs valgrind (Debian: apt-get install valgrind), and some minutes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))
from _common import run
from eager_calls import kernel_package, ways_of

CALLS = 500
#: Parts of a call: functions whose instructions, callees included, are counted.
PARTS = {
    "allocation": r"at::_ops::empty_\w+::call|at_npu::native::OpPreparation::apply_tensor",
    "RunAclCall": r"\bRunAclCall\(",
    "stream": r"\bGetAclStream\(",
    "determinism": r"\bApplyDeterministicLevel\(",
}
OWN = re.compile(r"ascend_graph_eager|_C\.so|/_C")


def _child(work: Path, counted: bool) -> None:
    """Call every way under callgrind with counting on and dump its counts by name; if not counted, only compile."""

    def control(*options: str) -> None:
        if counted:
            subprocess.run(["callgrind_control", *options, str(os.getpid())], check=True, stdout=subprocess.DEVNULL)

    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    with kernel_package(work) as header:
        import torch

        ways, _, _ = ways_of(work, header)
        x = torch.zeros(16, 16).npu()
        for name, call in ways.items():
            _repeat(call, x)
            control("-i", "on")
            _repeat(call, x)
            control("-i", "off")
            control(f"--dump={name}")


def _repeat(call: Callable[..., Any], x: Any) -> None:
    for _ in range(CALLS):
        call(x, x)


def _total(text: str) -> int:
    found = re.search(r"^([\d,]+) .*PROGRAM TOTALS", text, re.MULTILINE)
    assert found is not None, text[:2000]
    return int(found[1].replace(",", ""))


def _annotated(dump: Path, *options: str) -> str:
    command = ["callgrind_annotate", "--threshold=100", "--auto=no", *options, str(dump)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _costs(text: str) -> list[tuple[int, str]]:
    lines = re.findall(r"^ *([\d,]+) \([ \d.]+%\)  (.+)$", text, re.MULTILINE)
    return [(int(cost.replace(",", "")), where) for cost, where in lines if "PROGRAM TOTALS" not in where]


def _parts(dump: Path) -> dict[str, int]:
    """Return the instructions per call: all, those of each part, and our libraries' own."""
    inclusive = _annotated(dump, "--inclusive=yes")
    exclusive = _annotated(dump)
    found = {"all": _total(exclusive)}
    for part, pattern in PARTS.items():
        # One function of a part may call another one of it: the outermost has counted both.
        found[part] = max((cost for cost, where in _costs(inclusive) if re.search(pattern, where)), default=0)
    found["own"] = sum(cost for cost, where in _costs(exclusive) if OWN.search(where))
    return {name: round(cost / CALLS) for name, cost in found.items()}


def main() -> dict[str, Any]:
    """Count the instructions and print a table."""
    if shutil.which("valgrind") is None:
        raise SystemExit(
            "eager_instructions: there is no valgrind: apt-get install valgrind, or build it, and run this again"
        )
    with tempfile.TemporaryDirectory(prefix="eager_instructions.") as directory:
        out = Path(directory) / "out"
        valgrind = [
            "valgrind",
            "--tool=callgrind",
            "--instr-atstart=no",
            "--dump-line=no",
            f"--callgrind-out-file={out}",
        ]
        child = [sys.executable, __file__, "--child", f"{directory}/work"]
        subprocess.run(child, check=True, stdout=sys.stderr)
        subprocess.run([*valgrind, *child, "--counted"], check=True, stdout=sys.stderr)
        counted = {}
        for dump in sorted(Path(directory).glob("out.*")):
            trigger = re.search(r"^desc: Trigger: .*?(\w+)$", dump.read_text(errors="replace"), re.MULTILINE)
            if trigger is not None and trigger[1] != "termination":
                counted[trigger[1]] = _parts(dump)
    table = Table(title=f"instructions of an eager call, {CALLS} calls each", title_justify="left")
    for heading in ("way", "all", *PARTS, "own"):
        table.add_column(heading, justify="left" if heading == "way" else "right")
    for way, parts in counted.items():
        table.add_row(way, *(f"{parts[name]:,}" for name in ("all", *PARTS, "own")))
    Console().print(table)
    return {f"{way}_{part}": cost for way, parts in counted.items() for part, cost in parts.items()}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _child(Path(sys.argv[2]), counted="--counted" in sys.argv)
    else:
        run(main)

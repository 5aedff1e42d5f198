"""Every operator of ``torch.ops.npu`` on the host runtime: eager, in GE graphs, in captured graphs.

An operator counts as equal where a test of ``tests/npu`` compares it with a reference by that way: this program runs these
tests, and notes which operators ran in the ones that pass. The others are called with guessed arguments, in a process
that may die, to see whether a kernel is missing, and which.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: A name of an operator that works with several devices, or with the ranks of a group.
DISTRIBUTED = re.compile(
    r"all_?gather|all_?reduce|all_?to_?all|reduce_scatter|distribute|_ffn$|ffn_to|attention_to|_gmm_alltoall|barrier"
)
MISSING = re.compile(
    r"(aclnn\w+) or aclnn\w+ not in|no kernel for GE operator (\w+)|(aclnn\w+)(?:GetWorkspaceSize)? (?:or|not) "
)

RECORDER = """
import json, os, sys
import pytest, torch
from torch.utils._python_dispatch import TorchDispatchMode
import npu_ways

seen, current = {}, {"way": None, "names": set()}

class Watch(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace == "npu":
            current["names"].add(function._schema.name.removeprefix("npu::"))
        return function(*args, **(kwargs or {}))

def watched(way, run):
    def call(function, args):
        if way == "eager":
            with Watch():
                return run(function, args)
        return run(function, args)
    return call

npu_ways._WAYS["eager"] = watched("eager", npu_ways._WAYS["eager"])
original = npu_ways.check

class Plugin:
    def pytest_runtest_setup(self, item):
        current["names"], current["ways"] = set(), []

    def pytest_runtest_makereport(self, item, call):
        if call.when == "call" and call.excinfo is None:
            for name in current["names"]:
                seen.setdefault(name, set()).update(current["ways"])

def check(function, args, expected, ways="eager captured ge npugraph_ex"):
    original(function, args, expected, ways)
    if "eager" not in ways.split():
        npu_ways._WAYS["eager"](function, args)  # to know the names
    current["ways"] += ways.split()

npu_ways.check = check
status = pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", sys.argv[1]], plugins=[Plugin()])
json.dump({name: sorted(ways) for name, ways in seen.items()}, open(sys.argv[2], "w"))
"""

GUESS = """
import itertools, json, sys
import torch, torch_npu

name = sys.argv[1]
packet = getattr(torch.ops.npu, name)
schema = getattr(packet, packet.overloads()[0])._schema
makers = [
    lambda: torch.rand(4, 64, dtype=torch.float16), lambda: torch.rand(4, 64), lambda: torch.rand(2, 4, 8, 64, dtype=torch.float16),
    lambda: torch.zeros(4, dtype=torch.int32), lambda: torch.zeros(4, 64, dtype=torch.int8), lambda: torch.rand(64),
]
numbers = {"int": 1, "float": 1.0, "bool": False, "str": "BSND", "number": 1.0, "Scalar": 1.0}
messages = []
for make in makers:
    arguments, options = [], {}
    for argument in schema.arguments:
        if argument.has_default_value():
            continue
        kind = str(argument.type)
        if kind.startswith("Optional"):
            value = None
        elif kind == "Tensor":
            value = make().npu()
        elif kind == "List[Tensor]":
            value = [make().npu()]
        elif kind.startswith("List[int]"):
            value = [1, 1]
        else:
            value = numbers.get(kind, 1)
        if argument.kwarg_only:
            options[argument.name] = value
        else:
            arguments.append(value)
    try:
        packet(*arguments, **options)
        messages.append("runs")
        break
    except Exception as error:
        messages.append(f"{type(error).__name__}: {error}"[:600])
print(json.dumps(messages))
"""


def compared() -> dict[str, list[str]]:
    """By operator the ways in which a test that passes compares it."""
    with tempfile.TemporaryDirectory() as directory:
        program, result = Path(directory) / "record.py", Path(directory) / "seen.json"
        program.write_text(RECORDER)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "npu")}
        command = [
            sys.executable,
            "-m",
            "ascend_graph.host",
            "--quiet",
            str(program),
            str(ROOT / "tests" / "npu"),
            str(result),
        ]
        subprocess.run(command, env=environment, check=False, cwd=ROOT)
        found: dict[str, list[str]] = json.loads(result.read_text())
        return found


def guessed(name: str) -> str:
    """What becomes of an operator that no test compares."""
    command = [sys.executable, "-m", "ascend_graph.host", "--quiet", "-c", GUESS, name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0 or not done.stdout.strip():
        return f"died ({done.returncode})" if done.returncode < 0 else f"refused: {done.stderr[-200:]}"
    messages = json.loads(done.stdout.strip().splitlines()[-1])
    for message in messages:
        if match := MISSING.search(message):
            return f"no kernel: {next(filter(None, match.groups()))}"
    return str(messages[-1])


def names() -> list[str]:
    """All operators of torch.ops.npu."""
    code = "import torch, torch_npu, json; print(json.dumps(sorted({s.name[5:] for s in torch._C._jit_get_all_schemas() if s.name.startswith('npu::')})))"
    command = [sys.executable, "-m", "ascend_graph.host", "--quiet", "-c", code]
    listed: list[str] = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    )
    return listed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--guess", action="store_true", help="call the operators that no test compares; minutes")
    parser.add_argument("--show", action="store_true", help="print every operator")
    options = parser.parse_args()
    operators, tested = names(), compared()
    rest = [name for name in operators if name not in tested]
    outcomes = {name: guessed(name) if options.guess and not DISTRIBUTED.search(name) else "" for name in rest}
    if options.show:
        for name in operators:
            print(
                f"{name:60} {' '.join(tested[name]) if name in tested else 'several devices' if DISTRIBUTED.search(name) else outcomes[name]}"
            )
    counts = Counter(way for ways in tested.values() for way in ways)
    summary = {
        "operators": len(operators),
        "eager_equal": counts["eager"],
        "ge_equal": counts["ge"],
        "aclgraph_equal": counts["npugraph_ex"],
        "captured_equal": counts["captured"],
        "several_devices": sum(bool(DISTRIBUTED.search(name)) for name in rest),
    }
    if options.guess:
        summary |= {
            "died": sum(outcome.startswith("died") for outcome in outcomes.values()),
            "no_kernel": sum(outcome.startswith("no kernel") for outcome in outcomes.values()),
            "runs_without_reference": sum(outcome == "runs" for outcome in outcomes.values()),
        }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()

"""Coverage of ``torch.ops.npu`` on the host runtime: eager, captured, in GE graphs and in npugraph_ex.

An operator counts as equal if a test of ``tests/host/operators`` compares it with a reference in that mode and
passes: this program runs these tests, on the host as each of its SoCs, and records the operators that each test
calls. The others are called with guessed arguments, in processes that may die, to find missing kernels
(``--no-guess`` leaves that out).
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _common import run

from ascend_graph.environment import PROCESSOR_VARIABLE
from ascend_graph.processors import PROCESSORS

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests/host/operators"
#: Pattern of the names of operators that work with several devices, or with the ranks of a group.
SEVERAL = re.compile(
    r"all_?gather|all_?reduce|all_?to_?all|reduce_scatter|distribute|_to_ffn|ffn_to_|gmm_alltoall|barrier|worker"
)
#: Pattern of the names of operators for language-model inference: attention, positions, norms, gated units, experts, quantized
#: matmuls, caches, sampling. Gradients and operators for several devices are counted only with the others.
LANGUAGE = re.compile(
    r"attention|flash|rope|rotary|rms_?norm|layer_norm|deep_norm|swiglu|geglu|gelu|silu|moe_|ffn$|grouped_matmul|gmm|quant|kv_cache"
    r"|pa_cache|top_k_top_p|mla_|delta_rule|indexer|advance_step|linear$|transpose_batchmatmul|fused_matmul|gather_matmul|mhc_"
    r"|nsa_|softmax|scatter_nd_update|prefetch|cross_entropy_loss"
)
OTHER = re.compile(
    r"backward|_grad|get_max_workspace|infer_output|conv|_impl|with_logits|multi_head|dropout|fused_attention"
)
MISSING = re.compile(
    r"(aclnn\w+) or aclnn\w+ not in|no kernel for GE operator (\w+)|(aclnn\w+) is not|function (aclnn\w+)"
)

RECORDER = r"""
import json, sys
import pytest, torch
from torch.utils._python_dispatch import TorchDispatchMode
import operator_modes

passed, failed, current = {}, set(), {}

class Watch(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace == "npu":
            current["names"].add(function._schema.name.removeprefix("npu::"))
        return function(*args, **(kwargs or {}))

class Plugin:
    def pytest_runtest_setup(self, item):
        current.update(names=set(), modes=set())

    def pytest_runtest_makereport(self, item, call):
        if call.when != "call":
            return
        if call.excinfo is None:
            for name in current["names"]:
                passed.setdefault(name, set()).update(current["modes"])
        elif not item.get_closest_marker("xfail"):
            failed.update(current["names"])

eager, original = operator_modes._MODES["eager"], operator_modes.check

def check(function, args, expected, modes="eager captured ge npugraph_ex"):
    with Watch():
        eager(function, args)  # to know the names
    original(function, args, expected, modes)
    current["modes"].update(modes.split())

operator_modes.check = check
pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", sys.argv[1]], plugins=[Plugin()])
with open(sys.argv[2], "w") as file:
    json.dump([{name: sorted(modes) for name, modes in passed.items()}, sorted(failed)], file)
"""

GUESS = r"""
import json, sys
import torch, torch_npu

MAKERS = [
    lambda: torch.rand(4, 64, dtype=torch.float16), lambda: torch.rand(4, 64),
    lambda: torch.rand(2, 4, 8, 64, dtype=torch.float16), lambda: torch.zeros(4, dtype=torch.int32),
    lambda: torch.zeros(4, 64, dtype=torch.int8), lambda: torch.rand(64),
]
NUMBERS = {"int": 1, "float": 1.0, "bool": False, "str": "BSND", "number": 1.0}

def value_of(kind, make):
    if kind.startswith("Optional"):
        return None
    if kind == "Tensor":
        return make().npu()
    if kind == "List[Tensor]":
        return [make().npu()]
    return [1, 1] if kind.startswith("List") else NUMBERS.get(kind, 1)

def tried(name):
    packet = getattr(torch.ops.npu, name)
    schema = getattr(packet, packet.overloads()[0])._schema
    messages = []
    for make in MAKERS:
        given = [(a, value_of(str(a.type), make)) for a in schema.arguments if not a.has_default_value()]
        try:
            packet(*(v for a, v in given if not a.kwarg_only), **{a.name: v for a, v in given if a.kwarg_only})
            torch.npu.synchronize()
            return [*messages, "runs"]
        except Exception as error:  # of arguments that are guessed: what it was is the outcome
            messages.append(f"{type(error).__name__}: {error}"[:600])
    return messages

for name in sys.argv[1:]:
    print(json.dumps(["begin", name]), flush=True)
    print(json.dumps(["end", name, tried(name)]), flush=True)
"""

NAMES = """
import json, torch, torch_npu
print(json.dumps(sorted({s.name[5:] for s in torch._C._jit_get_all_schemas() if s.name.startswith("npu::")})))
"""


def on_host(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a process on the host runtime."""
    command = [sys.executable, "-m", "ascend_graph.host", "--quiet", *arguments]
    return subprocess.run(command, text=True, check=False, **options)


def compared() -> tuple[dict[str, set[str]], set[str], set[str]]:
    """Return the compared modes by operator, the operators of failing tests, and those that the default SoC lacks."""
    modes: dict[str, set[str]] = {}
    failures: set[str] = set()
    elsewhere: set[str] = set()
    with tempfile.TemporaryDirectory() as directory:
        program, result = Path(directory) / "record.py", Path(directory) / "result.json"
        program.write_text(RECORDER)
        for processor in PROCESSORS:
            variables = {**os.environ, "PYTHONPATH": str(TESTS), PROCESSOR_VARIABLE: processor}
            on_host(str(program), str(TESTS), str(result), env=variables, cwd=ROOT)
            passed, failed = json.loads(result.read_text())
            elsewhere |= passed.keys() - modes.keys()
            if not modes:  # of the default one
                elsewhere.clear()
            for name, found in passed.items():
                modes.setdefault(name, set()).update(found)
            failures.update(failed)
    return modes, failures, elsewhere


def guessed(listed: Sequence[str]) -> dict[str, str]:
    """Return the outcomes of operators that no test compares; one that ends its process is left out in the next."""
    outcomes: dict[str, str] = {}
    while rest := [name for name in listed if name not in outcomes]:
        with tempfile.TemporaryDirectory() as directory:  # some operators write files
            done = on_host("-c", GUESS, *rest, capture_output=True, cwd=directory)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(('["begin"', '["end"'))]
        outcomes |= {line[1]: outcome(line[2]) for line in lines if line[0] == "end"}
        if done.returncode == 0:
            break
        if not lines or lines[-1][0] == "end":
            raise RuntimeError(f"the guesses end with {done.returncode}: {done.stderr[-1000:]}")
        outcomes[lines[-1][1]] = f"died ({done.returncode})"
    return outcomes


def outcome(messages: Sequence[str]) -> str:
    """Return the decisive message of the calls with several kinds of arguments."""
    for message in messages:
        if match := MISSING.search(message):
            return f"no kernel: {next(filter(None, match.groups()))}"
    return messages[-1]


def main() -> dict[str, Any]:
    """Print the requested tables and return the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-guess", action="store_true", help="do not call the operators that no test compares")
    parser.add_argument("--show", action="store_true", help="print every operator")
    options = parser.parse_args()
    operators = json.loads(on_host("-c", NAMES, capture_output=True).stdout.splitlines()[-1])
    tested, failed, elsewhere = compared()
    several = [name for name in operators if name not in tested and SEVERAL.search(name)]
    rest = [name for name in operators if name not in tested and name not in several]
    outcomes = {} if options.no_guess else guessed(rest)
    if options.show:
        for name in operators:
            what = " ".join(sorted(tested.get(name, []))) or (
                "several devices" if name in several else outcomes.get(name, "")
            )
            print(f"{name:55} {what.splitlines()[0] if what else ''}"[:180])
    language = [n for n in operators if LANGUAGE.search(n) and not OTHER.search(n) and not SEVERAL.search(n)]
    modes = Counter(mode for found in tested.values() for mode in found)
    spoken = Counter(mode for name in language for mode in tested.get(name, []))
    words = Counter(re.split(r"[ :]", what)[0] for what in outcomes.values())
    return {
        "operators": len(operators),
        "eager_equal": modes["eager"],
        "captured_equal": modes["captured"],
        "ge_equal": modes["ge"],
        "aclgraph_equal": modes["npugraph_ex"],
        "language": len(language),
        "language_eager": spoken["eager"],
        "language_ge": spoken["ge"],
        "language_aclgraph": spoken["npugraph_ex"],
        "of_other_processors": len(elsewhere),
        "wrong": len(failed),
        "died": words["died"],
        "no_kernel": words["no"],
        "several_devices": len(several),
        "runs_without_reference": words["runs"],
        "refused": sum(words.values()) - words["died"] - words["no"] - words["runs"],
    }


if __name__ == "__main__":
    run(main)

"""Programs of the field's stock wheels on the host runtime, with tiny models of random weights.

    pip install transformers accelerate peft diffusers safetensors torchtitan
    make bench NAME=engines
    make bench NAME=engines ARGS='transformers --only "generate/*"'

Each program is computed on the CPU and on the device: tokens, results, losses and gradients must agree. An engine that is not
installed is skipped. The last line is JSON by engine: ``programs, equal, refused, wrong, died``, and ``expected``, refusals that
a device makes, too (docs/wheel-faults.md), ``failed``, where the reference itself ends with an error.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Modules of programs in ``_engines`` and the packages that they need, by engine.
ENGINES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "torch": (("torch_programs",), ("safetensors",)),
    "transformers": (
        ("transformers_programs", "transformers_encoders", "transformers_use"),
        ("transformers", "accelerate"),
    ),
    "accelerate": (("accelerate_programs",), ("transformers", "accelerate")),
    "peft": (("peft_programs",), ("transformers", "peft")),
    "diffusers": (("diffusers_programs",), ("transformers", "diffusers")),
    "torchtitan": (("torchtitan_programs",), ("torchtitan", "tokenizers", "datasets", "triton")),
}
OUTCOMES = ("equal", "expected", "refused", "wrong", "died", "failed")


def outcomes(module: str, only: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the outcome and its detail for each program of a module; a process that dies is started again."""
    after = ""
    while True:
        begun, ended = "", False
        command = [sys.executable, "-m", "trials._engines.run", module, "--only", only, "--after", after]
        with subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=_environment()
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                found = _record(line)
                if "begins" in found:
                    begun, ended = found["begins"], False
                elif "program" in found:
                    ended = True
                    yield found["program"], found["outcome"], found["detail"]
        if process.returncode == 0:
            return
        if not begun or ended:
            raise RuntimeError(f"trials/_engines/{module}.py: ended with {process.returncode} outside of a program")
        yield begun, "died", f"ended with {process.returncode}"
        after = begun


def _environment() -> dict[str, str]:
    return os.environ | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def _record(line: str) -> dict[str, str]:
    """Return a line's JSON object; other lines are what programs print."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def figures(engine: str, only: str) -> dict[str, int]:
    """Run the programs of an engine, and return how many ended how."""
    counts: Counter[str] = Counter()
    for module in ENGINES[engine][0]:
        for name, outcome, detail in outcomes(module, only):
            counts[outcome] += 1
            print(f"{engine} {name}: {outcome} {detail}", file=sys.stderr, flush=True)
    return {"programs": sum(counts.values()), **{name: counts[name] for name in OUTCOMES}}


def missing(packages: Sequence[str]) -> list[str]:
    """Return the packages that are not installed."""
    return [name for name in packages if find_spec(name) is None]


def main() -> None:
    parser = argparse.ArgumentParser(description="Run programs of stock wheels on the host runtime.")
    parser.add_argument("engines", nargs="*", help=f"of {', '.join(ENGINES)}; without any, all that are installed")
    parser.add_argument("--only", default="*", help="pattern of the programs' names")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.engines) - set(ENGINES)):
        parser.error(f"engines {', '.join(unknown)} are unknown; expected some of {', '.join(ENGINES)}")
    summary = {}
    for engine in arguments.engines or ENGINES:
        if absent := missing(ENGINES[engine][1]):
            print(f"{engine}: skipped, for {', '.join(absent)} is not installed", flush=True)
            continue
        summary[engine] = figures(engine, arguments.only)
        print(f"{engine}: {', '.join(f'{count} {name}' for name, count in summary[engine].items())}", flush=True)
    total = {name: sum(one[name] for one in summary.values()) for name in ("programs", *OUTCOMES)}
    print(json.dumps(total | {"engines": summary}))


if __name__ == "__main__":
    main()

"""Third-party models on the host runtime against the CPU: one tiny model of each architecture of transformers.

    .venv/bin/pip install transformers
    make bench NAME=architectures ARGS="--ways eager training"

Each uses its own weight initialization, the same on both devices, and no dropout. ``eager`` and ``training`` run it with
torch_npu's operators, ``ge`` and ``npugraph_ex`` compile its forward pass. ``equal`` means equal outputs; in ``training``
an equal loss (the mean square of its output) and equal gradients of every parameter. Otherwise the table has the reason: the
first sentence of a refusal by the host or TorchAir, ``differs`` for different values, and ``died`` if the process ended.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch_npu  # noqa: F401 - the device
from _common import run
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.data.architectures import ARCHITECTURES, TOKENS, ModelConfiguration

WAYS = ("eager", "training", "ge", "npugraph_ex")
_TOLERANCE = {"rtol": 2e-3, "atol": 5e-4}
_LIMIT_S = 1800
_MARK = "WAY"


def _configuration(name: str, options: dict[str, Any]) -> Any:
    """Return a configuration of transformers; nested pairs of a name and options become configurations, too."""
    import transformers

    inner = {key: _configuration(*value) if _is_pair(value) else value for key, value in options.items()}
    return getattr(transformers, name)(**inner)


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and isinstance(value[0], str)


def _made(architecture: ModelConfiguration, device: str) -> nn.Module:
    import transformers

    torch.manual_seed(0)
    configuration = _configuration(architecture.configuration, dict(architecture.options))
    model: nn.Module = getattr(transformers, architecture.model)(configuration)
    return model.to(device).eval()


def _inputs(architecture: ModelConfiguration) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        name: torch.randint(1, 64, shape, generator=generator)
        if shape == TOKENS
        else torch.rand(shape, generator=generator)
        for name, shape in architecture.inputs.items()
    }


def _compiled(model: nn.Module, way: str) -> Callable[..., Any]:
    if way == "ge":
        import torchair  # the wheel's patches are not for the other ways

        return torch.compile(model, backend=torchair.get_npu_backend(), dynamic=False)
    return torch.compile(model, backend=way, dynamic=False) if way == "npugraph_ex" else model


def _results(architecture: ModelConfiguration, device: str, way: str) -> list[Tensor]:
    model = _made(architecture, device)
    called = _compiled(model, way) if device != "cpu" else model
    inputs = {name: value.to(device) for name, value in _inputs(architecture).items()}
    if way != "training":
        with torch.no_grad():
            return [getattr(called(**inputs), architecture.output).cpu()]
    loss = getattr(called(**inputs), architecture.output).float().square().mean()
    loss.backward()
    return [loss.detach().cpu(), *(p.grad.cpu() for p in model.parameters() if p.grad is not None)]


def _reason(error: Exception) -> str:
    """Return the innermost error on one line.

    Compilers write it after a line that ends with ``raised:``, Dynamo after ``got``.
    """
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for before, line in pairwise(["", *lines]):
        if before.endswith("raised:"):
            return line
        if ": got " in line:
            return line.partition(": got ")[2]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def _outcome(architecture: ModelConfiguration, way: str) -> str:
    """Return the outcome of one model in one mode."""
    torch._dynamo.reset()
    try:
        want = _results(architecture, "cpu", way)
    except Exception as error:
        return f"no reference: {_reason(error)}"
    try:
        got = _results(architecture, "npu", way)
    except Exception as error:
        return f"refused: {_reason(error)}"
    try:
        for ours, theirs in zip(got, want, strict=True):
            torch.testing.assert_close(ours, theirs, **_TOLERANCE)
    except (AssertionError, ValueError) as error:
        return f"differs: {_reason(error)}"
    return "equal"


def _in_a_process(name: str, ways: list[str]) -> list[str]:
    """Return the outcomes of an architecture in each mode, or ``died``."""
    command = [sys.executable, __file__, "--one", name, "--ways", *ways]
    try:
        text = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_S).stdout
    except subprocess.TimeoutExpired as error:
        text = (error.stdout or b"").decode()
    found = [line.removeprefix(f"{_MARK} ") for line in text.splitlines() if line.startswith(f"{_MARK} ")]
    return found + ["died"] * (len(ways) - len(found))


def main() -> dict[str, Any]:
    parser = argparse.ArgumentParser(description="Run one model of each architecture of transformers.")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--names", nargs="+", metavar="NAME", default=list(ARCHITECTURES), help="default: all")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(ARCHITECTURES):
        parser.error(f"no architecture {sorted(unknown)}; there are: {', '.join(ARCHITECTURES)}")
    if arguments.one:
        warnings.simplefilter("ignore")
        for way in arguments.ways:
            print(_MARK, _outcome(ARCHITECTURES[arguments.one], way), flush=True)
        os._exit(0)  # what a model leaves behind is not what is asked
    if find_spec("transformers") is None:
        print("not tried: transformers is not installed (.venv/bin/pip install transformers)")
        return {"architectures": 0}
    table = Table("architecture", *arguments.ways)
    outcomes: dict[str, list[str]] = {}
    for name in arguments.names:
        outcomes[name] = _in_a_process(name, arguments.ways)
        table.add_row(name, *outcomes[name])
    Console(width=240).print(table)
    summary: dict[str, Any] = {"architectures": len(outcomes)}
    for column, way in enumerate(arguments.ways):
        kinds = [row[column].partition(":")[0] for row in outcomes.values()]
        summary |= {f"{way}_{kind}".replace(" ", "_"): kinds.count(kind) for kind in sorted({"equal", *kinds})}
    return summary


if __name__ == "__main__":
    run(main)

"""Cost of the host runtime per call: eager, as a GE graph of one operator, and as a replayed aclgraph.

    make bench NAME=host_calls

All numbers are from one run, medians of alternating rounds, so that a busy machine slows every side equally.

- ``eager_ratio``: the operator eager on npu tensors against the same function on CPU tensors.
- ``graph_ratio``: a call of the compiled GE graph against the same graph whose executor only returns its input (target: at
  most 2).
- ``replay_ratio``: a call of the compiled GE graph against a call of the same function compiled to an aclgraph.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from _common import run
from rich.console import Console
from rich.table import Table

ROUNDS, CALLS = 15, 200


def median_us(functions: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the microseconds per call of each function, measured alternately."""
    for function in functions.values():
        for _ in range(CALLS):
            function()
    samples: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(ROUNDS):
        for name, function in functions.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                function()
            samples[name].append((time.perf_counter() - start) / CALLS * 1e6)
    return {name: statistics.median(values) for name, values in samples.items()}


def compiled_graph(op: Any, x: Any, *, empty: bool) -> Callable[[Any, Any], Any]:
    """Return the operator as a compiled GE graph; with ``empty`` its executor only returns the first input."""
    import torch
    import torchair

    from ascend_graph.host.runtime import engine

    compile_model = engine.compile_model

    def compile_empty(model: bytes, options: dict[str, str]) -> engine.CompiledGraph:
        return replace(compile_model(model, options), run=lambda *inputs: inputs[:1])

    torch._dynamo.reset()
    engine.compile_model = compile_empty if empty else compile_model
    try:
        compiled = torch.compile(op, backend=torchair.get_npu_backend(), dynamic=False)
        compiled(x, x)
    finally:
        engine.compile_model = compile_model
    return compiled


def main() -> dict[str, Any]:
    """Measure with AddCustom's prototype and a kernel written in Python."""
    import torch

    import ascend_graph

    here = Path(__file__).resolve().parent.parent / "examples" / "add_custom"
    ascend_graph.load_prototypes(here / "op_proto.h")
    library = torch.library.Library("bench", "FRAGMENT")
    library.define("add_custom(Tensor x, Tensor y) -> Tensor")
    library.impl("add_custom", lambda x, y: x + y, "PrivateUse1")
    library.impl("add_custom", lambda x, y: x + y, "CPU")
    op = torch.ops.bench.add_custom
    ascend_graph.register_op("AddCustom", eager=op, shape="x[...], y[...] -> z[...]")
    cpu = torch.randn(4, 16)
    x = cpu.npu()
    graph, empty = compiled_graph(op, x, empty=False), compiled_graph(op, x, empty=True)
    aclgraph = torch.compile(op, backend="npugraph_ex", dynamic=False)
    torch.testing.assert_close(graph(x, x).cpu(), cpu + cpu)
    torch.testing.assert_close(aclgraph(x, x).cpu(), cpu + cpu)
    us = median_us(
        {
            "eager, CPU tensors": lambda: op(cpu, cpu),
            "eager, npu tensors": lambda: op(x, x),
            "GE graph, empty executor": lambda: empty(x, x),
            "GE graph": lambda: graph(x, x),
            "aclgraph": lambda: aclgraph(x, x),
        }
    )
    table = Table(title="One AddCustom of 64 floats, per call")
    table.add_column("how")
    table.add_column("µs", justify="right")
    for name, value in us.items():
        table.add_row(name, f"{value:.1f}")
    Console().print(table)
    return {
        "eager_ratio": round(us["eager, npu tensors"] / us["eager, CPU tensors"], 2),
        "graph_ratio": round(us["GE graph"] / us["GE graph, empty executor"], 2),
        "replay_ratio": round(us["GE graph"] / us["aclgraph"], 2),
        **{f"{name.replace(', ', '_').replace(' ', '_').lower()}_us": round(value, 1) for name, value in us.items()},
    }


if __name__ == "__main__":
    import os
    import subprocess

    if "ASCEND_CUSTOM_OPP_PATH" not in os.environ:  # the package must be selected before the process starts
        from ascend_graph.host import build_operator_package

        example = Path(__file__).resolve().parent.parent / "examples" / "add_custom"
        sys.path.insert(0, str(example))
        from host_kernel import add_custom

        with tempfile.TemporaryDirectory() as directory:
            package = build_operator_package(
                Path(directory) / "opp",
                example / "op_proto.h",
                {"AddCustom": add_custom},
                relations={"AddCustom": "x[...], y[...] -> z[...]"},
            )
            environment = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(package)}
            raise SystemExit(subprocess.run([sys.executable, __file__], env=environment, check=False).returncode)
    run(main)

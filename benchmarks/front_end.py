"""Speed of the prototype front end: parse a CANN-sized set of headers and generate its raw ops.

The corpus is made from the docstrings of the raw ops in the torch_npu wheel: 1,641 prototypes, written as 88 headers with
doc comments like CANN's, about 58,000 lines. The wheel is read as text; neither torch nor torch_npu is
imported. Each size is measured in a separate process.

make bench NAME=front_end, or without the host runtime: python benchmarks/front_end.py
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _common import run
from rich.console import Console
from rich.table import Table

PROTOTYPES = 1641
LINES = 58_000
HEADERS = 88
#: Seconds and bytes of compiling CANN 8.1's headers with g++ against TorchAir's generator, measured on 2 cores.
EXISTING_SECONDS = 35.0
EXISTING_MB = 2900.0
SIZES = (1, 10, 100, PROTOTYPES, 10_000, 100_000)

_MEASURED = """
import json, re, sys, time
from pathlib import Path
start = time.perf_counter()
from ascend_graph.codegen.raw_op_module import raw_op_module
from ascend_graph.prototypes import read_prototypes
imported = time.perf_counter()
result = read_prototypes(Path(sys.argv[1]))
parsed = time.perf_counter()
module = raw_op_module(result.prototypes) if sys.argv[2] == "generate" else None
generated = time.perf_counter()
print(json.dumps({
    "prototypes": len(result.prototypes),
    "errors": len(result.errors),
    "import": imported - start,
    "parse": parsed - imported,
    "generate": generated - parsed,
    # Not ru_maxrss: that counts the memory of the process this one was forked from.
    "peak_mb": int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024,
}))
"""


def wheel_prototypes() -> list[str]:
    """Return the REG_OP texts in the docstrings of the wheel's raw ops."""
    spec = importlib.util.find_spec("torch_npu")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the corpus is made from the torch_npu wheel, which is not installed")
    path = Path(spec.submodule_search_locations[0], "dynamo/torchair/_ge_concrete_graph/auto_generated_ge_raw_ops.py")
    texts = []
    for node in ast.parse(path.read_text()).body:
        doc = ast.get_docstring(node, clean=False) if isinstance(node, ast.FunctionDef) else None
        match = re.search(r"REG_OP\((\w+)\)", doc or "")
        if doc and match:
            calls = re.sub(r"\n\s*\n", "\n", doc[match.start() :]).rstrip()
            texts.append(f"{calls}\n    .OP_END_FACTORY_REG({match.group(1)})\n")
    return texts


def write_corpus(directory: Path, count: int, texts: list[str]) -> int:
    """Write ``count`` prototypes as headers; return the number of lines."""
    per_prototype = LINES / PROTOTYPES
    headers = max(1, round(HEADERS * count / PROTOTYPES))
    lines = 0
    for number in range(headers):
        parts = ['#ifndef OPS_H\n#define OPS_H\n#include "graph/operator_reg.h"\nnamespace ge {\n']
        for index in range(number, count, headers):
            text = texts[index % len(texts)]
            if index >= len(texts):  # further rounds are ops of other names
                text = re.sub(r"(REG_OP|OP_END_FACTORY_REG)\((\w+)\)", rf"\1(\2R{index // len(texts)})", text)
            padding = max(1, round(per_prototype) - text.count("\n") - 3)
            comment = "\n".join(f"* @li line {line} of what this operator does." for line in range(padding))
            parts.append(f"/**\n{comment}\n*/\n{text}\n")
        parts.append("}\n#endif\n")
        body = "".join(parts)
        lines += body.count("\n")
        (directory / f"ops_{number}.h").write_text(body)
    return lines


def measure(count: int, texts: list[str], rounds: int) -> dict[str, Any]:
    """Return the fastest of several runs over ``count`` prototypes."""
    with tempfile.TemporaryDirectory() as name:
        lines = write_corpus(Path(name), count, texts)
        step = "generate" if count <= 10_000 else "parse"
        runs = []
        for _ in range(rounds):
            done = subprocess.run(
                [sys.executable, "-c", _MEASURED, name, step], capture_output=True, text=True, check=True
            )
            runs.append(json.loads(done.stdout))
    best: dict[str, Any] = min(runs, key=lambda found: found["parse"] + found["generate"])
    return {**best, "lines": lines, "seconds": best["parse"] + best["generate"]}


def main() -> dict[str, Any]:
    """Measure all sizes."""
    texts = wheel_prototypes()
    table = Table(title="Parse and generate", title_justify="left")
    for heading in ("prototypes", "lines", "parse s", "generate s", "µs per line, parse", "peak MB"):
        table.add_column(heading, justify="right")
    found = {}
    for size in SIZES:
        result = found[size] = measure(size, texts, 1 if size > PROTOTYPES else 5)
        table.add_row(
            f"{result['prototypes']:,}",
            f"{result['lines']:,}",
            f"{result['parse']:.3f}",
            f"{result['generate']:.3f}" if result["generate"] > 1e-4 else "",
            f"{result['parse'] / result['lines'] * 1e6:.2f}",
            f"{result['peak_mb']:.0f}",
        )
    Console(width=120).print(table)
    cann = found[PROTOTYPES]
    return {
        "prototypes": cann["prototypes"],
        "lines": cann["lines"],
        "seconds": round(cann["seconds"], 3),
        "parse_seconds": round(cann["parse"], 3),
        "generate_seconds": round(cann["generate"], 3),
        "import_seconds": round(cann["import"], 3),
        "peak_mb": round(cann["peak_mb"], 1),
        "times_faster": round(EXISTING_SECONDS / cann["seconds"], 1),
        "times_less_memory": round(EXISTING_MB / cann["peak_mb"], 1),
        "parse_us_per_line": {str(size): round(found[size]["parse"] / found[size]["lines"] * 1e6, 2) for size in SIZES},
    }


if __name__ == "__main__":
    run(main)

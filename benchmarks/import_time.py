"""Time of ``import ascend_graph``, and the modules that it imports.

make bench NAME=import_time
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from typing import Any

from _common import run
from rich.console import Console
from rich.table import Table

_MEASURED = """
import json, sys, time
before = set(sys.modules)
start = time.perf_counter()
import ascend_graph
ms = (time.perf_counter() - start) * 1e3
print(json.dumps({"ms": ms, "modules": sorted(set(sys.modules) - before)}))
"""


def main() -> dict[str, Any]:
    """Measure in several fresh processes, print a table and return the medians."""
    samples = [
        json.loads(subprocess.run([sys.executable, "-c", _MEASURED], capture_output=True, text=True, check=True).stdout)
        for _ in range(15)
    ]
    modules = samples[0]["modules"]
    summary = {
        "ms": round(statistics.median(s["ms"] for s in samples), 2),
        "torch_imported": any(m.split(".")[0] in ("torch", "torch_npu", "torchair") for m in modules),
        "modules": len(modules),
    }
    table = Table(title="import ascend_graph")
    for column in ("median ms", "slowest ms", "modules", "torch imported"):
        table.add_column(column, justify="right")
    table.add_row(
        str(summary["ms"]), f"{max(s['ms'] for s in samples):.2f}", str(len(modules)), str(summary["torch_imported"])
    )
    Console().print(table)
    return summary


if __name__ == "__main__":
    run(main)

"""Random shape relations in all back ends: Python, eager C++ program, generated C++, GE's InferShape and InferDataType.

``relations``: their number; ``covered``: the number that each back end supports (the others are left to the meta function, or
refused when the code is generated). ``runs``: calls whose answer was compared with Python's for ints; ``differences``: those
that differ in a shape, a dtype or a refusal; the run ``text`` compares Python with an independent reading of the relation's
text. ``unsound``: answers of InferShape for sizes of -1 and ranks of -2 that contradict Python for some sizes, or refuse what
Python accepts. ``does_not_compile``: programs, of 150 relations each. ``informative`` is the share of the answers for unknown
sizes that determine something about some output.

    make bench NAME=relations        [python -m ascend_graph.host benchmarks/relations.py [relations] [seed]]
"""

from __future__ import annotations

import sys
import time
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks._common import run
from benchmarks._relations import InferShapes, Packages, Programs, cases, compare, compare_reading, compare_symbolic

RELATIONS = 2000
CALLS = 8


def main() -> dict[str, Any]:
    """Compare all back ends and return the summary."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else RELATIONS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    start = time.perf_counter()
    found = cases(seed, count)
    report = compare(found, [InferShapes(), Programs(), Packages()], seed=seed, calls=CALLS)
    compare_symbolic(report, found, seed=seed)
    compare_reading(report, found, seed=seed, calls=CALLS)
    table = Table("back end", "relations", "runs")
    for name, runs in report.runs.items():
        table.add_row(name, str(report.covered.get(name, len(found))), str(runs))
    console = Console(stderr=True)
    console.print(table)
    for kind in ("differences", "unsound", "does_not_compile"):
        for text in getattr(report, kind)[:10]:
            console.print(f"{kind}: {text}", markup=False)
    return {
        "relations": len(found),
        "runs": sum(report.runs.values()) - report.runs["python"] + report.unknown,  # those of Python are the reference
        "refusals": report.refusals,
        "unknown": report.unknown,
        "informative": round(report.informative / max(report.unknown, 1), 3),
        "covered": dict(report.covered),
        "differences": len(report.differences),
        "unsound": len(report.unsound),
        "does_not_compile": len(report.does_not_compile),
        "seconds": round(time.perf_counter() - start, 1),
    }


if __name__ == "__main__":
    run(main)

"""Third-party operators that communicate within their kernels (MC2), called by torch_npu on several ranks.

    ascend-graph build OPS_TRANSFORMER/mc2/all_gather_matmul -I CATLASS/include -o PACKAGE
    python benchmarks/mc2.py PACKAGE… [--ranks N]

The operators of a package that torch_npu has a function for are called on each rank, with float16 and bfloat16 and two
sizes, through the package's aclnn functions and kernels; the reference is the matmul in float64 of all ranks' tensors. It
prints a line for each case, with the largest absolute error of all ranks, and, as its last line, JSON: ``cases``, ``failed``
and ``packages`` without any loaded kernel (``unused``).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from _common import run

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "distributed"))

from _mc2_rank import OPERATORS  # noqa: E402
from ranks import under_torchrun  # noqa: E402


def called(package: Path, ranks: int) -> list[dict[str, Any]]:
    """Run a package's operators on all ranks and return each rank's results."""
    defined = json.loads((package / "op_impl/host/kernels.json").read_text())
    os.environ["ASCEND_CUSTOM_OPP_PATH"] = str(package)
    done = under_torchrun(HERE / "_mc2_rank.py", ranks, str(package), *(name for name in OPERATORS if name in defined))
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"rank"')]
    if len(said) != ranks:
        raise SystemExit(f"{package}: {len(said)} of {ranks} ranks came to their end\n{done.stderr[-3000:]}")
    return said


def measure(packages: Sequence[Path], ranks: int) -> dict[str, Any]:
    count, failed, unused = 0, 0, []
    for package in (package.resolve() for package in packages):
        said = called(package, ranks)
        if not all(rank["kernels"] for rank in said):
            unused.append(str(package))
        for name in said[0]["cases"]:
            results = [rank["cases"][name] for rank in said]
            raised = [result for result in results if isinstance(result, str)]
            print(f"{name}: {raised[0] if raised else f'error {max(results):.2g}'}", flush=True)
            count += 1
            failed += bool(raised)
    return {"cases": count, "failed": failed, "unused": unused}


def main() -> Callable[[], dict[str, Any]]:
    parser = argparse.ArgumentParser(description="Call operators that communicate.")
    parser.add_argument("packages", nargs="*", type=Path, help="built packages; without any nothing is called")
    parser.add_argument("--ranks", type=int, default=2)
    given = parser.parse_args()
    return partial(measure, given.packages, given.ranks)


if __name__ == "__main__":
    run(main())

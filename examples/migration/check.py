"""Register a client's operators with the module that is here, and compare every meta function with the client's own.

python -m ascend_graph.host examples/migration/check.py CHECKOUT [MODULE] [--kernels]

The client's schemas are defined with kernels that do nothing, and its meta functions are compiled from its sources. Each
is called with random arguments, and what the module registered must give the same shapes and dtypes. ``--kernels``
compiles the client's kernels, too, and compares shapes, dtypes, strides and written arguments.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from ascend_graph.adoption.adopt import default_output
from benchmarks._adopted import compare


def main() -> int:
    paths = [Path(one).resolve() for one in sys.argv[1:] if one != "--kernels"]
    if not 1 <= len(paths) <= 2 or not paths[0].is_dir():
        print(f"usage: check.py CHECKOUT [MODULE] [--kernels]; got {sys.argv[1:]}", file=sys.stderr)
        return 2
    root = paths[0]
    module = paths[1] if len(paths) == 2 else HERE / default_output(root)
    if not module.exists():
        known = ", ".join(sorted(one.name for one in HERE.glob("*_operators.py")))
        print(f"{root}: {module} does not exist; expected a checkout of one of {known}, or its module", file=sys.stderr)
        return 2
    work = HERE.parents[1] / "build" / "migration"
    work.mkdir(parents=True, exist_ok=True)
    found = compare(root, work, "--kernels" in sys.argv, module)
    details = found.pop("details")
    for what in ("wrong", "failed", "client_wrong", "narrower", "kernels_narrower"):
        for name, why in details[what].items():
            print(f"{what}: {name}: {why}")
    print(json.dumps(found))
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

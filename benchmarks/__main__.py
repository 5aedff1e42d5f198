"""``python -m benchmarks [NAME [ARGUMENT…]]``: run one benchmark, or all, each in a process of its own on the host runtime."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def names() -> list[str]:
    """The benchmarks there are."""
    return sorted(p.stem for p in HERE.glob("*.py") if not p.stem.startswith("_"))


def main(arguments: list[str]) -> int:
    """Run what is asked for; the first failure's status."""
    wanted, rest = (arguments[:1], arguments[1:]) if arguments else (names(), [])
    for name in wanted:
        if name not in names():
            print(f"no benchmark {name!r}; there are: {', '.join(names())}", file=sys.stderr)
            return 2
        print(f"== {name}", flush=True)
        status = subprocess.run(
            [sys.executable, "-m", "ascend_graph.host", "--quiet", str(HERE / f"{name}.py"), *rest],
            check=False,
        ).returncode
        if status != 0:
            return status
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

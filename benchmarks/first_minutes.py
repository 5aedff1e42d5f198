"""Time of ``make demo`` from scratch, by phase: a fresh clone, an empty environment and empty caches.

    make bench NAME=first_minutes               # the committed tree
    make bench NAME=first_minutes ARGS=--keep   # leave the clone where it is

Wheels come from pip's index; a near one is part of the figure.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))
from _common import run

TREE = Path(__file__).resolve().parents[1]
#: Makefile targets that ``make demo`` builds, in order.
PHASES = {
    "virtual environment": ".venv/bin/python",
    "PyTorch's wheels; the host runtime's libraries": ".venv/installed",
    "bridge to PyTorch": "build/add_custom/bridge.done",
    "operator package": "build/add_custom/opp/version.info",
    "eager extension": "build/add_custom/extension.done",
    "demo": "demo",
}


def _environment(place: Path) -> dict[str, str]:
    """Return an environment without the host runtime, in which every cache is empty."""
    left_out = ("ASCEND", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "TORCH", "MAKE", "MFLAGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    kept["PATH"] = os.pathsep.join(
        directory
        for directory in kept["PATH"].split(os.pathsep)
        if "ccache" not in directory and not directory.startswith(str(Path(sys.prefix))) and "toolkit" not in directory
    )
    caches = {"XDG_CACHE_HOME": "cache", "PIP_CACHE_DIR": "pip", "ASCEND_GRAPH_CACHE": "libraries"}
    return {**kept, **{name: str(place / directory) for name, directory in caches.items()}, "CCACHE_DISABLE": "1"}


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _measured(place: Path) -> dict[str, dict[str, float]]:
    clone, environment = place / "clone", _environment(place)
    subprocess.run(["git", "clone", "-q", str(TREE), str(clone)], check=True)
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    phases = {}
    for name, target in PHASES.items():
        wall, processor = time.monotonic(), _processor_seconds()
        command = ["make", "-s", target, f"PYTHON={base}"]
        done = subprocess.run(command, cwd=clone, env=environment, stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed with status {done.returncode} in {clone}")
        phases[name] = {
            "s": round(time.monotonic() - wall, 1),
            "cpu_s": round(_processor_seconds() - processor, 1),
        }
        print(name, phases[name], flush=True)
    return phases


def main() -> dict[str, Any]:
    """Clone the tree, run ``make demo`` and print the times."""
    before = os.getloadavg()[0]
    if "--keep" in sys.argv:
        phases = _measured(Path(tempfile.mkdtemp(prefix="first_minutes.")))
    else:
        with tempfile.TemporaryDirectory(prefix="first_minutes.") as place:
            phases = _measured(Path(place))
    demo, processor = (round(sum(phase[key] for phase in phases.values()), 1) for key in ("s", "cpu_s"))
    table = Table(title=f"make demo from nothing; the load was {before:.1f} before")
    for column in ("phase", "seconds", "processor seconds"):
        table.add_column(column, justify="left" if column == "phase" else "right")
    for name, phase in phases.items():
        table.add_row(name, f"{phase['s']:.0f}", f"{phase['cpu_s']:.0f}")
    table.add_row("all", f"{demo:.0f}", f"{processor:.0f}")
    Console().print(table)
    return {"demo_s": demo, "demo_cpu_s": processor, "phases": phases, "load_before": round(before, 1)}


if __name__ == "__main__":
    run(main)

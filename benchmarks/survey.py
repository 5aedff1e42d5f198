"""Survey of third-party repositories: the parts that build and run unmodified on the host runtime.

``python benchmarks/survey.py DIR…`` tries every operator project, extension and sample of each directory (see
``ascend-graph survey``) and prints, as its last line, JSON by directory: ``found``, ``built``, ``ran``, ``causes``,
``seconds`` and the ``projects``. Names after ``--ops`` choose directories, ``--kind`` one kind. ``--values`` then runs the
built operators, and compares them with torch's functions on the CPU: ``values`` has the count of each verdict,
``verdicts`` each of them. ``--npu-arch`` and ``--cann`` are those of ``ascend-graph survey``. ``--packages`` replaces the
survey: its arguments are already built packages.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ascend_graph.host.architecture import DAV_2201, architecture
from ascend_graph.host.projects.model import BuildOptions
from ascend_graph.host.projects.survey import ProjectKind, survey

_VALUES = Path(__file__).with_name("_operator_values.py")
_VALUES_LIMIT = 300.0


def values(packages: Iterable[Path], npu_arch: str) -> dict[str, Any]:
    """Compare the values of packages' operators, each package in a separate process, and return the verdicts."""
    verdicts: list[dict[str, Any]] = []
    for package in packages:
        launcher = (sys.executable, "-m", "ascend_graph.host", "--npu-arch", npu_arch, "--opp", str(package))
        host = (*launcher, str(_VALUES), str(package))
        try:
            done = subprocess.run(host, capture_output=True, text=True, check=False, timeout=_VALUES_LIMIT)
        except subprocess.TimeoutExpired:
            found = [{"operator": package.name, "state": "does not end", "calls": 0, "detail": ""}]
        else:
            found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"operator"')]
            if done.returncode != 0 or not found:
                last = (done.stderr.strip().splitlines() or [""])[-1]
                found.append({"operator": package.name, "state": "fails", "calls": 0, "detail": last[:300]})
        for one in found:
            print(f"{one['operator']}: {one['state']} {one['detail']}", file=sys.stderr)
        verdicts += found
    return {"values": dict(Counter(one["state"] for one in verdicts)), "verdicts": verdicts}


def main() -> None:
    parser = argparse.ArgumentParser(description="Survey repositories.")
    parser.add_argument("directories", nargs="*", type=Path, help="without any nothing is tried")
    parser.add_argument("--kind", choices=[kind.name.lower() for kind in ProjectKind])
    parser.add_argument("--ops", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--time-limit", type=float, default=900.0)
    parser.add_argument("--values", action="store_true")
    parser.add_argument("--packages", action="store_true")
    parser.add_argument("--npu-arch", default=DAV_2201.name)
    parser.add_argument("--cann", type=Path, action="append", default=[])
    arguments = parser.parse_args()
    options = BuildOptions(cann=tuple(arguments.cann), architecture=architecture(arguments.npu_arch))
    if arguments.packages:
        print(json.dumps(values(arguments.directories, options.architecture.name), ensure_ascii=False))
        return
    kinds = [kind for kind in ProjectKind if arguments.kind in (None, kind.name.lower())]
    names = [name for name in arguments.ops.split(",") if name]
    figures = {}
    for directory in arguments.directories:
        started = time.monotonic()
        found = survey(
            directory,
            Path(tempfile.mkdtemp(prefix="ascend-graph-survey-")),
            kinds=kinds,
            names=names,
            jobs=arguments.jobs,
            time_limit=arguments.time_limit,
            options=options,
            progress=lambda one: print(f"{one.path}: {one.state.value} {one.cause}", file=sys.stderr),
        )
        figures[str(directory)] = {**found.as_json(), "seconds": round(time.monotonic() - started, 1)}
        if arguments.values:
            built = (one for one in found.results if one.kind is ProjectKind.OPERATOR and one.state.is_built)
            figures[str(directory)] |= values(
                (Path(one.log).parent / "package" for one in built), options.architecture.name
            )
    print(json.dumps(figures, ensure_ascii=False))


if __name__ == "__main__":
    main()

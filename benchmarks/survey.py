"""What of other people's repositories builds and runs on the host runtime, unmodified.

``python benchmarks/survey.py DIR…`` tries every operator project, extension and sample of each directory (see
``ascend-graph survey``) and prints, as its last line, JSON by directory: ``found``, ``built``, ``ran``, ``causes``,
``seconds`` and the ``projects``. Names after ``--ops`` choose directories, ``--kind`` one kind.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from ascend_graph.host.survey import Kind, survey


def main() -> None:
    parser = argparse.ArgumentParser(description="Survey repositories.")
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--kind", choices=[kind.name.lower() for kind in Kind])
    parser.add_argument("--ops", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--time-limit", type=float, default=900.0)
    arguments = parser.parse_args()
    kinds = [kind for kind in Kind if arguments.kind in (None, kind.name.lower())]
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
            progress=lambda one: print(f"{one.path}: {one.state.value} {one.cause}", file=sys.stderr),
        )
        figures[str(directory)] = {**found.as_json(), "seconds": round(time.monotonic() - started, 1)}
    print(json.dumps(figures, ensure_ascii=False))


if __name__ == "__main__":
    main()

"""Time of the test suite: the slowest tests, and the seconds of each file, read from a run's JUnit report.

    make test ARGS="--junitxml=build/test.xml"; make test-slow ARGS="--junitxml=build/slow.xml"
    make bench NAME=suite ARGS="build/test.xml --record test"; make bench NAME=suite ARGS="build/slow.xml --record test-slow"

``--record`` writes tests/durations.json, with which test processes run the longest files of a suite first. The last line is a JSON
object; ``idle_share`` is the part of two processes' time that a schedule of whole files, longest first, leaves unused.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from benchmarks._common import run

ROOT = Path(__file__).resolve().parents[1]
DURATIONS = ROOT / "tests" / "durations.json"
#: Seconds of a file that no recorded run had.
UNKNOWN_SECONDS = 60.0


def cases(report: Path) -> list[tuple[str, str, float]]:
    """Return the file, the name and the seconds of each test of a report."""
    found = []
    for case in ElementTree.parse(report).iter("testcase"):
        parts = case.get("classname", "").split(".")
        length = next(
            (n for n in range(len(parts), 0, -1) if (ROOT / "/".join(parts[:n])).with_suffix(".py").is_file()), 0
        )
        if length:
            found.append(("/".join(parts[:length]) + ".py", case.get("name", ""), float(case.get("time", 0))))
    return found


def finished(seconds: Iterable[float], processes: int = 2) -> float:
    """Return when the last process ends if each takes the next file as it becomes free."""
    ends = [0.0] * processes
    for one in seconds:
        heapq.heapreplace(ends, ends[0] + one)
    return max(ends)


@dataclass(frozen=True, order=True, slots=True)
class Piece:
    """Every ``count``-th test of a file, from the ``number``-th on, counted from 0."""

    file: str
    number: int = 0
    count: int = 1

    def holds(self, place: int) -> bool:
        """Return whether the piece has the test at a place of the file, counted from 0."""
        return place % self.count == self.number


def share(files: Iterable[str], seconds: Mapping[str, float], number: int, count: int) -> set[Piece]:
    """Return the ``number``-th of ``count`` parts of the files, each of which takes about as long.

    A file that takes longer than half a part is cut into pieces: two processes run a part, and each a file as a whole.

    Args:
        files: The files.
        seconds: Seconds by file.
        number: From 1 to ``count``.
        count: The number of parts.
    """
    if not 1 <= number <= count:
        raise ValueError(f"share {number}/{count}: the first number is not one of 1 to {count}; write 1/{count}")
    known = {file: seconds.get(file, UNKNOWN_SECONDS) for file in files}
    most = sum(known.values()) / count / 2
    pieces: list[tuple[float, str, Piece]] = []
    for file, needed in known.items():
        cut = max(1, math.ceil(needed / most)) if most else 1
        pieces += [(-needed / cut, file, Piece(file, place, cut)) for place in range(cut)]
    parts: list[tuple[float, int, list[Piece]]] = [(0.0, one, []) for one in range(1, count + 1)]
    for needed, _, piece in sorted(pieces, key=lambda one: (one[0], one[1], one[2].number)):
        total, one, held = parts[0]
        heapq.heapreplace(parts, (total - needed, one, [*held, piece]))
    return next(set(held) for _, one, held in parts if one == number)


def main() -> dict[str, Any]:
    """Print the slowest tests and files, and record the files' seconds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("reports", nargs="+", type=Path, help="JUnit reports of runs")
    parser.add_argument(
        "--record", choices=("test", "test-slow"), help=f"write the suite's part of {DURATIONS.relative_to(ROOT)}"
    )
    asked = parser.parse_args()
    found = [case for report in asked.reports for case in cases(report)]
    files: Counter[str] = Counter()
    for file, _, seconds in found:
        files[file] += seconds  # type: ignore[assignment]  # a Counter of seconds
    for file, name, seconds in sorted(found, key=lambda case: -case[2])[:50]:
        print(f"{seconds:8.1f}  {file}::{name}")
    print()
    for file, seconds in files.most_common(30):
        print(f"{seconds:8.1f}  {file}")
    if asked.record:
        known = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
        seconds_of = known.get(asked.record, {}) | {file: round(seconds, 1) for file, seconds in files.items()}
        known[asked.record] = {file: seconds_of[file] for file in sorted(seconds_of) if (ROOT / file).exists()}
        DURATIONS.write_text(json.dumps(known, indent=0) + "\n")
    total = sum(files.values())
    wall = finished(sorted(files.values(), reverse=True))
    return {
        "tests": len(found),
        "seconds": round(total),
        "wall_on_two": round(wall),
        "idle_share": round(1 - total / (2 * wall), 3) if wall else 0.0,
        "over_10_s": sum(seconds > 10 for _, _, seconds in found),
    }


if __name__ == "__main__":
    run(main)

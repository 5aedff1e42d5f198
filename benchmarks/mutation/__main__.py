"""Which planted faults the suite finds, and which of them only the tests of a list find (a suite without them would not).

    mkdir -p build/planted/reach && git clone . build/planted/tree
    make bench NAME=mutation ARGS='plant build/planted/tree --count 180 --seed 20261128'
    P=$PWD/build/planted; AG_REACH_DIRECTORY=$P/reach XDG_CACHE_HOME=$P/cache make -C $P/tree test ARGS='-p benchmarks.mutation.reach'
    make bench NAME=mutation ARGS='judge build/planted --listed tests.txt'

``tests.txt`` has the names of the tests that would leave the suite, one a line; a file's name stands for all its tests. The last
line is a JSON object: ``mutants``, ``reached`` by a test, ``found_before`` by any test and ``found_after`` by one that is not in the
list. A fault is said not to be found after four lots of the tests that reach it, so both are lower bounds.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks._common import run
from benchmarks.mutation.judge import judge_all, read_tests
from benchmarks.mutation.plant import LIST, plant


def main() -> dict[str, Any]:
    """Plant faults, or judge them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    tasks = parser.add_subparsers(dest="task", required=True)
    planting = tasks.add_parser("plant", help="write faults into a copy of the tree")
    planting.add_argument("tree", type=Path, help="a copy of the tree, which is changed")
    planting.add_argument("--count", type=int, default=180, help="about how many faults (%(default)s)")
    planting.add_argument("--seed", type=int, default=1, help="of the draw (%(default)s)")
    judging = tasks.add_parser("judge", help="run the tests that reach each fault")
    judging.add_argument("directory", type=Path, help="holds tree, reach and cache of a recorded run")
    judging.add_argument("--listed", type=Path, help="names of tests or files that would leave the suite")
    judging.add_argument("--processes", type=int, default=2, help="faults that are judged at once (%(default)s)")
    asked = parser.parse_args()
    if asked.task == "plant":
        faults = plant(asked.tree, asked.count, asked.seed)
        return {"mutants": len(faults), "kinds": dict(Counter(fault["kind"] for fault in faults.values()))}
    return judged(asked.directory, asked.listed, asked.processes)


def judged(directory: Path, listed: Path | None, processes: int) -> dict[str, Any]:
    """Judge the faults of a directory, print those that are not found by kept tests, and count."""
    tree = directory / "tree"
    faults = {int(number): fault for number, fault in json.loads((tree / LIST).read_text()).items()}
    tests = read_tests(directory / "reach")
    wanted = set(listed.read_text().split("\n")) if listed else set()
    names = frozenset(test.name for test in tests if {test.name, test.name.partition("::")[0]} & wanted)
    reached = frozenset().union(*(test.reached for test in tests)) & faults.keys()
    log = directory / "verdicts.jsonl"
    verdicts = judge_all(tree, tests, directory / "cache", names, sorted(reached), log, processes)
    for verdict in sorted(verdicts, key=lambda one: one.number):
        fault = faults[verdict.number]
        if verdict.by in names or not verdict.by:
            by = f"only {verdict.by}" if verdict.by else f"not found by {len(verdict.ran)} tests"
            print(f"{fault['file']}:{fault['line']} ({fault['kind']}) {fault['right']} -> {fault['wrong']}: {by}")
    return {
        "mutants": len(faults),
        "reached": len(reached),
        "found_before": sum(bool(verdict.by) for verdict in verdicts),
        "found_after": sum(bool(verdict.by) and verdict.by not in names for verdict in verdicts),
    }


if __name__ == "__main__":
    run(main)

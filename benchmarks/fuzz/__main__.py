"""Fuzzer of random ATen programs and random operators in every mode, against plain PyTorch on the CPU.

The last line is JSON. ``--minimize "operator 5" --modes ge`` prints a smaller program that fails the same way, as a script;
``--planted`` plants faults and reports which of them are found.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.fuzz import planted
from benchmarks.fuzz.findings import FuzzTally
from benchmarks.fuzz.modes import MODES
from benchmarks.fuzz.programs import from_json
from benchmarks.fuzz.report import show, summary
from benchmarks.fuzz.script import script
from benchmarks.fuzz.workers import Batch, Workers, progress

#: Number of items of one process: its graphs, memory and caches grow with them.
TOGETHER = 25


def batches(kind: str, first: int, count: int, options: dict[str, Any]) -> list[Batch]:
    """Return the batches of ``count`` programs or operators, from seed ``first`` on."""
    items = [f"{kind} {seed}" for seed in range(first, first + count)]
    work, given = "benchmarks.fuzz.check:work", tuple(options.items())
    return [Batch(work, tuple(items[i : i + TOGETHER]), given) for i in range(0, count, TOGETHER)]


def _mixed(*kinds: list[Batch]) -> list[Batch]:
    """Return all kinds alternately, so that a run that ends on its time limit has some of each."""
    return [batches[i] for i in range(max(map(len, kinds))) for batches in kinds if i < len(batches)]


def run(chosen: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Draw, compare and print the findings; return the summary."""
    start = time.monotonic()
    until = start + chosen.minutes * 60 if chosen.minutes else float("inf")
    options = {"modes": tuple(m for m in chosen.modes.split(",") if m)}
    wanted = {"program": chosen.programs, "operator": chosen.operators, "woven": chosen.woven}
    drawn = [batches(kind, seed, n, options) for kind, n in wanted.items()]
    tallies, shown = {kind: FuzzTally() for kind in wanted}, 0
    with Workers(chosen.workers, chosen.limit) as workers:
        for tally in workers.run(_mixed(*drawn), until):
            for finding in tally.findings:
                show(finding)
            tallies[tally.kind].add(tally)
            if (done := sum(one.items for one in tallies.values()) // 25) != shown:
                shown = done
                counts = ", ".join(f"{one.items} {kind}" for kind, one in tallies.items())
                progress(f"{counts}, {time.monotonic() - start:.0f} s")
    return summary(tallies, seed, time.monotonic() - start)


def minimize(item: str, mode: str) -> int:
    """Print a smaller program that fails the same way."""
    with Workers(1, limit=1800) as workers:
        for tally in workers.run([Batch("benchmarks.fuzz.check:minimize", (item,), (("modes", (mode,)),))]):
            for finding in tally.findings:
                print(f"# {finding.kind}: {' '.join(finding.message.split())[:400]}")
                if finding.item.startswith("{"):
                    print(script(from_json(finding.item), mode))
                    return 0
    print(f"{item}: {mode} gives what the CPU gives, or dies; expected a program that fails there", file=sys.stderr)
    return 1


def main(arguments: Sequence[str]) -> int:
    """Run the requested command; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="make bench NAME=fuzz ARGS=…", description=__doc__)
    parser.add_argument(
        "--seed",
        type=int,
        default=-1,
        help="of the first program, the next has SEED + 1; a fresh one without it, which is printed",
    )
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--operators", type=int, default=50)
    parser.add_argument("--woven", type=int, default=50, help="programs that call registered operators between ATen's")
    parser.add_argument(
        "--minutes",
        type=float,
        default=0.0,
        help="start no process after so long, and end what is between two programs",
    )
    parser.add_argument("--modes", default="", help=f"of {', '.join(MODES)}; each program has its own without it")
    parser.add_argument("--workers", type=int, default=0, help="processes; as many as cores without it")
    parser.add_argument(
        "--limit", type=float, default=180.0, help="seconds of processor time for one mode of one program"
    )
    parser.add_argument(
        "--minimize", default="", metavar="ITEM", help="'program 5', 'operator 5' or 'woven 5', with one mode"
    )
    parser.add_argument("--planted", nargs="*", metavar="NAME", help="plant faults, all or these")
    chosen = parser.parse_args(arguments)
    if unknown := {m for m in chosen.modes.split(",") if m} - set(MODES):
        parser.error(f"--modes {', '.join(sorted(unknown))}: must be of {', '.join(MODES)}")
    if chosen.planted is not None:
        count, missed = planted.search(max(chosen.seed, 0), chosen.planted)
        print(json.dumps({"planted": count, "found": count - len(missed), "missed": missed}))
        return int(bool(missed))
    if chosen.minimize:
        return minimize(chosen.minimize, chosen.modes)
    seed = chosen.seed if chosen.seed >= 0 else int.from_bytes(os.urandom(4), "little")
    print(f"seed {seed}", flush=True)
    found = run(chosen, seed)
    print(json.dumps(found), flush=True)
    return int(bool(found["wrong"] or found["died"]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

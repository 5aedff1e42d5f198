"""Output of a run: findings as they occur, and the summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.fuzz.findings import FuzzFinding, FuzzTally


def show(finding: FuzzFinding) -> None:
    """Print a finding."""
    text = " ".join(finding.message.split())
    print(
        f"{'died' if finding.kind == 'died' else 'wrong'}: {finding.item}, {finding.mode}, {finding.kind}: {text[:600]}",
        flush=True,
    )


def summary(tallies: Mapping[str, FuzzTally], seed: int, seconds: float) -> dict[str, Any]:
    """Return the run's numbers, of tallies by the kind of their items."""
    total = FuzzTally()
    for tally in tallies.values():
        total.add(tally)
    died = sum(f.kind == "died" for f in total.findings)
    return {
        "programs": tallies["program"].items,
        "operators": tallies["operator"].items,
        "woven": tallies["woven"].items,
        "comparisons": total.comparisons,
        "wrong": len(total.findings) - died,
        "died": died,
        "refused_by_cause": dict(total.refused.most_common()),
        "known": dict(total.known.most_common()),
        "seed": seed,
        "seconds": round(seconds, 1),
    }

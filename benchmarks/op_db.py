"""PyTorch's operator database on the host runtime: every operator on `npu` against the same call on the CPU.

Each operator is tried with up to five samples of float32, of one integer dtype, one complex dtype and bool. The checks are
forward, backward, forward-mode AD, out= (ready, empty, strided, of another shape or dtype), in-place, and the same with gaps
between the values and with conjugate and negative bits, and captured in a graph and replayed. Arguments on two devices and
the database's wrong arguments must be refused. Layouts of results and gradients, for arguments in four memory orders, must
equal those of fake tensors. Operators run in processes that may die. The output has the differences, and a JSON object as
the last line.

    python -m ascend_graph.host benchmarks/op_db.py [--help]
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.data.op_db_explained import EXPLAINED, explanation
from benchmarks.operators.checks import CHECKS, FOREACH, OPERATORS, CheckMismatch, CheckPlan, dtypes_of
from benchmarks.operators.checks import database as entries
from benchmarks.operators.comparison import ComparisonVerdict
from benchmarks.operators.pool import Job, Pool, progress

FAULTS = (ComparisonVerdict.RAISES, ComparisonVerdict.WRONG, ComparisonVerdict.LENIENT, ComparisonVerdict.DIED)


def jobs(
    pattern: str = "", dtypes: Sequence[str] = (), shard: tuple[int, int] = (0, 1), database: str = OPERATORS
) -> list[Job]:
    """Return the jobs to run, one for each operator and dtype, in the database's order."""
    found = []
    operators = {name: op for name, op in entries(database).items() if re.fullmatch(pattern or ".*", name)}
    for i, (name, op) in enumerate(operators.items()):
        if i % shard[1] == shard[0]:
            found += [Job(name, str(d).removeprefix("torch."), database) for d in dtypes_of(op, dtypes)]
    return found


def show(o: CheckMismatch) -> None:
    """Print a difference, with its explanation if there is one."""
    why = explanation(o)
    text = " ".join(o.message.split())[:240]
    print(
        f"{o.verdict.value}: {o.operator} {o.dtype} [{o.sample}] {o.check}: {text}{f' [{why.why}]' if why else ''}",
        flush=True,
    )


def run(work: Sequence[Job], plan: CheckPlan, **options: Any) -> dict[str, Any]:
    """Run the jobs, print differences as they are found, and return the summary."""
    verdicts: Counter[tuple[str, ComparisonVerdict]] = Counter()
    outcomes: list[CheckMismatch] = []
    seconds: Counter[str] = Counter()
    samples = 0
    start = time.monotonic()
    with Pool(plan, **options) as pool:
        for done, (job, tally) in enumerate(pool.run(work), 1):
            samples += tally.samples
            verdicts += tally.verdicts
            verdicts.update((o.check, o.verdict) for o in tally.outcomes if o.verdict is ComparisonVerdict.DIED)
            outcomes += tally.outcomes
            for outcome in tally.outcomes:
                show(outcome)
            seconds[job.operator] += tally.seconds
            if done % 50 == 0:
                progress(f"{done} of {len(work)} operators and dtypes, {time.monotonic() - start:.0f} s")
    unexplained = [o for o in outcomes if o.verdict in FAULTS and not explanation(o)]
    uncaptured = {
        (o.message.partition(" (")[0], o.operator) for o in outcomes if o.verdict is ComparisonVerdict.UNCAPTURED
    }
    # What the CPU refuses and a device takes, and the list of explanations says why.
    wider = [o for o in outcomes if o.verdict is ComparisonVerdict.LENIENT and explanation(o)]
    reasons = {e: sorted({o.operator for o in outcomes if explanation(o) is e}) for e in EXPLAINED}
    by_check = {
        check: {v.value.replace(" ", "_"): verdicts[check, v] for v in ComparisonVerdict if verdicts[check, v]}
        for check in CHECKS
    }

    def total(verdict: ComparisonVerdict) -> int:
        return sum(n for (_, v), n in verdicts.items() if v is verdict)

    return {
        "operators": len({job.operator for job in work}),
        "samples": samples,
        "comparisons": sum(verdicts.values()),
        **{v.value.replace(" ", "_"): total(v) for v in ComparisonVerdict},
        "lenient": total(ComparisonVerdict.LENIENT) - len(wider),
        "wider": len(wider),
        "raising_operators": len({o.operator for o in outcomes if o.verdict is ComparisonVerdict.RAISES}),
        "operators_not_captured": dict(Counter(reason for reason, _ in uncaptured)),
        "unexplained": dict(Counter(o.verdict.value for o in unexplained)),
        "explained": {e.why: names for e, names in reasons.items() if names},
        "stale": [e.why for e, names in reasons.items() if not names],
        "checks": {check: counts for check, counts in by_check.items() if counts},
        "seconds": round(time.monotonic() - start, 1),
        "slowest": {name: round(s, 1) for name, s in seconds.most_common(5)},
    }


def main(arguments: Sequence[str]) -> None:
    """Run the requested jobs, and print the differences and the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", default=OPERATORS, choices=(OPERATORS, FOREACH))
    parser.add_argument("--operators", default="", help="a regular expression that the whole name matches")
    parser.add_argument(
        "--dtypes", default="", help="for instance float32,bool; one of each of four families without it"
    )
    parser.add_argument("--checks", default="", help=f"some of: {', '.join(CHECKS)}")
    parser.add_argument("--samples", type=int, default=5, help="the first so many of each operator and dtype")
    parser.add_argument("--shard", default="0/1", help="i/n: every n-th operator from the i-th")
    parser.add_argument("--workers", type=int, default=0, help="processes; as many as cores without it")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds that one comparison may take")
    parser.add_argument("--setup", default="", help="module:function, called in each process before its first operator")
    parser.add_argument("--device", default="npu", help="cpu compares the CPU with itself, and must find nothing")
    chosen = parser.parse_args(arguments)
    checks = tuple(c for c in chosen.checks.split(",") if c)
    if unknown := set(checks) - set(CHECKS):
        parser.error(f"no checks {', '.join(sorted(unknown))}; there are: {', '.join(CHECKS)}")
    index, _, count = chosen.shard.partition("/")
    work = jobs(
        chosen.operators, [d for d in chosen.dtypes.split(",") if d], (int(index), int(count or 1)), chosen.database
    )
    plan = CheckPlan(samples=chosen.samples, checks=checks, device=chosen.device)
    summary = run(work, plan, workers=chosen.workers, limit=chosen.limit, setup=chosen.setup)
    whole = len(work) == len(jobs()) and not checks and chosen.samples >= 5
    if not whole:
        del summary["stale"]
    print(json.dumps(summary), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

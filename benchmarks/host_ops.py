"""Coverage of TorchAir's declared cases on the host runtime, static and dynamic, against PyTorch on the CPU.

Prints a table of GE operators, the cases that do not agree, and a JSON object as the last line. With the name of an
operator, or the beginning of one, as argument it runs only those cases.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence

from benchmarks._declared_cases import KNOWN_DIFFERENCES, CaseResult, CaseState, declared_cases, run_case

_BOOKKEEPING = {"Data", "NetOutput"}
_EXECUTED = {CaseState.NO_REFERENCE, CaseState.AGREE, CaseState.DISAGREE}


def _mode_summary(outcomes: Sequence[CaseResult]) -> dict[str, int]:
    counts = Counter(o.result for o in outcomes)
    return {
        "cases": len(outcomes),
        "converted": len(outcomes) - counts[CaseState.NOT_CONVERTED] - counts[CaseState.TOO_LARGE],
        "executed": sum(counts[r] for r in _EXECUTED),
        "agree": counts[CaseState.AGREE],
        "disagree": counts[CaseState.DISAGREE],
        "no_reference": counts[CaseState.NO_REFERENCE],
    }


def main(prefixes: Sequence[str]) -> None:
    """Run the cases, print the tables and the summary."""
    from ascend_graph.host.runtime.engine import find_kernel

    cases = [c for c in declared_cases() if not prefixes or any(c.name.startswith(p) for p in prefixes)]
    outcomes = []
    for i, case in enumerate(cases):
        outcomes += [run_case(case, dynamic=dynamic) for dynamic in (False, True)]
        if i % 50 == 49:
            print(f"{i + 1} of {len(cases)} cases", file=sys.stderr, flush=True)
    by_op: defaultdict[str, Counter[CaseState]] = defaultdict(Counter)
    for outcome in outcomes:
        for ge_op in outcome.ge_ops - _BOOKKEEPING:
            by_op[ge_op][outcome.result] += 1
    print(f"{'GE operator':32} {'agree':>6} {'disagree':>8} {'failed':>6} {'no ref.':>7}  kernel")
    constants = {"Const", "Constant", "ConstPlaceHolder", "NoOp"}
    covered = {op for op in by_op if op in constants or find_kernel(op) is not None}
    for ge_op, counts in sorted(by_op.items(), key=lambda item: (-item[1].total(), item[0])):
        failed = counts[CaseState.FAILED] + counts[CaseState.UNSUPPORTED]
        print(
            f"{ge_op:32} {counts[CaseState.AGREE]:6} {counts[CaseState.DISAGREE]:8} {failed:6} {counts[CaseState.NO_REFERENCE]:7}"
            f"  {'yes' if ge_op in covered else 'no'}"
        )
    for outcome in outcomes:
        if outcome.result is not CaseState.AGREE:
            why = KNOWN_DIFFERENCES.get(str(outcome.case.op), "")
            mode = "dynamic" if outcome.dynamic else "static"
            lines = outcome.message.strip().splitlines()
            message = next((line for line in lines if "node " in line or "output " in line), lines[0] if lines else "")
            print(f"{outcome.result.value}: {outcome.case.name} ({mode}): {message[:200]}{f' [{why}]' if why else ''}")
    static = _mode_summary([o for o in outcomes if not o.dynamic])
    summary = {
        **static,
        "dynamic": _mode_summary([o for o in outcomes if o.dynamic]),
        "ge_ops_total": len(by_op),
        "ge_ops_covered": len(covered),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main(sys.argv[1:])

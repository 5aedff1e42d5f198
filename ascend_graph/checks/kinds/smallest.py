"""Search for a small call that shows what a check found."""

from __future__ import annotations

from collections.abc import Callable

from ascend_graph.checks.calls.samples import Sample, SampleGenerator
from ascend_graph.checks.kinds.subject import Faulted, Subject, Violation

CheckFunction = Callable[[Subject, Sample], None]
#: Sizes from which dimensions are drawn, smallest first.
_SIZES = ((1,), (2,), (1, 2, 3), (2, 3, 4))


def smallest_violation(
    check: CheckFunction,
    subject: Subject,
    sample: Sample,
    message: str,
    drawer: SampleGenerator | None,
    *,
    faulty: bool = False,
) -> tuple[Sample, str]:
    """Return the smallest call found that shows the violation, and its message.

    If ``faulty`` is true, only faults count; otherwise faults do not count.
    """
    best = (sample, message)
    if drawer is None:
        return best
    for sizes in _SIZES:
        for number in range(4):
            smaller = drawer.draw(number, "smallest", sizes=sizes, plain=number == 0)
            if smaller is None or smaller.size >= best[0].size or smaller.size == 0:
                continue
            try:
                check(subject, smaller)
            except Violation as found:
                if isinstance(found, Faulted) is faulty:
                    best = (smaller, str(found))
            except Exception:  # not the violation that is looked for
                continue
    return best

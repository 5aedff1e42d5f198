"""Check of larger calls: kernels that go through several tiles in each core, which the small calls of other checks do not."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from ascend_graph.checks.calls.samples import Sample, SampleGenerator
from ascend_graph.checks.kinds import operator_checks
from ascend_graph.checks.kinds.subject import CallRefused, NotApplicable, Subject, Violation
from ascend_graph.checks.report import CheckResult, CheckState
from ascend_graph.checks.tolerances import Tolerances

#: Elements of all tensors of the largest call: more than the unified buffers of all cores hold.
LARGEST = 1 << 21
#: Seconds of a call and its checks after which no larger call is made.
_ENOUGH = 0.4
#: Greatest number of times that the elements of a call are those of the one before.
_STEP = 4.0
#: Size of dimensions in the first call.
_FIRST = 33
#: Differences beyond the usual tolerances: sums of many numbers are rounded more often.
_WIDER = 100.0
#: Checks that each call is given to.
_ASKED = ("runs", "waits", "repeats", "reference")
#: Sizes of the last dimension in calls with few rows: more than a tile has, and no multiple of a block.
_WIDTHS = (4_099, 16_411)
#: Sizes of the other dimensions in these calls.
_ROWS = 3
#: Calls among which those with few rows are chosen.
_WIDE_STRUCTURES = range(48, 64)
#: Calls among which one with several dimensions is chosen.
_STRUCTURES = range(40, 48)


@dataclass(frozen=True, slots=True)
class _WiderTolerances(Tolerances):
    def _of(self, names: frozenset[str], value: Any) -> tuple[float, float]:
        relative, absolute = Tolerances._of(self, names, value)
        return _WIDER * relative, _WIDER * absolute


def large(subject: Subject, drawer: SampleGenerator, before: Sequence[CheckResult]) -> CheckResult:
    """Check calls with more and more elements, smallest first, up to the first one that is wrong.

    Args:
        subject: The operator.
        drawer: What the calls are drawn from.
        before: The results of other checks: a call of any size shows what they found.
    """
    known = next((one.check for one in before if one.check in _ASKED and one.state is CheckState.FAILED), None)
    if known is not None:
        return CheckResult("large", CheckState.SKIPPED, message=f"the check {known} fails for smaller calls")
    given = subject.tolerances
    subject = replace(subject, tolerances=_WiderTolerances(given.rtol, given.atol, given.returns))
    calls, reason = 0, "no size of the relation can be larger"
    for series in (_growing(drawer), _wide(drawer)):
        for sample in series:
            start = time.perf_counter()
            try:
                _check(subject, sample)
            except CallRefused as error:
                reason = reason if calls else f"the operator refuses {sample}: {error}"
                break
            except Violation as found:
                return CheckResult("large", CheckState.FAILED, calls, str(found), str(sample))
            calls += 1
            if time.perf_counter() - start > _ENOUGH:
                break
    return CheckResult("large", CheckState.PASSED if calls else CheckState.SKIPPED, calls, "" if calls else reason)


def _check(subject: Subject, sample: Sample) -> None:
    for name in _ASKED:
        try:
            getattr(operator_checks, name)(subject, sample)
        except NotApplicable:
            continue


def _growing(drawer: SampleGenerator) -> Iterator[Sample]:
    """Yield calls that differ in sizes, smallest first."""
    number = max(_STRUCTURES, key=lambda one: _rank(_draw(drawer, one, _FIRST)))
    side, before, grown = float(_FIRST), 0, 2.0
    while (sample := _draw(drawer, number, round(side))) is not None and before < sample.size <= LARGEST:
        yield _without_equals(sample)
        if before:  # as many dimensions grow as two calls tell
            dims = max(math.log(sample.size / before) / math.log(grown), 0.5)
            grown = min(_STEP, LARGEST / sample.size) ** (1 / dims)
        if grown < 1.1:
            return
        side, before = side * grown, sample.size


def _wide(drawer: SampleGenerator) -> Iterator[Sample]:
    """Yield calls with few rows, each of several tiles and a part of one: calls of many rows have short ones."""
    for width in _WIDTHS:
        for number in _WIDE_STRUCTURES:
            # Calls of one number have their sizes at the same places.
            few = drawer.draw(number, "wide", sizes=[_ROWS, _ROWS + 2], absent=[], plain=True)
            if few is None or not _is_wide(few, _ROWS + 2):
                continue
            sample = drawer.draw(number, "wide", sizes=[_ROWS, width], absent=[], plain=True)
            if sample is not None and sample.size <= LARGEST and _is_wide(sample, width):
                yield _without_equals(sample)
                break


def _is_wide(sample: Sample, width: int) -> bool:
    """Return whether the largest tensor has several rows of this width."""
    *rows, last = max(sample.tensors, key=torch.Tensor.numel).shape or [0]
    return last == width and bool(rows) and set(rows) == {_ROWS}


def _draw(drawer: SampleGenerator, number: int, side: int) -> Sample | None:
    sizes = [side + more for more in (0, 1, 2, 3, 5, 8, 13)]
    return drawer.draw(number, "larger", sizes=sizes, absent=[], plain=True)


def _rank(sample: Sample | None) -> int:
    """Return the number of dimensions of the largest tensor, as far as two are more than one."""
    if sample is None or not sample.size:
        return -1
    return min(max(sample.tensors, key=torch.Tensor.numel).dim(), 2)


def _without_equals(sample: Sample) -> Sample:
    """Return the call with elements of which no two are equal: order among equals is not defined.

    Floating-point tensors get the quantiles of the normal distribution in random order.
    """

    def spread(tensor: torch.Tensor) -> torch.Tensor:
        count = tensor.numel()
        if tensor.dtype != torch.float32 or count < 2:
            return tensor
        generator = torch.Generator().manual_seed(count)
        order = torch.randperm(count, generator=generator)
        values: torch.Tensor = torch.special.ndtri((order.double() + 0.5) / count)
        return values.float().reshape(tensor.shape)

    args, kwargs = tree_map_only(torch.Tensor, spread, (sample.args, dict(sample.kwargs)))
    return replace(sample, args=args, kwargs=kwargs)

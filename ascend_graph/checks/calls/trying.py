"""Trial calls of an operator: those that it accepts, those that it refuses, and those in which it fails."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ascend_graph.checks.calls.attr_values import attrs_of, proposed
from ascend_graph.checks.calls.samples import Sample, SampleGenerator, with_values
from ascend_graph.checks.kinds.subject import CallRefused, Faulted, Subject
from ascend_graph.checks.results import CallResult

#: Text that no author lists, for an attr without known values: the refusal may name the valid ones.
_STRANGER = "ascend_graph"
#: Maximum number of added values of an attr that the operator was found to accept.
_MOST = 8


@dataclass(frozen=True, slots=True)
class CallTally:
    """Calls by outcome: accepted, refused or failed."""

    accepted: tuple[Sample, ...] = ()
    #: Refused calls with the operator's message.
    refused: tuple[tuple[Sample, str], ...] = ()
    #: Failed calls with the rule that was broken.
    faults: tuple[tuple[Sample, str], ...] = ()

    @property
    def ran(self) -> list[Sample]:
        """Calls that were not refused."""
        return [*self.accepted, *(sample for sample, _ in self.faults)]

    def refusal_notes(self) -> list[str]:
        """Return a note for each refusal; those that differ in numbers alone are one note with the number of calls."""
        kinds: dict[str, list[str]] = {}
        for sample, why in self.refused:
            kinds.setdefault(re.sub(r"\d+", "#", why), []).append(f"({sample.why}) {sample}: {why}")
        return [f"refused {f'{len(some)} calls, first ' if len(some) > 1 else ''}{some[0]}" for some in kinds.values()]

    def __add__(self, other: CallTally) -> CallTally:
        return CallTally(self.accepted + other.accepted, self.refused + other.refused, self.faults + other.faults)


def try_calls(subject: Subject, samples: Sequence[Sample]) -> CallTally:
    """Run the calls and return them by outcome; accepted ones that differ in their present results come first."""
    accepted, refused, faults = [], [], []
    for sample in samples:
        try:
            result = subject.run(sample)
        except CallRefused as error:
            refused.append((sample, str(error)))
        except Faulted as error:
            faults.append((sample, str(error)))
        else:
            accepted.append((sample, _present(result)))
    return CallTally(_varied(accepted), tuple(refused), tuple(faults))


def _present(result: CallResult) -> frozenset[int]:
    """Return the positions of the returns that a call gives; an empty list is absent."""
    return frozenset(n for n, one in zip(result.positions, result.returns, strict=True) if one is not None)


def _varied(calls: Sequence[tuple[Sample, frozenset[int]]]) -> tuple[Sample, ...]:
    """Return the calls, first one for each set of present results: some checks take the first few calls alone.

    The first ones have the dtypes of the first call where they can, since gradients are compared in single precision.
    """
    first: dict[frozenset[int], Sample] = {}
    ordered = sorted((sample for sample, _ in calls), key=lambda one: _dtypes(one) != _dtypes(calls[0][0]))
    present = {id(sample): found for sample, found in calls}
    for sample in ordered:
        first.setdefault(present[id(sample)], sample)
    leading = {id(sample) for sample in first.values()}
    return (*first.values(), *(sample for sample, _ in calls if id(sample) not in leading))


def _dtypes(sample: Sample) -> list[Any]:
    return [tensor.dtype for tensor in sample.tensors]


def try_more_values(subject: Subject, drawer: SampleGenerator, trial: CallTally) -> CallTally:
    """Return the trial extended by calls with further values of attrs for which the operator refuses some value.

    An author who checks an attr has a list of values. Values that the refusal names are tried, and small integers. A tried
    value that is refused too is not reported, because nothing says that it is a valid one.
    """
    for argument in attrs_of(subject.schema):
        name = argument.name
        messages = [why for sample, why in trial.refused if sample.why.startswith(f"{name}=")]
        if not messages and not drawer.known.get(name) and _is_text(argument):
            stranger = with_values(drawer, {name: [_STRANGER]})
            messages = [why for _, why in try_calls(subject, stranger).refused]
        known = drawer.others(argument)
        values = [v for v in proposed(argument, messages) if v not in known and v != _STRANGER] if messages else []
        found = CallTally()
        for sample in with_values(drawer, {name: values}):
            once = try_calls(subject, [sample])
            found += CallTally(once.accepted, (), once.faults)
            if len(found.ran) == _MOST:
                break
        trial += found
    return trial


def _is_text(argument: Any) -> bool:
    return str(argument.type) in ("str", "Optional[str]")

"""Shapes of inputs that no relation states: found by calls with likely ones.

An ``InferShape`` function reads what the outputs need. The weight of a normalization is not among it, and a relation that
is found from the function does not name it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ascend_graph.checks.calls.samples import DimensionRange, Sample, SampleError, SampleGenerator
from ascend_graph.checks.kinds.operator_checks import reference
from ascend_graph.checks.kinds.subject import CallRefused, NotApplicable, Subject, Violation
from ascend_graph.environment import is_active
from ascend_graph.shapes.relation import parse_relation

#: Parts of an input's shape, the likeliest first.
_PARTS = ((-1, None), (None, None), (None, 1), (None, -1), (1, None), (-2, None))
#: Sizes without remainder in a block of 32 bytes: a kernel that needs whole blocks takes them.
_SIZES = (16, 32, 64)
#: Numbers of the calls that each choice is tried with.
_CALLS = (0, 20, 21)
#: Maximum number of choices for the inputs that are always there.
_MOST = 150


def assume_shapes(subject: Subject, drawer: SampleGenerator) -> list[str]:
    """Find shapes for the inputs that the relation does not name, and let the generator draw them.

    Returns:
        A note for each such input.

    Raises:
        SampleError: An input that is always there takes none of the likely shapes, or no call may fail: a device refuses
            everything after a fault.
    """
    unstated = drawer.unstated()
    optional = [name for name in unstated if name in drawer.optional()]
    required = [name for name in unstated if name not in optional]
    may_fail = subject.device.type == "cpu" or is_active()
    notes = _state_shapes(subject, drawer, required) if may_fail and not drawer.relation.inputs else []
    if notes:
        unstated, required = optional, []
    if required:
        last = _choose(subject, drawer, required, []) if may_fail else "a failed call would end the work of the device"
        if last:
            raise SampleError(
                f"{subject.overload}: the relation {drawer.relation} does not state the shape of {', '.join(required)}, and no "
                f"likely one is found: {last}. Write a relation that has {required[0]}[…], or give samples="
            )
    missing = [name for name in optional if not may_fail or _choose(subject, drawer, [name], required)]
    return notes + [
        f"{name} is absent in all calls: the relation does not state its shape. Write shape= with {name}[…]"
        if name in missing
        else f"{name} has {drawer.assumed[name]}, which the operator takes; the relation does not state its shape"
        for name in unstated
    ]


def _state_shapes(subject: Subject, drawer: SampleGenerator, required: Sequence[str]) -> list[str]:
    """Draw from a relation with one shape for all inputs if the operator takes it, and return a note for each input.

    A relation without inputs (``->``) is that of an operator that writes its arguments and returns nothing.
    """
    before, arguments = drawer.relation, {a.name: a for a in drawer.arguments}
    lists = {name: f"[i{n}]" if "List[" in str(arguments[name].type) else "" for n, name in enumerate(required)}
    names = {name: drawer.name(arguments[name]) for name in required}
    inputs = parse_relation(", ".join(f"{names[name]}{lists[name]}[*s]" for name in required) + " ->").input_tensors
    drawer.relation = replace(before, input_tensors=inputs)
    if _trouble(subject, drawer, drawer.optional()):
        drawer.relation = before
        return []
    return [f"{name} has any shape, the same for all; the relation does not state its shape" for name in required]


def _choose(subject: Subject, drawer: SampleGenerator, names: Sequence[str], present: Sequence[str]) -> str:
    """Assume the first shapes of ``names`` with which calls succeed, and return why none did, or an empty text.

    Shapes with which the operator equals its reference come first. Where none does, the checks tell the difference.
    """
    kept, last = dict(drawer.assumed), "no call could be drawn"
    absent = [name for name in drawer.optional() if name not in names and name not in present]
    for judge in (subject, replace(subject, reference=None)) if subject.reference is not None else (subject,):
        for choice in itertools.islice(_choices(drawer, names), _MOST):
            drawer.assumed = kept | choice
            last = _trouble(judge, drawer, absent)
            if not last:
                return ""
    drawer.assumed = kept
    return last


def _choices(drawer: SampleGenerator, names: Sequence[str]) -> Iterator[dict[str, DimensionRange]]:
    """Yield shapes for the inputs: the same one for all, then all combinations."""
    likely = [DimensionRange(source, *part) for part in _PARTS for source in drawer.relation.inputs]
    likely.append(DimensionRange(None))
    yield from (dict.fromkeys(names, one) for one in likely)
    for choice in itertools.product(likely, repeat=len(names)):
        if len(set(choice)) > 1:
            yield dict(zip(names, choice, strict=True))


def _trouble(subject: Subject, drawer: SampleGenerator, absent: Sequence[str]) -> str:
    """Return why a call with the assumed shapes failed, or an empty text."""
    made = [drawer.draw(number, sizes=_SIZES, absent=absent, plain=True) for number in _CALLS]
    samples: list[Sample] = [sample for sample in made if sample is not None]
    for sample in samples:
        try:
            subject.run(sample)
            if subject.reference is not None:
                _compare(subject, sample)
        except (CallRefused, Violation) as error:
            return f"{sample}: {str(error).splitlines()[0]}"
    return "" if samples else "no call could be drawn"


def _compare(subject: Subject, sample: Sample) -> None:
    try:
        reference(subject, sample)
    except NotApplicable as error:
        raise CallRefused(str(error)) from error

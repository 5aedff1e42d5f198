"""Shapes of inputs that no relation states: found by calls with likely ones.

An ``InferShape`` function reads what the outputs need. The weight of a normalization is not among it, and a relation that
is found from the function does not name it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ascend_graph.checks.calls.samples import DimensionRange, Sample, SampleError, SampleGenerator
from ascend_graph.checks.kinds.operator_checks import reference, repeats
from ascend_graph.checks.kinds.smallest import CheckFunction
from ascend_graph.checks.kinds.subject import CallRefused, Faulted, NotApplicable, Subject, Violation
from ascend_graph.environment import is_active
from ascend_graph.shapes.relation import parse_relation

#: Parts of an input's shape, the likeliest first.
_PARTS = ((-1, None), (None, None), (None, 1), (None, -1), (1, None), (-2, None))
#: Sizes without remainder in a block of 32 bytes: a kernel that needs whole blocks takes them.
_SIZES = (16, 32, 64)
#: Numbers of the calls that each choice is tried with.
_CALLS = (0, 20, 21)
#: Numbers of the calls that the choices are ranked by.
_MORE_CALLS = range(20, 24)
#: Maximum number of choices that are ranked.
_RANKED = 8
#: Maximum number of choices for the inputs that are always there.
_MOST = 150


@dataclass(frozen=True, slots=True)
class _Trouble:
    """Failure of a call with assumed shapes."""

    why: str
    #: The message without numbers; empty without a call.
    kind: str = ""
    is_fault: bool = False
    assumed: dict[str, DimensionRange] = field(default_factory=dict)


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
    last = ""
    if required:
        last = _choose(subject, drawer, required, []) if may_fail else "a failed call would end the work of the device"
        if last and required[0] not in drawer.assumed:
            raise SampleError(
                f"{subject.overload}: the relation {drawer.relation} does not state the shape of {', '.join(required)}, and the "
                f"operator takes none of the likely ones: {last}. Correct the kernel if it is wrong there; else write a "
                f"relation that has {required[0]}[…], or give samples="
            )
    failing = dict.fromkeys(required, last)
    for name in optional:
        failing[name] = (
            _choose(subject, drawer, [name], required) if may_fail else "a failed call would end the device's work"
        )
    return notes + [_note(name, drawer.assumed.get(name), failing[name]) for name in unstated]


def _note(name: str, assumed: DimensionRange | None, why: str) -> str:
    unstated = "the relation does not state its shape"
    if assumed is None:
        return (
            f"{name} is absent in all calls: {unstated}, and no likely one is taken: {why}. Write shape= with {name}[…]"
        )
    if why:
        return f"{name} has {assumed}, with which the operator fails as with each likely shape; {unstated}"
    return f"{name} has {assumed}, which the operator takes; {unstated}"


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

    Where the kernel fails with all shapes alike, one is assumed all the same.

    Shapes with which the operator equals its reference come first, then those with which it does in most calls: a copy
    reads on after a tensor, so that a kernel takes one that is too small. The checks tell the difference.
    """
    kept, troubles = dict(drawer.assumed), list[_Trouble]()
    absent = [name for name in drawer.optional() if name not in names and name not in present]
    choices = [kept | choice for choice in itertools.islice(_choices(drawer, names), _MOST)]
    taken: list[tuple[int, int, int, dict[str, DimensionRange]]] = []
    for judge in (subject, replace(subject, reference=None)) if subject.reference is not None else (subject,):
        troubles = []
        for drawer.assumed in choices:
            trouble = _trouble(judge, drawer, absent)
            if trouble is None and judge is subject:
                return ""
            if trouble is not None:
                troubles.append(replace(trouble, assumed=drawer.assumed))
            elif len(taken) < _RANKED:
                taken.append((*_rank(subject, drawer, absent), len(taken), drawer.assumed))
    if taken:
        drawer.assumed = min(taken)[-1]
        return ""
    commonest, is_only = _commonest([t for t in troubles if t.kind])
    # Whatever the shape is, the kernel fails: the checks say so.
    is_kernel = is_only and commonest.is_fault and "out of bounds" not in commonest.kind
    drawer.assumed = commonest.assumed if is_kernel else kept
    return commonest.why


def _rank(subject: Subject, drawer: SampleGenerator, absent: Sequence[str]) -> tuple[int, int]:
    """Return how many calls with the assumed shapes differ from the reference, and from themselves."""
    made = (
        drawer.draw(n, sizes=sizes, absent=absent, plain=True) for n in _MORE_CALLS for sizes in ((1, 2, 3), _SIZES)
    )
    samples = [sample for sample in made if sample is not None]
    wrong, unsteady = (sum(_failure(subject, s, check) is not None for s in samples) for check in (_compare, repeats))
    return wrong, unsteady


def _commonest(troubles: Sequence[_Trouble]) -> tuple[_Trouble, bool]:
    """Return the first trouble of the most frequent kind, and whether there is no other kind."""
    kinds: dict[str, list[_Trouble]] = {}
    for trouble in troubles:
        kinds.setdefault(trouble.kind, []).append(trouble)
    found = max(kinds.values(), key=len)[0] if kinds else _Trouble("no call could be drawn")
    return found, len(kinds) == 1


def _choices(drawer: SampleGenerator, names: Sequence[str]) -> Iterator[dict[str, DimensionRange]]:
    """Yield shapes for the inputs: the same one for all, then all combinations."""
    likely = [DimensionRange(source, *part) for part in _PARTS for source in drawer.relation.inputs]
    likely.append(DimensionRange(None))
    yield from (dict.fromkeys(names, one) for one in likely)
    for choice in itertools.product(likely, repeat=len(names)):
        if len(set(choice)) > 1:
            yield dict(zip(names, choice, strict=True))


def _trouble(subject: Subject, drawer: SampleGenerator, absent: Sequence[str]) -> _Trouble | None:
    """Return why a call with the assumed shapes failed, or None."""
    made = [drawer.draw(number, sizes=_SIZES, absent=absent, plain=True) for number in _CALLS]
    samples = [sample for sample in made if sample is not None]
    found = (trouble for sample in samples if (trouble := _failure(subject, sample, _compare)))
    return next(found, None) if samples else _Trouble("no call could be drawn")


def _failure(subject: Subject, sample: Sample, check: CheckFunction) -> _Trouble | None:
    """Return why a call failed, or the check of it; or None."""
    try:
        subject.run(sample)
        check(subject, sample)
    except (CallRefused, Violation) as error:
        said = str(error).splitlines()[0]
        return _Trouble(f"{sample}: {said}", re.sub(r"[0-9]+", "#", said), isinstance(error, Faulted))
    return None


def _compare(subject: Subject, sample: Sample) -> None:
    if subject.reference is None:
        return
    try:
        reference(subject, sample)
    except NotApplicable as error:
        raise CallRefused(str(error)) from error

"""Check of dtypes that an operator is not made for: it refuses them, or computes them as its reference does."""

from __future__ import annotations

import itertools

import torch

from ascend_graph.checks.calls.samples import Sample, SampleGenerator, is_tensor
from ascend_graph.checks.kinds.operator_checks import reference
from ascend_graph.checks.kinds.subject import CallRefused, Faulted, NotApplicable, Subject, Violation
from ascend_graph.checks.report import CheckResult, CheckState


def _takes(subject: Subject, sample: Sample) -> bool:
    """Return whether the operator accepts a call, even if the call then fails."""
    try:
        subject.run(sample)
    except CallRefused:
        return False
    except Faulted:
        return True
    return True


def dtypes(subject: Subject, drawer: SampleGenerator) -> CheckResult:
    """Check that the operator refuses dtypes that the prototype does not list; without a list, those that it computes wrongly."""
    allowed = {name: dtypes for name, dtypes in drawer.allowed().items() if dtypes}
    if not allowed or any(p.unknown_types for p in drawer.parameters.values()):
        return _unlisted(subject, drawer)
    tried = 0
    tensors = {a.name for a in drawer.arguments if is_tensor(a)}  # others are numbers of the schema
    for name, listed in allowed.items():
        outside = next(
            (d for d in (torch.float64, torch.int16, torch.complex64, torch.bool, torch.int8) if d not in listed), None
        )
        usual = drawer.combinations()[0]
        if outside is None or name not in tensors:
            continue
        # Alone, or with the others where all have one dtype.
        changed = ({**usual, name: outside}, dict.fromkeys(usual, outside))
        made = (drawer.draw(0, "dtype", dtypes=dtypes, absent=[], plain=True) for dtypes in changed)
        sample = next((s for s in made if s is not None and any(t.dtype is outside for t in s.tensors)), None)
        if sample is None:
            continue
        tried += 1
        if _takes(subject, sample):
            said = ", ".join(sorted(str(d).removeprefix("torch.") for d in listed))
            return CheckResult(
                "dtypes",
                CheckState.FAILED,
                tried,
                f"{name} of {outside} is taken; the prototype lists {said}",
                str(sample),
            )
    return CheckResult(
        "dtypes", CheckState.PASSED if tried else CheckState.SKIPPED, tried, "" if tried else "nothing could be drawn"
    )


def _unlisted(subject: Subject, drawer: SampleGenerator) -> CheckResult:
    """Check where nothing lists the dtypes that a dtype which the operator takes is computed as the reference does."""
    if subject.reference is None or drawer.allowed():
        return CheckResult("dtypes", CheckState.SKIPPED, message="the prototype does not list the dtypes")
    tried = 0
    tensors = [a.name for a in drawer.arguments if is_tensor(a)]
    # With other values of attrs, too: a kernel that multiplies by 1 leaves any bytes as they are.
    for dtype, number in itertools.product((torch.float16, torch.bfloat16, torch.float64), range(3)):
        chosen = dict.fromkeys(tensors, dtype)
        sample = drawer.draw(number, "dtype", dtypes=chosen, absent=[], plain=not number)
        if sample is None or not any(t.dtype is dtype and t.numel() for t in sample.tensors):
            continue
        try:
            reference(subject, sample)
        except (CallRefused, NotApplicable):
            tried += 1
        except Violation as found:
            text = f"{str(dtype).removeprefix('torch.')} is taken, and computed otherwise: {found}"
            return CheckResult("dtypes", CheckState.FAILED, tried + 1, text, str(sample))
        else:
            tried += 1
    return CheckResult(
        "dtypes", CheckState.PASSED if tried else CheckState.SKIPPED, tried, "" if tried else "nothing could be drawn"
    )

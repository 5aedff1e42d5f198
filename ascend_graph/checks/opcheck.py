"""``opcheck``: one call that asks of an operator everything that holds for every operator."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ascend_graph.binding.op_schema import single_overload
from ascend_graph.checks import laws, rules, ways
from ascend_graph.checks.laws import NotApplicable, Refused, Subject, Undecided, Violation, first_line
from ascend_graph.checks.report import Outcome, Report, State
from ascend_graph.checks.samples import Drawer, Sample, SampleError, drawn, families
from ascend_graph.host.toolkit import HostRuntimeError, is_active, is_strict
from ascend_graph.registration.register import RegisteredOp, find_registered

Law = Callable[[Subject, Sample], None]


@dataclass(frozen=True, slots=True)
class _Check:
    law: Law
    #: How many samples it is asked of; graphs are compiled for each.
    samples: int = 1_000


#: Every check by name, in the order of a report.
CHECKS: Mapping[str, _Check] = {
    "arguments": _Check(laws.arguments),
    "repeats": _Check(laws.repeats, 6),
    "reference": _Check(laws.reference),
    "meta": _Check(laws.meta),
    "layout": _Check(laws.layout, 8),
    "outside": _Check(laws.outside, 6),
    "vmap": _Check(rules.vmap, 3),
    "sharding": _Check(rules.sharding, 6),
    "gradient": _Check(laws.gradient, 3),
    "ge": _Check(ways.ge, 4),
    "ge_dynamic": _Check(ways.ge_dynamic, 3),
    "npugraph_ex": _Check(ways.npugraph_ex, 3),
    "export": _Check(ways.export, 2),
    "gradient_in_graphs": _Check(ways.gradient_in_graphs, 2),
}
#: Checks that are asked once, of calls that are made for them.
ALONE = ("recompilations", "dtypes")


def opcheck(
    op: Any,
    samples: Iterable[Sample | Sequence[Any]] | None = None,
    *,
    reference: Callable[..., Any] | None = None,
    checks: Iterable[str] | None = None,
    count: int = 6,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    strict: bool = False,
    raise_exception: bool = True,
) -> Report:
    """Ask of an operator what holds for every operator, in eager mode and in graphs.

    The checks are: ``arguments`` (nothing is written or aliased but what the schema says), ``repeats`` (the same call gives the
    same bits, whatever was in memory before), ``reference`` (values), ``meta`` (shapes, dtypes, strides, devices and aliases, with
    sizes and with symbols), ``layout`` (tensors that are not contiguous), ``outside`` (no byte beside a tensor is written),
    ``vmap`` (what separate calls give, where there is a rule: ``batch=`` makes one), ``sharding`` (what
    the whole gives, where ``batch=`` or ``reduce=`` is declared), ``gradient``, ``ge``, ``ge_dynamic``, ``npugraph_ex`` and ``export``
    (what eager mode gives), ``gradient_in_graphs``, ``recompilations`` (one graph for all sizes), and ``dtypes`` (what the prototype does not list is refused).

    Args:
        op: What ``register_op`` returned, a torch operator, its name, or an op type.
        samples: Calls as :class:`~ascend_graph.checks.samples.Sample`, or tuples of CPU tensors and values. Without them calls are
            drawn from the shape relation and the prototype: random sizes, attrs, dtypes, absent inputs, sizes of 0 and 1.
        reference: The same in plain PyTorch, for CPU tensors; it may write its arguments as the operator does.
        checks: The names of the checks to make; all by default.
        count: How many random calls are drawn, beside the special ones.
        seed: The same seed draws the same calls.
        rtol: The relative tolerance between ways of computing; by default by dtype.
        atol: The absolute one.
        strict: Whether this has to run where device memory is kept from everything but kernels and copies: started with
            ``python -m ascend_graph.host --strict``.
        raise_exception: Whether a failure is raised.

    Returns:
        The report: print it, or ``as_dict()``.

    Raises:
        CheckError: A check failed, and ``raise_exception`` is true.
        HostRuntimeError: ``strict`` is true, and this process was not started so.
        SampleError: There is nothing to call the operator with: no relation and no samples, or it refuses all of them.

    >>> import torch
    >>> library = torch.library.Library("checked_example", "DEF")
    >>> _ = library.define("twice(Tensor x) -> Tensor")
    >>> library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
    >>> report = opcheck(torch.ops.checked_example.twice, [(torch.ones(3),)], checks=["arguments", "repeats", "reference"],
    ...                  reference=lambda x: x + x)
    >>> [(o.check, o.state.value) for o in report.outcomes]
    [('arguments', 'passed'), ('repeats', 'passed'), ('reference', 'passed')]
    """
    if strict and not (is_active() and is_strict(os.environ)):
        raise HostRuntimeError("opcheck(strict=True): start the program with python -m ascend_graph.host --strict")
    names = check_names(checks)
    overload, registered = _operator(op)
    subject = Subject(overload, registered, _device(overload), reference, rtol, atol)
    made = _samples(overload, registered, samples, count, seed)
    accepted, notes = _accepted(subject, made)
    if not accepted:
        raise SampleError(
            f"{overload} refuses each of {len(made)} calls; the first: {made[0]}: {notes[0] if notes else ''}"
        )
    drawer = Drawer(registered, seed) if samples is None and registered is not None else None
    outcomes = []
    for name in names:
        start = time.perf_counter()
        outcome = _check(name, subject, accepted, drawer) if name in CHECKS else _alone(name, subject, accepted, drawer)
        outcomes.append(_timed(outcome, time.perf_counter() - start))
    report = Report(str(overload), tuple(outcomes), tuple(dict.fromkeys(notes)))
    if raise_exception:
        report.raise_on_failure()
    return report


def check_names(checks: Iterable[str] | None) -> list[str]:
    """The checks that are named; all without a name.

    Raises:
        SampleError: There is no such check.
    """
    known = [*CHECKS, *ALONE]
    if checks is None:
        return known
    names = list(checks)
    strangers = [name for name in names if name not in known]
    if strangers:
        raise SampleError(f"there is no check {', '.join(map(repr, strangers))}; the checks are {', '.join(known)}")
    return names


def _operator(op: Any) -> tuple[Any, RegisteredOp | None]:
    registered = op if isinstance(op, RegisteredOp) else find_registered(op)
    if registered is not None:
        return registered.overload, registered
    if isinstance(op, str) and "::" in op:
        namespace, _, name = op.partition("::")
        op = getattr(getattr(torch.ops, namespace), name, None)
    if isinstance(op, torch._ops.OpOverloadPacket):
        op = single_overload(op)
    if not isinstance(op, torch._ops.OpOverload):
        raise SampleError(
            f"opcheck takes an operator such as torch.ops.npu.npu_swiglu, its name, or what register_op returned; got {op!r}"
        )
    return op, None


def _device(overload: Any) -> torch.device:
    """Where the operator runs: on the NPU if it can."""
    name = overload.name()
    npu = torch._C._dispatch_has_kernel_for_dispatch_key(name, "PrivateUse1")
    composite = any(
        torch._C._dispatch_has_kernel_for_dispatch_key(name, key)
        for key in ("CompositeExplicitAutograd", "CompositeImplicitAutograd")
    )
    device: Any = getattr(torch, "npu", None)
    if device is not None and (npu or (composite and device.is_available())):
        return torch.device("npu", device.current_device())
    return torch.device("cpu")


def _samples(
    overload: Any, registered: RegisteredOp | None, samples: Iterable[Any] | None, count: int, seed: int
) -> list[Sample]:
    if samples is not None:
        made = [s if isinstance(s, Sample) else Sample(tuple(s)) for s in samples]
    elif registered is not None:
        made = drawn(registered, count, seed)
    else:
        raise SampleError(
            f"{overload} is not registered with ascend_graph, so no calls can be drawn for it; give samples="
        )
    if not made:
        raise SampleError(f"{overload}: there is no call to check it with; give samples=")
    return made


def _accepted(subject: Subject, samples: Sequence[Sample]) -> tuple[list[Sample], list[str]]:
    """The calls that the operator takes, and what it says of the others."""
    accepted, notes = [], []
    for sample in samples:
        try:
            subject.run(sample)
        except Refused as error:
            notes.append(f"refused ({sample.why}) {sample}: {error}")
        else:
            accepted.append(sample)
    return accepted, notes


def _timed(outcome: Outcome, seconds: float) -> Outcome:
    return Outcome(outcome.check, outcome.state, outcome.calls, outcome.message, outcome.sample, seconds)


def _check(name: str, subject: Subject, samples: Sequence[Sample], drawer: Drawer | None) -> Outcome:
    check = CHECKS[name]
    calls, reason, undecided = 0, "", ""
    for sample in samples[: check.samples]:
        try:
            check.law(subject, sample)
            calls += 1
        except NotApplicable as skipped:
            if isinstance(skipped, Undecided):
                undecided = undecided or f"{skipped} {sample}"
            reason = reason or str(skipped)
        except (Violation, Refused) as found:
            smallest, message = _smaller(check.law, subject, sample, str(found), drawer)
            return Outcome(name, State.FAILED, calls, message, str(smallest))
        except Exception as error:  # a check that cannot end is a finding: the operator gave what no operator gives
            return Outcome(name, State.FAILED, calls, first_line(error), str(sample))
    if undecided and not calls:
        return Outcome(name, State.FAILED, 0, f"no call was judged: {undecided}")
    return Outcome(name, State.PASSED if calls else State.SKIPPED, calls, "" if calls else reason)


def _smaller(law: Law, subject: Subject, sample: Sample, message: str, drawer: Drawer | None) -> tuple[Sample, str]:
    """The smallest call found that shows a violation."""
    best = (sample, message)
    if drawer is None:
        return best
    for sizes in ((1,), (2,), (1, 2, 3), (2, 3, 4)):
        for number in range(4):
            smaller = drawer.draw(number, "smallest", sizes=sizes, plain=number == 0)
            if smaller is None or smaller.size >= best[0].size or smaller.size == 0:
                continue
            try:
                law(subject, smaller)
            except Violation as found:
                best = (smaller, str(found))
            except Exception:  # not the violation that is looked for
                continue
    return best


def _alone(name: str, subject: Subject, samples: Sequence[Sample], drawer: Drawer | None) -> Outcome:
    if name == "recompilations":
        return _recompilations(subject, samples, drawer)
    if drawer is None:
        return Outcome(name, State.SKIPPED, message="calls are drawn for it, which needs a relation and no samples=")
    return _dtypes(subject, drawer)


def _recompilations(subject: Subject, samples: Sequence[Sample], drawer: Drawer | None) -> Outcome:
    if drawer is not None:
        family = [drawer.draw(0, sizes=(4, 6, 8, 10, 12), absent=[], plain=True, values=n) for n in range(3)]
        samples = [s for s in family if s is not None and _runs(subject, s)]
    samples = max(families(samples), key=len, default=[])
    if len({str(sample) for sample in samples}) < 2:
        return Outcome("recompilations", State.SKIPPED, message="no two calls that differ in sizes alone were found")
    try:
        ways.recompilations(subject, samples)
    except NotApplicable as skipped:
        return Outcome("recompilations", State.SKIPPED, message=str(skipped))
    except Violation as found:
        return Outcome("recompilations", State.FAILED, 0, str(found), "; ".join(map(str, samples)))
    return Outcome("recompilations", State.PASSED, len(samples))


def _runs(subject: Subject, sample: Sample) -> bool:
    try:
        subject.run(sample)
    except Refused:
        return False
    return True


def _dtypes(subject: Subject, drawer: Drawer) -> Outcome:
    """What the prototype does not list is refused."""
    allowed = {name: dtypes for name, dtypes in drawer.allowed().items() if dtypes}
    if not allowed or any(p.unknown_types for p in drawer.parameters.values()):
        return Outcome("dtypes", State.SKIPPED, message="the prototype does not list the dtypes")
    tried = 0
    for name, listed in allowed.items():
        outside = next(
            (d for d in (torch.float64, torch.int16, torch.complex64, torch.bool, torch.int8) if d not in listed), None
        )
        usual = drawer.combinations()[0]
        if outside is None:
            continue
        # Alone, or with the others where all have one dtype.
        changed = ({**usual, name: outside}, dict.fromkeys(usual, outside))
        made = (drawer.draw(0, "dtype", dtypes=dtypes, absent=[], plain=True) for dtypes in changed)
        sample = next((s for s in made if s is not None), None)
        if sample is None:
            continue
        tried += 1
        if _runs(subject, sample):
            said = ", ".join(sorted(str(d).removeprefix("torch.") for d in listed))
            return Outcome(
                "dtypes", State.FAILED, tried, f"{name} of {outside} is taken; the prototype lists {said}", str(sample)
            )
    return Outcome("dtypes", State.PASSED if tried else State.SKIPPED, tried, "" if tried else "nothing could be drawn")

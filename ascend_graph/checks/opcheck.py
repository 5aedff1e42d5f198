"""Function ``opcheck``: it runs all checks that apply to every operator."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ascend_graph.binding.op_schema import single_overload, unwrapped
from ascend_graph.checks.advice import excluding
from ascend_graph.checks.calls.assumed import assume_shapes
from ascend_graph.checks.calls.attr_values import coverage, known_values
from ascend_graph.checks.calls.constants import constants_of
from ascend_graph.checks.calls.samples import Sample, SampleError, SampleGenerator, drawn, families
from ascend_graph.checks.calls.trying import CallTally, try_calls, try_more_values
from ascend_graph.checks.kinds import dtype_checks, graph_checks, operator_checks, tangents, transform_checks
from ascend_graph.checks.kinds.free_memory import OUTSIDE
from ascend_graph.checks.kinds.larger_calls import large
from ascend_graph.checks.kinds.smallest import CheckFunction, smallest_violation
from ascend_graph.checks.kinds.subject import (
    CallRefused,
    Faulted,
    NotApplicable,
    Subject,
    Undecided,
    Violation,
    first_line,
)
from ascend_graph.checks.logs import without_traces
from ascend_graph.checks.report import CheckReport, CheckResult, CheckState
from ascend_graph.checks.tolerances import Tolerance, read_tolerances
from ascend_graph.dispatch.modes import outside_modes
from ascend_graph.environment import HostRuntimeError, is_active, is_strict
from ascend_graph.registration.registered import RegisteredOp, find_registered


@dataclass(frozen=True, slots=True)
class _Check:
    function: CheckFunction
    #: Maximum number of samples that it gets; graphs are compiled for each.
    samples: int = 1_000


#: Checks by name, in the order of a report.
CHECKS: Mapping[str, _Check] = {
    "runs": _Check(operator_checks.runs),
    "waits": _Check(operator_checks.waits, 12),
    "arguments": _Check(operator_checks.arguments),
    "repeats": _Check(operator_checks.repeats, 6),
    "reference": _Check(operator_checks.reference),
    "meta": _Check(operator_checks.meta),
    "layout": _Check(operator_checks.layout, 8),
    "outside": _Check(operator_checks.outside, 6),
    "vmap": _Check(transform_checks.vmap, 3),
    "sharding": _Check(transform_checks.sharding, 6),
    "gradient": _Check(tangents.gradient, 3),
    "ge": _Check(graph_checks.ge, 4),
    "ge_dynamic": _Check(graph_checks.ge_dynamic, 3),
    "npugraph_ex": _Check(graph_checks.npugraph_ex, 3),
    "export": _Check(graph_checks.export, 2),
    "gradient_in_graphs": _Check(graph_checks.gradient_in_graphs, 2),
}
#: Checks that run once, with calls that are made for them.
ALONE = ("recompilations", "dtypes", "large")


def opcheck(
    op: Any,
    samples: Iterable[Sample | Sequence[Any]] | None = None,
    *,
    reference: Callable[..., Any] | None = None,
    checks: Iterable[str] | None = None,
    count: int = 6,
    seed: int = 0,
    rtol: Tolerance | None = None,
    atol: Tolerance | None = None,
    strict: bool = False,
    raise_exception: bool = True,
) -> CheckReport:
    """Check an operator against the rules that hold for every operator, in eager mode and in graphs.

    The checks are:

    - ``runs``: no kernel breaks a rule of the hardware; it always runs and is reported if it fails.
    - ``waits``: each pipe of a kernel in Ascend C waits for the others where it must (on the host runtime).
    - ``arguments``: only what the schema declares is written or aliased.
    - ``repeats``: the same call gives the same bits, whatever was in memory before.
    - ``reference``: values equal those of ``reference``.
    - ``meta``: shapes, dtypes, strides, devices and aliases, with concrete and with symbolic sizes.
    - ``layout``: non-contiguous tensors.
    - ``outside``: no byte next to a tensor is written.
    - ``vmap``: results of separate calls, if there is a rule; ``batch=`` makes one.
    - ``sharding``: results of the whole call, if ``batch=`` or ``reduce=`` is declared.
    - ``gradient``: the gradient, and the tangent of forward mode.
    - ``ge``, ``ge_dynamic``, ``npugraph_ex`` and ``export``: results of eager mode.
    - ``gradient_in_graphs``: gradients of eager mode.
    - ``recompilations``: one graph for all sizes.
    - ``dtypes``: dtypes that the prototype does not list are refused; without a list, those that are computed wrongly.
    - ``large``: calls with up to two million elements run, wait, repeat and equal the reference.

    Args:
        op: The result of ``register_op``, a torch operator, its name, or an op type.
        samples: Calls as :class:`~ascend_graph.checks.calls.samples.Sample`, or tuples of CPU tensors and values. Without them,
            calls are drawn from the shape relation and the prototype: random sizes, attrs, dtypes, absent inputs, sizes of 0
            and 1. Attrs get the values that prototype, reference, relation and package name; the report lists them.
        reference: The same function in plain PyTorch, for CPU tensors; it may write its arguments as the operator does.
        checks: The names of the checks to run, or one name; all by default.
        count: The number of random calls to draw, in addition to the special ones.
        seed: The same seed draws the same calls.
        rtol: The relative tolerance between ways of computing: a number, or numbers by output, by written argument or by dtype,
            ``{"y": 1e-3, torch.float16: 1e-2}``; by default by dtype.
        atol: The absolute one, in the same forms.
        strict: If true, require a process in which only kernels and copies access device memory: one started with
            ``python -m ascend_graph.host --strict``.
        raise_exception: If true, raise on a failure.

    Returns:
        The report: print it, or ``as_dict()``.

    Raises:
        CheckError: A check failed, and ``raise_exception`` is true.
        HostRuntimeError: ``strict`` is true, and this process was not started so.
        SampleError: There is no call to check with (no relation and no samples, or the operator refuses all calls), or a
            check or tolerance is invalid.

    >>> import torch
    >>> library = torch.library.Library("checked_example", "DEF")
    >>> _ = library.define("twice(Tensor x) -> Tensor")
    >>> library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
    >>> report = opcheck(torch.ops.checked_example.twice, [(torch.ones(3),)], checks=["arguments", "repeats", "reference"],
    ...                  reference=lambda x: x + x)
    >>> [(o.check, o.state.value) for o in report.outcomes]
    [('arguments', 'passed'), ('repeats', 'passed'), ('reference', 'passed')]
    """
    __tracebackhide__ = True  # what pytest shows of a failure is the report, not the way to it
    if strict and not (is_active() and is_strict(os.environ)):
        raise HostRuntimeError("opcheck(strict=True): start the program with python -m ascend_graph.host --strict")
    names = check_names(checks)
    overload, registered = _operator(op)
    schema = overload._schema
    tolerances = read_tolerances(rtol, atol, _output_names(schema, registered), _written(schema))
    subject = Subject(overload, registered, _device(overload), reference, tolerances)
    with without_traces(), outside_modes():
        report = _report(subject, names, samples, count, seed)
    if raise_exception:
        report.raise_on_failure()
    return report


def _output_names(schema: Any, registered: RegisteredOp | None) -> list[frozenset[str]]:
    """Return all names of each return: those of the schema, of the relation and of the prototype."""
    found = [{r.name} if r.name else set() for r in schema.returns]
    if registered is not None:
        sides = [registered.relation.outputs] if registered.relation is not None else []
        if registered.prototype is not None:
            sides.append(tuple(p.name for p in registered.prototype.outputs))
        for names in sides:
            for one, name in zip(found, names, strict=False):
                if len(names) == len(found):
                    one.add(name)
    return [frozenset(names) for names in found]


def _written(schema: Any) -> list[str]:
    return [a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]


def _report(
    subject: Subject, names: Sequence[str], samples: Iterable[Any] | None, count: int, seed: int
) -> CheckReport:
    """Run the checks of one operator and return the report."""
    registered, schema = subject.registered, subject.schema
    said = None
    if subject.reference is not None:
        said = constants_of(subject.reference, [a.name for a in schema.arguments])
    known = {} if registered is None else known_values(registered, said)
    drawer = SampleGenerator(registered, seed, known) if samples is None and registered is not None else None
    notes = [] if drawer is None else assume_shapes(subject, drawer)
    made = drawn(drawer, count) if drawer is not None else _given(subject, samples)
    if not made:
        why = f" ({drawer.trouble})" if drawer is not None and drawer.trouble else ""
        raise SampleError(f"{subject.overload}: no call to check it with{why}; give samples=[Sample((x, …), {{…}})]")
    trial = try_calls(subject, made)
    if drawer is not None:
        trial = try_more_values(subject, drawer, trial)
    attrs = coverage(schema, trial.ran, trial.refused, known, said)
    notes += trial.refusal_notes()
    outcomes = []
    if trial.faults or "runs" in names:
        outcomes.append(_runs_outcome(subject, trial, drawer))
    if not trial.accepted and not trial.faults:
        raise SampleError(
            f"{subject.overload} refuses each of {len(made)} calls; give samples=. {made[0]}: {trial.refused[0][1]}"
        )
    rest = [name for name in names if name != "runs"]
    if trial.faults and (not trial.accepted or not (subject.device.type == "cpu" or is_active())):
        # A device of Huawei's refuses everything after a fault, until the process ends.
        why = "not made after a fault" if trial.accepted else "each call faults"
        outcomes += [CheckResult(name, CheckState.SKIPPED, message=why) for name in rest]
        rest = []
    for name in rest:
        if outcomes and outcomes[-1].check == "outside" and outcomes[-1].message.startswith(OUTSIDE):
            why = "not made after a write outside a tensor, which may end the process"
            outcomes += [CheckResult(later, CheckState.SKIPPED, message=why) for later in rest[rest.index(name) :]]
            break
        start = time.perf_counter()
        outcome = (
            _check(name, subject, trial.accepted, drawer)
            if name in CHECKS
            else _alone(name, subject, trial.accepted, drawer, outcomes)
        )
        outcomes.append(replace(outcome, seconds=time.perf_counter() - start))
    return CheckReport(str(subject.overload), tuple(outcomes), tuple(dict.fromkeys([*notes, *subject.remarks])), attrs)


def _runs_outcome(subject: Subject, trial: CallTally, drawer: SampleGenerator | None) -> CheckResult:
    """Return the result of the check ``runs``, with the smallest call that failed if one did."""
    if not trial.faults:
        state = CheckState.PASSED if trial.accepted else CheckState.SKIPPED
        return CheckResult("runs", state, len(trial.accepted), "" if trial.accepted else "each call is refused")
    sample, text = min(trial.faults, key=lambda one: one[0].size)
    if is_active():
        sample, text = smallest_violation(operator_checks.runs, subject, sample, text, drawer, faulty=True)
    condition = "" if drawer is None else excluding(drawer.relation, sample, text)
    message = (
        f"{len(trial.faults)} of {len(trial.faults) + len(trial.accepted)} calls that relation and prototype allow fail: {text}. "
        f"A call that the operator is not for is refused by its tiling function, or excluded by its relation{condition}"
    )
    return CheckResult("runs", CheckState.FAILED, len(trial.accepted), message, str(sample))


def check_names(checks: Iterable[str] | None) -> list[str]:
    """Return the named checks, or all checks for None.

    Raises:
        SampleError: A check of that name does not exist.
    """
    known = [*CHECKS, *ALONE]
    if checks is None:
        return known
    names = [checks] if isinstance(checks, str) else list(checks)
    strangers = [name for name in names if name not in known]
    if strangers:
        raise SampleError(f"unknown check {', '.join(map(repr, strangers))}; the checks are {', '.join(known)}")
    return names


def _operator(op: Any) -> tuple[Any, RegisteredOp | None]:
    registered = op if isinstance(op, RegisteredOp) else find_registered(op)
    if registered is not None:
        return registered.overload, registered
    if isinstance(op, str) and "::" in op:
        namespace, _, name = op.partition("::")
        op = getattr(getattr(torch.ops, namespace), name, None)
    op = unwrapped(op)
    if isinstance(op, torch._ops.OpOverloadPacket):
        op = single_overload(op)
    if not isinstance(op, torch._ops.OpOverload):
        raise SampleError(
            f"opcheck takes an operator such as torch.ops.npu.npu_swiglu, its name, or what register_op returned; got {op!r}"
        )
    return op, None


def _device(overload: Any) -> torch.device:
    """Return the device on which the operator runs: the NPU if it can."""
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


def _given(subject: Subject, samples: Iterable[Any] | None) -> list[Sample]:
    if samples is None:
        raise SampleError(
            f"{subject.overload} is not registered with ascend_graph, so no calls can be drawn for it; give samples="
        )
    return [s if isinstance(s, Sample) else Sample(tuple(s)) for s in samples]


def _check(name: str, subject: Subject, samples: Sequence[Sample], drawer: SampleGenerator | None) -> CheckResult:
    check = CHECKS[name]
    calls, reason, undecided = 0, "", ""
    for sample in samples[: check.samples]:
        try:
            check.function(subject, sample)
            calls += 1
        except NotApplicable as skipped:
            if isinstance(skipped, Undecided):
                undecided = undecided or f"{skipped} {sample}"
            reason = reason or str(skipped)
        except (Violation, CallRefused) as found:
            faulty = isinstance(found, Faulted)
            smallest, message = smallest_violation(check.function, subject, sample, str(found), drawer, faulty=faulty)
            return CheckResult(name, CheckState.FAILED, calls, message, str(smallest))
        except Exception as error:  # a check that cannot end is a finding: the operator gave what no operator gives
            return CheckResult(name, CheckState.FAILED, calls, first_line(error), str(sample))
    if undecided and not calls:
        return CheckResult(name, CheckState.FAILED, 0, f"no call was judged: {undecided}")
    return CheckResult(name, CheckState.PASSED if calls else CheckState.SKIPPED, calls, "" if calls else reason)


def _alone(
    name: str,
    subject: Subject,
    samples: Sequence[Sample],
    drawer: SampleGenerator | None,
    before: Sequence[CheckResult],
) -> CheckResult:
    if name == "recompilations":
        return _recompilations(subject, samples, drawer)
    if drawer is None:
        return CheckResult(
            name, CheckState.SKIPPED, message="calls are drawn for it, which needs a relation and no samples="
        )
    return dtype_checks.dtypes(subject, drawer) if name == "dtypes" else large(subject, drawer, before)


def _recompilations(subject: Subject, samples: Sequence[Sample], drawer: SampleGenerator | None) -> CheckResult:
    if drawer is not None:
        # PyTorch takes sizes that are equal in the first call for one: that call has as many different ones as there are.
        family = [drawer.draw(0, sizes=range(4, 34, 2), absent=[], plain=True, values=n) for n in range(3)]
        samples = [s for s in family if s is not None and _runs(subject, s)]
        samples.sort(key=lambda one: len({size for t in one.tensors for size in t.shape}), reverse=True)
    samples = max(families(samples), key=len, default=[])
    if len({str(sample) for sample in samples}) < 2:
        return CheckResult(
            "recompilations", CheckState.SKIPPED, message="no two calls that differ in sizes alone were found"
        )
    try:
        graph_checks.recompilations(subject, samples)
    except NotApplicable as skipped:
        return CheckResult("recompilations", CheckState.SKIPPED, message=str(skipped))
    except Violation as found:
        return CheckResult("recompilations", CheckState.FAILED, 0, str(found), "; ".join(map(str, samples)))
    return CheckResult("recompilations", CheckState.PASSED, len(samples))


def _runs(subject: Subject, sample: Sample) -> bool:
    try:
        subject.run(sample)
    except (CallRefused, Faulted):
        return False
    return True

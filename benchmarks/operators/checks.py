"""Checks of one operator of PyTorch's database: its calls, their samples, and the results."""

from __future__ import annotations

import itertools
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.opinfo.core import ForeachFuncInfo, OpInfo, SampleInput

from benchmarks.operators import calls, layouts
from benchmarks.operators.captures import refusal
from benchmarks.operators.comparison import Call, ComparisonVerdict, Raised, attempt, compare
from benchmarks.operators.trees import Mover, map_leaves, tensors

#: Number of samples for the checks that hardly depend on the sample.
FEW = 2


@dataclass(frozen=True)
class CheckMismatch:
    """Comparison whose sides were not equal."""

    operator: str
    dtype: str
    sample: int
    check: str
    verdict: ComparisonVerdict
    message: str


@dataclass
class CheckTally:
    """Tally of the results for one operator and dtype."""

    samples: int = 0
    verdicts: Counter[tuple[str, ComparisonVerdict]] = field(default_factory=Counter)
    outcomes: list[CheckMismatch] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class CheckPlan:
    """Plan of checks: the number of samples, the :data:`CHECKS` to run, and the device."""

    samples: int = 5
    checks: tuple[str, ...] = ()
    device: str = "npu"


def _may_meet(op: Callable[..., Any], tree: Any, device: str, stay: frozenset[int]) -> bool:
    """Return whether the call may mix tensors of these devices: PyTorch's fake tensors know devices, but no values."""
    moved = Mover(device, stay)(tree)
    with warnings.catch_warnings(), FakeTensorMode() as mode:
        warnings.simplefilter("ignore")
        try:
            value, args, kwargs = map_leaves(lambda x: mode.from_tensor(x) if isinstance(x, torch.Tensor) else x, moved)
            op(value, *args, **kwargs)
        except Exception:  # of any type: it does not take them
            return False
    return True


def _devices(op: Callable[..., Any], tree: Any, device: str) -> tuple[ComparisonVerdict, str]:
    """Compare a call with all but the first tensor on the CPU: it is refused, or correct if PyTorch allows it."""
    stay = frozenset(range(1, len(tensors(tree))))
    call = partial(calls.forward, op)
    result = attempt(call, tree, device, stay=stay)
    if isinstance(result, Raised) and "Expected all tensors to be on the same device" in result.text:
        return ComparisonVerdict.REFUSED, ""
    if _may_meet(op, tree, device, stay):
        return compare(call, tree, device, stay=stay)
    if isinstance(result, Raised):
        return ComparisonVerdict.REFUSED, ""
    return ComparisonVerdict.LENIENT, "accepts tensors of two devices, which PyTorch's fake tensors refuse"


def _noncontiguous(t: torch.Tensor) -> torch.Tensor:
    """Return the same values with a gap between any two of a row."""
    wide = torch.stack([t.detach(), torch.full_like(t.detach(), 7)], -1)
    return wide[..., 0]


def _arguments(sample: SampleInput) -> Any:
    return (sample.input, tuple(sample.args), dict(sample.kwargs))


def _detached(tree: Any) -> Any:
    return map_leaves(lambda leaf: leaf.detach() if isinstance(leaf, torch.Tensor) else leaf, tree)


def _replace_tensors(f: Callable[[torch.Tensor], torch.Tensor], tree: Any) -> Any:
    def leaf(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            return value
        made = f(value.detach())
        return made.requires_grad_() if value.requires_grad else made

    return map_leaves(leaf, tree)


@dataclass(frozen=True)
class ValueComparison:
    """Comparison to be made."""

    check: str
    call: Call
    tree: Any
    moments: bool = False


def _out_cases(op: OpInfo, tree: Any, few: bool) -> Iterator[ValueComparison]:
    plain = _detached(tree)
    result = attempt(lambda t: op(t[0], *t[1], **t[2]), plain, "cpu")
    flat = tensors(result)
    if isinstance(result, Raised) or not flat or any(t.layout is not torch.strided for t in flat):
        return
    if not isinstance(result, torch.Tensor | tuple):
        return
    call = partial(calls.with_out, op)

    def outs(f: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        return f(result) if isinstance(result, torch.Tensor) else tuple(f(t) for t in flat)

    yield ValueComparison("out", call, (plain, outs(lambda t: torch.full(t.shape, 3, dtype=t.dtype))))
    yield ValueComparison("out empty", call, (plain, outs(lambda t: torch.empty(0, dtype=t.dtype))))
    gapped = outs(lambda t: _noncontiguous(torch.full(t.shape, 3, dtype=t.dtype)))
    yield ValueComparison("out strided", partial(calls.with_gapped_out, op), (plain, gapped))
    if not few:
        return
    yield ValueComparison("out shape", call, (plain, outs(lambda t: torch.full((*t.shape, 2), 3, dtype=t.dtype))))
    for dtype in (torch.int64, torch.float64):
        if any(t.dtype != dtype for t in flat):
            yield ValueComparison(
                f"out {str(dtype)[6:]}", call, (plain, outs(lambda t, d=dtype: torch.full(t.shape, 3, dtype=d)))
            )


def _cases(op: OpInfo, sample: SampleInput, dtype: torch.dtype, few: bool) -> Iterator[ValueComparison]:
    tree = _arguments(sample)
    process = sample.output_process_fn_grad
    gradients = any(calls.differentiable(t) for t in tensors(tree))
    yield ValueComparison("forward", partial(calls.forward, op), tree, moments=few)
    if few and not any(t.device.type == "meta" for t in tensors(tree)):
        yield ValueComparison("captured", partial(calls.captured, op), (tree, torch.device("cpu")))
    if gradients:
        yield ValueComparison("backward", partial(calls.gradients, op, process), tree)
        if op.supports_forward_ad:
            yield ValueComparison("forward AD", partial(calls.tangents, op), tree)
    if op.supports_out:
        yield from _out_cases(op, tree, few)
    inplace = op.get_inplace()
    if inplace is not None and not sample.broadcasts_input:
        yield ValueComparison("in place", partial(calls.in_place, inplace), _detached(tree))
        if gradients and op.supports_inplace_autograd:
            yield ValueComparison("in place backward", partial(calls.in_place_gradients, inplace, process), tree)
    variants: list[tuple[str, Callable[[torch.Tensor], torch.Tensor]]] = [("noncontiguous", _noncontiguous)]
    if dtype.is_complex:
        variants.append(("conjugate", lambda t: t.conj_physical().conj() if t.is_complex() else t))
    if few and (dtype.is_complex or dtype.is_floating_point):
        variants.append(("negative", lambda t: torch._neg_view(-t) if t.is_complex() or t.is_floating_point() else t))
    for name, variant in variants:
        changed = _replace_tensors(variant, tree)
        yield ValueComparison(name, partial(calls.forward, op), changed)
        if gradients:
            yield ValueComparison(f"{name} backward", partial(calls.gradients, op, process), changed)
        if inplace is not None and not sample.broadcasts_input:
            yield ValueComparison(f"{name} in place", partial(calls.in_place, inplace), _detached(changed))


CHECKS = (
    *("forward", "backward", "forward AD", "in place", "in place backward"),
    *("out", "out empty", "out strided", "out shape", "out int64", "out float64"),
    *(
        f"{kind}{part}"
        for kind in ("noncontiguous", "conjugate", "negative")
        for part in ("", " backward", " in place")
    ),
    *("captured", "devices", "errors"),
    *layouts.CHECKS,
)


#: Names of PyTorch's databases: its operators, and those on lists of tensors.
OPERATORS, FOREACH = "op_db", "foreach"


@cache
def database(name: str) -> dict[str, OpInfo]:
    """Return a database's entries by their full names."""
    from torch.testing._internal import common_methods_invocations as made

    entries = made.op_db
    if name == FOREACH:
        kinds = ("unary", "binary", "pointwise", "reduce", "other")
        entries = [op for kind in kinds for op in getattr(made, f"foreach_{kind}_op_db")]
    return {op.full_name: op for op in entries}


def dtypes_of(op: OpInfo, chosen: Sequence[str] = ()) -> list[torch.dtype]:
    """Return the tested dtypes that the CPU's kernel supports: the chosen ones, or one of each family.

    The families are float32, integers, complex dtypes and bool.
    """
    supported = op.supported_dtypes("cpu")
    if chosen:
        return [d for d in (getattr(torch, name) for name in chosen) if d in supported]
    families = (
        (torch.float32,),
        (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
        (torch.complex64, torch.complex128),
        (torch.bool,),
    )
    found = [next((d for d in family if d in supported), None) for family in families]
    return [d for d in found if d is not None]


def _samples(op: OpInfo, dtype: torch.dtype, count: int, device: str = "cpu") -> Iterator[SampleInput]:
    torch.manual_seed(zlib.crc32(f"{op.full_name} {dtype}".encode()))
    gradients = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from itertools.islice(op.sample_inputs(device, dtype, requires_grad=gradients), count)


def _staying(op: OpInfo, dtype: torch.dtype, sample: int, device: str) -> frozenset[int]:
    """Return the indices of a sample's tensors that the database keeps on the CPU for every device."""
    there = next(itertools.islice(_samples(op, dtype, sample + 1, device), sample, None))
    return frozenset(i for i, t in enumerate(tensors(_arguments(there))) if t.device.type == "cpu")


def check_operator(
    op: OpInfo,
    dtype: torch.dtype,
    plan: CheckPlan,
    *,
    skip: frozenset[tuple[int, str]] = frozenset(),
    starting: Callable[[int, str], None] = lambda sample, check: None,
) -> CheckTally:
    """Make every comparison of one operator and dtype; `starting` is called before each with its sample and check.

    Args:
        skip: comparisons to leave out, by sample and check: those that ended a process before.
    """
    tally = CheckTally()
    name, type_name = op.full_name, str(dtype)[6:]

    def judge(i: int, case: ValueComparison) -> None:
        if (plan.checks and case.check not in plan.checks) or (i, case.check) in skip:
            return
        starting(i, case.check)
        verdict, message = compare(case.call, case.tree, plan.device, moments=case.moments)
        if verdict is ComparisonVerdict.RAISES and (stay := staying(i)):
            verdict, message = compare(case.call, case.tree, plan.device, moments=case.moments, stay=stay)
        if case.check == "captured" and verdict is ComparisonVerdict.RAISES and (reason := refusal(message)):
            verdict, message = ComparisonVerdict.UNCAPTURED, f"{reason} ({message})"
        note(i, case.check, verdict, message)

    def judge_devices(i: int, sample: SampleInput) -> None:
        tree = _detached(_arguments(sample))
        found = tensors(tree)
        chosen = not plan.checks or "devices" in plan.checks
        if not chosen or (i, "devices") in skip or len(found) < 2 or any(t.dim() == 0 or t.numel() == 0 for t in found):
            return
        starting(i, "devices")
        if not staying(i):
            note(i, "devices", *_devices(op, tree, plan.device))

    def judge_layouts(i: int, sample: SampleInput) -> None:
        tree = _arguments(sample)
        for check, call, changed in layouts.layout_cases(op, sample.output_process_fn_grad, tree, _replace_tensors):
            if (plan.checks and check not in plan.checks) or (i, check) in skip:
                continue
            starting(i, check)
            note(i, check, *layouts.compare_layouts(call, changed, plan.device))

    def note(i: int, check: str, verdict: ComparisonVerdict, message: str) -> None:
        tally.verdicts[check, verdict] += 1
        if verdict not in (ComparisonVerdict.EQUAL, ComparisonVerdict.REFUSED):
            tally.outcomes.append(CheckMismatch(name, type_name, i, check, verdict, message))

    @cache
    def staying(i: int) -> frozenset[int]:
        try:
            return _staying(op, dtype, i, plan.device)
        except Exception:  # no samples for the device: then nothing is known to stay
            return frozenset()

    def no_sample(i: int, check: str, error: Exception) -> None:
        tally.verdicts[check, ComparisonVerdict.NO_SAMPLE] += 1
        tally.outcomes.append(
            CheckMismatch(name, type_name, i, check, ComparisonVerdict.NO_SAMPLE, f"{type(error).__name__}: {error}")
        )

    starting(0, "samples")
    try:
        samples = list(_samples(op, dtype, plan.samples))
    except Exception as error:
        samples = []
        no_sample(0, "samples", error)
    tally.samples = len(samples)
    for i, sample in enumerate(samples):
        for case in _cases(op, sample, dtype, few=i < FEW):
            judge(i, case)
    if dtype == dtypes_of(op)[0] or plan.checks:
        for i, sample in enumerate(samples[:FEW]):
            judge_layouts(i, sample)
    if dtype == dtypes_of(op)[0]:
        if not isinstance(op, ForeachFuncInfo):  # whose tensors are each others' strangers
            for i, sample in enumerate(samples[:FEW]):
                judge_devices(i, sample)
        if op.error_inputs_func is not None:
            try:
                errors = list(op.error_inputs("cpu"))
            except Exception as error:
                errors = []
                no_sample(0, "errors", error)
            for i, wrong in enumerate(errors):
                judge(i, ValueComparison("errors", partial(calls.forward, op), _arguments(wrong.sample_input)))
    return tally

"""Checks of an operator's gradients against those of its reference and against finite differences."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from ascend_graph.checks.calls.samples import Sample
from ascend_graph.checks.kinds.subject import NotApplicable, Subject, Violation, Way, first_line, flattened, refusal
from ascend_graph.checks.results import CallResult, differences


def _leaves_for_gradient(sample: Sample) -> tuple[Sample, list[torch.Tensor]]:
    wanted: list[torch.Tensor] = []

    def track(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.dtype.is_floating_point:
            return tensor
        tensor.requires_grad_()
        wanted.append(tensor)
        return tensor

    args, kwargs = tree_map_only(torch.Tensor, track, (sample.args, dict(sample.kwargs)))
    return Sample(args, kwargs, sample.why), wanted


def gradients(
    subject: Subject,
    sample: Sample,
    way: Way | None = None,
    weights: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> tuple[list[Any], Any]:
    """Return the gradients of the weighted sum of the results, and the results; equal shapes get equal weights."""
    tracked, wanted = _leaves_for_gradient(sample.on(subject.device))
    if not wanted or any(subject.written()):
        raise NotApplicable("no argument has a gradient" if not wanted else "the operator writes its arguments")
    torch.manual_seed(0)
    try:
        returned = subject.call(tracked, way)
    except Exception as error:  # whatever an operator raises
        if "not differentiable" in str(error):
            raise NotApplicable(first_line(error)) from error
        raise refusal(error) from error
    results = [t for t in flattened(returned) if t.requires_grad]
    if not results:
        raise NotApplicable("no result has a gradient")
    try:
        found = torch.autograd.grad(results, wanted, [(weights or _weights)(t) for t in results], allow_unused=True)
    except (RuntimeError, NotImplementedError) as error:
        # Messages of torch for an operator without a formula or a gradient.
        if re.search(r"derivative for \S+ is not implemented|has no gradient|no autograd formula was", str(error)):
            raise NotApplicable(first_line(error)) from error
        raise
    subject.synchronize()
    return [None if g is None else g.detach().cpu() for g in found], returned


def _weights(tensor: torch.Tensor) -> torch.Tensor:
    generator = torch.Generator().manual_seed(tensor.numel())
    return torch.randn(tensor.shape, generator=generator).to(tensor.dtype).to(tensor.device)


def _expanded(tensor: torch.Tensor) -> torch.Tensor:
    return torch.ones((), dtype=tensor.dtype, device=tensor.device).expand(tensor.shape)


def _with_gaps(tensor: torch.Tensor) -> torch.Tensor:
    weights = _weights(tensor)
    room = torch.zeros((*weights.shape, 2), dtype=weights.dtype, device=weights.device)
    room[..., 0] = weights
    return room[..., 0]


def _check_layouts(subject: Subject, sample: Sample, found: Sequence[Any]) -> None:
    """Check that gradients of results in other layouts mean the same as contiguous ones."""
    ones, _ = gradients(subject, sample, weights=lambda t: _expanded(t).contiguous())
    for weights, wanted, name in ((_expanded, ones, "expanded, as sum() makes it"), (_with_gaps, found, "with gaps")):
        try:
            got, _ = gradients(subject, sample, weights=weights)
        except NotApplicable:
            return
        except Exception as error:  # whatever a gradient raises
            raise Violation(f"where the gradient of a result is {name}, backward fails: {first_line(error)}") from error
        what = f"that of contiguous gradients, where the gradient of a result is {name}"
        _compare_gradients(subject, got, wanted, what)


def gradient(subject: Subject, sample: Sample) -> None:
    """Check the gradient against that of the reference, or without one against finite differences."""
    if not subject.differentiable:
        raise NotApplicable("the operator has no gradient")
    if any(t.dtype in (torch.float16, torch.bfloat16) for t in sample.tensors):
        raise NotApplicable("half precision")
    found, returned = gradients(subject, sample)
    _check_values(subject, sample, found, returned)
    _check_layouts(subject, sample, found)


def _check_values(subject: Subject, sample: Sample, found: Sequence[Any], returned: Any) -> None:
    if subject.reference is not None:
        on_cpu = Subject(subject.reference, None, torch.device("cpu"))
        tracked, wanted = _leaves_for_gradient(sample.on(torch.device("cpu")))
        own, returned = flattened(returned), on_cpu.overload(*tracked.args, **tracked.kwargs)
        results = _compared(subject, own, flattened(returned))
        if results:
            right = torch.autograd.grad(results, wanted, [_weights(t) for t in results], allow_unused=True)
            _compare_gradients(subject, found, right, "the gradient of the reference")
            return
    _check_by_differences(subject, sample, found, [t.requires_grad for t in flattened(returned)])


def _compared(subject: Subject, own: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return the reference's results that have a gradient, without those that are constant in the operator."""
    constant = {n for n, (a, b) in enumerate(zip(own, others, strict=False)) if b.requires_grad and not a.requires_grad}
    for number in sorted(constant):
        subject.remarks.append(f"return {number} has no gradient here, and one in the reference, which is left out")
    return [t for n, t in enumerate(others) if t.requires_grad and n not in constant]


def _compare_gradients(subject: Subject, found: Sequence[Any], right: Sequence[Any], what: str) -> None:
    for number, (got, wanted_) in enumerate(zip(found, right, strict=True)):
        if got is None and wanted_ is None:
            continue
        a = torch.zeros_like(wanted_) if got is None else got
        b = torch.zeros_like(got) if wanted_ is None else wanted_
        wanted = CallResult((b.detach().cpu(),), ())
        tolerances = subject.tolerances.overall(1e-3, 1e-4)
        text = "; ".join(differences(CallResult((a,), ()), wanted, tolerances=tolerances))
        if text:
            raise Violation(f"the gradient of tensor {number} is not {what}: {text.partition(': ')[2]}")


def _check_by_differences(subject: Subject, sample: Sample, found: Sequence[Any], counted: Sequence[bool]) -> None:
    """Check gradients by central differences along random directions, for which single precision suffices."""
    generator = torch.Generator().manual_seed(0)
    index = -1
    floating = [t for t in sample.tensors if t.dtype.is_floating_point]
    for tensor, gradient_ in zip(floating, found, strict=True):
        index += 1
        if tensor.numel() == 0:
            continue
        direction = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
        direction /= max(float(direction.norm()), 1e-9)
        estimates = []
        for step in (2e-2, 1e-2):
            sides = [_weighted(subject, sample, tensor, direction * sign * step, counted) for sign in (1, -1)]
            estimates.append((sides[0] - sides[1]) / (2 * step))
        said = 0.0 if gradient_ is None else float((gradient_.double() * direction).sum())
        # Where two step sizes disagree the function has a kink or too few digits; their distance bounds the error.
        slack = 4 * abs(estimates[0] - estimates[1]) + 1e-2 * max(1.0, abs(estimates[1]))
        if abs(said - estimates[1]) > slack:
            raise Violation(
                f"the gradient of tensor {index} along a random direction is {said:.5g}; expected {estimates[1]:.5g}, "
                "as the results change"
            )


def _weighted(
    subject: Subject, sample: Sample, tensor: torch.Tensor, change: torch.Tensor, counted: Sequence[bool]
) -> float:
    """Return the weighted sum of the results that have a gradient, with one tensor changed."""

    def moved(other: torch.Tensor) -> torch.Tensor:
        return (other.double() + change).to(other.dtype) if other is tensor else other

    args, kwargs = tree_map_only(torch.Tensor, moved, (sample.args, dict(sample.kwargs)))
    result = subject.run(Sample(args, kwargs, sample.why))
    results = [t for t in result.returns if isinstance(t, torch.Tensor)]
    summed = [t for t, has_gradient in zip(results, counted, strict=True) if has_gradient]
    return sum(float((t.double() * _weights(t).double()).sum()) for t in summed)

"""Checks of an operator's gradients and tangents: backward mode, and forward mode against finite differences."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import forward_ad
from torch.utils._pytree import tree_map_only

from ascend_graph.checks.calls.samples import Sample
from ascend_graph.checks.kinds import gradient_checks
from ascend_graph.checks.kinds.subject import NotApplicable, Subject, Violation
from ascend_graph.checks.results import leaves


def gradient(subject: Subject, sample: Sample) -> None:
    """Check the gradient against the reference or finite differences, and the tangent against finite differences."""
    has_tangent = subject.registered is not None and "tangent" in subject.registered.evidence
    try:
        gradient_checks.gradient(subject, sample)
    except NotApplicable:
        half = any(t.dtype in (torch.float16, torch.bfloat16) for t in sample.tensors)
        if half or not has_tangent or not check_tangents(subject, sample):
            raise
    else:
        if has_tangent:
            check_tangents(subject, sample)


def check_tangents(subject: Subject, sample: Sample) -> bool:
    """Compare the tangents of a call along random directions with central differences.

    Returns:
        True if there was something to compare: an operator may refuse forward mode.

    Raises:
        Violation: The tangent differs from the change of the results.
    """
    directions = _directions(sample)
    if not directions:
        return False
    try:
        said, counted = _said(subject, sample, directions)
    except NotImplementedError:
        return False
    if not any(counted):
        return False
    estimates = []
    for step in (2e-2, 1e-2):
        sides = [_moved(subject, sample, directions, sign * step, counted) for sign in (1, -1)]
        estimates.append((sides[0] - sides[1]) / (2 * step))
    # Where two step sizes disagree the function has a kink or too few digits; their distance bounds the error.
    slack = 4 * abs(estimates[0] - estimates[1]) + 1e-2 * max(1.0, abs(estimates[1]))
    if abs(said - estimates[1]) > slack:
        raise Violation(
            f"the tangent of forward mode along a random direction is {said:.5g}; expected {estimates[1]:.5g}, as the "
            "results change"
        )
    return True


def _floats(value: Any) -> list[torch.Tensor]:
    return [t for t in leaves(value) if isinstance(t, torch.Tensor) and t.dtype.is_floating_point]


def _weights(tensor: torch.Tensor) -> torch.Tensor:
    generator = torch.Generator().manual_seed(tensor.numel())
    return torch.randn(tensor.shape, generator=generator).to(tensor.device)


def _directions(sample: Sample) -> dict[int, torch.Tensor]:
    """Return a random direction for each non-empty floating-point tensor, by its number."""
    generator = torch.Generator().manual_seed(1)
    found: dict[int, torch.Tensor] = {}
    for n, tensor in enumerate(sample.tensors):
        if tensor.dtype.is_floating_point and tensor.numel():
            direction = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
            found[n] = direction / max(float(direction.norm()), 1e-9)
    return found


def _map(sample: Sample, change: Any) -> Sample:
    """Return the sample with ``change(number, tensor)`` in place of each tensor."""
    numbers = iter(range(len(sample.tensors)))
    args, kwargs = tree_map_only(torch.Tensor, lambda t: change(next(numbers), t), (sample.args, dict(sample.kwargs)))
    return Sample(args, kwargs, sample.why)


def _said(subject: Subject, sample: Sample, directions: dict[int, torch.Tensor]) -> tuple[float, list[bool]]:
    """Return the weighted sum of the tangents, and for each result whether it has one."""
    with torch.no_grad(), forward_ad.dual_level():

        def dual(number: int, tensor: torch.Tensor) -> torch.Tensor:
            if number not in directions:
                return tensor
            made: torch.Tensor = forward_ad.make_dual(tensor, directions[number].to(tensor.dtype).to(tensor.device))
            return made

        torch.manual_seed(0)
        results = _floats(subject.call(_map(sample.on(subject.device), dual)))
        tangents = [forward_ad.unpack_dual(t).tangent for t in results]
        subject.synchronize()
        said = sum(float((v.double() * _weights(v).double()).sum()) for v in tangents if v is not None)
    return said, [v is not None for v in tangents]


def _moved(
    subject: Subject, sample: Sample, directions: dict[int, torch.Tensor], step: float, counted: list[bool]
) -> float:
    """Return the weighted sum of the results that have a tangent, with all tensors moved along their directions."""

    def moved(number: int, tensor: torch.Tensor) -> torch.Tensor:
        if number not in directions:
            return tensor
        return (tensor.double() + directions[number] * step).to(tensor.dtype)

    results = _floats(subject.run(_map(sample, moved)).returns)
    summed = [t for t, has_tangent in zip(results, counted, strict=True) if has_tangent]
    return sum(float((t.double() * _weights(t).double()).sum()) for t in summed)

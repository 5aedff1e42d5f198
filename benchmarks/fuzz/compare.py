"""Comparison of two results of one program: values up to the program's own rounding, memory, gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.fuzz.modes import TRANSFORMS, ModeResult, call_once
from benchmarks.fuzz.programs import FuzzProgram, make_arguments
from benchmarks.operators.trees import difference, tensors

#: Number of runs with disturbed rounding, and the multiple of the largest effect that is allowed.
DISTURBED, FACTOR = 4, 16


class _Disturbed(TorchDispatchMode):
    """Dispatch mode that multiplies every operator's results by a number close to one, to show effects of rounding."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        returns = func._schema.returns
        for spec, value in zip(returns, result if isinstance(result, tuple) else (result,), strict=False):
            if (
                isinstance(value, torch.Tensor)
                and value.is_floating_point()
                and (spec.alias_info is None or spec.alias_info.is_write)
                and torch._debug_has_internal_overlap(value) != 1  # it cannot be written
            ):
                noise = torch.rand(value.shape, generator=self._generator, dtype=torch.float64) * 4 - 2
                value.copy_((value.double() * (1 + noise * torch.finfo(value.dtype).eps)).to(value.dtype))
        return result


def _disturbed(program: FuzzProgram, call: int) -> list[ModeResult]:
    function = program.function()
    found = []
    for seed in range(DISTURBED):
        arguments = make_arguments(program, call)
        with _Disturbed(seed):
            found.append(call_once(function, arguments, "cpu", program.grad))
    return found


def _undetermined(actual: Any, expected: Any, others: Sequence[Any]) -> tuple[Any, bool]:
    """Replace differences that rounding explains by the expected values; return the tensors and true if comparable."""
    explained = []
    for i, (a, e) in enumerate(zip(tensors(actual), tensors(expected), strict=True)):
        if a.shape != e.shape or a.dtype != e.dtype:
            return actual, False
        drawn = [tensors(o)[i].detach() for o in others]
        x, y = a.detach(), e.detach()
        if not y.is_floating_point():
            free = torch.stack([d != y for d in drawn]).any(0) if drawn else torch.zeros_like(y, dtype=torch.bool)
        else:
            spread = torch.stack([(d.double() - y.double()).abs() for d in drawn]).amax(0)
            free = (x.double() - y.double()).abs() <= FACTOR * spread
        explained.append(torch.where(free, y, x))
    return explained, True


def differs(
    program: FuzzProgram, mode: str, call: int, actual: ModeResult, expected: ModeResult
) -> tuple[str, str] | None:
    """Return the kind and the description of the difference, or None."""
    for what in ("outputs", "arguments", "gradients"):
        message = difference(getattr(actual, what), getattr(expected, what), "cpu")
        if message is None:
            continue
        if difference(getattr(actual, what), getattr(expected, what), "cpu", with_values=False):
            return f"form of {what}", message
        if mode in TRANSFORMS:  # a dispatch mode does not see inside their transforms
            return f"value of {what}", message
        others = [getattr(r, what) for r in _disturbed(program, call)]
        rest, comparable = _undetermined(getattr(actual, what), getattr(expected, what), others)
        if comparable:
            wanted = [t.detach() for t in tensors(getattr(expected, what))]
            message = difference(rest, wanted, "cpu")
        if message:
            return f"value of {what}", message
    if actual.earlier:
        return "value of earlier arguments", ", ".join(actual.earlier)
    if actual.shared != expected.shared:
        missing = set(expected.shared) - set(actual.shared)
        extra = set(actual.shared) - set(expected.shared)
        kind = "memory is not shared" if missing else "memory is shared"
        return kind, ", ".join(f"{a} and {b}" for a, b in sorted(missing or extra))
    return None


def without_memory(result: ModeResult, *, gradients: bool = False) -> ModeResult:
    """Return the result without its record of shared memory, and without gradients if ``gradients`` is true."""
    return replace(result, shared=(), gradients=() if gradients else result.gradients)


def without_lost_sharing(actual: ModeResult, wanted: ModeResult) -> tuple[ModeResult, ModeResult]:
    """Return two results without the record of outputs that share memory with each other in ``wanted``.

    torch.compile promises such sharing only if gradients need it. Outputs that share memory in ``actual`` alone stay.
    """
    outputs = {pair for pair in wanted.shared if not pair[0].startswith("argument")}

    def kept(result: ModeResult) -> ModeResult:
        return replace(result, shared=tuple(pair for pair in result.shared if pair not in outputs))

    return kept(actual), kept(wanted)

"""Inference of a step's outputs on tensors without data."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ascend_graph.host.runtime.engine.program import Step


def infer_outputs(
    step: Step, arguments: Sequence[Any], constants: Mapping[int, torch.Tensor]
) -> Sequence[torch.Tensor | None]:
    """Infer a step's outputs for tensors without data; return nothing if the kernel cannot tell.

    Args:
        step: the step.
        arguments: the inputs, without data but for those whose values the kernel's shapes depend on.
        constants: the tensors of the slots that hold constants, which a kernel that needs data gets.
    """
    kernel = step.kernel
    function = functools.partial(kernel.infer, **step.attrs) if kernel.infer is not None else step.function()
    with contextlib.suppress(Exception):  # whatever a kernel does that meets tensors without data
        return step.outputs(function(*arguments))
    if kernel.communicates or kernel.infer is not None:
        return ()
    # A kernel may need data, whatever it is: one of NumPy, or of an extension. Its shapes count where data does not matter.
    known = [[constants.get(i) for i in s] if isinstance(s, tuple) else constants.get(s) for s in step.sources]
    found = []
    for fill in (torch.zeros_like, torch.ones_like):
        with contextlib.suppress(
            Exception
        ):  # for this data it has no result; whether it has one for real data shows when it runs
            found.append(step.outputs(function(*[_filled(*pair, fill) for pair in zip(arguments, known, strict=True)])))
    return found[0] if found and all(shape_signature(f) == shape_signature(found[0]) for f in found) else ()


def shape_signature(value: Any) -> Any:
    """Return a key for shapes without data."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape, value.stride()
    return tuple(map(shape_signature, value)) if isinstance(value, list) else value


def _filled(value: Any, known: Any, fill: Callable[..., torch.Tensor]) -> Any:
    if isinstance(value, list):
        return [_filled(*pair, fill) for pair in zip(value, known, strict=True)]
    if not isinstance(value, torch.Tensor) or not value.is_meta:
        return value
    return fill(value, device="cpu") if known is None else known

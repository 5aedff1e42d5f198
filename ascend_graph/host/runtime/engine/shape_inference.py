"""Inference of a step's outputs on tensors without data."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from ascend_graph.host.runtime.engine.program import Step


def infer_outputs(step: Step, arguments: Sequence[Any]) -> Sequence[torch.Tensor | None]:
    """Infer a step's outputs for tensors without data; return nothing if the kernel cannot tell."""
    kernel = step.kernel
    function = functools.partial(kernel.infer, **step.attrs) if kernel.infer is not None else step.function()
    try:
        return step.outputs(function(*arguments))
    except Exception:  # whatever a kernel does that meets tensors without data
        if kernel.communicates:
            return ()
        try:  # a kernel may need data, whatever it is: one of NumPy, or of an extension
            return step.outputs(function(*[_zeros(a) for a in arguments]))
        except Exception:
            return ()  # for zeros it has no result; whether it has one for real data shows when it runs


def shape_signature(value: Any) -> Any:
    """Return a key for shapes without data."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape, value.stride()
    return tuple(map(shape_signature, value)) if isinstance(value, list) else value


def _zeros(value: Any) -> Any:
    if isinstance(value, list):
        return [_zeros(item) for item in value]
    return torch.zeros_like(value, device="cpu") if isinstance(value, torch.Tensor) and value.is_meta else value

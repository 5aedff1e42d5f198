"""Reasons why a call cannot be captured: the host runtime's message against what PyTorch and torch_npu declare."""

from __future__ import annotations

import re

import torch

#: Reasons of refusals, by pattern of the message in _REFUSALS; the named operator must confirm the reason.
_READS = "what comes out depends on values"
_ON_CPU = "torch_npu computes it on the CPU"
_SEEDED = "torch_npu's kernel takes its seed from the host"
_REFUSALS = {
    r"(aten::[\w.]+) cannot be captured: torch_npu has no kernel": _ON_CPU,
    r"(aten::[\w.]+) cannot be captured: torch_npu's kernel takes seed and offset from the host": _SEEDED,
    r"(aten::[\w.]+) cannot be captured: .*depends on the values of its arguments": _READS,
    r"(aten::_local_scalar_dense)|LocalScalarDense": "it reads a value on the host",
    r"(aten::copy_) from \S+ to \S+: the stream is capturing a model": "it copies between host and device",
}


def _is_true(reason: str, name: str) -> bool:
    operator, _, overload = name.removeprefix("aten::").partition(".")
    tags = getattr(getattr(torch.ops.aten, operator), overload or "default").tags
    if reason == _READS:
        return not {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}.isdisjoint(tags)
    if reason == _ON_CPU:  # the dump has torch_npu's kernels too, below those that have replaced them
        return "RegisterNPU" not in torch._C._dispatch_dump(name)
    if reason == _SEEDED:
        return torch.Tag.nondeterministic_seeded in tags
    return True


def refusal(message: str) -> str | None:
    """Return why a device could not capture the call either; None if it could or the reason is unknown."""
    for pattern, reason in _REFUSALS.items():
        if match := re.search(pattern, message, re.DOTALL):
            return reason if match[1] is None or _is_true(reason, match[1]) else None
    return None

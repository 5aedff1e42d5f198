"""Refused captures are excused only where PyTorch and torch_npu say the same of the operator."""

from __future__ import annotations

import pytest

from benchmarks.operators.captures import refusal

ON_CPU = "cannot be captured: torch_npu has no kernel of it"
READS = "cannot be captured: nothing is computed, and what the operator returns depends on the values of its arguments"


@pytest.mark.parametrize(
    ("message", "excused"),
    [
        (f"RuntimeError: aten::digamma.out {ON_CPU}", True),
        (f"RuntimeError: aten::add.out {ON_CPU}", False),
        (f"RuntimeError: aten::nonzero {READS}", True),
        (f"RuntimeError: aten::mm {READS}", False),
        ("RuntimeError: aten::mm cannot be captured: torch_npu's kernel takes seed and offset from the host", False),
        ("RuntimeError: aten::copy_ from cpu to npu:0: the stream is capturing a model, and", True),
        ("RuntimeError: shape mismatch", False),
    ],
)
def test_a_refusal_is_excused_where_it_is_true(message: str, excused: bool) -> None:
    assert (refusal(message) is not None) == excused

"""Gradient operators: one plan for Python's autograd and for generated C++. Imports no torch."""

from __future__ import annotations

from ascend_graph.autograd.plan import IN_PYTHON, Feed, GradientPlan, GradientSource, plan_gradient
from ascend_graph.autograd.signature import Signature, SignatureArgument, SignatureReturn, is_differentiable
from ascend_graph.autograd.wiring import GradientError, Wiring, parse_wiring

__all__ = [
    "IN_PYTHON",
    "Feed",
    "GradientError",
    "GradientPlan",
    "GradientSource",
    "Signature",
    "SignatureArgument",
    "SignatureReturn",
    "Wiring",
    "is_differentiable",
    "parse_wiring",
    "plan_gradient",
]

"""An operator as the gradient of another: one plan, for Python's autograd and for generated C++. No torch."""

from __future__ import annotations

from ascend_graph.gradients.plan import Feed, GradientPlan, Source, plan_gradient
from ascend_graph.gradients.signature import Argument, Result, Signature, is_differentiable
from ascend_graph.gradients.wiring import GradientError, Wiring, parse_wiring

__all__ = [
    "Argument",
    "Feed",
    "GradientError",
    "GradientPlan",
    "Result",
    "Signature",
    "Source",
    "Wiring",
    "is_differentiable",
    "parse_wiring",
    "plan_gradient",
]

"""The host runtime's graph engine: compiles the graphs that TorchAir hands to GE, and runs them with host kernels.

``model`` reads a graph, ``compiler`` makes its nodes steps, ``effects`` says which values may share memory, ``program`` runs
the steps, ``operators`` finds kernels and prototypes.
"""

from ascend_graph.host.engine.compiler import compile_model
from ascend_graph.host.engine.effects import EffectError
from ascend_graph.host.engine.model import GraphCompileError, attr_value, error_text
from ascend_graph.host.engine.operators import describe_operator, documented_prototype, find_kernel
from ascend_graph.host.engine.program import OutputSpec, Plan

__all__ = [
    "EffectError",
    "GraphCompileError",
    "OutputSpec",
    "Plan",
    "attr_value",
    "compile_model",
    "describe_operator",
    "documented_prototype",
    "error_text",
    "find_kernel",
]

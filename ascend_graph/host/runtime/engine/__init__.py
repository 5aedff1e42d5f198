"""Graph engine of the host runtime: compiles the graphs that TorchAir passes to GE, and runs them with host kernels.

``model`` reads a graph, ``compiler`` turns its nodes into steps and ``program`` runs the steps. ``effects`` finds the
values that may share memory, ``operators`` finds kernels and prototypes.
"""

from ascend_graph.host.runtime.engine.compiler import compile_model
from ascend_graph.host.runtime.engine.effects import EffectError
from ascend_graph.host.runtime.engine.model import GraphCompileError, attr_value, error_text
from ascend_graph.host.runtime.engine.operators import describe_operator, documented_prototype, find_kernel
from ascend_graph.host.runtime.engine.program import CompiledGraph, OutputSpec

__all__ = [
    "CompiledGraph",
    "EffectError",
    "GraphCompileError",
    "OutputSpec",
    "attr_value",
    "compile_model",
    "describe_operator",
    "documented_prototype",
    "error_text",
    "find_kernel",
]

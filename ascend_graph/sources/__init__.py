"""Source texts as all readers see them: code without comments, positions, diagnostics and install paths.

The readers of REG_OPs (:mod:`ascend_graph.prototypes`), aclnn headers (:mod:`ascend_graph.aclnn`) and kernels share it.
Pure Python: no torch, no compiler.
"""

from ascend_graph.sources.diagnostics import Diagnosed, Diagnostic, Severity
from ascend_graph.sources.text import SourceError, SourceText, read_source

__all__ = ["Diagnosed", "Diagnostic", "Severity", "SourceError", "SourceText", "read_source"]

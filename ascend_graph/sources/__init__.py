"""C and C++ texts as the readers of this package see them: code without comments, places, remarks; and where packages lie.

What reads REG_OPs (:mod:`ascend_graph.prototypes`), aclnn headers (:mod:`ascend_graph.aclnn`) and kernels shares it. Pure
Python: no torch, no compiler.
"""

from ascend_graph.sources.diagnostics import Diagnostic, Severity
from ascend_graph.sources.text import SourceError, SourceText, read_source

__all__ = ["Diagnostic", "Severity", "SourceError", "SourceText", "read_source"]

"""One REG_OP prototype, one call: custom Ascend operators in eager PyTorch, GE graphs and aclgraph.

The public names are imported on first use, so that ``import ascend_graph`` costs milliseconds and needs neither torch
nor torch_npu; only what runs operators imports them.

>>> import sys, subprocess
>>> code = "import ascend_graph, sys; print('torch' in sys.modules)"
>>> subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
'False'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascend_graph import raw_ops as raw_ops
    from ascend_graph.aclnn import load_aclnn as load_aclnn
    from ascend_graph.binding import BindingWarning as BindingWarning
    from ascend_graph.binding import CannMismatchError as CannMismatchError
    from ascend_graph.binding import CannMismatchWarning as CannMismatchWarning
    from ascend_graph.checks.explain import explain as explain
    from ascend_graph.checks.guard import MetaGuard as MetaGuard
    from ascend_graph.checks.guard import MetaMismatchError as MetaMismatchError
    from ascend_graph.checks.opcheck import opcheck as opcheck
    from ascend_graph.checks.picture.tracing import picture as picture
    from ascend_graph.checks.report import CheckError as CheckError
    from ascend_graph.checks.samples import Sample as Sample
    from ascend_graph.checks.traces import TraceError as TraceError
    from ascend_graph.checks.traces import add_costs as add_costs
    from ascend_graph.dispatch.meta import MetaError as MetaError
    from ascend_graph.errors import AscendGraphError as AscendGraphError
    from ascend_graph.inference import InferenceError as InferenceError
    from ascend_graph.inference import NarrowRelationWarning as NarrowRelationWarning
    from ascend_graph.inference import infer_relation as infer_relation
    from ascend_graph.prototypes import find_prototype as find_prototype
    from ascend_graph.prototypes import load_prototypes as load_prototypes
    from ascend_graph.registration import Argument as Argument
    from ascend_graph.registration import RegisteredOp as RegisteredOp
    from ascend_graph.registration import dtype_number as dtype_number
    from ascend_graph.registration import register_aclnn as register_aclnn
    from ascend_graph.registration import register_op as register_op
    from ascend_graph.registration import registered_ops as registered_ops
    from ascend_graph.registration.batching import VmapLoopWarning as VmapLoopWarning
    from ascend_graph.registration.loops import BatchError as BatchError
    from ascend_graph.registration.meshes import dtensor_backend as dtensor_backend
    from ascend_graph.shapes import Relation as Relation
    from ascend_graph.shapes import RelationError as RelationError
    from ascend_graph.shapes import ShapeError as ShapeError
    from ascend_graph.shapes import parse_relation as parse_relation

_PUBLIC = {
    "Argument": "ascend_graph.registration",
    "AscendGraphError": "ascend_graph.errors",
    "BatchError": "ascend_graph.registration.loops",
    "BindingWarning": "ascend_graph.binding",
    "CannMismatchError": "ascend_graph.binding",
    "CannMismatchWarning": "ascend_graph.binding",
    "CheckError": "ascend_graph.checks.report",
    "InferenceError": "ascend_graph.inference",
    "MetaError": "ascend_graph.dispatch.meta",
    "MetaGuard": "ascend_graph.checks.guard",
    "MetaMismatchError": "ascend_graph.checks.guard",
    "NarrowRelationWarning": "ascend_graph.inference",
    "RegisteredOp": "ascend_graph.registration",
    "Relation": "ascend_graph.shapes",
    "RelationError": "ascend_graph.shapes",
    "Sample": "ascend_graph.checks.samples",
    "ShapeError": "ascend_graph.shapes",
    "TraceError": "ascend_graph.checks.traces",
    "VmapLoopWarning": "ascend_graph.registration.batching",
    "add_costs": "ascend_graph.checks.traces",
    "dtensor_backend": "ascend_graph.registration.meshes",
    "dtype_number": "ascend_graph.registration",
    "explain": "ascend_graph.checks.explain",
    "find_prototype": "ascend_graph.prototypes",
    "infer_relation": "ascend_graph.inference",
    "load_aclnn": "ascend_graph.aclnn",
    "load_prototypes": "ascend_graph.prototypes",
    "opcheck": "ascend_graph.checks.opcheck",
    "parse_relation": "ascend_graph.shapes",
    "picture": "ascend_graph.checks.picture.tracing",
    "raw_ops": "ascend_graph",
    "register_aclnn": "ascend_graph.registration",
    "register_op": "ascend_graph.registration",
    "registered_ops": "ascend_graph.registration",
}

__all__ = sorted(_PUBLIC)  # noqa: PLE0605
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        holder = _PUBLIC[name]
        try:
            importlib.import_module(holder)
        except (ImportError, RuntimeError) as error:  # torch says RuntimeError where torch_npu does not load
            from ascend_graph.errors import AscendGraphError
            from ascend_graph.host.toolkit import without_cann

            if remedy := without_cann(error):
                raise AscendGraphError(f"ascend_graph.{name} needs torch_npu: {remedy}") from None
            raise
        # A public module is named by the package that holds it.
        is_module = holder == __name__
        value = (
            importlib.import_module(f"{holder}.{name}") if is_module else getattr(importlib.import_module(holder), name)
        )
        globals()[name] = value
        return value
    raise AttributeError(f"module 'ascend_graph' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

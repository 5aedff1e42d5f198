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
    from ascend_graph.errors import AscendGraphError as AscendGraphError

_PUBLIC = {
    "AscendGraphError": "ascend_graph.errors",
}

__all__ = sorted(_PUBLIC)  # noqa: PLE0605
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(importlib.import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'ascend_graph' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

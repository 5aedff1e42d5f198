"""Host runtime: CANN's libraries on host memory, on which the stock torch_npu and torchair wheels run without an NPU.

``python -m ascend_graph.host script.py`` starts a process on it. The stub (``__init__.pyi``) lists the names that other
packages use, and each is imported on first use; other packages import no submodule directly.
"""

from ascend_graph.lazy import attributes

__getattr__, __dir__, __all__ = attributes(__name__, __file__)

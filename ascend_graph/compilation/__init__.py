"""Compilation of C++ on this machine: once, with ninja, under a lock, and cached.

A library that links PyTorch must match the installed PyTorch, so it is compiled ahead (``ascend-graph build``) or on
first use. A cached library is used as long as all of its inputs have the same bytes: sources, flags, compiler, the
installed torch and torch_npu, and every header that the compiler read. Nothing stale is ever loaded.
"""

from __future__ import annotations

from ascend_graph.lazy import attributes

__getattr__, __dir__, __all__ = attributes(__name__, __file__)

"""C++ that is compiled on this machine: once, with ninja, under a lock, and cached.

What links PyTorch must match the PyTorch that is installed, so it is compiled against it ahead (``ascend-graph build``) or
on first use. A cached library is used as long as everything it was made from has the same bytes: sources, flags, compiler,
the installed torch and torch_npu, and every header that the compiler says it read. Nothing stale is ever loaded.
"""

from __future__ import annotations

from ascend_graph.compilation.cache import cache_directory, locked
from ascend_graph.compilation.library import CppLibrary, package_directory, torch_library
from ascend_graph.compilation.toolchain import BuildError, compiler, jobs

__all__ = [
    "BuildError",
    "CppLibrary",
    "cache_directory",
    "compiler",
    "jobs",
    "locked",
    "package_directory",
    "torch_library",
]

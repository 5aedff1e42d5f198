"""Kernels of GE's operators on CPU tensors, for the host runtime's graph engine.

Each family of operators is a package, each kind a module. A kernel is a few lines of PyTorch and carries GE's names of
inputs and attrs. Importing this package loads every module in a family.
"""

from importlib import import_module
from pkgutil import iter_modules

from ascend_graph.host.kernels.registry import (
    HostKernel,
    find_host_kernel,
    host_kernel,
    host_kernels,
    plain_kernels,
)

_FAMILIES = ("tensor", "nn", "attention", "sparse_attention", "matmul", "moe", "quantization", "collectives")

for _family in _FAMILIES:
    for _module in iter_modules(import_module(f"{__name__}.{_family}").__path__):
        import_module(f"{__name__}.{_family}.{_module.name}")

__all__ = ["HostKernel", "find_host_kernel", "host_kernel", "host_kernels", "plain_kernels"]

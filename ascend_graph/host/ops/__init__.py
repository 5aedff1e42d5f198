"""GE's operators on CPU tensors: what the host runtime's graph engine computes with.

One module per family; each kernel is a few lines of PyTorch and carries GE's names of inputs and attrs.
"""

from ascend_graph.host.ops import basic
from ascend_graph.host.ops.registry import HostKernel, find_host_kernel, host_kernel, host_kernels

__all__ = ["HostKernel", "basic", "find_host_kernel", "host_kernel", "host_kernels"]

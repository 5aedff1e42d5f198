"""GE's operators on CPU tensors: what the host runtime's graph engine computes with.

One module per family; each kernel is a few lines of PyTorch and carries GE's names of inputs and attrs.
"""

from ascend_graph.host.ops import (
    activation,
    attention,
    cache,
    communication,
    convolution,
    creation,
    elementwise,
    experts,
    foreach,
    grouped,
    indexing,
    inference_attention,
    loss,
    matmul,
    normalization,
    optimizer,
    quantisation,
    reduction,
    sampling,
    shape,
    spectral,
)
from ascend_graph.host.ops.registry import HostKernel, find_host_kernel, host_kernel, host_kernels, plain_kernels

__all__ = [
    "HostKernel",
    "activation",
    "attention",
    "cache",
    "communication",
    "convolution",
    "creation",
    "elementwise",
    "experts",
    "find_host_kernel",
    "foreach",
    "grouped",
    "host_kernel",
    "host_kernels",
    "indexing",
    "inference_attention",
    "loss",
    "matmul",
    "normalization",
    "optimizer",
    "plain_kernels",
    "quantisation",
    "reduction",
    "sampling",
    "shape",
    "spectral",
]

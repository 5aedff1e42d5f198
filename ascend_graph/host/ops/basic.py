"""Operators that move values about: identity, casts and copies."""

from __future__ import annotations

import torch

from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.ops.registry import host_kernel

T = torch.Tensor


@host_kernel("Identity", "StopGradient")
def identity(x: T) -> T:
    return x


@host_kernel("TensorMove")
def tensor_move(x: T) -> T:
    return x.clone()


@host_kernel("Cast", ignores=("truncate",))
def cast(x: T, *, dst_type: int) -> T:
    return x.to(torch_dtype(dst_type))


@host_kernel("Assign", ignores=("validate_shape", "use_locking"))
def assign(ref: T, value: T) -> T:
    return ref.copy_(value)

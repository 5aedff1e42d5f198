"""Values of an aclnn call as kernels take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.kernels.quantization.four_bits import as_int4, unpacked_where_dense
from ascend_graph.host.runtime.aclnn_functions.blocks import Blocked
from ascend_graph.prototypes import DataType

T = torch.Tensor


def is_absent(value: Any) -> bool:
    if isinstance(value, T):
        return value.numel() == 0
    return all(map(is_absent, value)) if isinstance(value, list) else not value


def as_list(value: Any) -> list[T]:
    return [] if value is None else [_counted(v) for v in (value if isinstance(value, list) else [value])]


def is_int4(value: Any) -> bool:
    """Return whether a value is an aclTensor of ACL_INT4 that came as bytes, with two numbers in each."""
    return isinstance(value, T) and value.dtype is torch.uint8 and getattr(value, "ge_dtype", None) == DataType.INT4


def _counted(value: T) -> T:
    """Unpack 4-bit integers one by one, as kernels take them."""
    return as_int4(unpacked_where_dense(value)) if is_int4(value) else value


def as_input(value: Any, function: str) -> T | None:
    """Convert a value to a kernel's input.

    A list of tensors must have one, which is returned. A list of numbers becomes a tensor of them on the host.
    """
    if not isinstance(value, list):
        return None if value is None else _counted(value)
    if value and isinstance(value[0], T):
        if len(value) > 1:
            raise HostRuntimeError(f"{function}: a list of {len(value)} tensors is not supported on the host; one is")
        return _counted(value[0])
    if not value:
        return None
    dtype = {bool: torch.bool, float: torch.float32, int: torch.int64}[type(value[0])]
    return torch.tensor(value, dtype=dtype, device="cpu")


#: Key of a tensor in blocks, and of a list with one; calls are not kept under it.
IN_BLOCKS = object()


def shape_signature(value: Any) -> Any:
    """Return a key for an argument: everything about a tensor but its contents."""
    if isinstance(value, T):
        kind = getattr(value, "ge_dtype", None) if value.dtype is torch.uint8 else None
        return (value.dtype, value.shape, value.stride(), kind)
    if isinstance(value, list):
        parts = tuple(map(shape_signature, value))
        return IN_BLOCKS if any(part is IN_BLOCKS for part in parts) else parts
    if isinstance(value, Blocked):
        return IN_BLOCKS
    return repr(value) if isinstance(value, float) else value  # 0.0 equals -0.0


def without_data(value: Any) -> Any:
    if isinstance(value, list):
        return [without_data(item) for item in value]
    if not isinstance(value, T):
        return value
    bare = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if hasattr(value, "ge_dtype"):
        bare.ge_dtype = value.ge_dtype  # type: ignore[attr-defined]
    return bare


def listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else (value,)

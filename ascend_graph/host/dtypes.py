"""Dtype conversions between the graph's protobuf, GE and PyTorch."""

from __future__ import annotations

import torch

from ascend_graph.environment import HostRuntimeError
from ascend_graph.prototypes import DataType
from ascend_graph.prototypes.dtypes import TORCH_NAMES

#: Graph dtype for 4-bit integers, stored one per byte: see ``ascend_graph.host.kernels.quantization.four_bits``.
INT4: torch.dtype = torch.int4  # type: ignore[attr-defined]  # the stubs lack it

#: Dtypes that torch has in name only: no operator computes with them.
_WITHOUT_ARITHMETIC = frozenset((DataType.QINT8, DataType.QUINT8, DataType.QINT32, DataType.FLOAT4_E2M1))
_TORCH: dict[DataType, torch.dtype] = {
    dtype: getattr(torch, name) for dtype, name in TORCH_NAMES.items() if dtype not in _WITHOUT_ARITHMETIC
} | {DataType.INT4: INT4}
_GE = {dtype: number for number, dtype in _TORCH.items()}


def torch_dtype(ge_dtype: int) -> torch.dtype:
    """Return PyTorch's dtype for a ``ge::DataType`` number.

    >>> torch_dtype(27)
    torch.bfloat16
    """
    try:
        return _TORCH[DataType(ge_dtype)]
    except (KeyError, ValueError):
        known = ", ".join(f"{int(number)} ({number.name})" for number in _TORCH)
        raise HostRuntimeError(f"ge::DataType {ge_dtype} has no dtype in PyTorch; expected one of {known}") from None


def ge_dtype(dtype: torch.dtype) -> DataType:
    """Return the ``ge::DataType`` of a PyTorch dtype.

    >>> ge_dtype(torch.float16).name
    'FLOAT16'
    """
    try:
        return _GE[dtype]
    except KeyError:
        raise HostRuntimeError(f"{dtype} has no ge::DataType; expected one of {', '.join(map(str, _GE))}") from None


def proto_dtype(number: int) -> DataType:
    """Return the ``ge::DataType`` of a number of the protobuf's own enumeration, which has different numbers."""
    from torchair._ge_concrete_graph.ge_ir_pb2 import DataType as ProtoDataType

    try:
        return DataType[ProtoDataType.Name(number).removeprefix("DT_")]
    except (KeyError, ValueError):
        raise HostRuntimeError(
            f"the graph has a tensor of dtype number {number}, which ge::DataType does not have; expected a number of "
            "it"
        ) from None

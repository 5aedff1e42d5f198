"""The same dtype in the graph's protobuf, in GE and in PyTorch."""

from __future__ import annotations

import torch

from ascend_graph.host.toolkit import HostRuntimeError
from ascend_graph.prototypes import DataType

#: A graph's integers of 4 bits, a byte for each: see ``ascend_graph.host.ops.four_bits``.
INT4: torch.dtype = torch.int4  # type: ignore[attr-defined]  # the stubs lack it

_TORCH = {
    DataType.FLOAT: torch.float32,
    DataType.FLOAT16: torch.float16,
    DataType.INT8: torch.int8,
    DataType.INT16: torch.int16,
    DataType.UINT16: torch.uint16,
    DataType.UINT8: torch.uint8,
    DataType.INT32: torch.int32,
    DataType.INT64: torch.int64,
    DataType.UINT32: torch.uint32,
    DataType.UINT64: torch.uint64,
    DataType.BOOL: torch.bool,
    DataType.DOUBLE: torch.float64,
    DataType.COMPLEX32: torch.complex32,
    DataType.COMPLEX64: torch.complex64,
    DataType.COMPLEX128: torch.complex128,
    DataType.BF16: torch.bfloat16,
    DataType.FLOAT8_E5M2: torch.float8_e5m2,
    DataType.FLOAT8_E4M3FN: torch.float8_e4m3fn,
    DataType.FLOAT8_E8M0: torch.float8_e8m0fnu,
    DataType.INT4: INT4,
}
_GE = {dtype: number for number, dtype in _TORCH.items()}


def torch_dtype(ge_dtype: int) -> torch.dtype:
    """PyTorch's dtype of a ``ge::DataType`` number.

    >>> torch_dtype(27)
    torch.bfloat16
    """
    try:
        return _TORCH[DataType(ge_dtype)]
    except (KeyError, ValueError):
        known = ", ".join(f"{int(number)} ({number.name})" for number in _TORCH)
        raise HostRuntimeError(f"ge::DataType {ge_dtype} has no dtype in PyTorch; those that have: {known}") from None


def ge_dtype(dtype: torch.dtype) -> DataType:
    """The ``ge::DataType`` of one of PyTorch's dtypes.

    >>> ge_dtype(torch.float16).name
    'FLOAT16'
    """
    try:
        return _GE[dtype]
    except KeyError:
        raise HostRuntimeError(f"{dtype} has no ge::DataType; those that have: {', '.join(map(str, _GE))}") from None


def proto_dtype(number: int) -> DataType:
    """The ``ge::DataType`` of a number of the protobuf's own enumeration, which counts differently."""
    from torchair._ge_concrete_graph.ge_ir_pb2 import DataType as ProtoDataType

    try:
        return DataType[ProtoDataType.Name(number).removeprefix("DT_")]
    except (KeyError, ValueError):
        raise HostRuntimeError(
            f"the graph has a tensor of dtype number {number}, which ge::DataType does not have"
        ) from None

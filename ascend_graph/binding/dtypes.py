"""Conversion of torch's dtypes and their numbers to GE's, for attrs, constants and checks.

The module imports torch lazily.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import DataType
from ascend_graph.prototypes.dtypes import TORCH_NAMES

# The numbers of c10::ScalarType (torch/headeronly/core/ScalarType.h) that GE has a dtype for.
_BY_SCALAR_TYPE = {
    0: DataType.UINT8,
    1: DataType.INT8,
    2: DataType.INT16,
    3: DataType.INT32,
    4: DataType.INT64,
    5: DataType.FLOAT16,
    6: DataType.FLOAT,
    7: DataType.DOUBLE,
    8: DataType.COMPLEX32,
    9: DataType.COMPLEX64,
    10: DataType.COMPLEX128,
    11: DataType.BOOL,
    12: DataType.QINT8,
    13: DataType.QUINT8,
    14: DataType.QINT32,
    15: DataType.BF16,
    16: DataType.INT4,
    23: DataType.FLOAT8_E5M2,
    24: DataType.FLOAT8_E4M3FN,
    27: DataType.UINT16,
    28: DataType.UINT32,
    29: DataType.UINT64,
    44: DataType.FLOAT8_E8M0,
    45: DataType.FLOAT4_E2M1,
}
#: torch_npu's offset: its number of a dtype that torch does not have is this plus ``ge::DataType``.
NPU_DTYPE_OFFSET = 256

# The numbers of c10::ScalarType that are names and no more: no operator computes with tensors of these.
_WITHOUT_ARITHMETIC = frozenset({12, 13, 14, 16, 45})
_SCALAR_TYPE = {dtype: n for n, dtype in _BY_SCALAR_TYPE.items() if n not in _WITHOUT_ARITHMETIC}
# The numbers of c10::ScalarType that tensors of a dtype may have next to, or instead of, its own: torch has no such dtype and
# stores its bytes, or has one of no arithmetic.
_HELD_AS = {
    DataType.QINT8: (12,),
    DataType.QUINT8: (13,),
    DataType.QINT32: (14,),
    DataType.HIFLOAT8: (0,),
    DataType.FLOAT8_E8M0: (0, 44),
    DataType.INT4: (3, 16),
    DataType.FLOAT4_E2M1: (0, 45),
    DataType.FLOAT4_E1M2: (0,),
}

_NAMES = {name: dtype for dtype, name in TORCH_NAMES.items()} | {"quint4x2": DataType.INT4}

#: Dtypes of four bits, of which torch stores several in one element; GE counts them singly.
PACKED_DTYPES = {DataType.INT4: 8, DataType.FLOAT4_E2M1: 2, DataType.FLOAT4_E1M2: 2}
#: The torch storage dtype of tensors whose own dtype torch stores as another one.
STORED_AS = {
    DataType.HIFLOAT8: DataType.UINT8,
    DataType.FLOAT8_E8M0: DataType.UINT8,
    DataType.INT4: DataType.INT32,
    DataType.FLOAT4_E2M1: DataType.UINT8,
    DataType.FLOAT4_E1M2: DataType.UINT8,
}


class DtypeError(AscendGraphError, ValueError):
    """A dtype that GE does not have, or that the prototype does not allow."""


def ge_dtype_of_number(number: int) -> DataType | None:
    """Return GE's dtype for a torch or torch_npu dtype number, or None for any other number.

    >>> ge_dtype_of_number(5), ge_dtype_of_number(290)
    (<DataType.FLOAT16: 1>, <DataType.HIFLOAT8: 34>)
    """
    if number >= NPU_DTYPE_OFFSET:
        try:
            return DataType(number - NPU_DTYPE_OFFSET)
        except ValueError:
            return None
    return _BY_SCALAR_TYPE.get(number)


def torch_number(dtype: DataType) -> int:
    """Return the number of a dtype in a schema: torch's, or torch_npu's if torch does not have the dtype.

    >>> torch_number(DataType.FLOAT16), torch_number(DataType.HIFLOAT8)
    (5, 290)
    """
    return _SCALAR_TYPE.get(dtype, NPU_DTYPE_OFFSET + dtype)


def scalar_types(dtype: DataType) -> tuple[int, ...]:
    """Return the numbers of c10::ScalarType that a tensor of a dtype has; empty if torch cannot hold one."""
    return _HELD_AS.get(dtype) or ((_SCALAR_TYPE[dtype],) if dtype in _SCALAR_TYPE else ())


@lru_cache(maxsize=1)
def by_torch_dtype() -> dict[Any, DataType]:
    """Return GE's dtypes by torch's."""
    import torch

    return {getattr(torch, name): dtype for name, dtype in _NAMES.items() if hasattr(torch, name)}


def ge_dtype(value: Any) -> DataType:
    """Return GE's dtype for a ``torch.dtype``, or for a torch or torch_npu dtype number.

    Raises:
        DtypeError: GE has no such dtype.
    """
    found = ge_dtype_of_number(value) if isinstance(value, int) else by_torch_dtype().get(value)
    if found is None:
        raise DtypeError(f"{value!r} is not a dtype of GE; expected one of {', '.join(map(str, by_torch_dtype()))}")
    return found


def dtype_number(value: Any) -> int:
    """Return GE's number of a dtype: the hook for an int that is torch's number of a dtype.

    >>> dtype_number(15), dtype_number(291)
    (27, 35)

    Raises:
        DtypeError: GE has no such dtype.
    """
    return int(ge_dtype(value))

"""Dtypes of meta functions: from attrs, names and numbers to torch's."""

from __future__ import annotations

import torch

from ascend_graph.binding.dtypes import by_torch_dtype
from ascend_graph.shapes import DtypeSystem
from ascend_graph.shapes.arithmetic import whole
from ascend_graph.shapes.dtypes import CATEGORY

# The numbers of c10::ScalarType (c10/core/ScalarType.h), which schemas carry where a dtype is an `int`.
_SCALAR_TYPES = (
    *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"),
    *("complex32", "complex64", "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16", "quint4x2"),
    *("quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16", "float8_e5m2", "float8_e4m3fn"),
    *("float8_e5m2fnuz", "float8_e4m3fnuz", "uint16", "uint32", "uint64"),
)


# torch_npu numbers a dtype that torch has not as 256 + ge::DataType and stores it in the torch dtype on the right.
_NPU_TYPES = {
    285: torch.uint8,  # INT4
    290: torch.uint8,  # HIFLOAT8
    291: torch.float8_e5m2,
    292: torch.float8_e4m3fn,
    293: torch.float8_e8m0fnu,
    296: torch.uint8,  # FLOAT4_E2M1
    297: torch.uint8,  # FLOAT4_E1M2
}


_BY_NUMBER: dict[int, torch.dtype] = {
    **{n: getattr(torch, name) for n, name in enumerate(_SCALAR_TYPES) if hasattr(torch, name)},
    44: torch.float8_e8m0fnu,
    **_NPU_TYPES,
}


class GeNumber(int):
    """Value of an int attr that is GE's number of a dtype."""


# GE's numbers: the dtypes that torch has, and how torch_npu stores the others.
_BY_GE_NUMBER: dict[int, torch.dtype] = {int(ge): dtype for dtype, ge in by_torch_dtype().items()} | {
    number - 256: dtype for number, dtype in _NPU_TYPES.items()
}


_BY_NAME = {name: dtype for name in CATEGORY if isinstance(dtype := getattr(torch, name, None), torch.dtype)}


def _from_attr(value: object) -> torch.dtype | None:
    if value is None or isinstance(value, torch.dtype):
        return value
    if isinstance(value, GeNumber):
        return _BY_GE_NUMBER.get(value)
    if isinstance(value, str):
        return _BY_NAME.get(value)
    number = whole(value)
    return None if number is None else _BY_NUMBER.get(number)


#: Dtype system of torch for the language; dtype attrs may be ``torch.dtype``, a ``ScalarType`` number or a name.
TORCH: DtypeSystem[torch.dtype] = DtypeSystem(
    from_name=_BY_NAME.__getitem__,
    to_name=lambda dtype: str(dtype).removeprefix("torch."),
    from_attr=_from_attr,
    default_float=lambda: str(torch.get_default_dtype()).removeprefix("torch."),
    complex_of_bfloat16="bcomplex32" if "bcomplex32" in _BY_NAME else "complex64",
)

"""GE's data types: the enumeration ``ge::DataType`` of the CANN header graph/types.h."""

from __future__ import annotations

import enum
from types import MappingProxyType


class DataType(enum.IntEnum):
    """GE's data types, one member per ``ge::DataType``; the value is GE's number."""

    FLOAT = 0
    FLOAT16 = 1
    INT8 = 2
    INT32 = 3
    UINT8 = 4
    INT16 = 6
    UINT16 = 7
    UINT32 = 8
    INT64 = 9
    UINT64 = 10
    DOUBLE = 11
    BOOL = 12
    STRING = 13
    DUAL_SUB_INT8 = 14
    DUAL_SUB_UINT8 = 15
    COMPLEX64 = 16
    COMPLEX128 = 17
    QINT8 = 18
    QINT16 = 19
    QINT32 = 20
    QUINT8 = 21
    QUINT16 = 22
    RESOURCE = 23
    STRING_REF = 24
    DUAL = 25
    VARIANT = 26
    BF16 = 27
    UNDEFINED = 28
    INT4 = 29
    UINT1 = 30
    INT2 = 31
    UINT2 = 32
    COMPLEX32 = 33
    HIFLOAT8 = 34
    FLOAT8_E5M2 = 35
    FLOAT8_E4M3FN = 36
    FLOAT8_E8M0 = 37
    FLOAT6_E3M2 = 38
    FLOAT6_E2M3 = 39
    FLOAT4_E2M1 = 40
    FLOAT4_E1M2 = 41

    @property
    def ge_name(self) -> str:
        """Name in ``ge::DataType``.

        >>> DataType.FLOAT8_E4M3FN.ge_name
        'DT_FLOAT8_E4M3FN'
        """
        return f"DT_{self.name}"


_d = DataType
#: Bits of an element; dtypes without a fixed element size are absent.
BITS = MappingProxyType(
    {_d.COMPLEX128: 128, _d.DUAL: 40}
    | dict.fromkeys((_d.INT64, _d.UINT64, _d.DOUBLE, _d.COMPLEX64, _d.RESOURCE, _d.VARIANT), 64)
    | dict.fromkeys((_d.FLOAT, _d.INT32, _d.UINT32, _d.QINT32, _d.COMPLEX32), 32)
    | dict.fromkeys((_d.FLOAT16, _d.BF16, _d.INT16, _d.UINT16, _d.QINT16, _d.QUINT16), 16)
    | dict.fromkeys((_d.INT8, _d.UINT8, _d.BOOL, _d.DUAL_SUB_INT8, _d.DUAL_SUB_UINT8, _d.QINT8, _d.QUINT8), 8)
    | dict.fromkeys((_d.HIFLOAT8, _d.FLOAT8_E5M2, _d.FLOAT8_E4M3FN, _d.FLOAT8_E8M0), 8)
    | dict.fromkeys((_d.FLOAT6_E3M2, _d.FLOAT6_E2M3), 6)
    | dict.fromkeys((_d.INT4, _d.FLOAT4_E2M1, _d.FLOAT4_E1M2), 4)
    | {_d.INT2: 2, _d.UINT2: 2, _d.UINT1: 1}
)

#: Names of torch dtypes by GE dtype, where torch has one with the same values.
TORCH_NAMES = MappingProxyType(
    {
        _d.FLOAT: "float32",
        _d.DOUBLE: "float64",
        _d.BF16: "bfloat16",
        _d.FLOAT8_E8M0: "float8_e8m0fnu",
        _d.FLOAT4_E2M1: "float4_e2m1fn_x2",
    }
    | {
        dtype: dtype.name.lower()
        for dtype in (
            *(_d.FLOAT16, _d.INT8, _d.INT16, _d.INT32, _d.INT64, _d.UINT8, _d.UINT16, _d.UINT32, _d.UINT64, _d.BOOL),
            *(
                _d.COMPLEX32,
                _d.COMPLEX64,
                _d.COMPLEX128,
                _d.QINT8,
                _d.QUINT8,
                _d.QINT32,
                _d.FLOAT8_E5M2,
                _d.FLOAT8_E4M3FN,
            ),
        )
    }
)

#: Dtypes that ACL's enumeration leaves out.
_NOT_OF_ACL = frozenset(
    (
        *(_d.DUAL_SUB_INT8, _d.DUAL_SUB_UINT8, _d.QINT8, _d.QINT16, _d.QINT32, _d.QUINT8, _d.QUINT16, _d.RESOURCE),
        *(_d.STRING_REF, _d.DUAL, _d.VARIANT, _d.UNDEFINED, _d.INT2, _d.UINT2),
    )
)

#: ``DT_FLOAT16`` → ``DataType.FLOAT16``, for every member.
DTYPE_BY_GE_NAME = MappingProxyType({dtype.ge_name: dtype for dtype in DataType})

#: Names that real headers use for a dtype but ``ge::DataType`` does not have. They are read as the intended dtype and
#: always reported; a name that is not listed is never guessed.
DTYPE_SYNONYMS = MappingProxyType(
    {
        "DT_FLOAT32": DataType.FLOAT,
        "DT_FP32": DataType.FLOAT,
        "DT_FLOAT64": DataType.DOUBLE,
        "DT_FP16": DataType.FLOAT16,
        "DT_HALF": DataType.FLOAT16,
        "DT_BFLOAT16": DataType.BF16,
    }
)


def _named_sets() -> dict[str, tuple[DataType, ...]]:
    d = DataType
    signed = (d.INT16, d.INT32, d.INT64, d.INT8)
    unsigned = (d.UINT16, d.UINT32, d.UINT64, d.UINT8)
    floating = (d.DOUBLE, d.FLOAT, d.FLOAT16)
    complexes = (d.COMPLEX128, d.COMPLEX64)
    late = (d.BF16, d.COMPLEX32)
    quantified = (d.QINT16, d.QINT32, d.QINT8, d.QUINT16, d.QUINT8)
    return {
        "ALL": (
            d.BOOL,
            *complexes,
            *floating,
            *signed,
            *quantified,
            d.RESOURCE,
            d.STRING,
            *unsigned,
            *late,
        ),
        "QuantifiedType": quantified,
        "OrdinaryType": (d.BOOL, *complexes, *floating, *signed, *unsigned, *late),
        "BasicType": (*complexes, *floating, *signed, *quantified, *unsigned, *late),
        "NumberType": (*complexes, *floating, *signed, d.QINT32, d.QINT8, d.QUINT8, *unsigned, *late),
        "RealNumberType": (*floating, *signed, *unsigned, d.BF16),
        "ComplexDataType": (*complexes, d.COMPLEX32),
        "IntegerDataType": (*signed, *unsigned),
        "SignedDataType": signed,
        "UnsignedDataType": unsigned,
        "FloatingDataType": floating,
        "IndexNumberType": (d.INT32, d.INT64),
        "UnaryDataType": (*complexes, *floating, *late),
        "FLOAT": (d.FLOAT, d.FLOAT16, d.BF16),
    }


#: The named sets of ``ge::TensorType`` (static functions in graph/types.h), each with its dtypes in GE's order.
NAMED_SETS = MappingProxyType(_named_sets())

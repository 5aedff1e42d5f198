"""Names of GE and C++ for the values that a relation's InferShape reads and computes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ascend_graph.prototypes.dtypes import DataType
from ascend_graph.prototypes.model import AttrType
from ascend_graph.shapes.dtypes import CATEGORY, COMPLEX_OF, REAL_OF, promote_names
from ascend_graph.shapes.form import AttrKind, ExpressionKind, Op

#: Dtypes of the language that GE has.
GE_DTYPES: Mapping[str, DataType] = {
    **{
        name: DataType[name.upper()]
        for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32")
    },
    **{name: DataType[name.upper()] for name in ("uint64", "int4", "int2", "uint2", "uint1", "float16", "hifloat8")},
    **{name: DataType[name.upper()] for name in ("complex32", "complex64", "complex128", "qint8", "quint8", "qint32")},
    "bfloat16": DataType.BF16,
    "float32": DataType.FLOAT,
    "float64": DataType.DOUBLE,
    "float8_e5m2": DataType.FLOAT8_E5M2,
    "float8_e4m3fn": DataType.FLOAT8_E4M3FN,
    "float8_e8m0fnu": DataType.FLOAT8_E8M0,
    "float6_e3m2fn": DataType.FLOAT6_E3M2,
    "float6_e2m3fn": DataType.FLOAT6_E2M3,
    "float4_e2m1fn_x2": DataType.FLOAT4_E2M1,
    "float4_e1m2fn_x2": DataType.FLOAT4_E1M2,
}


KINDS = {
    AttrType.INT: AttrKind(ExpressionKind.NUMBER, names_dtype=True),
    AttrType.TYPE: AttrKind(ExpressionKind.DTYPE),
    AttrType.BOOL: AttrKind(ExpressionKind.BOOL),
    AttrType.FLOAT: AttrKind(ExpressionKind.FLOAT),
    AttrType.STRING: AttrKind(ExpressionKind.TEXT),
    AttrType.LIST_INT: AttrKind(ExpressionKind.SIZES),
}


READERS = {
    AttrType.INT: ("Number", "There(context->GetAttrs()->GetInt({n}))"),
    AttrType.TYPE: ("Number", "There(context->GetAttrs()->GetInt({n}))"),
    AttrType.BOOL: ("bool", "There(context->GetAttrs()->GetBool({n}))"),
    AttrType.FLOAT: ("double", "There(context->GetAttrs()->GetFloat({n}))"),
    AttrType.STRING: ("std::string", "&There(context->GetAttrs()->GetStr({n}))"),
    AttrType.LIST_INT: ("Sizes", "ReadList(context->GetAttrs()->GetListInt({n}))"),
}


#: Operations implemented by a function of the support header.
FUNCTIONS = {
    Op.NEGATE: "Negate",
    Op.ADD: "Add",
    Op.SUBTRACT: "Subtract",
    Op.MULTIPLY: "Multiply",
    Op.FLOOR_DIVIDE: "FloorDivide",
    Op.MODULO: "Modulo",
    Op.CEIL_DIVIDE: "CeilDivide",
    Op.MINIMUM: "Minimum",
    Op.MAXIMUM: "Maximum",
    Op.ITEM: "Item",
    Op.LENGTH: "Length",
    Op.PRODUCT: "Product",
    Op.SUM: "Sum",
    Op.SMALLEST: "Smallest",
    Op.LARGEST: "Largest",
    Op.POSITION: "Position",
    Op.FROM_CONDITION: "FromCondition",
    Op.ONES: "Ones",
    Op.RANGE: "Range",
    Op.RESHAPE: "Reshape",
    Op.PART: "Part",
    Op.SCALAR: "Scalar",
    Op.FLOATING: "Floating",
    Op.INTEGRAL_SUM: "IntegralSum",
    Op.REAL: "Real",
}


#: Operations that read the value of a name: the prefix of its variable, and the expression around it.
READING = {
    Op.DIMENSION: ("dim", "Get({})"),
    Op.GROUP: ("group", "Get({})"),
    Op.ATTR: ("attr", "{}"),
    Op.DTYPE_ATTR: ("attr", "DtypeAttr({})"),
    Op.RANK: ("input", "Rank(ways, {})"),
    Op.ELEMENTS: ("input", "Elements({})"),
    Op.PRESENT: ("input", "{}.present"),
    Op.TENSOR: ("input", "Tensor({})"),
}


COMPARISONS = {
    "==": "Equal",
    "!=": "NotEqual",
    "<": "Less",
    "<=": "LessEqual",
    ">": "Greater",
    ">=": "GreaterEqual",
}


TYPES = {ExpressionKind.SIZES: "Sizes", ExpressionKind.DTYPE: "ge::DataType"}


#: Operations that need the shape of an input.
OF_SHAPES = frozenset({Op.DIMENSION, Op.GROUP, Op.ELLIPSIS, Op.RANK, Op.ELEMENTS})


@lru_cache(maxsize=1)
def dtype_tables() -> dict[str, Any]:
    """Return the promotion rules of the language as tables, for the support header."""
    names = list(GE_DTYPES)
    rows = {name: number for number, name in enumerate(names)}

    def promoted(a: str, b: str) -> int:
        try:
            return rows[promote_names(a, b)]
        except ValueError:
            return -1

    return {
        "rows": rows,
        "dtypes": [
            (int(GE_DTYPES[n]), CATEGORY[n], rows[REAL_OF.get(n, n)], rows.get(COMPLEX_OF.get(n, ""), -1))
            for n in names
        ],
        "promoted": [[promoted(a, b) for b in names] for a in names],
    }


PREFIX = {"dimension": "dim", "group": "group", "later": "later"}


CONDITIONS = frozenset({Op.ALWAYS, Op.PRESENT, Op.GIVEN, Op.TRUTH, Op.FILLED, Op.COMPARE, Op.NOT, Op.AND, Op.OR})

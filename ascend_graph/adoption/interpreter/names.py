"""Names of dtypes and devices in C++ and Python, as values."""

from __future__ import annotations

import ast
import re
from typing import Any

from ascend_graph.adoption.cpp.expressions import unread_text
from ascend_graph.adoption.interpreter.values import UNKNOWN, Constant, Device, Dtype
from ascend_graph.prototypes.dtypes import DataType

_DTYPES = {
    "kFloat": "float32", "kHalf": "float16", "kBFloat16": "bfloat16", "kDouble": "float64", "kInt": "int32", "kLong": "int64",
    "kShort": "int16", "kChar": "int8", "kByte": "uint8", "kBool": "bool", "kFloat32": "float32", "kFloat16": "float16",
    "kInt8": "int8", "kInt16": "int16", "kInt32": "int32", "kInt64": "int64", "kUInt8": "uint8", "kFloat64": "float64",
    "Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Double": "float64", "Int": "int32", "Long": "int64",
    "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "kFloat8_e4m3fn": "float8_e4m3fn",
    "kFloat8_e5m2": "float8_e5m2", "Float8_e4m3fn": "float8_e4m3fn", "Float8_e5m2": "float8_e5m2",
    "half": "float16", "float": "float32", "double": "float64", "long": "int64", "int": "int32", "short": "int16",
}  # fmt: skip
_TORCH_DTYPES = frozenset(
    {
        "float32", "float16", "bfloat16", "float64", "int8", "int16", "int32", "int64", "uint8", "bool", "float8_e4m3fn",
        "float8_e5m2", "complex64", "complex128", "uint16", "uint32", "uint64",
    }
)  # fmt: skip


#: Methods that give the values of a tensor.
OF_DATA = frozenset({"item", "tolist"})
#: Longest part of an expression that a message shows.
_LONGEST = 80


def text_of(node: ast.expr) -> str:
    """Return an expression as a message shows it.

    >>> text_of(ast.parse("count(x.sizes())[0]", mode="eval").body)
    'count(x.sizes())[0]'
    """
    text = " ".join((unread_text(node) or re.sub(r"<[a-z ]+>(?=[ (])", "", ast.unparse(node))).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def named_constant(name: str) -> Any | None:
    """Return the dtype, device or null that a C++ name denotes, or None."""
    last = name.rpartition("::")[2]
    if "::" in name and last in _DTYPES:
        return Dtype(_DTYPES[last])
    if last in ("kMeta", "kPrivateUse1", "PrivateUse1", "NPU", "Meta"):
        return Device(True)
    if last in ("kCPU", "CPU"):
        return Device(False)
    if last in ("nullopt", "None"):
        return Constant(None)
    if last.startswith("ACL_") and last.removeprefix("ACL_") in DataType.__members__:
        return Constant(DataType[last.removeprefix("ACL_")].value)
    return None


def torch_dtype(name: str) -> Any:
    """Return the dtype ``torch.name``; unknown if it is not one."""
    return Dtype(_DTYPES.get(name, name)) if name in {*_TORCH_DTYPES, *_DTYPES} else UNKNOWN

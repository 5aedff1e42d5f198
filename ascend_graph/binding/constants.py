"""Constants as calls of aclnn functions pass them: read from a header's default arguments, and checked against a parameter."""

from __future__ import annotations

from typing import Any

from ascend_graph.aclnn import AclnnParameter, CType, Value
from ascend_graph.prototypes import DataType

#: What is passed by pointer, so that null says that it is not there.
POINTERS = (
    *(Value.TENSOR, Value.TENSOR_LIST, Value.SCALAR, Value.SCALAR_LIST, Value.INTS, Value.FLOATS, Value.BOOLS),
    Value.STRING,
)


def literal(text: str) -> Any:
    """The value of a default argument.

    Raises:
        ValueError: It is no constant that is understood.
    """
    plain = {"nullptr": None, "NULL": None, "true": True, "false": False}
    if text in plain:
        return plain[text]
    if text.startswith('"') and text.endswith('"') and "\\" not in text and '"' not in text[1:-1]:
        return text[1:-1]
    for read in (lambda t: int(t, 0), lambda t: float(t.rstrip("fF"))):
        try:
            return read(text)
        except ValueError:
            continue
    raise ValueError(f"{text} is no constant")


def constant(parameter: AclnnParameter, value: Any) -> Any:
    """A value as the call passes it for a parameter.

    Raises:
        ValueError: The parameter cannot have it.
    """
    kind = parameter.value
    if value is None and (kind in POINTERS or kind is Value.HOST_OUTPUT):
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is Value.INT and isinstance(value, int) and not isinstance(value, bool):
        low, high = int_range(parameter.type)
        if low <= value <= high:
            return value
        raise ValueError(f"{parameter} has values from {low} to {high}")
    if kind is Value.FLOAT and is_number:
        return float(value)
    if kind is Value.BOOL and isinstance(value, bool):
        return value
    if kind is Value.DTYPE and isinstance(value, int) and not isinstance(value, bool):
        return int(DataType(value))
    if kind is Value.SCALAR and isinstance(value, int | float):
        return value
    if kind is Value.STRING and isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        items = tuple(value)
        if kind is Value.SCALAR_LIST and all(isinstance(item, int | float) for item in items):
            return items
        if kind is Value.BOOLS and all(isinstance(item, bool) for item in items):
            return items
        if kind is Value.INTS and all(isinstance(item, int) and not isinstance(item, bool) for item in items):
            return items
        if kind is Value.FLOATS and all(isinstance(item, int | float) and not isinstance(item, bool) for item in items):
            return tuple(float(item) for item in items)
    raise ValueError(f"{parameter} takes {kind.value}")


def int_range(type_: CType) -> tuple[int, int]:
    """The least and the greatest value of a type of integers.

    >>> int_range(CType("int8_t")), int_range(CType("uint8_t"))
    ((-128, 127), (0, 255))
    """
    bits = 8 * type_.width
    if type_.canonical.base.startswith("u"):
        return 0, min(2**bits, 2**63) - 1  # what schemas carry ends at 2**63
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

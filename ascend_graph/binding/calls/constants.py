"""Constants in calls of aclnn functions: read from a header's default arguments, and checked against a parameter."""

from __future__ import annotations

from typing import Any

from ascend_graph.aclnn import AclnnParameter, CType, ValueKind
from ascend_graph.prototypes import DataType

#: Kinds that are passed by pointer, so that null means absent.
POINTERS = (
    *(
        ValueKind.TENSOR,
        ValueKind.TENSOR_LIST,
        ValueKind.SCALAR,
        ValueKind.SCALAR_LIST,
        ValueKind.INTS,
        ValueKind.FLOATS,
        ValueKind.BOOLS,
    ),
    ValueKind.STRING,
)


def literal(text: str) -> Any:
    """Return the value of a default argument.

    Raises:
        ValueError: It is not a known constant.
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
    raise ValueError(f"{text} is not a constant; write a number, a string, or a list of them")


def constant(parameter: AclnnParameter, value: Any) -> Any:
    """Return a value as the call passes it for a parameter.

    Raises:
        ValueError: The parameter cannot have it.
    """
    kind = parameter.value
    if value is None and (kind in POINTERS or kind is ValueKind.HOST_OUTPUT):
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is ValueKind.INT and isinstance(value, int) and not isinstance(value, bool):
        low, high = int_range(parameter.type)
        if low <= value <= high:
            return value
        raise ValueError(f"{parameter} must be {low} to {high}")
    if kind is ValueKind.FLOAT and is_number:
        return float(value)
    if kind is ValueKind.BOOL and isinstance(value, bool):
        return value
    if kind is ValueKind.DTYPE and isinstance(value, int) and not isinstance(value, bool):
        return int(DataType(value))
    if kind is ValueKind.SCALAR and isinstance(value, int | float):
        return value
    if kind is ValueKind.STRING and isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        items = tuple(value)
        if kind is ValueKind.SCALAR_LIST and all(isinstance(item, int | float) for item in items):
            return items
        if kind is ValueKind.BOOLS and all(isinstance(item, bool) for item in items):
            return items
        if kind is ValueKind.INTS and all(isinstance(item, int) and not isinstance(item, bool) for item in items):
            return items
        if kind is ValueKind.FLOATS and all(
            isinstance(item, int | float) and not isinstance(item, bool) for item in items
        ):
            return tuple(float(item) for item in items)
    raise ValueError(f"{parameter} takes {kind.value}")


def int_range(type_: CType) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type.

    >>> int_range(CType("int8_t")), int_range(CType("uint8_t"))
    ((-128, 127), (0, 255))
    """
    bits = 8 * type_.width
    if type_.canonical.base.startswith("u"):
        return 0, min(2**bits, 2**63) - 1  # what schemas carry ends at 2**63
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

"""Attr values that a type alone suggests."""

from __future__ import annotations

from typing import Any

import torch

#: Items of lists by the type of them; the last ones differ from item to item.
_ITEMS: dict[str, tuple[Any, ...]] = {"int": (0, 1, -1), "float": (0.5, 2.0), "bool": (False, True)}


def other_values(argument: Any, length: int = 1) -> list[Any]:
    """Return values of a non-tensor argument other than its default, including common special cases of kernels.

    Args:
        argument: The argument of a schema.
        length: Least length of a list, if neither its type nor its default says one.
    """
    default = argument.default_value if argument.has_default_value() else None
    type_ = argument.type.getElementType() if isinstance(argument.type, torch.OptionalType) else argument.type
    text = str(type_)
    found: list[Any] = []
    if "ScalarType" in str(argument.real_type):
        found = [torch.float16, torch.float32]
    elif text == "bool":
        found = [False, True]
    elif text == "int":
        found = [0, 1, -1, 2] if default is None else [0, 1, -1, default + 1]
    elif text in ("float", "number"):
        found = [0.5, 1.0, 2.0, 0.0]
    elif text.startswith("List[") and (items := _ITEMS.get(text[5:-1])) is not None:
        length = argument.N or len(default or ()) or length
        found = [[item] * length for item in items]
        if length > 1:
            # Items that differ: a kernel and a relation may mean them in another order.
            found.insert(0, [bool(n % 2) if text[5:-1] == "bool" else type(items[0])(n + 1) for n in range(length)])
    if isinstance(argument.type, torch.OptionalType):
        found.append(None)
    return [value for value in found if value != default or type(value) is not type(default)]

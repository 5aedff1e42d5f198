"""GE raw ops at run time: one Python function per known prototype, created on first use.

``raw_ops.AddCustom(x, y)`` adds one AddCustom node to TorchAir's current GE graph. The function is a closure over the
prototype of that name in the catalog; nothing is generated or executed. An op with a dynamic output has a leading
underscore, as in TorchAir: ``raw_ops._Split(split_dim, x, size_of_y=2, num_split=2)``.
"""

from __future__ import annotations

import threading
from typing import Any

from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import OpPrototype, UnknownPrototypeError, find_prototype
from ascend_graph.raw_ops.attr_setters import RawOpError
from ascend_graph.raw_ops.building import IncompatibleCannError, NodeStyle, RawOpFunction, make_raw_op
from ascend_graph.raw_ops.description import RawOp, describe

__all__ = [
    "IncompatibleCannError",
    "NodeStyle",
    "RawOp",
    "RawOpError",
    "RawOpFunction",
    "UnknownRawOpError",
    "describe",
    "get_raw_op",
    "make_raw_op",
]


class UnknownRawOpError(AscendGraphError, AttributeError):
    """Error of an unknown function name in ``ascend_graph.raw_ops``."""


_made: dict[tuple[str, NodeStyle], tuple[OpPrototype, RawOpFunction]] = {}
_lock = threading.Lock()


def get_raw_op(op_type: str, style: NodeStyle = NodeStyle.COMPLETE) -> RawOpFunction:
    """Return the raw op of an op type, with or without dynamic outputs.

    Raises:
        UnknownPrototypeError: no such prototype is loaded or installed.
        RawOpError: torchair cannot be imported.
    """
    prototype = find_prototype(op_type)
    made = _made.get((op_type, style))
    if made is None or made[0] is not prototype:
        with _lock:
            made = _made.get((op_type, style))
            if made is None or made[0] is not prototype:
                made = _made[op_type, style] = (prototype, make_raw_op(prototype, style))
    return made[1]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        op_type = name
        try:
            prototype = find_prototype(name)
        except UnknownPrototypeError:
            if not name.startswith("_"):
                raise
            op_type = name[1:]
            prototype = find_prototype(op_type)
    except UnknownPrototypeError as error:
        raise UnknownRawOpError(str(error)) from error
    function_name = describe(prototype).function_name
    if function_name != name:
        raise UnknownRawOpError(
            f"the raw op of {op_type} is named {function_name}: write ascend_graph.raw_ops.{function_name}(…)"
        )
    return get_raw_op(op_type)

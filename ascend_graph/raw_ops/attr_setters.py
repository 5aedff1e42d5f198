"""Setters of attrs in a GE node's message, by the attr's type."""

from __future__ import annotations

import ctypes
import importlib
import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes.model import AttrType
from ascend_graph.raw_ops.description import RawAttr


class RawOpError(AscendGraphError, ValueError):
    """Error of a raw op call with a value that its node cannot hold. The graph is unchanged."""


@lru_cache(maxsize=1)
def torchair() -> SimpleNamespace:
    """Import the modules of TorchAir that nodes are built with."""
    try:
        importlib.import_module("torch_npu")  # torchair can only be imported after it
        return SimpleNamespace(
            ge=importlib.import_module("torchair.ge._ge_graph"),
            ir=importlib.import_module("torchair._ge_concrete_graph.ge_ir_pb2"),
            compat=importlib.import_module("torchair._ge_concrete_graph.compat_ir"),
        )
    except (ImportError, OSError) as error:
        raise RawOpError(
            f"raw ops need torch_npu with torchair, which cannot be imported here: {error}. "
            "Without CANN run the program as `python -m ascend_graph.host script.py`."
        ) from error


def _scalar(path: str) -> Callable[[Any, RawAttr, Any], None]:
    def set_scalar(message: Any, attr: RawAttr, value: Any) -> None:
        setattr(message, path, value)

    return set_scalar


def _float32(value: Any) -> Any:
    """Return a number as it is if float32 holds it: protobuf makes an infinity of a larger one.

    Raises:
        OverflowError: It is finite, and beyond float32.
    """
    if isinstance(value, int | float) and math.isinf(ctypes.c_float(value).value) and not math.isinf(value):
        raise OverflowError(f"float32 does not hold {value!r}; expected -3.4028235e+38 to 3.4028235e+38, inf or nan")
    return value


def _set_float(message: Any, attr: RawAttr, value: Any) -> None:
    message.f = _float32(value)


def _set_text(message: Any, attr: RawAttr, value: Any) -> None:
    message.s = value.encode() if isinstance(value, str) else value


def _list(path: str, convert: Callable[[Iterable[Any]], Iterable[Any]] | None = None) -> Callable[..., None]:
    def set_list(message: Any, attr: RawAttr, value: Any) -> None:
        if isinstance(value, str | bytes):
            raise TypeError(f"expected a list, got {value!r}")
        values = message.list
        values.val_type = attr.field.list_type
        field = getattr(values, path)
        del field[:]
        field.extend(convert(value) if convert else value)

    return set_list


def _set_tensor(message: Any, attr: RawAttr, value: Any) -> None:
    if value is None:
        message.t.SetInParent()
    else:
        message.t.CopyFrom(_tensor_def(value))


def _set_named_attrs(message: Any, attr: RawAttr, value: Any) -> None:
    if value is None:
        message.func.SetInParent()
    else:
        message.func.CopyFrom(value)


def _tensor_def(value: Any) -> Any:
    """Return a ``ge.proto.TensorDef``: the value itself, or the one that TorchAir makes for a Const node."""
    pieces = torchair()
    if isinstance(value, pieces.ir.TensorDef):
        return value
    with pieces.ge.GeGraph():
        return pieces.ge.Const(value).node.attr["value"].t


def _set_list_list_int(message: Any, attr: RawAttr, value: Any) -> None:
    message.list_list_int.CopyFrom(torchair().ge.trans_to_list_list_int(_lists(value)))


def _set_list_list_float(message: Any, attr: RawAttr, value: Any) -> None:
    message.list_list_float.CopyFrom(
        torchair().ge.trans_to_list_list_float([[_float32(v) for v in item] for item in value])
    )


def _lists(value: Any) -> list[list[Any]]:
    return [list(item) for item in value]


SETTERS: dict[AttrType, Callable[[Any, RawAttr, Any], None]] = {
    AttrType.INT: _scalar("i"),
    AttrType.FLOAT: _set_float,
    AttrType.BOOL: _scalar("b"),
    AttrType.STRING: _set_text,
    AttrType.BYTES: _scalar("bt"),
    AttrType.TYPE: _scalar("dt"),
    AttrType.TENSOR: _set_tensor,
    AttrType.NAMED_ATTRS: _set_named_attrs,
    AttrType.LIST_INT: _list("i"),
    AttrType.LIST_FLOAT: _list("f", lambda values: [_float32(v) for v in values]),
    AttrType.LIST_BOOL: _list("b"),
    AttrType.LIST_STRING: _list("s", lambda values: [v.encode() if isinstance(v, str) else v for v in values]),
    AttrType.LIST_TYPE: _list("dt"),
    AttrType.LIST_TENSOR: _list("t", lambda values: map(_tensor_def, values)),
    AttrType.LIST_NAMED_ATTRS: _list("na"),
    AttrType.LIST_LIST_INT: _set_list_list_int,
    AttrType.LIST_LIST_FLOAT: _set_list_list_float,
}

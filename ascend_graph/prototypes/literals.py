"""Converter of attr defaults: a C++ constant expression → a Python value of the attr's type.

Only constants are computed, by a reader of our own: nothing from a file is ever evaluated as Python. The rules of C++
numbers are in ``constants``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ascend_graph.prototypes.dtypes import DataType
from ascend_graph.prototypes.literal_reader import LiteralReader
from ascend_graph.prototypes.literal_values import (
    Character,
    LiteralError,
    as_number,
    data_type_of,
    require_value,
    shown,
)
from ascend_graph.prototypes.model import AttrType, AttrValue
from ascend_graph.sources.constants import (
    LONG,
    convert,
)

#: Maximum length of a text whose value is cached.
_LONGEST_CACHED = 256


def _int(value: object) -> int:
    number = as_number(value, 0)
    if isinstance(number.value, float) and not number.value.is_integer():
        raise LiteralError(f"{number.value!r} is not an integer; write one, or declare the attr as Float")
    return int(require_value(0, convert, number, LONG).value)


def _float(value: object) -> float:
    return float(as_number(value, 0).value)


def _bool(value: object) -> bool:
    return bool(as_number(value, 0).value)


def _string(value: object) -> str:
    text = value.text if isinstance(value, Character) else value
    if not isinstance(text, bytes):
        raise LiteralError(f"a string was expected, not {shown(value)}")
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise LiteralError(f"the string {text[:40]!r} is not UTF-8; save the file as UTF-8") from None


def _tuple(value: object) -> tuple[object, ...]:
    if isinstance(value, tuple):
        return value
    raise LiteralError(f"a list in braces was expected, not {shown(value)}")


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return bytes(_int(item) for item in _tuple(value))
    except ValueError:
        raise LiteralError("a byte must be from 0 to 255") from None


def _nothing(value: object) -> None:
    if value is not None and value != ():
        raise LiteralError(f"{shown(value)} cannot be a default here; expected an empty object")


_SCALARS: dict[AttrType, Callable[[object], AttrValue]] = {
    AttrType.INT: _int,
    AttrType.FLOAT: _float,
    AttrType.BOOL: _bool,
    AttrType.STRING: _string,
    AttrType.TYPE: data_type_of,
    AttrType.TENSOR: _nothing,
    AttrType.BYTES: _bytes,
    AttrType.NAMED_ATTRS: _nothing,
}
_ELEMENTS = {
    AttrType.LIST_INT: AttrType.INT,
    AttrType.LIST_FLOAT: AttrType.FLOAT,
    AttrType.LIST_BOOL: AttrType.BOOL,
    AttrType.LIST_STRING: AttrType.STRING,
    AttrType.LIST_TYPE: AttrType.TYPE,
    AttrType.LIST_TENSOR: AttrType.TENSOR,
    AttrType.LIST_LIST_INT: AttrType.LIST_INT,
    AttrType.LIST_LIST_FLOAT: AttrType.LIST_FLOAT,
    AttrType.LIST_NAMED_ATTRS: AttrType.NAMED_ATTRS,
}
_EMPTY: dict[AttrType, AttrValue] = {
    AttrType.INT: 0,
    AttrType.FLOAT: 0.0,
    AttrType.BOOL: False,
    AttrType.STRING: "",
    AttrType.TYPE: DataType.FLOAT,
    AttrType.BYTES: b"",
    AttrType.TENSOR: None,
    AttrType.NAMED_ATTRS: None,
}


def coerce(attr_type: AttrType, value: object) -> AttrValue:
    """Convert ``value`` to the attr type, by C++'s rules of initialization.

    Raises:
        LiteralError: the value has no meaning for that type.
    """
    element = _ELEMENTS.get(attr_type)
    if element is not None:
        return tuple(coerce(element, item) for item in _tuple(value))
    if value == () and attr_type in _EMPTY:  # `{}` is the value-initialized object
        return _EMPTY[attr_type]
    if isinstance(value, tuple) and len(value) == 1 and attr_type is not AttrType.BYTES:
        value = value[0]
    return _SCALARS[attr_type](value)


def _read(attr_type: AttrType, text: str) -> AttrValue:
    return coerce(attr_type, LiteralReader(text).read())


_read_cached = lru_cache(maxsize=4096)(_read)


def read_default(attr_type: AttrType, text: str) -> AttrValue:
    """Read the default of an attr.

    >>> read_default(AttrType.FLOAT, "static_cast<float>(0.8)")
    0.8
    >>> read_default(AttrType.LIST_LIST_INT, "{{1, 2}, {}}")
    ((1, 2), ())
    >>> read_default(AttrType.LIST_INT, "ge::UNKNOWN_RANK")
    (-2,)

    Raises:
        LiteralError: the text is not a constant, or not one of that type.
    """
    if not text.strip():
        element = _ELEMENTS.get(attr_type)
        return () if element is not None else _EMPTY[attr_type]
    return _read_cached(attr_type, text) if len(text) <= _LONGEST_CACHED else _read(attr_type, text)

"""JSON form of prototypes, for the command line."""

from __future__ import annotations

import math
from typing import Any

from ascend_graph.prototypes.dtypes import DataType
from ascend_graph.prototypes.model import Attr, AttrValue, DataTypeSymbol, OpPrototype, Parameter


def prototype_as_json(prototype: OpPrototype) -> dict[str, Any]:
    """Return one prototype as JSON data.

    Dtypes, and the default of a Type attr, are names of ``ge::DataType``. Floats that JSON cannot hold are the strings
    ``"inf"``, ``"-inf"`` and ``"nan"``; bytes are lists of integers. Empty keys are left out, except for those that
    every prototype has.

    >>> from ascend_graph.prototypes import parse_text
    >>> text = "REG_OP(Id).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(x, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(Id)"
    >>> found = prototype_as_json(parse_text(text).prototypes[0])
    >>> found["op"], found["inputs"], found["in_place"]
    ('Id', [{'name': 'x', 'kind': 'required', 'dtypes': ['DT_FLOAT']}], ['x'])
    """
    found: dict[str, Any] = {
        "op": prototype.op_type,
        "file": prototype.file,
        "line": prototype.line,
        "inputs": [_parameter(parameter) for parameter in prototype.inputs],
        "attrs": [_attr(attr) for attr in prototype.attrs],
        "outputs": [_parameter(parameter) for parameter in prototype.outputs],
        "doc": prototype.doc,
    }
    if prototype.symbols:
        found["symbols"] = [{"name": symbol.name, **_types(symbol)} for symbol in prototype.symbols]
    if prototype.graphs:
        found["graphs"] = [{"name": graph.name, "kind": graph.kind.value} for graph in prototype.graphs]
    if prototype.in_place:
        found["in_place"] = list(prototype.in_place)
    return found


def _parameter(parameter: Parameter) -> dict[str, Any]:
    found = {"name": parameter.name, "kind": parameter.kind.value, **_types(parameter)}
    if parameter.symbol is not None:
        found["symbol"] = parameter.symbol
    return found


def _types(typed: Parameter | DataTypeSymbol) -> dict[str, Any]:
    found: dict[str, Any] = {"dtypes": [dtype.ge_name for dtype in typed.dtypes]}
    if typed.promote:
        found["promote"] = list(typed.promote)
    if typed.list_type:
        found["list_type"] = True
    if typed.unknown_types:
        found["unknown_types"] = list(typed.unknown_types)
    return found


def _attr(attr: Attr) -> dict[str, Any]:
    found = {
        "name": attr.name,
        "type": attr.type.value,
        "required": attr.required,
        "default": None if attr.required else value_as_json(attr.default),
    }
    if not attr.default_known:
        found["default_text"] = attr.default_text
    return found


def value_as_json(value: AttrValue) -> Any:
    """Return the default of an attr as JSON data."""
    if isinstance(value, DataType):
        return value.ge_name
    if isinstance(value, tuple):
        return [value_as_json(item) for item in value]
    if isinstance(value, bytes):
        return list(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value

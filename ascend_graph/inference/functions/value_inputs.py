"""Inputs whose values a shape function reads, such as axes, sizes and permutations, as attrs of what a search asks.

A schema has them as ``int[]`` or ``int`` arguments, and a relation speaks of arguments: ``x[*s, *r@axes] -> y[*s]``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ascend_graph.inference.results import InferenceError
from ascend_graph.prototypes import Attr, AttrType, DataType, Parameter, ParameterKind
from ascend_graph.shapes import Relation
from ascend_graph.shapes.functions import Answer, InputSpec, ShapeFunction

_INTEGERS = (DataType.INT64, DataType.INT32)


def value_dtype(parameter: Parameter) -> DataType:
    """Return the dtype in which an input gets its values: int64 if it takes it, or int32, or float."""
    return next((d for d in (*_INTEGERS, DataType.FLOAT) if d in parameter.dtypes), DataType.INT64)


def value_spec(parameter: Parameter, value: Any) -> InputSpec:
    """Return an input that holds a number, or a list of them."""
    is_list = isinstance(value, list | tuple)
    numbers = tuple(value) if is_list else (value,)
    return InputSpec((len(numbers),) if is_list else (), value_dtype(parameter), numbers)


def reads_one_number(relation: Relation, name: str) -> bool:
    """Return whether a relation reads the first number of a list, and nothing else of it.

    >>> from ascend_graph.shapes import parse_relation
    >>> reads_one_number(parse_relation("x[*s, n] -> y[*s, k[0]] where k[0] >= 0"), "k")
    True
    """
    return bool(re.search(rf"\b{name}\[0\]", str(relation))) and not re.search(rf"\b{name}\b(?!\[0\])", str(relation))


def with_values_as_attrs(function: ShapeFunction, types: Mapping[str, AttrType]) -> ShapeFunction:
    """Return a shape function that takes as attrs the inputs whose values it reads.

    Args:
        function: The function.
        types: The types of the arguments that are values of inputs, ``ListInt`` or ``Int``, by input.

    Raises:
        InferenceError: The values of one are no such argument: it is a tensor, a list of tensors, or no integers.
    """
    prototype = function.prototype
    readable = {p.name for p in prototype.inputs if p.kind is ParameterKind.REQUIRED and {*p.dtypes} & {*_INTEGERS}}
    tensors = [name for name in function.data_inputs if name not in types or name not in readable]
    if tensors:
        raise InferenceError(
            f"{prototype.op_type}: {function.source} reads the values of {', '.join(tensors)}, of which a relation does not "
            "speak; give shape="
        )
    read = readable & {*types}

    def call(given: Sequence[Any], attrs: Mapping[str, Any]) -> Sequence[Answer]:
        others = iter(given)
        every = [value_spec(p, attrs[p.name]) if p.name in read else next(others) for p in prototype.inputs]
        return function.call(every, {name: value for name, value in attrs.items() if name not in read})

    attrs = [Attr(p.name, types[p.name], required=True) for p in prototype.inputs if p.name in read]
    rest = tuple(p for p in prototype.inputs if p.name not in read)
    asked = replace(prototype, inputs=rest, attrs=(*attrs, *prototype.attrs))
    return replace(function, prototype=asked, call=call, data_inputs=(), value_inputs=())

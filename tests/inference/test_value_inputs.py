"""Relations of shape functions that read values of inputs: the values are arguments of the schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ascend_graph.inference import InferenceError
from ascend_graph.inference.functions.comparison import agreement
from ascend_graph.inference.functions.search import infer_with_values
from ascend_graph.inference.functions.value_inputs import with_values_as_attrs
from ascend_graph.prototypes import AttrType, parse_text
from ascend_graph.shapes.functions import InferredOutput, InputSpec, ShapeFunction, ShapeFunctionError

(PROTOTYPE,) = parse_text(
    """
    REG_OP(ReadsValues)
        .INPUT(x, TensorType({DT_FLOAT16, DT_FLOAT}))
        .INPUT(n, TensorType({DT_INT32, DT_INT64}))
        .INPUT(scale, TensorType({DT_FLOAT}))
        .OUTPUT(y, TensorType({DT_FLOAT16, DT_FLOAT}))
        .ATTR(keep, Bool, false)
        .OP_END_FACTORY_REG(ReadsValues)
    """
).prototypes
Shape = tuple[int, ...]


def function(shape: Callable[[Shape, Sequence[int], bool], Sequence[int]], *read: str) -> ShapeFunction:
    """Return a shape function that answers by a Python function of the shape of x, the values of n, and ``keep``."""

    def call(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[InferredOutput | None]:
        x, n, _ = inputs
        if n.values is None:
            raise ShapeFunctionError("the values of n are on the device", by_value=True)
        return [InferredOutput(tuple(shape(x.shape, n.values, attrs["keep"])), x.dtype)]

    return ShapeFunction(PROTOTYPE, "the function", call, data_inputs=read or ("n",))


def reduced(x: Shape, axes: Sequence[int], keep: bool) -> Sequence[int]:
    if not all(-len(x) <= axis < len(x) for axis in axes):
        raise ShapeFunctionError("axis")
    gone = {axis % len(x) for axis in axes}
    return [1 if axis in gone else size for axis, size in enumerate(x) if keep or axis not in gone]


def appended(x: Shape, count: Sequence[int], keep: bool) -> Sequence[int]:
    if not count or count[0] < 0:
        raise ShapeFunctionError("count")
    return (*x, count[0])


@pytest.mark.parametrize(
    ("shape", "relation"),
    [
        (reduced, "x[*s, *r@n] -> y[*s] if len(n) == 0 else [*s, *ones(r)@n] if keep else [*s]"),
        (appended, "x[*s] -> y[*s, n]"),  # one number alone is a number
        (lambda x, n, keep: n, "x[*s] -> y[*n]"),
        (lambda x, n, keep: x, "x[*s] -> y[*s]"),
    ],
)
def test_values_are_arguments(shape: Callable[[Shape, Sequence[int], bool], Sequence[int]], relation: str) -> None:
    found, asked = infer_with_values(function(shape), isolated=False)
    assert str(found.relation).startswith(relation)
    checked = agreement(found.relation, asked, 200, seed=3)
    assert (checked.compared, checked.differing) == (200, ())


def test_values_that_a_definition_gives_are_lists() -> None:
    """As they are in the schema that is made of the definition: a relation that is written to a file has to fit it."""
    given = replace(function(appended), data_inputs=(), value_inputs=("n",))
    found, asked = infer_with_values(given, isolated=False)
    assert str(found.relation).startswith("x[*s] -> y[*s, n[0]]")
    assert next(a.type for a in asked.prototype.attrs if a.name == "n") is AttrType.LIST_INT


def capped(x: Shape, count: Sequence[int], keep: bool) -> Sequence[int]:
    return (*appended(x, count, keep)[:-1], min(count[0], 20))


def test_large_values_are_tried_too() -> None:
    with pytest.raises(InferenceError, match=r"y\[\*s, n\[0\]\] differs on other inputs"):
        infer_with_values(function(capped), isolated=False)


def test_types_of_a_schema_are_taken() -> None:
    found, asked = infer_with_values(function(appended), {"n": AttrType.LIST_INT}, isolated=False)
    assert "y[*s, n[0]]" in str(found.relation)
    assert [(attr.name, attr.type) for attr in asked.prototype.attrs] == [
        ("n", AttrType.LIST_INT),
        ("keep", AttrType.BOOL),
    ]


@pytest.mark.parametrize(
    ("read", "types", "named"),
    [
        (("n",), {}, "n"),  # a tensor in the schema
        (("scale",), {"scale": AttrType.LIST_INT}, "scale"),  # no integers
        (("n", "scale"), None, "scale"),
    ],
)
def test_values_of_tensors_are_refused_by_name(
    read: tuple[str, ...], types: Mapping[str, AttrType] | None, named: str
) -> None:
    with pytest.raises(InferenceError, match=rf"ReadsValues: the function reads the values of {named}, of which"):
        infer_with_values(function(reduced, *read), types, isolated=False)


def test_the_function_gets_its_inputs_in_order() -> None:
    seen: list[Any] = []

    def call(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[InferredOutput | None]:
        seen[:] = [inputs, attrs]
        return [InferredOutput((), inputs[0].dtype)]

    asked = with_values_as_attrs(
        ShapeFunction(PROTOTYPE, "the function", call, data_inputs=("n",)), {"n": AttrType.LIST_INT}
    )
    x, scale = (InputSpec((2, size), p.dtypes[0]) for size, p in zip((3, 4), PROTOTYPE.inputs[::2], strict=True))
    asked.call([x, scale], {"n": (5, 6), "keep": True})
    (first, values, last), attrs = seen
    assert (first, last, attrs) == (x, scale, {"keep": True})
    assert (values.shape, values.dtype.ge_name, values.values) == ((2,), "DT_INT64", (5, 6))

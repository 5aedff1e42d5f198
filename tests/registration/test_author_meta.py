"""Meta functions that call InferShape: numbers are answered, symbolic sizes refused by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from ascend_graph.binding.arguments import bind
from ascend_graph.binding.op_schema import read_schema
from ascend_graph.dispatch.fitting import MetaError
from ascend_graph.dispatch.meta import meta_function
from ascend_graph.prototypes import DataType, parse_text
from ascend_graph.registration.author_kernel import compare_with_kernel
from ascend_graph.registration.author_meta import author_meta, calls_infer_shape
from ascend_graph.registration.request import RegistrationError
from ascend_graph.shapes import parse_relation
from ascend_graph.shapes.functions import InferredOutput, ShapeFunction, ShapeFunctionError

(PROTOTYPE,) = parse_text(
    """
    REG_OP(MetaByCall)
        .INPUT(x, TensorType({DT_FLOAT16, DT_FLOAT}))
        .INPUT(size, TensorType({DT_INT64}))
        .OUTPUT(y, TensorType({DT_FLOAT16, DT_FLOAT}))
        .ATTR(step, Int, 1)
        .OP_END_FACTORY_REG(MetaByCall)
    """
).prototypes


def call(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[InferredOutput]:
    """Answer as an InferShape function does that reads the values of ``size``."""
    if len(inputs[0].shape) > 3:
        raise ShapeFunctionError("the InferShape function returned GRAPH_FAILED")
    return [InferredOutput((*inputs[1].values, attrs["step"]), DataType(inputs[0].dtype))]


@pytest.fixture
def meta() -> Iterator[Any]:
    library = torch.library.Library("meta_by_call", "DEF")
    library.define("make(Tensor x, int[] size, int step=1) -> Tensor")
    schema = read_schema(torch.ops.meta_by_call.make.default._schema)
    function = ShapeFunction(PROTOTYPE, "the function", call, data_inputs=("size",))
    binding = bind(schema, PROTOTYPE)
    assert calls_infer_shape(function, binding)
    yield author_meta(function, binding)
    library._destroy()


def test_values_that_are_arguments_are_passed_on(meta: Any) -> None:
    made = meta(torch.empty(2, 3, dtype=torch.float16, device="meta"), [4, 5], step=6)
    assert (made.shape, made.dtype, made.device.type) == ((4, 5, 6), torch.float16, "meta")


def test_what_the_function_refuses_is_refused(meta: Any) -> None:
    with pytest.raises(MetaError, match="meta_by_call::make: the InferShape function returned GRAPH_FAILED"):
        meta(torch.empty(2, 2, 2, 2, device="meta"), [1])


def test_a_symbolic_size_is_refused_by_name(meta: Any) -> None:
    plain = torch.empty(3, 4)
    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        x = mode.from_tensor(plain)
        with pytest.raises(MetaError, match="x has the symbolic size .* expected static sizes. Write shape="):
            meta(x, [2])


(COPY,) = parse_text(
    """
    REG_OP(KernelByAuthor)
        .INPUT(x, TensorType({DT_FLOAT}))
        .OUTPUT(y, TensorType({DT_FLOAT}))
        .OP_END_FACTORY_REG(KernelByAuthor)
    """
).prototypes


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        ("x[*s] -> y[*s]", ""),
        ("x[*s, n] -> y[*s, n // 2]", r"contradicts the eager kernel: of x\[.*it makes y\[.*, the kernel y\["),
    ],
)
def test_a_relation_of_infer_shape_is_compared_with_the_kernel(relation: str, message: str) -> None:
    library = torch.library.Library("author_kernel", "DEF")
    library.define("copy(Tensor x) -> Tensor")
    library.impl("copy", torch.clone, "CPU")
    try:
        overload = torch.ops.author_kernel.copy.default
        parsed = parse_relation(relation)
        arguments = overload, bind(read_schema(overload._schema), COPY), parsed, meta_function(parsed, overload._schema)
        if message:
            with pytest.raises(RegistrationError, match=message):
                compare_with_kernel(*arguments, "the InferShape function")
        else:
            assert compare_with_kernel(*arguments, "the InferShape function") == 4
    finally:
        library._destroy()

"""Schemas that say less, or more, than the operator does: each is named at registration, with the line to write."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import ascend_graph
from ascend_graph.binding.errors import BindingError, BindingWarning
from ascend_graph.inference import InferenceError, infer_relation
from ascend_graph.prototypes import parse_text
from ascend_graph.registration import bind, read_schema

FLOAT = "TensorType({DT_FLOAT})"
HEADER = f"""
REG_OP(SaidSink)
    .INPUT(x, {FLOAT})
    .INPUT(cache, {FLOAT})
    .OP_END_FACTORY_REG(SaidSink)
REG_OP(SaidPut)
    .INPUT(x, {FLOAT})
    .INPUT(cache, {FLOAT})
    .OUTPUT(cache, {FLOAT})
    .OP_END_FACTORY_REG(SaidPut)
REG_OP(SaidView)
    .INPUT(x, {FLOAT})
    .INPUT(seen, {FLOAT})
    .OUTPUT(y, {FLOAT})
    .OUTPUT(seen, {FLOAT})
    .OP_END_FACTORY_REG(SaidView)
"""


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    ascend_graph.load_prototypes(HEADER)
    library = torch.library.Library("said", "DEF")
    yield library
    library._destroy()


def bound(schema: str, body: str, **options: Any) -> Any:
    prototype = parse_text(f"REG_OP(Said){body}.OP_END_FACTORY_REG(Said)").prototypes[0]
    return bind(read_schema(torch._C.parse_schema(f"said::{schema}")), prototype, **options)


# ------------------------------------------------------------------------------------------------------ writes unsaid


def test_an_operator_without_effects_is_named_with_its_schema(library: torch.library.Library) -> None:
    library.define("sink(Tensor x, Tensor cache) -> ()")
    library.impl("sink", lambda x, cache: None, "PrivateUse1")
    match = (
        r"said::sink: .*may lose what they write.*OUTPUT.*said::sink\(Tensor\(a!\) x, Tensor\(b!\) cache\) -> \(\)"
        r".*define_from_function\(\"said_writes::sink\(Tensor\(a!\) x.*\", torch.ops.said.sink.default\)"
    )
    with pytest.warns(BindingWarning, match=match):
        ascend_graph.register_op("SaidSink", eager=torch.ops.said.sink, shape="->").unregister()


def test_the_schema_that_is_proposed_is_right(library: torch.library.Library) -> None:
    library.define("put(Tensor x, Tensor(b!) cache) -> ()")
    library.impl("put", lambda x, cache: cache.copy_(x) and None, "PrivateUse1")
    with warnings.catch_warnings():
        warnings.simplefilter("error", BindingWarning)
        ascend_graph.register_op("SaidPut", eager=torch.ops.said.put).unregister()


@pytest.mark.parametrize("relation", ["x[n] -> y[n]", "x[n] -> x"])
def test_an_operator_that_returns_a_view_is_named_with_its_schema(
    library: torch.library.Library, relation: str
) -> None:
    library.define("view(Tensor(a) x, Tensor(b!) seen) -> Tensor(a)")
    library.impl("view", lambda x, seen: (x.view(-1), seen.add_(1))[0], "PrivateUse1")
    match = (
        r"said::view: .*returns a view of x.*no compiled.*write: said::view\(Tensor x, Tensor\(b!\) seen\) -> Tensor;"
    )
    with pytest.warns(BindingWarning, match=match):
        op = ascend_graph.register_op("SaidView", eager=torch.ops.said.view, shape=relation)
    x, seen = torch.ones(2, device="npu"), torch.zeros(2, device="npu")
    assert op(x, seen).data_ptr() == x.data_ptr()  # eager calls are right as they are
    op.unregister()


def test_a_view_that_pytorch_decomposes_is_not_named(library: torch.library.Library) -> None:
    library.define("made(Tensor(a) x, Tensor(b!) seen) -> Tensor(a)")
    library.impl("made", lambda x, seen: (x.view(-1), seen.add_(1))[0], "CompositeImplicitAutograd")
    with warnings.catch_warnings():
        warnings.simplefilter("error", BindingWarning)
        ascend_graph.register_op("SaidView", eager=torch.ops.said.made).unregister()


@pytest.mark.parametrize("argument", ["Tensor x", "Tensor[] x"])
def test_a_write_that_runs_show_is_named_with_the_schema(library: torch.library.Library, argument: str) -> None:
    name = f"hidden_{abs(hash(argument)) % 1000}"
    library.define(f"{name}({argument}) -> Tensor y")

    def kernel(x: Any) -> torch.Tensor:
        tensors = x if isinstance(x, list) else [x]
        for tensor in tensors:
            tensor.add_(1)
        return tensors[0].clone()

    schema = getattr(torch.ops.said, name).default._schema
    written = argument.replace("Tensor", r"Tensor\(a!\)").replace("[]", r"\[\]")
    match = rf"said::{name} writes to its argument x, which its schema does not say.*Write: said::{name}\({written}\)"
    with pytest.raises(Exception, match=match):
        infer_relation(kernel, schema)


def test_nothing_returned_says_which_shape_to_write(library: torch.library.Library) -> None:
    library.define("none(Tensor x, Tensor cache) -> ()")
    with pytest.raises(InferenceError, match='said::none returns nothing, so no shape can be found. Write: shape="->"'):
        infer_relation(lambda x, cache: None, torch.ops.said.none.default._schema)


# ----------------------------------------------------------------------------------------------------- too much is said


def test_marks_at_what_is_only_read_are_refused_with_the_schema() -> None:
    body = f".INPUT(x, {FLOAT}).INPUT(weight, {FLOAT}).INPUT(index, {FLOAT}).OUTPUT(x, {FLOAT})"
    match = r"the schema writes weight, .*write: said::op\(Tensor\(a!\) x, Tensor weight, Tensor index\) -> \(\)"
    with pytest.raises(BindingError, match=match):
        bound("op(Tensor(a!) x, Tensor(b!) weight, Tensor(c!) index) -> ()", body)
    assert bound("op(Tensor(a!) x, Tensor weight, Tensor index) -> ()", body).mutations[0].in_place


# ----------------------------------------------------------------------------------------------------------- what is
# idle


@pytest.mark.parametrize("attr", ["stride", "strides", "scale_stride"])
def test_a_stride_that_nothing_feeds_is_doubtful(attr: str) -> None:
    binding = bound("op(Tensor x) -> Tensor y", f".INPUT(x, {FLOAT}).OUTPUT(y, {FLOAT}).ATTR({attr}, Int, 1)")
    assert f"attr {attr} stays at 1, but looks like a property of a tensor" in binding.doubts[0]
    assert not bound(
        "op(Tensor x, int stride=1) -> Tensor y", f".INPUT(x, {FLOAT}).OUTPUT(y, {FLOAT}).ATTR(stride, Int, 1)"
    ).doubts


def test_numbers_that_may_be_an_input_are_the_ones_that_are_named() -> None:
    body = f".INPUT(x, {FLOAT}).OPTIONAL_INPUT(seqLens, TensorType({{DT_INT64}})).OUTPUT(y, {FLOAT})"
    binding = bound("op(Tensor x, int[]? seq_len=None, Tensor? mask=None) -> Tensor y", body)
    (doubt,) = binding.doubts
    assert "argument int[]? seq_len goes nowhere" in doubt
    assert "arguments={'seq_len': 'seqLens'}" in doubt
    assert bound("op(Tensor x, int[]? seq_len=None) -> Tensor y", body, arguments={"seq_len": "seqLens"}).doubts == ()

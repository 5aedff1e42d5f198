"""Which tensors a converter casts: those that something says are promoted, and never an index."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ascend_graph.binding.dtype_constraints import ConstraintKind, find_dtype_constraints
from ascend_graph.dispatch.torchair import torchair
from ascend_graph.prototypes import DataType, OpPrototype, parse_text
from ascend_graph.registration import ConversionError, bind, make_converter, read_schema
from ascend_graph.shapes import parse_relation

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what torch itself deprecates, in modules that torchair imports
    import torch_npu  # noqa: F401 - torchair can only be imported after it


@pytest.fixture(scope="module", autouse=True)
def newest_cann() -> Iterator[None]:
    """An installed CANN that has every operator."""
    with pytest.MonkeyPatch.context() as patch:
        compat = importlib.import_module("torchair._ge_concrete_graph.compat_ir")
        patch.setattr(compat, "is_cann_compat", lambda *_, **__: "")
        yield


CONSTS = (DataType.FLOAT, DataType.FLOAT16, DataType.INT32, DataType.INT64)
F16, F32, I32, I64 = torch.float16, torch.float32, torch.int32, torch.int64
SET = "TensorType({DT_FLOAT, DT_FLOAT16, DT_INT32, DT_INT64})"


def prototype(inputs: str, output: str = SET, symbols: str = "") -> OpPrototype:
    text = f"REG_OP(Tied){inputs}.OUTPUT(y, {output}){symbols}.OP_END_FACTORY_REG(Tied)"
    return parse_text(text).prototypes[0]


BOTH = prototype(f".INPUT(x, {SET}).INPUT(idx, {SET})")
SYMBOL = prototype('.INPUT(x, "T").INPUT(idx, "T")', '"T"', f".DATATYPE(T, {SET})")
PROMOTED = prototype(
    '.INPUT(x, "T1").INPUT(idx, "T2")',
    '"T3"',
    f'.DATATYPE(T1, {SET}).DATATYPE(T2, {SET}).DATATYPE(T3, Promote({{"T1", "T2"}}))',
)


def made(
    op: OpPrototype, schema: str, values: list[Any], dtype: torch.dtype | None, relation: str | None = None
) -> list[str]:
    """Where the inputs of one call's node come from: ``Data``, ``Const INT64``, ``Cast FLOAT``."""
    parsed = read_schema(torch._C.parse_schema(f"equal::op{schema}"))
    binding = bind(parsed, op, relation=None if relation is None else parse_relation(relation))
    ge = torchair().ge
    names = {ge._ge_dtype_to_ge_proto_dtype(int(d)): d.name for d in CONSTS}

    def tensor(n: int, dtype: torch.dtype) -> Any:
        data = ge.Data(index=n, dtype=ge.torch_type_to_ge_type(dtype), shape=[2], placement="NPU")
        data.set_meta(torch.empty(2, dtype=dtype, device="meta"))
        return data

    with ge.GeGraph() as graph:
        args = [tensor(n, value) if isinstance(value, torch.dtype) else value for n, value in enumerate(values)]
        make_converter(binding)(*args, meta_outputs=None if dtype is None else tensor(9, dtype))
        nodes = {node.name: node for node in graph.op}
        found = []
        for name in next(node for node in graph.op if node.type == "Tied").input:
            node = nodes[name.partition(":")[0]]
            more = {"Cast": lambda node: f" {DataType(node.attr['dst_type'].i).name}"}
            more["Const"] = lambda node: f" {names[node.output_desc[0].dtype]}"
            found.append(node.type + more.get(node.type, lambda node: "")(node))
        return found


TENSORS = "(Tensor x, Tensor idx) -> Tensor"


@pytest.mark.parametrize(
    ("op", "dtypes", "result", "relation", "expected"),
    [
        # Nothing says that an integer with a floating tensor is not an index.
        (BOTH, (F32, I32), F32, None, ["Data", "Data"]),
        (BOTH, (F32, I32), F32, "x[*s], idx[*t] -> y[*t]", ["Data", "Data"]),
        (BOTH, (F32, I64), F32, "x[*s], idx[*t] -> y[*t]: x", ["Data", "Data"]),
        (BOTH, (F16, F32), F32, "x[*s], idx[*t] -> y[*t]: idx", ["Data", "Data"]),
        (BOTH, (F32, I32), F32, "x[...], idx[...] -> y[...]: promote(x, idx)", ["Data", "Cast FLOAT"]),
        (BOTH, (F16, F32), F32, None, ["Cast FLOAT", "Data"]),
        (BOTH, (I32, I64), I64, None, ["Cast INT64", "Data"]),
        (PROMOTED, (F32, I32), F32, None, ["Data", "Cast FLOAT"]),
        (PROMOTED, (F32, I32), F32, "x[*s], idx[*t] -> y[*t]: x", ["Data", "Data"]),
        (SYMBOL, (F32, I32), F32, None, ["Data", "Cast FLOAT"]),
        (SYMBOL, (F16, F32), F32, "x[...], idx[...] -> y[...]: idx", ["Cast FLOAT", "Data"]),
        (SYMBOL, (F32, I32), F32, "x[...], idx[...] -> y[...]: promote(x, idx)", ["Data", "Cast FLOAT"]),
    ],
)
def test_what_is_cast(
    op: OpPrototype, dtypes: tuple[Any, Any], result: torch.dtype, relation: str | None, expected: list[str]
) -> None:
    assert made(op, TENSORS, [*dtypes], result, relation) == expected


def test_the_names_of_the_schema() -> None:
    relation = "self[...], other[...] -> out[...]: promote(self, other)"
    op = prototype(f".INPUT(x1, {SET}).INPUT(other, {SET})")
    assert made(op, "(Tensor self, Tensor other) -> Tensor", [F32, I32], F32, relation) == ["Data", "Cast FLOAT"]


def test_one_dtype_by_the_prototype_and_none_by_the_relation() -> None:
    with pytest.raises(ConversionError, match="gives T one dtype, the call several: x DT_FLOAT, idx DT_INT32"):
        made(SYMBOL, TENSORS, [F32, I32], F32, "x[*s], idx[*t] -> y[*t]: x")


@pytest.mark.parametrize(
    ("dtype", "value", "result", "expected"),
    [
        (I32, 1.5, F32, ["Cast FLOAT", "Const FLOAT"]),
        (F16, 1.5, F16, ["Data", "Const FLOAT16"]),
        (I32, 2, I32, ["Data", "Const INT32"]),
    ],
)
def test_a_tensor_has_the_dtype_of_a_number_next_to_it(
    dtype: torch.dtype, value: Any, result: torch.dtype, expected: list[str]
) -> None:
    """GE refuses a node whose inputs of one symbol have two dtypes."""
    assert made(SYMBOL, "(Tensor x, Scalar idx) -> Tensor", [dtype, value], result) == expected


@pytest.mark.parametrize("relation", [None, "x[...] -> y[...]: x"])
def test_a_number_is_not_cast_to_an_integer(relation: str | None) -> None:
    with pytest.raises(ConversionError, match="gives T one dtype, the call several: x DT_INT32, idx DT_FLOAT"):
        made(SYMBOL, "(Tensor x, Scalar idx) -> Tensor", [I32, 1.5], I32, relation)


@pytest.mark.parametrize(("value", "expected"), [(3, "Const INT64"), ([1, 16777217], "Const INT64")])
def test_an_int_keeps_its_value(value: Any, expected: str) -> None:
    schema = f"(Tensor x, int{'[]' if isinstance(value, list) else ''} idx) -> Tensor"
    assert made(BOTH, schema, [F32, value], F32) == ["Data", expected]


def test_an_int_for_an_input_that_has_only_floating_dtypes() -> None:
    op = prototype(f".INPUT(x, {SET}).INPUT(idx, TensorType({{DT_FLOAT}}))")
    assert made(op, "(Tensor x, int idx) -> Tensor", [F32, 16777216], F32) == ["Data", "Const FLOAT"]
    with pytest.raises(ConversionError, match="16777217 fits no dtype of input idx; allowed are DT_FLOAT"):
        made(op, "(Tensor x, int idx) -> Tensor", [F32, 16777217], F32)


def test_a_number_takes_part_in_arithmetic() -> None:
    assert made(BOTH, "(Tensor x, Scalar idx) -> Tensor", [F32, 2], F32) == ["Data", "Const FLOAT"]
    relation = "x[...] -> y[...]: promote(x, idx)"
    schema = "(Tensor x, float idx) -> Tensor"
    assert made(BOTH, schema, [F32, 2.0], F32, relation) == ["Data", "Const FLOAT"]
    assert made(BOTH, schema, [I32, 2.5], F32, relation) == ["Cast FLOAT", "Const FLOAT"]


@given(
    dtypes=st.tuples(*[st.sampled_from([F16, F32, I32, I64])] * 2),
    op=st.sampled_from([BOTH, PROMOTED]),
    follows=st.sampled_from(["x", "idx"]),
)
def test_a_relation_that_promotes_nothing_casts_nothing(dtypes: tuple[Any, Any], op: OpPrototype, follows: str) -> None:
    result = dtypes[follows == "idx"]
    assert made(op, TENSORS, [*dtypes], result, f"x[*s], idx[*t] -> y[*t]: {follows}") == ["Data", "Data"]


def test_ties_of_several_outputs() -> None:
    op = parse_text(f"""REG_OP(Two).INPUT(a, {SET}).INPUT(b, {SET}).INPUT(c, {SET}).OUTPUT(y, {SET}).OUTPUT(z, {SET})
        .OP_END_FACTORY_REG(Two)""").prototypes[0]
    relation = parse_relation("a[...], b[...], c[n] -> y[...]: promote(a, b), z[n]: c")
    (constraint,) = find_dtype_constraints(op, relation)
    assert (constraint.kind, constraint.inputs, constraint.output) == (ConstraintKind.RELATION, (0, 1), 0)
    assert find_dtype_constraints(op) == ()

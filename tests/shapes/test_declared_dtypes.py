"""Outputs whose dtype the relation leaves to the prototype: what is written, what stays, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from ascend_graph.codegen.infer_shape import infer_shape_source
from ascend_graph.codegen.op_project import generate_op_project

import ascend_graph
from ascend_graph.prototypes import OpPrototype, parse_text
from ascend_graph.shapes import RelationError
from ascend_graph.shapes.declared_dtypes import complete_relation

HALVES = "TensorType({DT_FLOAT16, DT_BF16})"
NORM = f"""
REG_OP(DeclaredNorm)
    .INPUT(x, {HALVES})
    .OPTIONAL_INPUT(gamma, {HALVES})
    .OUTPUT(y, {HALVES})
    .OUTPUT(rstd, TensorType({{DT_FLOAT}}))
    .OP_END_FACTORY_REG(DeclaredNorm)
"""
NORM_SHAPE = "x[*b, d], gamma[d] -> y[*b, d], rstd[*b]"


def prototype(parameters: str) -> OpPrototype:
    (found,) = parse_text(f"REG_OP(Declared){parameters}.OP_END_FACTORY_REG(Declared)").prototypes
    return found


@pytest.mark.parametrize(
    ("parameters", "given", "expected"),
    [
        (
            '.INPUT(c, TensorType({DT_BOOL})).INPUT(a, "T").INPUT(b, "T").OUTPUT(y, "T").DATATYPE(T, TensorType({DT_FLOAT, DT_INT8}))',
            "c[*s], a[*s], b[*s] -> y[*s]",
            "c[*s], a[*s], b[*s] -> y[*s]: a",
        ),
        (
            '.INPUT(a, "T1").INPUT(b, "T2").OUTPUT(y, "T").DATATYPE(T1, TensorType({DT_FLOAT, DT_INT8}))'
            '.DATATYPE(T2, TensorType({DT_FLOAT16, DT_INT8})).DATATYPE(T, Promote({"T1", "T2"}))',
            "a[...], b[...] -> y[...]",
            "a[...], b[...] -> y[...]: promote(a, b)",
        ),
        (
            '.INPUT(a, "T1").INPUT(b, "T2").OUTPUT(y, "T2").OUTPUT(z, "T1").DATATYPE(T1, TensorType({DT_FLOAT}))'
            ".DATATYPE(T2, TensorType({DT_FLOAT, DT_FLOAT16}))",
            "a[n], b[n] -> y[n], z[n]",
            "a[n], b[n] -> y[n]: b, z[n]",  # the first input's are allowed, and the symbol says more
        ),
        (
            ".INPUT(ids, TensorType({DT_INT64})).INPUT(w, TensorType({DT_FLOAT, DT_FLOAT16})).OUTPUT(y, TensorType({DT_FLOAT16, DT_FLOAT}))",
            "ids[*s], w[n, d] -> y[*s, d]",
            "ids[*s], w[n, d] -> y[*s, d]: w",
        ),
        (
            ".INPUT(x, TensorType({DT_FLOAT16, DT_FLOAT})).OUTPUT(y, TensorType({DT_BOOL}))",
            "x[*s] -> y like x",
            "x[*s] -> y like x: bool",
        ),
        (
            ".INPUT(x, TensorType({DT_FLOAT16, DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).REQUIRED_ATTR(f, Bool)",
            "x[n] -> y[n] if f else None",
            "x[n] -> y[n]: float32 if f else None",
        ),
        (
            ".DYNAMIC_INPUT(x, TensorType({DT_FLOAT16, DT_FLOAT})).DYNAMIC_OUTPUT(y, TensorType({DT_FLOAT}))",
            "x[i][n] -> y[i][n]",
            "x[i][n] -> y[i][n]: float32",
        ),
        (".OUTPUT(y, TensorType({DT_INT8})).REQUIRED_ATTR(n, Int)", "-> y[n]", "-> y[n]: int8"),
        # What the relation says stays, and so does what the first input may have.
        (
            ".INPUT(x, TensorType({DT_FLOAT16, DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT}))",
            "x[n] -> y[n]: promote(x, x)",
            "x[n] -> y[n]: promote(x, x)",
        ),
        (
            ".INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT, DT_INT8}))",
            "x[n] -> y[n]",
            "x[n] -> y[n]",
        ),
        (".INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, Unheard)", "x[n] -> y[n]", "x[n] -> y[n]"),
    ],
)  # fmt: skip
def test_what_the_prototype_says_is_not_asked_again(parameters: str, given: str, expected: str) -> None:
    completed = complete_relation(prototype(parameters), given)
    assert str(completed) == expected
    assert complete_relation(prototype(parameters), completed) == completed


def test_a_dtype_that_the_prototype_forbids_is_refused_with_the_line_to_write() -> None:
    quantized = prototype(".INPUT(x, TensorType({DT_FLOAT16})).OUTPUT(y, TensorType({DT_INT8, DT_INT32}))")
    with pytest.raises(
        RelationError, match=r"allows int8, int32, none of which the input x has \(float16\): .*y\[n\]: int8"
    ):
        complete_relation(quantized, "x[n] -> y[n]")
    assert str(complete_relation(quantized, "x[n] -> y[n]: int32")) == "x[n] -> y[n]: int32"


@pytest.mark.parametrize("said", ["y[n]: int8", "y[n]: int8 if n > 2 else [0]: float32", "y like x: bfloat16"])
def test_a_dtype_that_the_prototype_does_not_list_is_refused(said: str) -> None:
    """The function would be called with a tensor that its kernels do not write."""
    narrow = prototype(f".INPUT(x, {HALVES}).OUTPUT(y, TensorType({{DT_FLOAT16, DT_FLOAT}}))")
    with pytest.raises(RelationError, match=r"the output y is \w+ by the relation; expected .*: float16, float32"):
        complete_relation(narrow, f"x[n] -> {said}")
    with pytest.raises(RelationError, match=r"the output y is \w+ by InferDataType; expected .*: float16, float32"):
        complete_relation(narrow, f"x[n] -> {said}", "InferDataType")


@pytest.mark.parametrize("parameters", ["DT_INT4", "DT_INT4, DT_FLOAT16"])
def test_a_dtype_without_a_name_in_torch_is_in_tensors_of_any(parameters: str) -> None:
    packed = prototype(f".INPUT(x, {HALVES}).OUTPUT(y, TensorType({{{parameters}}}))")
    assert str(complete_relation(packed, "x[n] -> y[n // 2]: int8")) == "x[n] -> y[n // 2]: int8"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_registered_operator_has_them(dtype: torch.dtype) -> None:
    ascend_graph.load_prototypes(NORM)
    operator = ascend_graph.register_op("DeclaredNorm", shape=NORM_SHAPE)
    try:
        y, rstd = operator.overload(torch.ones(2, 3, device="meta", dtype=dtype))
        assert (y.dtype, rstd.dtype, tuple(rstd.shape)) == (dtype, torch.float32, (2,))
    finally:
        operator.unregister()


def test_generated_sources_have_them(tmp_path: Path) -> None:
    header = tmp_path / "op_proto.h"
    header.write_text(NORM)
    project = generate_op_project(tmp_path / "project", [header], shapes={"DeclaredNorm": NORM_SHAPE})
    definition = (project.directory / "op_host/declared_norm_def.cpp").read_text()
    assert definition.count("{ge::DT_FLOAT16, ge::DT_BF16}") == 3
    assert definition.count("{ge::DT_FLOAT, ge::DT_FLOAT}") == 1
    (parsed,) = parse_text(NORM).prototypes
    assert "SetOutputDataType(1, ge::DataType(0))" in infer_shape_source(parsed, complete_relation(parsed, NORM_SHAPE))

"""Prototype ↔ aclnn function: bound by names and types, refused where these do not tell; no torch."""

from __future__ import annotations

from typing import Any

import pytest

from ascend_graph.aclnn import AclnnFunction
from ascend_graph.aclnn import parse_text as parse_functions
from ascend_graph.binding import AclnnCall, BindingError, Part, bind_call, find_call, msopgen_call
from ascend_graph.prototypes import OpPrototype, parse_text
from ascend_graph.prototypes.opdef import parse_op_defs
from ascend_graph.sources import SourceText


def prototype(calls: str, name: str = "Foo") -> OpPrototype:
    calls = calls.replace("FLOAT", "TensorType({DT_FLOAT})").replace("INT64", "TensorType({DT_INT64})")
    (found,) = parse_text(f"REG_OP({name}){calls}.OP_END_FACTORY_REG({name})").prototypes
    return found


def function(parameters: str, name: str = "aclnnFoo") -> AclnnFunction:
    text = f"int {name}GetWorkspaceSize({parameters}, uint64_t *workspaceSize, aclOpExecutor **executor);"
    (found,) = parse_functions(text).functions
    return found


def pairs(declared: OpPrototype, call: AclnnCall) -> dict[str, Any]:
    sides: dict[Part, Any] = {Part.INPUT: declared.inputs, Part.ATTR: declared.attrs, Part.OUTPUT: declared.outputs}
    return {a.name: a.value if a.part is Part.CONSTANT else sides[a.part][a.index].name for a in call.arguments}


@pytest.mark.parametrize(
    ("calls", "parameters", "expected"),
    [
        # The header's order, not the prototype's.
        (
            ".INPUT(x, FLOAT).INPUT(gamma, FLOAT).OUTPUT(y, FLOAT).ATTR(eps, Float, 1e-5)",
            "const aclTensor *gamma, double eps, const aclTensor *x, aclTensor *yOut",
            {"gamma": "gamma", "eps": "eps", "x": "x", "yOut": "y"},
        ),
        # Case, underscores, endings, synonyms, the only output.
        (
            ".INPUT(cu_seqlens, FLOAT).OPTIONAL_INPUT(attn_mask, FLOAT).OUTPUT(y, FLOAT).ATTR(axis, Int, 0)",
            "const aclTensor *cuSeqlens, const aclTensor *attnMaskOptional, int64_t dim, aclTensor *out",
            {"cuSeqlens": "cu_seqlens", "attnMaskOptional": "attn_mask", "dim": "axis", "out": "y"},
        ),
        # Written in place: once, as Ref.
        (
            ".INPUT(var, FLOAT).INPUT(x, FLOAT).OUTPUT(var, FLOAT)",
            "aclTensor *varRef, const aclTensor *x",
            {"varRef": "var", "x": "x"},
        ),
        # Generated functions have const everywhere: the prototype says which ones are outputs.
        (
            ".INPUT(dy, FLOAT).INPUT(y, FLOAT).OUTPUT(dx, FLOAT).OUTPUT(meta_data, FLOAT)",
            "const aclTensor *dy, const aclTensor *y, const aclTensor *dx, const aclTensor *metaData",
            {"dy": "dy", "y": "y", "dx": "dx", "metaData": "meta_data"},
        ),
        # An input of which the function takes the values; a number as a scalar; a number of 32 bits.
        (
            ".INPUT(x, FLOAT).INPUT(sizes, INT64).OUTPUT(y, FLOAT).ATTR(alpha, Float, 1).ATTR(beta, Float, 1)",
            "const aclTensor *x, const aclIntArray *sizes, const aclScalar *alpha, float beta, aclTensor *out",
            {"x": "x", "sizes": "sizes", "alpha": "alpha", "beta": "beta", "out": "y"},
        ),
        # What may be null and the prototype has nothing for; a default argument; host memory for an output.
        (
            ".INPUT(x, FLOAT).OUTPUT(count, INT64)",
            "const aclTensor *x, const aclTensor *biasOptional, int64_t *count, int64_t mode = 3",
            {"x": "x", "biasOptional": None, "count": "count", "mode": 3},
        ),
        # aclnn's names of two operands, and GE's.
        (
            ".INPUT(x1, FLOAT).INPUT(x2, FLOAT).OUTPUT(y, FLOAT)",
            "const aclTensor *self, const aclTensor *other, aclTensor *out",
            {"self": "x1", "other": "x2", "out": "y"},
        ),
        # self is the first input where all others have names.
        (
            ".INPUT(start, FLOAT).INPUT(end, FLOAT).OUTPUT(y, FLOAT)",
            "const aclTensor *self, const aclTensor *end, aclTensor *out",
            {"self": "start", "end": "end", "out": "y"},
        ),
    ],
)
def test_bound(calls: str, parameters: str, expected: dict[str, Any]) -> None:
    declared = prototype(calls)
    assert pairs(declared, bind_call(declared, function(parameters))) == expected


@pytest.mark.parametrize(
    ("calls", "parameters", "message"),
    [
        # The same types in the same order, with another meaning (CANN's ScatterNd).
        (
            ".INPUT(indices, INT64).INPUT(x, FLOAT).INPUT(shape, INT64).OUTPUT(y, FLOAT)",
            "const aclTensor *data, const aclTensor *indices, const aclTensor *updates, aclTensor *out",
            "nothing says what const aclTensor *data is",
        ),
        # A tensor there, a scalar here (Addcdiv).
        (
            ".INPUT(x, FLOAT).INPUT(value, FLOAT).OUTPUT(y, FLOAT)",
            "const aclTensor *x, double value, aclTensor *out",
            "double value cannot be the input value",
        ),
        (
            ".INPUT(x, FLOAT).OUTPUT(y, FLOAT).ATTR(scale, Float, 1)",
            "const aclTensor *x, const aclTensor *scale, aclTensor *out",
            "const aclTensor *scale cannot be the attr Float scale",
        ),
        # A parameter more, a parameter less.
        (
            ".INPUT(x, FLOAT).OUTPUT(y, FLOAT)",
            "const aclTensor *x, int64_t streamMode, aclTensor *out",
            "nothing says what int64_t streamMode is",
        ),
        (
            ".INPUT(x, FLOAT).OUTPUT(y, FLOAT).ATTR(is_trans, Bool, false)",
            "const aclTensor *x, aclTensor *out",
            "nothing takes the attr Bool is_trans",
        ),
        (
            ".INPUT(x, FLOAT).OPTIONAL_INPUT(b, FLOAT).OUTPUT(y, FLOAT)",
            "const aclTensor *x, aclTensor *out",
            "nothing takes the input b",
        ),
        # The function writes what the operator only reads, and the other way about.
        (
            ".INPUT(x, FLOAT).OUTPUT(y, FLOAT)",
            "aclTensor *xRef, aclTensor *out",
            "aclTensor *xRef cannot be the input x",
        ),
        (
            ".INPUT(x, FLOAT).OUTPUT(x, FLOAT)",
            "const aclTensor *x, aclTensor *xOut",
            "nothing says what aclTensor *xOut is",
        ),
        # What one side reads by a name, the other writes.
        (
            ".INPUT(a, FLOAT).INPUT(b, FLOAT).OUTPUT(c, FLOAT)",
            "const aclTensor *a, const aclTensor *c, aclTensor *b",
            "aclTensor *b cannot be the input b",
        ),
        # An optional tensor that nothing feeds, next to an input of another name.
        (
            ".INPUT(x, FLOAT).OPTIONAL_INPUT(bias1, FLOAT).OUTPUT(y, FLOAT)",
            "const aclTensor *x, const aclTensor *offsetOptional, aclTensor *out",
            "nothing says what const aclTensor *offsetOptional is",
        ),
        # Addcmul: the operands are not x1 and x2.
        (
            ".INPUT(input_data, FLOAT).INPUT(x1, FLOAT).INPUT(x2, FLOAT).OUTPUT(y, FLOAT)",
            "const aclTensor *self, const aclTensor *tensor1, const aclTensor *tensor2, aclTensor *out",
            "nothing says what const aclTensor *self is",
        ),
        # Two outputs whose names do not tell.
        (
            ".INPUT(x, FLOAT).OUTPUT(y1, FLOAT).OUTPUT(y2, FLOAT)",
            "const aclTensor *x, aclTensor *valuesOut, aclTensor *indicesOut",
            "nothing says what aclTensor *valuesOut is",
        ),
        # Types that no call is made with.
        (
            ".INPUT(x, FLOAT).OUTPUT(y, FLOAT)",
            "const aclTensor *x, HcclComm comm, aclTensor *out",
            "HcclComm comm has a type that no call is made with",
        ),
        (
            ".INPUT(x, FLOAT).OUTPUT(y, FLOAT)",
            "const aclTensor *x, aclTensor *out, aclIntArray **sizes",
            "is an array that the function makes",
        ),
    ],
)
def test_refused_with_both_sides_and_the_line_to_write(calls: str, parameters: str, message: str) -> None:
    with pytest.raises(BindingError) as caught:
        bind_call(prototype(calls), function(parameters))
    text = str(caught.value)
    assert message in text
    assert "REG_OP(Foo)" in text
    assert "aclnnFoo(" in text
    assert "Write: aclnn_arguments={" in text


def test_proposals_share_a_word_or_are_left_open() -> None:
    declared = prototype(
        ".INPUT(x, FLOAT).OUTPUT(y, FLOAT).OUTPUT(y_scale, FLOAT).ATTR(mode, Int, 0).ATTR(use_locking, Bool, false)"
        ".REQUIRED_ATTR(compress_ratio, Int)"
    )
    with pytest.raises(BindingError) as caught:
        bind_call(
            declared,
            function(
                "const aclTensor *x, int64_t streams, aclTensor *output, aclTensor *outputScale, int64_t cmpRatio"
            ),
        )
    assert str(caught.value).endswith(
        "Write: aclnn_arguments={'streams': …, 'output': …, 'outputScale': …, 'cmpRatio': 'compress_ratio', "
        "'use_locking': None}, "
        'or name another function: aclnn="aclnn…"'
    )


def test_aclnn_arguments_settle_names_and_fix_values() -> None:
    declared = prototype(".INPUT(a, FLOAT).INPUT(b, FLOAT).OUTPUT(y, FLOAT).OUTPUT(z, FLOAT).ATTR(flag, Bool, false)")
    wanted = function(
        "const aclTensor *one, const aclTensor *two, const aclTensor *three, const aclScalar *alpha, double eps, "
        "char *mode, "
        "const aclIntArray *dims, int8_t kind, aclTensor *first, aclTensor *second"
    )
    settled = {
        "one": "b",
        "two": "a",
        "three": None,
        "alpha": 1,
        "eps": 2,
        "mode": "fast",
        "dims": [1, 2],
        "kind": -3,
        "first": "z",
        "flag": None,
    }
    call = bind_call(declared, wanted, settled)
    expected = {
        "one": "b",
        "two": "a",
        "three": None,
        "alpha": 1,
        "eps": 2.0,
        "mode": "fast",
        "dims": (1, 2),
        "kind": -3,
        "first": "z",
        "second": "y",
    }
    assert pairs(declared, call) == expected
    assert call.unused == ("flag",)


@pytest.mark.parametrize(
    ("settled", "message"),
    [
        (
            {"nothing": 1},
            "mentions 'nothing', which is not a parameter of aclnnFoo; expected one of: x, mode, kind, out",
        ),
        ({"kind": 300}, "int8_t kind must be -128 to 127"),
        ({"kind": 1.5}, "int8_t kind takes an int"),
        ({"mode": "z"}, "bool mode takes a bool; expected a parameter of Foo, x, y"),
        ({"mode": 1}, "bool mode takes a bool"),
        ({"mode": "x"}, "bool mode cannot be the input x: the types must agree"),
        ({"x": "y", "out": "y"}, "gives y twice"),
        ({"y": None}, "the output y has no default to stay at"),
        ({"x": 3}, "const aclTensor *x takes a tensor"),
    ],
)
def test_aclnn_arguments_that_make_no_sense(settled: dict[str, Any], message: str) -> None:
    declared = prototype(".INPUT(x, FLOAT).OUTPUT(y, FLOAT)")
    with pytest.raises(BindingError) as caught:
        bind_call(declared, function("const aclTensor *x, bool mode, int8_t kind, const aclTensor *out"), settled)
    assert message in str(caught.value)


def test_without_a_header_only_packages_have_a_known_order() -> None:
    declared = prototype(".INPUT(x, FLOAT).OUTPUT(y, FLOAT).ATTR(n, Int, 1)", "NoHeaderDeclaresThis")
    call = find_call(declared, library="/opp/vendors/customize/op_api/lib/libcust_opapi.so")
    assert [a.name for a in call.arguments] == ["x", "n", "y"]
    assert call.source == (
        "no header declares aclnnNoHeaderDeclaresThis: msOpGen's order, for a function of "
        "/opp/vendors/customize/op_api/lib/libcust_opapi.so"
    )
    with pytest.raises(BindingError, match=r"/cann/lib64/libopapi.so is CANN's own, and its parameters are not known"):
        find_call(declared, library="/cann/lib64/libopapi.so")
    with pytest.raises(BindingError, match="aclnnNoHeaderDeclaresThis: no header declares it"):
        find_call(declared, arguments={"x": "x"})
    with pytest.raises(BindingError, match="aclnnOther: no header declares it"):
        find_call(declared, "aclnnOther")


def test_inputs_of_which_an_opdef_says_that_the_function_takes_the_values() -> None:
    text = """class Foo : public OpDef { public: explicit Foo(const char *name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
        this->Input("sizes").ParamType(OPTIONAL).DataType({ge::DT_INT64}).ValueDepend(OPTIONAL);
        this->Input("flags").ParamType(REQUIRED).DataType({ge::DT_BOOL}).ValueDepend(REQUIRED);
        this->Input("scale").Scalar().DataType({ge::DT_FLOAT});
        this->Input("weights").ScalarList().ParamType(REQUIRED).DataType({ge::DT_FLOAT});
        this->Input("ignored").DataType({ge::DT_INT64}).ValueDepend(IGNORE);
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}); } };
        OP_ADD(Foo);"""
    (declared,) = parse_op_defs(SourceText(text)).prototypes
    call = msopgen_call(declared)
    assert [str(a.type) for a in call.arguments] == [
        "const aclTensor *",
        "const aclIntArray *",
        "const aclBoolArray *",
        "const aclScalar *",
        "const aclScalarList *",
        "const aclTensor *",
        "const aclTensor *",
    ]

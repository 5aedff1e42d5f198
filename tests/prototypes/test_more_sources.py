"""OpDef classes and msOpGen JSON say the same as the REG_OP text of the built package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ascend_graph.prototypes import DataType, OpPrototype, ParseResult, parse_text, read_prototypes

OP_DEF = """
#include "register/op_def_registry.h"
namespace ops {
static const std::vector<ge::DataType> HALVES = {ge::DT_FLOAT16, ge::DT_BF16};
// Normalizes.
class RmsNormCustom : public OpDef {
public:
    explicit RmsNormCustom(const char* name) : OpDef(name)
    {
        this->Input("x")
            .ParamType(REQUIRED)
            .DataType({ge::DT_FLOAT16, ge::DT_FLOAT})
            .Format({ge::FORMAT_ND, ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND, ge::FORMAT_ND});
        this->Input("gamma").ParamType(OPTIONAL).DataType(HALVES).AutoContiguous();
        this->Input("rest").ParamType(DYNAMIC).DataTypeList({ge::DT_INT32});
        // this->Input("no").ParamType(REQUIRED);
        this->Output("y").ParamType(REQUIRED).Follow("x", FollowType::DTYPE);
        this->Output("rstd").ParamType(ops::OPTIONAL).DataType({ge::DT_FLOAT, ge::DT_FLOAT});
        this->Attr("epsilon").AttrType(OPTIONAL).Float(1e-6);
        this->Attr("axes").AttrType(OPTIONAL).ListInt({-1, -2});
        this->Attr("mode").AttrType(OPTIONAL).String("a\\"b");
        this->Attr("size").Int();
        this->Attr("flags").AttrType(OPTIONAL).ListBool();
        this->SetInferShape(ge::InferShape);
        OpAICoreConfig config;
        config.Input("x").ParamType(REQUIRED).DataType({ge::DT_INT8});
        config.DynamicFormatFlag(true).ExtendCfgInfo("opFile.value", "rms_norm");
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("ascend910b", config);
    }
};
OP_ADD(RmsNormCustom);
}
"""
MSOPGEN = [
    {
        "op": "RmsNormCustom",
        "language": "cpp",
        "input_desc": [
            {"name": "x", "param_type": "required", "format": ["ND", "ND"], "type": ["fp16", "float"]},
            {"name": "gamma", "param_type": "optional", "format": ["ND", "ND"], "type": ["float16", "bf16"]},
            {"name": "rest", "param_type": "dynamic", "format": ["ND"], "type": ["int32"]},
        ],
        "output_desc": [
            {"name": "y", "param_type": "required", "format": ["ND", "ND"], "type": ["fp16", "fp32"]},
            {"name": "rstd", "param_type": "required", "format": ["ND"], "type": ["float"]},
        ],
        "attr": [
            {"name": "epsilon", "param_type": "optional", "type": "float", "default_value": "1e-6"},
            {"name": "axes", "param_type": "optional", "type": "list_int", "default_value": "{-1, -2}"},
            {"name": "mode", "param_type": "optional", "type": "string", "default_value": 'a"b'},
            {"name": "size", "param_type": "required", "type": "int"},
            {"name": "flags", "param_type": "optional", "type": "listBool", "default_value": []},
        ],
    }
]
REG_OP = """
REG_OP(RmsNormCustom)
    .INPUT(x, ge::TensorType({ge::DT_FLOAT16, ge::DT_FLOAT}))
    .OPTIONAL_INPUT(gamma, ge::TensorType({ge::DT_FLOAT16, ge::DT_BF16}))
    .DYNAMIC_INPUT(rest, ge::TensorType({ge::DT_INT32}))
    .OUTPUT(y, ge::TensorType({ge::DT_FLOAT16, ge::DT_FLOAT}))
    .OUTPUT(rstd, ge::TensorType({ge::DT_FLOAT}))
    .ATTR(epsilon, Float, 1e-6)
    .ATTR(axes, ListInt, {-1, -2})
    .ATTR(mode, String, "a\\"b")
    .REQUIRED_ATTR(size, Int)
    .ATTR(flags, ListBool, {})
    .OP_END_FACTORY_REG(RmsNormCustom)
"""


def read(tmp_path: Path, name: str, text: str) -> ParseResult:
    path = tmp_path / name
    path.write_text(text)
    return read_prototypes(path)


@pytest.fixture
def wanted() -> OpPrototype:
    return parse_text(REG_OP).prototypes[0]


def test_op_def(tmp_path: Path, wanted: OpPrototype) -> None:
    result = read(tmp_path, "rms_norm_def.cpp", OP_DEF)
    assert result.diagnostics == ()
    assert result.prototypes == (wanted,)
    assert (result.prototypes[0].doc, result.prototypes[0].line) == ("Normalizes.", 6)
    virtual = read(tmp_path, "virtual_def.cpp", OP_DEF.replace("ParamType(OPTIONAL)", "ParamType(VIRTUAL)"))
    assert (virtual.diagnostics, virtual.prototypes) == ((), result.prototypes)


def test_msopgen(tmp_path: Path, wanted: OpPrototype) -> None:
    result = read(tmp_path, "rms_norm.json", json.dumps(MSOPGEN, indent=4))
    assert result.diagnostics == ()
    assert result.prototypes == (wanted,)
    assert result.prototypes[0].line == 3


def test_an_operator_project_is_read_as_a_directory(tmp_path: Path, wanted: OpPrototype) -> None:
    (tmp_path / "op_host").mkdir()
    (tmp_path / "op_host" / "rms_norm_custom.cpp").write_text(OP_DEF)
    (tmp_path / "op_host" / "tiling.h").write_text("struct Tiling {};")
    (tmp_path / "op_kernel").mkdir()
    (tmp_path / "op_kernel" / "rms_norm_custom.cpp").write_text(OP_DEF.replace("RmsNormCustom", "NotThis"))
    assert read_prototypes(tmp_path).prototypes == (wanted,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("ParamType(OPTIONAL)", "ParamType(OPTINAL)"), "did you mean OPTIONAL"),
        (("ge::DT_FLOAT16, ge::DT_FLOAT}", "ge::DT_FLOAT16, ge::DT_FLOAT32}"), "no DT_FLOAT32"),
        ((".DataType(HALVES)", ".DataType(ELSEWHERE)"), "ELSEWHERE is not a list of dtypes"),
        ((".Float(1e-6)", ".Float(kEpsilon)"), "kEpsilon is not a constant"),
        ((".Float(1e-6)", ""), "attr epsilon has no type"),
        (("OP_ADD(RmsNormCustom)", "OP_ADD(Other)"), "no OP_ADD(RmsNormCustom)"),
    ],
)
def test_op_def_remarks(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    result = read(tmp_path, "a_def.cpp", OP_DEF.replace(*change))
    assert len(result.prototypes) == 1
    assert result.errors == ()
    assert any(message in diagnostic.message and diagnostic.line for diagnostic in result.diagnostics)


def test_op_def_constants_and_macros(tmp_path: Path, wanted: OpPrototype) -> None:
    text = (
        OP_DEF.replace("Float(1e-6)", "Float(EPSILON)")
        .replace("ListInt({-1, -2})", "ListInt(AXES)")
        .replace(".DataType({ge::DT_FLOAT16, ge::DT_FLOAT})", ".DataType(FLOATS)", 1)
        .replace(
            "namespace ops {",
            """namespace ops {
#define FLOATS {ge::DT_FLOAT16, \\
                ge::DT_FLOAT}
static constexpr float EPSILON = 1e-6;
constexpr int64_t LAST = -1;
const std::vector<int64_t> AXES{LAST, LAST - 1};
""",
        )
    )
    result = read(tmp_path, "a_def.cpp", text)
    assert result.diagnostics == ()
    assert result.prototypes == (wanted,)


LOOPS = """
static const char *const kOut[] = {"y1", "y2"};
class Looped : public OpDef {
public:
    explicit Looped(const char* name) : OpDef(name)
    {
        std::vector<std::string> in{"x1", "x2", "x3",};
        this->Input("first").DataType({ge::DT_INT32});
        for (const auto& n : in) {
            this->Input(n).ParamType(OPTIONAL).DataType({ge::DT_FLOAT16, ge::DT_FLOAT});
        }
        this->Input("last").DataType({ge::DT_INT64});
        for (const char* n : kOut) { this->Output(n).DataType({ge::DT_FLOAT16, ge::DT_FLOAT}); }
        for (auto n : {"a", "b"}) {
            this->Attr(n).AttrType(OPTIONAL).Int(3);
        }
    }
};
OP_ADD(Looped);
"""


def test_op_def_with_names_from_a_loop_over_literals(tmp_path: Path) -> None:
    result = read(tmp_path, "a_def.cpp", LOOPS)
    assert result.diagnostics == ()
    wanted = parse_text(
        "REG_OP(Looped).INPUT(first, TensorType({DT_INT32}))"
        + "".join(f".OPTIONAL_INPUT(x{n}, TensorType({{DT_FLOAT16, DT_FLOAT}}))" for n in (1, 2, 3))
        + ".INPUT(last, TensorType({DT_INT64}))"
        + "".join(f".OUTPUT(y{n}, TensorType({{DT_FLOAT16, DT_FLOAT}}))" for n in (1, 2))
        + ".ATTR(a, Int, 3).ATTR(b, Int, 3).OP_END_FACTORY_REG(Looped)"
    ).prototypes[0]
    [found] = result.prototypes
    assert (found.inputs, found.outputs) == (wanted.inputs, wanted.outputs)
    assert [(attr.name, attr.default) for attr in found.attrs] == [("a", 3), ("b", 3)]


@pytest.mark.parametrize(
    ("given", "instead"),
    [
        ("std::vector<std::string> in{", "std::vector<std::string> in = made("),  # not written down
        ("this->Input(n)", 'this->Input(std::string(n) + "_x")'),
        ("this->Input(n)", "this->Input(m)"),
        ("this->Input(n)", 'this->Input("z").DataType({ge::DT_INT8});\n            this->Input(n)'),  # they take turns
        ('for (auto n : {"a", "b"}) {', 'for (auto n : {"a", b}) {'),
        ("for (const auto& n : in) {", "for (const auto& n : in) { if (n != in[0])"),
    ],
)
def test_op_def_with_names_from_other_loops(tmp_path: Path, given: str, instead: str) -> None:
    assert given in LOOPS
    result = read(tmp_path, "a_def.cpp", LOOPS.replace(given, instead))
    assert result.prototypes == ()
    assert "a name that is computed is not known" in result.errors[0].message


def test_op_def_with_computed_names(tmp_path: Path) -> None:
    text = OP_DEF.replace('this->Input("x")', "for (auto n : names) this->Input(n)")
    result = read(tmp_path, "a_def.cpp", text)
    assert result.prototypes == ()
    assert "a name that is computed is not known" in result.errors[0].message


def test_op_def_that_is_never_closed(tmp_path: Path) -> None:
    result = read(tmp_path, "a_def.cpp", OP_DEF[: OP_DEF.index("OpAICoreConfig")])
    assert result.prototypes == ()
    assert "never closed" in result.errors[0].message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not JSON"),
        ("[" * 100_000, "cannot be read"),
        ("3", '"op", "input_desc"'),
        ('[{"op": "a b"}]', "identifier, not 'a b'"),
        ('[{"op": 3}]', "identifier, not 3"),
        ('[{"op": "A", "input_desc": {}}, {"op": "B", "input_desc": 3}]', "must be a list"),
        ('[{"op": "A", "input_desc": [{"name": "x"}, {"name": "x"}]}]', "two entries of one name"),
        ('[{"op": "A", "input_desc": [{"name": "x", "param_type": "maybe"}]}]', "known are required"),
        ('[{"op": "A", "attr": [{"name": "a", "type": "intt"}]}]', "unknown type 'intt'"),
        ('[{"op": "A", "attr": [{"name": "import os\\n", "type": "int"}]}]', "identifier, not"),
    ],
)
def test_msopgen_errors(tmp_path: Path, text: str, message: str) -> None:
    result = read(tmp_path, "a.json", text)
    assert message in result.errors[0].message
    assert result.errors[0].line >= 1


def test_msopgen_type_names(tmp_path: Path) -> None:
    described = {"op": "A", "input_desc": [{"name": "x", "type": ["DT_HIFLOAT8", "bool", "weird", "numbertype"]}]}
    result = read(tmp_path, "a.json", json.dumps(described))
    found = result.prototypes[0].inputs[0]
    assert found.dtypes[:2] == (DataType.HIFLOAT8, DataType.BOOL)
    assert DataType.COMPLEX64 in found.dtypes
    assert found.unknown_types == ("weird",)
    assert "'weird' is not a dtype" in result.diagnostics[0].message


TYPES_OF_INCLUDES = """
#include "../common/types.h"
static const std::vector<ge::DataType> INDEX = {ge::DT_INT32, ge::DT_INT64};
static const auto COUNTED = std::vector<ge::DataType>(INDEX.size(), ge::DT_BOOL);
class Typed : public OpDef {
  public:
    explicit Typed(const char* name) : OpDef(name) {
        this->Input("a").DataType(FLOATS).Format(X);
        this->Input("b").DataType(HALF_LIST);
        this->Input("c").DataType(std::vector<ge::DataType>(INDEX.begin(), INDEX.end()));
        this->Input("d").DataType(std::vector<ge::DataType>(4, ge::DT_UINT8));
        this->Input("e").DataType(COUNTED);
        this->Input("f").DataType(std::vector<ge::DataType>{ge::DT_INT8, ge::DT_INT16});
        this->Input("g").DataType({gen.Sequence("g")});
        this->Output("y").Follow("a");
    }
};
OP_ADD(Typed);
"""


def test_dtypes_of_included_constants_and_vectors(tmp_path: Path) -> None:
    """Constants and macros of headers next to the file; vectors of other vectors, and of one dtype; the rest is no
    guess."""
    (tmp_path / "common").mkdir()
    (tmp_path / "common/types.h").write_text(
        '#include "more.h"\n#define HALF_LIST {ge::DT_FLOAT16, ge::DT_BF16}\n#include "types.h"\n#include "absent.h"\n'
    )
    (tmp_path / "common/more.h").write_text(
        "inline const std::vector<ge::DataType> FLOATS{ge::DT_FLOAT, ge::DT_DOUBLE};\n"
    )
    source = tmp_path / "op_host/typed_def.cpp"
    source.parent.mkdir()
    source.write_text(TYPES_OF_INCLUDES)
    found = read_prototypes(source)
    names = {p.name: [d.name for d in p.dtypes] for p in (*found.prototypes[0].inputs, *found.prototypes[0].outputs)}
    assert names == {
        "a": ["FLOAT", "DOUBLE"],
        "b": ["FLOAT16", "BF16"],
        "c": ["INT32", "INT64"],
        "d": ["UINT8"],
        "e": ["BOOL"],
        "f": ["INT8", "INT16"],
        "g": [],
        "y": ["FLOAT", "DOUBLE"],
    }
    assert [d.message for d in found.diagnostics] == [
        'Typed: type of g: {gen.Sequence("g")} is computed; build the project to know it'
    ]


def test_inputs_and_outputs_of_a_chip_are_read_where_the_class_has_none(tmp_path: Path) -> None:
    text = """
class Attend : public OpDef {
public:
    explicit Attend(const char *name) : OpDef(name) {
        OpAICoreConfig config;
        config.Input("q").ParamType(REQUIRED).DataType({ge::DT_FLOAT});
        config.Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}).InitValue(0);
        this->Attr("heads").AttrType(REQUIRED).Int();
        OpAICoreConfig other;
        other.Input("q").ParamType(REQUIRED).DataType({ge::DT_INT8});
        this->AICore().AddConfig("ascend910b", config);
        this->AICore().AddConfig("ascend310p", other);
    }
};
OP_ADD(Attend);
"""
    (found,) = read(tmp_path, "attend_def.cpp", text).prototypes
    assert [(one.name, one.dtypes) for one in found.inputs] == [("q", (DataType.FLOAT,))]
    assert [(one.name, one.initialized) for one in found.outputs] == [("y", True)]
    assert [one.name for one in found.attrs] == ["heads"]

"""The grammar of REG_OP as real headers use it, one case per construct."""

from __future__ import annotations

import math
import struct

import pytest

from ascend_graph.prototypes import (
    AttrType,
    DataType,
    OpPrototype,
    ParameterKind,
    Severity,
    parse_file,
    parse_text,
)
from ascend_graph.prototypes.dtypes import NAMED_SETS

FLOAT, FLOAT16, BF16, INT32, INT64 = (
    DataType.FLOAT,
    DataType.FLOAT16,
    DataType.BF16,
    DataType.INT32,
    DataType.INT64,
)


def only(text: str) -> OpPrototype:
    """The one prototype of a text that is in order."""
    result = parse_text(text)
    assert [str(error) for error in result.errors] == []
    (prototype,) = result.prototypes
    return prototype


def with_call(call: str) -> str:
    return f"REG_OP(Op)\n    {call}\n    .OP_END_FACTORY_REG(Op)\n"


def test_every_call_and_the_order_it_has() -> None:
    prototype = only(
        """
        REG_OP(Everything)
            .ATTR(early, Int, 3)
            .INPUT(x, TensorType({DT_FLOAT}))
            .OPTIONAL_INPUT(bias, TensorType({DT_FLOAT16}))
            .DYNAMIC_INPUT(rest, "T")
            .REQUIRED_ATTR(axis, ListInt)
            .OUTPUT(y, "T")
            .DYNAMIC_OUTPUT(z, TensorType({DT_INT32}))
            .OUTPUT(x, TensorType({DT_FLOAT}))
            .DATATYPE(T, TensorType({DT_BF16, DT_FLOAT}))
            .GRAPH(body)
            .DYNAMIC_GRAPH(branches)
            .OP_END_FACTORY_REG(Everything);
        """
    )
    assert [(p.name, p.kind.value, p.dtypes) for p in prototype.inputs] == [
        ("x", "required", (FLOAT,)),
        ("bias", "optional", (FLOAT16,)),
        ("rest", "dynamic", (BF16, FLOAT)),
    ]
    assert [(p.name, p.kind.value) for p in prototype.outputs] == [
        ("y", "required"),
        ("z", "dynamic"),
        ("x", "required"),
    ]
    assert [(a.name, a.type, a.required, a.default) for a in prototype.attrs] == [
        ("early", AttrType.INT, False, 3),
        ("axis", AttrType.LIST_INT, True, None),
    ]
    assert prototype.in_place == ("x",)
    assert prototype.inputs[2].symbol == "T"
    assert [(graph.name, graph.kind) for graph in prototype.graphs] == [
        ("body", ParameterKind.REQUIRED),
        ("branches", ParameterKind.DYNAMIC),
    ]


@pytest.mark.parametrize(
    ("text", "dtypes"),
    [
        ("TensorType({DT_FLOAT16, DT_FLOAT})", (FLOAT16, FLOAT)),
        ("TensorType(DT_FLOAT)", (FLOAT,)),
        ("TensorType{DT_FLOAT16}", (FLOAT16,)),
        ("TensorType{DT_FLOAT16, DT_BF16}", (FLOAT16, BF16)),
        ("ge::TensorType({ge::DT_BF16})", (BF16,)),
        ("ge :: TensorType ( { DT_BF16 , DT_FLOAT } )", (BF16, FLOAT)),
        ("TensorType::IndexNumberType()", (INT32, INT64)),
        ("TensorType::ALL()", NAMED_SETS["ALL"]),
        ("TensorType::FLOAT()", NAMED_SETS["FLOAT"]),
        ("TensorType({IndexNumberType(), DT_FLOAT})", (INT32, INT64, FLOAT)),
        ("TensorType({DT_FLOAT, DT_FLOAT, DT_BF16})", (FLOAT, BF16)),
        ("TensorType({DT_FLOAT16,\\\n DT_FLOAT})", (FLOAT16, FLOAT)),
        ("TensorType({DT_FLOAT16, /* half */ DT_FLOAT // single\n})", (FLOAT16, FLOAT)),
        ("TensorType({DT_HIFLOAT8, DT_FLOAT8_E5M2})", (DataType.HIFLOAT8, DataType.FLOAT8_E5M2)),
        ("TensorType({DT_FLOAT6_E3M2, DT_FLOAT4_E1M2})", (DataType.FLOAT6_E3M2, DataType.FLOAT4_E1M2)),
        ("TensorType({DT_COMPLEX32, DT_INT4, DT_UINT1})", (DataType.COMPLEX32, DataType.INT4, DataType.UINT1)),
        ("TensorType({DT_FLOAT, DT_FLOAT16,})", (FLOAT, FLOAT16)),
    ],
)
def test_types_that_are_understood(text: str, dtypes: tuple[DataType, ...]) -> None:
    result = parse_text(with_call(f".INPUT(x, {text})"))
    assert result.prototypes[0].inputs[0].dtypes == dtypes
    assert result.diagnostics == ()


@pytest.mark.parametrize(
    ("text", "dtypes", "message"),
    [
        ("TensorType({DT_FLOAT32})", (FLOAT,), "no DT_FLOAT32; write DT_FLOAT"),
        ("TensorType({DT_BFLOAT16})", (BF16,), "no DT_BFLOAT16; write DT_BF16"),
        ("TensorType({DT_FLOAT, DI_UINT16})", (FLOAT,), "DI_UINT16 is neither"),
        ("TensorType({DT_B16, DT_FLOAT})", (FLOAT,), "did you mean DT_BF16"),
        ("TesnorType({DT_INT64})", (INT64,), "TesnorType is not a type"),
        ("TensorType({DT_FLOAT16 DT_FLOAT})", (FLOAT16, FLOAT), "comma is missing before DT_FLOAT"),
        ("TensorType({DT_FLOAT16, DT_FLOAT)", (FLOAT16, FLOAT), "never closed"),
        ("TensorType({DT_FLOAT}})", (FLOAT,), "closes nothing"),
        ("TensorType:ALL()", NAMED_SETS["ALL"], "':' stands where '::'"),
        ("TensorType::({DT_FLOAT})", (FLOAT,), "stands before a bracket"),
        ("TensorType({BasicType, DT_BOOL})", (*NAMED_SETS["BasicType"], DataType.BOOL), "write BasicType()"),
        ("T", (), "no DATATYPE(T, …)"),
        ("{POW_TYPES}", (), "POW_TYPES is neither"),
    ],
)
def test_types_with_trouble_leave_the_op_usable(text: str, dtypes: tuple[DataType, ...], message: str) -> None:
    result = parse_text(with_call(f".INPUT(x, {text})"), "ops.h")
    assert result.prototypes[0].inputs[0].dtypes == dtypes
    assert any(message in diagnostic.message for diagnostic in result.diagnostics)
    assert {diagnostic.severity for diagnostic in result.diagnostics} == {Severity.WARNING}
    assert {diagnostic.line for diagnostic in result.diagnostics} == {2}


def test_names_not_understood_are_kept() -> None:
    prototype = only(with_call(".INPUT(x, TensorType({DT_FLOAT, DI_UINT16, MY_TYPE}))"))
    assert prototype.inputs[0].unknown_types == ("DI_UINT16", "MY_TYPE")


def test_symbols_promotion_and_list_types() -> None:
    prototype = only(
        """
        REG_OP(Mix)
            .INPUT(a, "T1")
            .INPUT(b, T2)
            .DYNAMIC_INPUT(c, ListTensorType(TensorType({DT_FLOAT, DT_INT32})))
            .OUTPUT(y, "T3")
            .DATATYPE(T1, TensorType({DT_FLOAT16}))
            .DATATYPE(T2, TensorType({DT_FLOAT}))
            .DATATYPE(T3, Promote({"T1", "T2"}))
            .OP_END_FACTORY_REG(Mix)
        """
    )
    a, b, c = prototype.inputs
    assert (a.symbol, a.dtypes) == ("T1", (FLOAT16,))
    assert (b.symbol, b.dtypes) == ("T2", (FLOAT,))
    assert (c.list_type, c.dtypes) == (True, (FLOAT, INT32))
    assert prototype.outputs[0].promote == ("T1", "T2")


@pytest.mark.parametrize(
    ("declared", "default"),
    [
        ("Int, 0", 0),
        ("Int, -65530", -65530),
        ("Int, 9223372036854775807", 2**63 - 1),
        ("Int, -9223372036854775808", -(2**63)),
        ("Int, INT64_MAX", 2**63 - 1),
        ("Int, std::numeric_limits<int32_t>::max()", 2**31 - 1),
        ("Int, 0x10", 16),
        ("Int, 017", 15),
        ("Int, 0b101", 5),
        ("Int, 100'000LL", 100000),
        ("Int, 1 << 4", 16),
        ("Int, -7 / 2", -3),
        ("Int, (2 + 3) * 4", 20),
        ("Int, DT_INT8", 2),
        ("Int, ge::DT_BF16", 27),
        ("int, -1", -1),
        ("Float, 0.1", 0.1),
        ("Float, 1e-5", 1e-5),
        ("Float, 1e-5f", 1e-5),
        ("Float, 16", 16.0),
        ("Float, -0.0", -0.0),
        ("Float, .5f", 0.5),
        ("Float, 1.f / 4", 0.25),
        ("Float, static_cast<float>(0.8)", 0.8),
        ("Float, (float)2", 2.0),
        ("Float, -INFINITY", -math.inf),
        ("Float, 0x1p-3", 0.125),
        ("Bool, true", True),
        ("Bool, False", False),
        ("Bool, 0", False),
        ('String, ""', ""),
        ('String, ","', ","),
        ('String, "a)b(c"', "a)b(c"),
        (r'String, "say \"hi\"\n\x41\101\\"', 'say "hi"\nAA\\'),
        ('String, "two " "parts"', "two parts"),
        ("String, 'Norm'", "Norm"),
        ('AscendString, "x"', "x"),
        ("Type, DT_FLOAT8_E4M3FN", DataType.FLOAT8_E4M3FN),
        ("ListInt, {}", ()),
        ("ListInt, {1, 2, -3,}", (1, 2, -3)),
        ("ListInt, [0]", (0,)),
        ("ListInt, ge::UNKNOWN_RANK", (-2,)),
        ("ListInt, ge::UNKNOWN_SHAPE", (-1,)),
        ("ListInt, std::vector<int64_t>{4, 5}", (4, 5)),
        ("ListInt, std::vector<int64_t>({4, 5})", (4, 5)),
        ("ListFloat, {1.f / 4, 8, 0.5f}", (0.25, 8.0, 0.5)),
        ("ListBool, {true, false}", (True, False)),
        ('ListString, {"a", "b\\"c"}', ("a", 'b"c')),
        ("ListType, {DT_FLOAT, DT_INT32}", (FLOAT, INT32)),
        ("ListListInt, {{}, {1, 2}}", ((), (1, 2))),
        ("ListAscendString, {}", ()),
        ("Tensor, Tensor()", None),
        ("Tensor, ge::Tensor()", None),
        ("NamedAttrs, NamedAttrs()", None),
        ("ListTensor, {}", ()),
        ("ListNamedAttrs, {}", ()),
        ("Bytes, {1, 255}", b"\x01\xff"),
        ("Bytes, {}", b""),
    ],
)
def test_defaults(declared: str, default: object) -> None:
    result = parse_text(with_call(f".ATTR(a, {declared})"))
    (attr,) = result.prototypes[0].attrs
    assert attr.default == default
    assert type(attr.default) is type(default)
    assert attr.default_known
    assert str(attr.default) == str(default)  # tells -0.0 from 0.0


@pytest.mark.parametrize(
    "declared",
    [
        "Int, kDefault",
        "Int, GetDefault()",
        "Int, 1.5",
        "Int, 9223372036854775808",
        "Int, 1 / 0",
        'Float, "x"',
        "String, 3",
        "Type, 400",
        "ListInt, 3",
        "ListInt, {1, x}",
        "Bytes, {256}",
        "Int, " + "(" * 500 + "1" + ")" * 500,
        "ListInt, " + "{" * 500 + "}" * 500,
    ],
)
def test_defaults_that_are_no_constant(declared: str) -> None:
    result = parse_text(with_call(f".ATTR(a, {declared})"))
    (attr,) = result.prototypes[0].attrs
    assert not attr.default_known
    assert attr.default is None
    assert attr.default_text == declared.partition(", ")[2]
    assert [diagnostic.severity for diagnostic in result.diagnostics] == [Severity.WARNING]


@pytest.mark.parametrize(("declared", "default"), [("Int", 0), ("String", ""), ("Bool", False), ("ListInt", ())])
def test_a_missing_default_is_assumed_and_said(declared: str, default: object) -> None:
    result = parse_text(with_call(f".ATTR(renorm, {declared})"))
    assert result.prototypes[0].attrs[0].default == default
    assert "has no default" in result.diagnostics[0].message


def test_float_literals_keep_the_bits_a_compiler_gives() -> None:
    # Rounding this decimal to double gives the exact middle of two floats, and the middle would go to the other one.
    prototype = only(with_call(".ATTR(a, Float, 1.00000017881393432617187499f)"))
    (bits,) = struct.unpack("<I", struct.pack("<f", prototype.attrs[0].default))
    assert bits == 0x3F800001


def test_comments_directives_and_strings_hide_what_is_in_them() -> None:
    result = parse_text(
        """
        // REG_OP(A).OP_END_FACTORY_REG(A)
        /* REG_OP(B).OP_END_FACTORY_REG(B) */
        // a spliced comment \\
        REG_OP(C).OP_END_FACTORY_REG(C)
        #define REG_OP(x) something(x)
        #define MANY \\
            REG_OP(D).OP_END_FACTORY_REG(D)
        #if 0
        REG_OP(E).OP_END_FACTORY_REG(E)
        #else
        REG_OP(F).OP_END_FACTORY_REG(F)
        #endif
        const char* text = "REG_OP(G).OP_END_FACTORY_REG(G) /*";
        REG_OP(H) // INPUT(x)
            /* .INPUT(y, T) */
            . INPUT ( x , TensorType({DT_FLOAT}) ) // ) .OP_END
            .OP_END_FACTORY_REG(H)
        #ifdef SOMETHING
        REG_OP(I).OP_END_FACTORY_REG(I)
        #else
        REG_OP(J).OP_END_FACTORY_REG(J)
        #endif
        """
    )
    assert [prototype.op_type for prototype in result.prototypes] == ["F", "H", "I", "J"]
    assert [p.name for p in result.prototypes[1].inputs] == ["x"]


def test_macros_of_the_file_are_expanded() -> None:
    prototype = only(
        """
        #define HALVES DT_FLOAT16, DT_BF16
        #define POW_TYPES HALVES, DT_FLOAT  // all
        #define DEFAULT_AXIS (-1)
        static const int64_t kAxes[] = {0, DEFAULT_AXIS};
        constexpr float kScale = 1.0f / 8;
        REG_OP(Pow)
            .INPUT(x, TensorType({POW_TYPES}))
            .ATTR(axis, Int, DEFAULT_AXIS)
            .ATTR(scale, Float, kScale * 2)
            .OP_END_FACTORY_REG(Pow)
        """
    )
    assert prototype.inputs[0].dtypes == (FLOAT16, BF16, FLOAT)
    assert [attr.default for attr in prototype.attrs] == [-1, 0.25]


def test_macros_that_define_ops_are_replaced() -> None:
    result = parse_text(
        """
        #define X_AND_Y .INPUT(x, TensorType(DT_FLOAT)) \\
                        .INPUT(y, TensorType(DT_FLOAT))
        #define BINARY(name, ...) \\
            REG_OP(name##Custom) X_AND_Y .OUTPUT(z, TensorType({__VA_ARGS__})).ATTR(label, String, #name) \\
            .OP_END_FACTORY_REG(name##Custom)
        #define BOTH(a, b) BINARY(a, DT_FLOAT) BINARY(b, DT_FLOAT16, DT_FLOAT)
        /* Adds. */
        BINARY(Add, DT_FLOAT16, DT_BF16);
        BOTH(Mul,
             Div)
        REG_OP(Plain)
            X_AND_Y
            .INPT(q, T)
            .OP_END_FACTORY_REG(Plain)
        """,
        "ops.h",
    )
    assert [(p.op_type, p.line, p.doc) for p in result.prototypes] == [
        ("AddCustom", 9, "Adds."),
        ("MulCustom", 10, ""),
        ("DivCustom", 10, ""),
    ]
    add = result.prototypes[0]
    assert [p.name for p in add.inputs] == ["x", "y"]
    assert (add.outputs[0].dtypes, add.attrs[0].default) == ((FLOAT16, BF16), "Add")
    assert [(error.line, error.column) for error in result.errors] == [(14, 14)]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_documentation_and_place(newline: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    text = "\n".join(
        [
            "/* license */",
            "#include <x.h>",
            "/**",
            " * @brief 加法。",
            " *   indented",
            " */",
            "REG_OP(A)",
            "    .OP_END_FACTORY_REG(A)",
            "// One line,",
            "// and another.",
            "REG_OP(B).OP_END_FACTORY_REG(B)",
            "/* not of C */ int x;",
            "REG_OP(C).OP_END_FACTORY_REG(C)",
        ]
    )
    path = tmp_path / "ops.h"
    path.write_bytes(text.replace("\n", newline).encode())
    a, b, c = parse_file(path).prototypes
    assert (a.doc, a.file, a.line) == ("@brief 加法。\n  indented", str(path), 7)
    assert (b.doc, b.line) == ("One line,\nand another.", 11)
    assert (c.doc, c.line) == ("", 13)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_encodings(encoding: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "ops.h"
    path.write_bytes('/** 中文注释 */\nREG_OP(A).ATTR(s, String, "中").OP_END_FACTORY_REG(A)'.encode(encoding))
    (prototype,) = parse_file(path).prototypes
    assert (prototype.doc, prototype.attrs[0].default) == ("中文注释", "中")


def test_include_guards_shared_by_headers_hide_nothing(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from ascend_graph.prototypes import read_prototypes

    for name in ("a", "b"):
        guarded = f"#ifndef GUARD\n#define GUARD\nREG_OP({name.upper()}).OP_END_FACTORY_REG({name.upper()})\n#endif\n"
        (tmp_path / f"{name}.h").write_text(guarded)
    assert [p.op_type for p in read_prototypes(tmp_path).prototypes] == ["A", "B"]

"""#if, #ifdef, #define and #undef: what is decided, what is not, and what is said of it."""

from __future__ import annotations

import pytest

from ascend_graph.prototypes import DataType, Severity, parse_text
from ascend_graph.sources.conditions import Condition, evaluate

OP = "REG_OP({0}).OP_END_FACTORY_REG({0})\n"
MACROS = {"__cplusplus": "201703L", "TWO": "2", "BIG": "(TWO << 4)", "EMPTY": "", "LOOP": "LOOP + 1"}


@pytest.mark.parametrize(
    ("text", "decided", "alone"),
    [
        ("0", False, False),
        ("(0)", False, False),
        ("0u", False, False),
        ("!1", False, False),
        ("0x0L", False, False),
        ("1 - 1", False, False),
        ("-1 < 0u", False, False),
        ("2 > 1 ? 0 : 1", False, False),
        ("TWO == 2 && BIG == 32", True, True),
        ("__cplusplus >= 201103L", True, True),
        ("defined(TWO) && !defined EMPTY", False, False),
        ("defined(OTHER)", None, False),
        ("!defined(OTHER)", None, True),
        ("OTHER", None, False),
        ("OTHER > 3 && 0", False, False),
        ("1 || OTHER(4)", True, True),
        ("__has_include(<x.h>)", None, False),
        ("1 / 0", None, False),
        ("1 +", None, False),
        ("LOOP", None, False),
        ("(" * 100 + "1" + ")" * 100, None, False),
    ],
)
def test_conditions(text: str, decided: bool | None, alone: bool) -> None:
    assert evaluate(text, MACROS.get) == Condition(decided, alone)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#if (0)\n{a}#endif\n{b}", "B"),
        ("#if 0u\n{a}#elif 1\n{b}#else\n{c}#endif", "B"),
        ("#if !1\n{a}#else\n{b}#endif", "B"),
        ("#ifdef X\n{a}#elif 0\n{b}#else\n{c}#endif", "AC"),
        ("#define X 1\n#ifdef X\n{a}#else\n{b}#endif\n#undef X\n#ifdef X\n{c}#endif", "A"),
        ("#define V 3\n#if V > 2\n{a}#else\n{b}#endif", "A"),
        ("#ifndef GUARD\n#define GUARD\n{a}#ifdef GUARD\n{b}#else\n{c}#endif\n#endif", "AB"),
        ("#if !defined(GUARD)\n#define GUARD\n{a}#else\n{b}#endif", "A"),
        ("#if defined(__cplusplus) // C++\n{a}#else\n{b}#endif", "A"),
        ("#if X /* a\n comment */\n{a}#else\n{b}#endif", "AB"),
        ("#if 0\n#if 1\n{a}#else\n{b}#endif\n{c}#endif", ""),
        ("#if 0\n'\n#endif\n{a}", "A"),
        ('#define TEXT "/*"\n{a}', "A"),
        ('const char* text = R"x(" {a} )x";\n{b}', "B"),
    ],
)
def test_what_is_switched_off_is_not_read(text: str, found: str) -> None:
    for name in "abc":
        text = text.replace("{" + name + "}", OP.format(name.upper()))
    result = parse_text(text)
    assert "".join(prototype.op_type for prototype in result.prototypes) == found
    assert not result.diagnostics


@pytest.mark.parametrize("condition", ["#ifdef FAST", "#if defined(FAST)", "#if FAST > 2"])
def test_an_undecided_branch_inside_an_operator_is_read_as_a_compiler_does_and_said(condition: str) -> None:
    result = parse_text(
        f"""
        REG_OP(A)
        {condition}
            .INPUT(x, TensorType({{DT_FLOAT}}))
        #else
            .INPUT(y, TensorType({{DT_FLOAT16}}))
        #endif
            .OP_END_FACTORY_REG(A)
        """
    )
    assert [parameter.name for parameter in result.prototypes[0].inputs] == ["y"]
    (diagnostic,) = result.diagnostics
    assert (diagnostic.severity, diagnostic.line, diagnostic.op_type) == (Severity.WARNING, 3, "A")
    assert condition in diagnostic.message


def test_a_decided_branch_inside_an_operator_needs_no_remark() -> None:
    result = parse_text(
        "#define FAST\nREG_OP(A)\n#ifdef FAST\n.INPUT(x, TensorType({DT_FLOAT}))\n#else\n"
        ".INPUT(y, TensorType({DT_FLOAT}))\n"
        "#endif\n.OP_END_FACTORY_REG(A)"
    )
    assert [parameter.name for parameter in result.prototypes[0].inputs] == ["x"]
    assert not result.diagnostics


def test_an_undecided_branch_inside_an_op_def() -> None:
    from ascend_graph.prototypes.opdef import parse_op_defs
    from ascend_graph.sources.text import SourceText

    result = parse_op_defs(
        SourceText(
            'class A : public OpDef {\n A() {\n#ifdef FAST\n this->Input("x").DataType({ge::DT_FLOAT});\n#endif\n'
            ' this->Input("y").DataType({ge::DT_FLOAT});\n }\n};\nOP_ADD(A);'
        )
    )
    assert [parameter.name for parameter in result.prototypes[0].inputs] == ["y"]
    assert "#ifdef FAST is inside" in result.diagnostics[0].message


def test_definitions_in_undecided_branches_are_chosen_as_a_compiler_does_and_said() -> None:
    result = parse_text(
        """
        #ifdef WIDE
        #define TYPES DT_FLOAT
        #else
        #define TYPES DT_FLOAT16
        #endif
        #ifdef OTHER
        #define SAME DT_INT8
        #else
        #define SAME DT_INT8
        #endif
        REG_OP(A)
            .INPUT(x, TensorType({TYPES}))
            .INPUT(y, TensorType({SAME}))
            .OP_END_FACTORY_REG(A)
        """
    )
    assert [parameter.dtypes for parameter in result.prototypes[0].inputs] == [(DataType.FLOAT16,), (DataType.INT8,)]
    (diagnostic,) = result.diagnostics
    assert "TYPES has several definitions" in diagnostic.message
    assert "line 5" in diagnostic.message


def test_a_name_that_is_undefined_again_is_not_replaced() -> None:
    result = parse_text(
        "#define T DT_FLOAT\n#undef T\nREG_OP(A).INPUT(x, TensorType({T})).OP_END_FACTORY_REG(A)\n#define T DT_INT8\n"
    )
    assert result.prototypes[0].inputs[0].unknown_types == ("T",)


def test_macros_with_arguments_in_types_and_defaults() -> None:
    result = parse_text(
        "#define WITH(T) TensorType({DT_FLOAT, T})\n#define TWICE(x) ((x) * 2)\n"
        "REG_OP(A).INPUT(x, WITH(DT_INT8)).ATTR(a, Int, TWICE(4)).OP_END_FACTORY_REG(A)"
    )
    assert result.prototypes[0].inputs[0].dtypes == (DataType.FLOAT, DataType.INT8)
    assert result.prototypes[0].attrs[0].default == 8
    assert not result.diagnostics

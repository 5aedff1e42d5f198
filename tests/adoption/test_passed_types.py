"""Values that a macro passes with another C type than the aclnn function takes are reported, if both are certain."""

from __future__ import annotations

import pytest

from ascend_graph.sources import Severity

from .conftest import Adopt

_HEADER = """
aclnnStatus aclnnTurnGetWorkspaceSize(const aclTensor *x, double eps, int64_t axis, bool keep, char *mode,
    const aclIntArray *sizes, float scale, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
"""
_RIGHT = {"eps": "double eps", "axis": "int64_t axis", "keep": "bool keep", "mode": "char *mode",
          "sizes": "at::IntArrayRef sizes", "scale": "float scale"}  # fmt: skip


def _function(
    declared: dict[str, str], body: str = "", passed: str = "x, eps, axis, keep, mode, sizes, scale, out"
) -> str:
    parameters = ", ".join(["const at::Tensor &x", *(_RIGHT | declared).values()])
    return f"""at::Tensor turn({parameters})
{{
    at::Tensor out = at::empty_like(x);
    {body}
    EXEC_NPU_CMD(aclnnTurn, {passed});
    return out;
}}
"""


def _reported(adopted: Adopt, ops: str, **files: str) -> list[tuple[Severity, str]]:
    report = adopted({"aclnn_turn.h": _HEADER, "ops.cpp": ops} | files)
    return [(one.severity, str(one)) for one in report.diagnostics if "passes" in one.message]


@pytest.mark.parametrize(
    ("name", "declared", "severity", "expected"),
    [
        ("eps", "float eps", Severity.ERROR, "eps as float; expected double for eps, as aclnn_turn.h:2 has it"),
        ("scale", "const double scale", Severity.ERROR, "scale as double; expected float for scale"),
        ("eps", "int64_t eps", Severity.ERROR, "eps as int64_t; expected double for eps"),
        ("axis", "double axis", Severity.ERROR, "axis as double; expected int64_t for axis"),
        ("axis", "int axis", Severity.WARNING, "axis as int; expected int64_t"),
        ("axis", "bool axis", Severity.WARNING, "axis as bool; expected int64_t"),
        ("mode", "const std::string &mode", Severity.ERROR, "mode as string; expected char * for mode"),
        (
            "sizes",
            "std::vector<int64_t> sizes",
            Severity.ERROR,
            "sizes as vector<int64_t>; expected aclIntArray * for sizes",
        ),
        ("sizes", "const at::Tensor &sizes", Severity.ERROR, "sizes as Tensor; expected aclIntArray * for sizes"),
        ("eps", "c10::optional<double> eps", Severity.ERROR, "eps as optional<double>; expected double for eps"),
    ],
)
def test_another_type_is_reported_with_its_line(
    adopted: Adopt, name: str, declared: str, severity: Severity, expected: str
) -> None:
    ((found, text),) = _reported(adopted, _function({name: declared}))
    assert found is severity
    assert "ops.cpp:5:1: " in text
    assert expected in text


def test_the_advice_declares_a_variable(adopted: Adopt) -> None:
    ((_, text),) = _reported(adopted, _function({"eps": "float eps"}))
    assert text.endswith("declare double eps_value = eps; and pass that")


@pytest.mark.parametrize(
    ("declared", "body", "passed"),
    [
        ({}, "", "x, eps, axis, keep, mode, sizes, scale, out"),
        ({"keep": "int64_t keep"}, "", "x, eps, axis, keep, mode, sizes, scale, out"),
        ({"mode": "const char *mode"}, "", "x, eps, axis, keep, mode, sizes, scale, out"),
        ({"eps": "float eps"}, "double wide = eps;", "x, wide, axis, keep, mode, sizes, scale, out"),
        ({"eps": "float eps"}, "auto wide = widened(eps);", "x, wide, axis, keep, mode, sizes, scale, out"),
        ({"eps": "Number eps"}, "", "x, eps, axis, keep, mode, sizes, scale, out"),
        ({"eps": "float eps"}, "{ double eps = 1; use(eps); }", "x, eps, axis, keep, mode, sizes, scale, out"),
        ({}, "at::Tensor none;", "x, eps, axis, keep, mode, none, scale, out"),
    ],
)
def test_right_and_uncertain_types_are_not_reported(
    adopted: Adopt, declared: dict[str, str], body: str, passed: str
) -> None:
    assert _reported(adopted, _function(declared, body, passed)) == []


def test_a_local_variable_a_cast_and_a_method_have_certain_types(adopted: Adopt) -> None:
    found = _reported(
        adopted,
        _function({}, "float low = eps;", "x, low, static_cast<int>(axis), keep, mode, sizes, x.size(0), out"),
    )
    assert [text.partition("passes ")[2].partition(";")[0] for _, text in found] == [
        "low as float",
        "x.size(0) as int64_t",
        "static_cast<int>(axis) as int",
    ]


def test_a_wrong_number_of_arguments_is_reported(adopted: Adopt) -> None:
    ((severity, text),) = _reported(adopted, _function({}, "", "x, eps, axis, keep, mode, sizes, out"))
    assert severity is Severity.ERROR
    assert (
        "passes 7 arguments; expected 8, as aclnn_turn.h:2 has them: x, eps, axis, keep, mode, sizes, scale, out"
        in text
    )


def test_an_order_that_registers_undo_is_a_warning(adopted: Adopt) -> None:
    ((severity, text),) = _reported(adopted, _function({}, "", "x, axis, eps, keep, mode, scale, sizes, out"))
    assert severity is Severity.WARNING
    assert "passes x, axis, eps, keep, mode, scale, sizes, out; expected x, eps, axis, keep" in text


def test_the_function_that_an_op_def_generates_takes_double(adopted: Adopt) -> None:
    definition = """namespace ops { class Spin : public OpDef { public: explicit Spin(const char *name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT}); this->Attr("eps").Float(1.0);
        this->Output("y").ParamType(REQUIRED).DataType({ge::DT_FLOAT}); } }; OP_ADD(Spin); }"""
    ops = """at::Tensor spin(const at::Tensor &x, float eps) {
        at::Tensor y = at::empty_like(x); EXEC_NPU_CMD(aclnnSpin, x, eps, y); return y; }"""
    ((_, text),) = _reported(adopted, ops, **{"op_host/spin_def.cpp": definition})
    assert "eps as float; expected double for eps, as op_host/spin_def.cpp:1 has it" in text


def test_functions_of_cann_are_known(adopted: Adopt) -> None:
    ops = """at::Tensor norm(const at::Tensor &x, const at::Tensor &gamma, float eps) {
        at::Tensor y = at::empty_like(x), rstd = at::empty_like(x);
        EXEC_NPU_CMD(aclnnRmsNorm, x, gamma, eps, y, rstd); return y; }"""
    ((_, text),) = _reported(adopted, ops)
    assert "eps as float; expected double for parameter 3, as CANN's header has it" in text


_MACRO = """
#define RUN_FUNCTION(aclnn_api, ...) do { \\
    static const auto found = look_up(#aclnn_api "GetWorkspaceSize"); \\
    auto converted = convert_types(__VA_ARGS__, size_address, executor_address); \\
    call(typed(converted, found), converted); } while (false)
#define RUN_ALL(aclnn_api, ...) do { RUN_FUNCTION(aclnn_api, __VA_ARGS__); } while (false)
template <typename T> T convert_type(T value) { return value; }
"""


@pytest.mark.parametrize(
    ("macro", "count"),
    [
        (_MACRO, 1),
        (_MACRO + "inline double convert_type(float value) { return value; }\n", 0),
        (_MACRO.replace("T convert_type(T value)", "wide_t<T> convert_type(T value)"), 0),
        (_MACRO.replace("look_up(", "typed_as(decltype(&aclnn_api##GetWorkspaceSize), "), 0),
        (_MACRO.replace("RUN_FUNCTION(aclnn_api, __VA_ARGS__)", "run(aclnn_api, widened(__VA_ARGS__))"), 0),
        ("", 0),
    ],
)
def test_a_macro_of_the_repository_is_followed(adopted: Adopt, macro: str, count: int) -> None:
    ops = macro + _function({"eps": "float eps"}).replace("EXEC_NPU_CMD", "RUN_ALL")
    assert len(_reported(adopted, ops)) == count

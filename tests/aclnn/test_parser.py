"""aclnn headers in every layout, read as what a C++ compiler makes of them; what is wrong is said with its place."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_graph.aclnn import Direction, ValueKind, parse_file, parse_text, parser
from ascend_graph.sources import Severity, SourceError
from ascend_graph.sources.text import MAX_DIAGNOSTICS
from benchmarks._aclnn_compiler import compile_headers, disagreements
from benchmarks._aclnn_headers import random_header

LAST = "uint64_t *workspaceSize, aclOpExecutor **executor"
SECOND = "(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);\n"


def declared(parameters: str, name: str = "aclnnFoo") -> str:
    return f"aclnnStatus {name}GetWorkspaceSize({parameters}, {LAST});\naclnnStatus {name}{SECOND}"


def directions(parameters: str, name: str = "aclnnFoo") -> dict[str, str]:
    (function,) = parse_text(declared(parameters, name)).functions
    return {parameter.name: parameter.direction.value for parameter in function.parameters}


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_random_declarations_are_read_as_themselves_in_every_layout(seed: int) -> None:
    text, functions = random_header(random.Random(seed))
    result = parse_text(text)
    assert list(result.functions) == functions
    assert not result.diagnostics


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_a_compiler_reads_the_same(tmp_path: Path) -> None:
    headers = [tmp_path / f"{seed}.h" for seed in range(12)]
    for seed, header in enumerate(headers):
        header.write_text(random_header(random.Random(seed))[0])
    compiled, failed = compile_headers(headers)
    assert not failed
    for header, found in compiled:
        functions = parse_file(header).functions
        assert not disagreements(found, [(f.name, [(str(p.type), p.name) for p in f.parameters]) for f in functions])


def test_place_doc_and_types() -> None:
    text = "\n\n/**\n * Foo.\n */\n" + declared(
        "const unsigned long long int n, aclTensor const* const x, struct aclTensor *out, std::string s, "
        "int64_t dims[3]"
    )
    (function,) = parse_text(text, "foo.h").functions
    assert (function.place, function.doc) == ("foo.h:6", "Foo.")
    assert [(p.name, str(p.type), p.value) for p in function.parameters] == [
        ("n", "unsigned long long", ValueKind.INT),
        ("x", "const aclTensor *", ValueKind.TENSOR),
        ("out", "aclTensor *", ValueKind.TENSOR),
        ("s", "std::string", ValueKind.OTHER),
        ("dims", "int64_t *", ValueKind.HOST_OUTPUT),
    ]


def test_calls_and_other_functions_are_none() -> None:
    text = f"""
    inline int run() {{
        auto ret = aclnnAddGetWorkspaceSize(x, y, &size, &executor);
        aclnnAddGetWorkspaceSize(x, y, &size, &executor);
        if (ret) return aclnnAddGetWorkspaceSize(x, y, &size, &executor);
        CHECK(aclnnAddGetWorkspaceSize(x, y, &size, &executor));
        (void)aclnnAddGetWorkspaceSize(x, y, &size, &executor);
    }}
    size_t cudnnGetWorkspaceSize(int a, int b);
    typedef aclnnStatus (*aclnnAddGetWorkspaceSizeFunction)(const aclTensor *x, {LAST});
    // aclnnStatus aclnnAddGetWorkspaceSize(const aclTensor *x, {LAST});
    const char *text = "aclnnStatus aclnnAddGetWorkspaceSize(int a)";
    """
    result = parse_text(text)
    assert not result.functions
    assert not result.diagnostics


def test_cpp_headers_with_defaults_templates_and_attributes() -> None:
    text = """namespace a {
    [[nodiscard]] ACLNN_API aclnnStatus aclnnFooGetWorkspaceSize(
        const aclTensor* x /* in */, /// doc, with (brackets)
        const std::vector<std::pair<int, int>>& pairs, enum aclDataType dtype = aclDataType::ACL_FLOAT,
        bool flag = (1 > 0), bool less = 1 < 2, const char* mode = "a,b(\\"", char sign = ')', aclTensor* out = nullptr,
        uint64_t* size = nullptr, aclOpExecutor** executor = nullptr) noexcept;
    int32_t aclnnFoo(void *, uint64_t, aclOpExecutor *, const aclrtStream); }"""
    result = parse_text(text)
    assert not result.diagnostics
    assert [(p.name, str(p.type), p.default) for p in result.functions[0].parameters] == [
        ("x", "const aclTensor *", ""),
        ("pairs", "const std::vector<std::pair<int, int>>&", ""),
        ("dtype", "aclDataType", "aclDataType::ACL_FLOAT"),
        ("flag", "bool", "(1 > 0)"),
        ("less", "bool", "1 < 2"),
        ("mode", "const char *", '"a,b(\\""'),
        ("sign", "char", "')'"),
        ("out", "aclTensor *", "nullptr"),
    ]


def test_macros_and_conditions() -> None:
    text = f"""
    #define TAIL {LAST}
    #define IN(name) const aclTensor *name
    #define DECLARE(op) aclnnStatus aclnn##op##GetWorkspaceSize(IN(self), aclTensor *out, TAIL); \\
        aclnnStatus aclnn##op{SECOND.strip()[:-1]};
    DECLARE(Sin)
    DECLARE(Cos)
    #if 0
    {declared("int64_t hidden", "aclnnHidden")}
    #endif
    aclnnStatus aclnnAbsGetWorkspaceSize(IN(self),
    #ifdef WITH_DIM
        int64_t dim,
    #endif
        aclTensor *out, TAIL);
    aclnnStatus aclnnAbs{SECOND}
    """
    result = parse_text(text)
    assert [str(function) for function in result.functions] == [
        f"aclnn{name}(const aclTensor *self, aclTensor *out)" for name in ("Sin", "Cos", "Abs")
    ]
    assert [(d.severity, "WITH_DIM" in d.message) for d in result.diagnostics] == [(Severity.WARNING, True)]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        # Constness tells, whatever stands behind the outputs.
        ("const aclTensor *self, aclTensor *out, int8_t cubeMathType", "in out in"),
        ("const aclTensor *x, bool deep, aclTensor *y, aclTensor *rstd", "in in out out"),
        # A const tensor with an output's name is an input where outputs are writable: the forward's result.
        ("const aclTensor *gradOut, const aclTensor *yOut, aclTensor *dx", "in in out"),
        # Statistics that are read and written stand before values, the outputs behind them.
        ("const aclTensor *x, aclTensor *runningMean, bool training, aclTensor *output", "in inout in out"),
        # Generated functions: all const, outputs last.
        ("const aclTensor *x, double eps, const aclTensor *out", "in in out"),
        ("const aclTensor *q, int64_t mode, const aclTensor *indicesOut, const aclTensor *valuesOut", "in in out out"),
        ("const aclTensor *x, const char *group, const aclTensor *out, const aclTensor *counts", "in in out out"),
        ("const aclTensor *dy, const aclTensor *dx", "in out"),
        ("const aclTensor *x, const aclTensor *maskOptional", "in in"),
        ("const aclTensor *x, const aclTensor *maskOutOptional", "in out"),
        ("const aclTensor *x, const aclTensor *yOut, const aclTensor *maskOptional", "in out in"),
        ("const aclTensor *varRef, const aclTensor *indices", "inout in"),
        ("const aclTensorList *x, aclTensorList *out, int64_t *count, aclIntArray **sizes", "in out out out"),
        ("aclTensor *cacheRefOptional, const aclTensor *x", "inout in"),
    ],
)
def test_directions(parameters: str, expected: str) -> None:
    assert " ".join(directions(parameters).values()) == expected


def test_directions_of_in_place_functions() -> None:
    assert directions("aclTensor *input, aclTensor *other, const aclScalar *alpha", "aclnnInplaceAdd") == {
        "input": "inout",
        "other": "in",
        "alpha": "in",
    }


def test_comments_say_what_names_do_not() -> None:
    comment = "/* @param [out] indices: a.\n * @param [in, out] state: b.\n * bias : optional\n */\n"
    (function,) = parse_text(
        comment + declared("const aclTensor *indices, const aclTensor *state, const aclTensor *bias")
    ).functions
    assert [p.direction for p in function.parameters] == [Direction.OUT, Direction.INOUT, Direction.IN]
    assert [p.optional for p in function.parameters] == [False, False, True]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        (f"\n  int aclnnAGetWorkspaceSize(const aclTensor *x, {LAST};\n", 2, 7, "is not closed"),
        (f"int aclnnAGetWorkspaceSize(const aclTensor *x,\n    5 y, {LAST});", 2, 5, "'5 y' is not a parameter of C"),
        (f"int aclnnAGetWorkspaceSize(const aclTensor *x,\n    foo bar y, {LAST});", 2, 5, "more than one type"),
        (f"int aclnnAGetWorkspaceSize(aclTensor *x,, {LAST});", 1, 41, "has no type"),
        (f"int aclnnAGetWorkspaceSize(aclTensor *x, bool x, {LAST});", 1, 5, "two parameters are called x"),
        ("int aclnnAGetWorkspaceSize(aclTensor *x, uint64_t *size);", 1, 5, "ends in (aclTensor *x, uint64_t *size)"),
        (f"int aclnnAGetWorkspaceSize({LAST});\nint aclnnA(void *w, aclOpExecutor *e);", 2, 5, "second phases take"),
    ],
)
def test_errors_name_the_place_and_the_next_function_is_read(text: str, line: int, column: int, message: str) -> None:
    result = parse_text(f"{text}\n{declared('const aclTensor *x, aclTensor *out')}", "a.h")
    (error,) = result.errors
    assert message in error.message
    assert str(error).startswith(f"a.h:{line}:{column}: error: ")
    assert [function.name for function in result.functions] == ["aclnnFoo"]


def test_a_function_without_second_phase_is_said() -> None:
    result = parse_text(f"int aclnnAGetWorkspaceSize({LAST});")
    assert not result.functions[0].has_second_phase
    assert [d.severity for d in result.diagnostics] == [Severity.WARNING]


def test_two_declarations_in_one_file_are_both_kept() -> None:
    text = declared("const aclTensor *x") + declared("const aclTensor *x, bool deep") + declared("const aclTensor *x")
    result = parse_text(text)
    assert [len(function.parameters) for function in result.functions] == [1, 2]
    assert "declared differently in line 1" in result.diagnostics[0].message


@pytest.mark.parametrize(
    "text",
    [
        "int aclnnAGetWorkspaceSize(" * 100_000,
        "aclnnAGetWorkspaceSize(" * 100_000,
        "GetWorkspaceSize" * 100_000,
        "a" * 2_000_000,
        "int aclnnAGetWorkspaceSize(" + "(" * 2_000_000,
        "int aclnnAGetWorkspaceSize(" + "const " * 300_000,
        "__attribute__((" * 100_000 + "int aclnnAGetWorkspaceSize(",
        "int aclnnAGetWorkspaceSize(a b, " + "__attribute__((" * 4000 + ");",
        "@param [in] a " * 100_000 + declared("const aclTensor *x"),
        "/*" + "@param [in" * 100_000 + "*/" + declared("const aclTensor *x"),
        "#define A(x) x, x\n" + declared("A(A(A(A(A(A(A(A(A(A(A(A(A(A(A(A(A(A(A(A(A(A(int a)))))))))))))))))))))"),
        declared("const aclTensor *x")[:90] * 20_000,
        *(declared(f"{piece * 4000}!") for piece in ("a<", "a<b> ", "& ", "a::", " ", "= ", '"')),
    ],
    ids=lambda text: text[:30],
)
def test_hostile_headers_take_a_moment_and_say_something(text: str) -> None:
    start = time.process_time()
    result = parse_text(text)
    assert time.process_time() - start < 5
    assert len(result.diagnostics) <= MAX_DIAGNOSTICS + 1


@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_damaged_headers_raise_nothing(seed: int) -> None:
    rng = random.Random(seed)
    text, _ = random_header(rng)
    for _ in range(rng.randrange(1, 6)):
        begin = rng.randrange(len(text))
        text = (
            text[:begin]
            + rng.choice(["", "(", ")", ",", "*", "/*", "\0", "#if 1\n", ";", text[: rng.randrange(200)]])
            + text[begin + rng.randrange(20) :]
        )
    for diagnostic in parse_text(text[: rng.randrange(len(text) + 1)]).diagnostics:
        assert str(diagnostic)


def test_more_than_a_header_has_is_not_read_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = tmp_path / "aclnn_large.h"
    with large.open("wb") as file:
        file.truncate(parser.MAX_BYTES + 1)
    with pytest.raises(SourceError, match=f"are too many for an operator header; the limit is {parser.MAX_BYTES:,}"):
        parse_file(large)
    monkeypatch.setattr(parser, "MAX_FUNCTIONS", 3)
    many = "".join(declared("const aclTensor *x", f"aclnnA{n}") for n in range(5))
    result = parse_text(many)
    assert [function.name for function in result.functions] == ["aclnnA0", "aclnnA1", "aclnnA2"]
    assert [str(d).partition("\n")[0].partition(": ")[2] for d in result.errors] == [
        "error: more than 3 functions in one header: the rest was not read"
    ]
    monkeypatch.setattr(parser, "MAX_BYTES", len(many) - 1)
    assert parse_text(many).functions == ()
    assert "the limit is" in parse_text(many).errors[0].message


def test_a_truncated_header_says_where_it_ends() -> None:
    """Whatever is cut off, what stands whole before it is read, and the rest is not a function."""
    whole = declared("const aclTensor *x", "aclnnA") + declared("const aclTensor *y, double p", "aclnnB")
    first = len(declared("const aclTensor *x", "aclnnA"))
    for end in range(first, len(whole), 7):
        result = parse_text(whole[:end])
        assert result.functions[0].name == "aclnnA"
        if "aclnnBGetWorkspaceSize(" in whole[:end] and ");" not in whole[first:end]:
            assert [d.line for d in result.errors], whole[:end]
            assert "is not closed" in str(result.errors[0])


def test_files_that_are_no_headers(tmp_path: Path) -> None:
    binary = tmp_path / "a.h"
    binary.write_bytes(b"\x7fELF\0\0\0aclnnAGetWorkspaceSize(")
    with pytest.raises(SourceError, match="binary file"):
        parse_file(binary)

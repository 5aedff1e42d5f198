"""Errors name the place, show it, and cost one op; hostile input neither crashes nor hangs."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ascend_graph.prototypes import PrototypeSourceError, Severity, parse_file, parse_text, read_prototypes
from ascend_graph.sources.text import MAX_DIAGNOSTICS

GOOD = "REG_OP(Good)\n    .INPUT(x, TensorType({DT_FLOAT}))\n    .OP_END_FACTORY_REG(Good)\n"


@pytest.mark.parametrize(
    ("broken", "line", "column", "message"),
    [
        ("REG_OP()\n.OP_END_FACTORY_REG(A)", 1, 8, "needs the name of the op"),
        ("REG_OP(A) .INPT(x, T)\n.OP_END_FACTORY_REG(A)", 1, 12, "did you mean .INPUT?"),
        ("REG_OP(A)\n    .INPUT(x)\n.OP_END_FACTORY_REG(A)", 2, 13, ".INPUT(x, …) needs a type"),
        ("REG_OP(A)\n    .INPUT(x, TensorType({DT_FLOAT})\n    .OP_END_FACTORY_REG(A)", 2, 11, "bracket of .INPUT"),
        ("REG_OP(A)\n    .INPUT(1x, T)\n.OP_END_FACTORY_REG(A)", 2, 12, "needs a name as its first argument"),
        ("REG_OP(A)\n  .ATTR(a, Itn, 1)\n.OP_END_FACTORY_REG(A)", 2, 12, "unknown type Itn; did you mean Int?"),
        ("REG_OP(A)\n  .ATTR(a)\n.OP_END_FACTORY_REG(A)", 2, 10, "needs a type such as Int"),
        ("REG_OP(A)\n  .ATTR(a, Int 1)\n.OP_END_FACTORY_REG(A)", 2, 16, "comma was expected"),
        ("REG_OP(A)\n.OP_END_FACTORY_REG(B)", 2, 21, "OP_END_FACTORY_REG(B) closes REG_OP(A)"),
        ("REG_OP(A)\n  .INPUT(x, T)\n", 1, 1, "never closed by .OP_END_FACTORY_REG"),
        ("REG_OP(A)\n  INPUT(x, T)\n.OP_END_FACTORY_REG(A)", 2, 3, "a call such as .INPUT(…) was expected"),
        ("REG_OP(A)\n.INPUT(x, T)\n.INPUT(x, T)\n.OP_END_FACTORY_REG(A)", 3, 8, "two inputs named x"),
        ("REG_OP(A)\n.OUTPUT(y, T)\n.OUTPUT(y, T)\n.OP_END_FACTORY_REG(A)", 3, 9, "two outputs named y"),
        ("REG_OP(A)\n.ATTR(a, Int, 1)\n.ATTR(a, Int, 1)\n.OP_END_FACTORY_REG(A)", 3, 7, "two attrs named a"),
        ("REG_OP(A)\n.GRAPH(a, b)\n.OP_END_FACTORY_REG(A)", 2, 9, "one argument"),
    ],
)
def test_errors_name_the_place_and_the_next_op_is_read(broken: str, line: int, column: int, message: str) -> None:
    result = parse_text(f"{broken}\n{GOOD}", "ops.h")
    (error,) = result.errors
    assert message in error.message
    assert (error.line, error.column) == (line, column)
    source_line = broken.split("\n")[line - 1]
    assert str(error) == (
        f"ops.h:{line}:{column}: error: {error.message}\n    {source_line}\n    {' ' * (column - 1)}^"
    )
    assert [prototype.op_type for prototype in result.prototypes] == ["Good"]


def test_a_comment_without_end_is_an_error() -> None:
    result = parse_text(f"{GOOD}/* no end\n{GOOD}")
    assert [prototype.op_type for prototype in result.prototypes] == ["Good"]
    assert ("has no end" in result.errors[0].message, result.errors[0].line) == (True, 4)


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    binary = tmp_path / "a.h"
    binary.write_bytes(b"\x7fELF\0\0\0REG_OP(A)")
    with pytest.raises(PrototypeSourceError, match="binary file"):
        parse_file(binary)
    for nothing in ("", 3, b"REG_OP"):
        with pytest.raises(PrototypeSourceError, match="not a path and not a text; pass a header, a directory"):
            read_prototypes(nothing)  # type: ignore[arg-type]
    with pytest.raises(PrototypeSourceError, match="file or directory not found"):
        read_prototypes("no/such/header.h")
    (tmp_path / "b.h").write_text(GOOD)
    result = read_prototypes(tmp_path)  # in a directory it is reported, and the others are read
    assert [prototype.op_type for prototype in result.prototypes] == ["Good"]
    assert [(error.file, "binary" in error.message) for error in result.errors] == [(str(binary), True)]


def test_invalid_utf8_is_read_and_said(tmp_path: Path) -> None:
    path = tmp_path / "a.h"
    path.write_bytes(b"// \xff\xfe\x80\n" + GOOD.encode())
    result = parse_file(path)
    assert [prototype.op_type for prototype in result.prototypes] == ["Good"]
    assert [diagnostic.severity for diagnostic in result.diagnostics] == [Severity.WARNING]


def test_nul_in_text_is_no_end() -> None:
    assert len(parse_text(f"// \0\n{GOOD}\0\n{GOOD}").prototypes) == 2


N = 20_000
HOSTILE = {
    "errors": "REG_OP(" * N,
    "open brackets": "REG_OP(A).INPUT(x, " + "(" * N,
    "open braces": "REG_OP(A).ATTR(a, ListInt, " + "{" * N + ").OP_END_FACTORY_REG(A)",
    "signs": "REG_OP(A).ATTR(a, Int, " + "-" * N + "1).OP_END_FACTORY_REG(A)",
    "sum": "REG_OP(A).ATTR(a, Int, " + "1+" * N + "1).OP_END_FACTORY_REG(A)",
    "digits": "REG_OP(A).ATTR(a, Int, " + "9" * N + ").OP_END_FACTORY_REG(A)",
    "exponent": "REG_OP(A).ATTR(a, Float, 1e" + "9" * N + ").OP_END_FACTORY_REG(A)",
    "hex exponent": "REG_OP(A).ATTR(a, Float, 0x1p999999999).OP_END_FACTORY_REG(A)",
    "shift": "REG_OP(A).ATTR(a, Int, 1 << 9999999999).OP_END_FACTORY_REG(A)",
    "f literal": "REG_OP(A).ATTR(a, Float, 1e-999999999f).OP_END_FACTORY_REG(A)",
    "quotes": '"' * (N + 1),
    "lone quotes": 'x " y\n' * N,
    "apostrophes": "' \n" * N,
    "comments": "/*" * N,
    "comments in directives": "#define X /*\n" * N,
    "comment ends": "*/" * N,
    "backslashes": "\\" * N + "\n" + "\\\n" * N,
    "slashes": "/ " * N,
    "hashes": "#" * N,
    "if 0": "#if 0\n" * N,
    "macro bomb": "#define A0 DT_FLOAT\n"
    + "".join(f"#define A{i} A{i - 1}, A{i - 1}\n" for i in range(1, 60))
    + "REG_OP(A).INPUT(x, TensorType({A59})).OP_END_FACTORY_REG(A)",
    "macro cycle": "#define A B\n#define B A\nREG_OP(A).INPUT(x, A).ATTR(a, Int, B).OP_END_FACTORY_REG(A)",
    "op macro bomb": "#define A0(x) REG_OP(x).OP_END_FACTORY_REG(x)\n"
    + "".join(f"#define A{i}(x) A{i - 1}(x) A{i - 1}(x)\n" for i in range(1, 60))
    + "A59(Y)\nA5(Z)\n",
    "op macro cycle": "#define A REG_OP(X) B\n#define B A\nA B A\n" * 50,
    "op macros without end": "#define A(x) REG_OP(x)\n" + "A(" * N,
    "constants": "const a = " * N + "REG_OP(A).ATTR(a, Int, b).OP_END_FACTORY_REG(A)",
    "constant lists": "const a{{" * N + "REG_OP(A).ATTR(a, Int, b).OP_END_FACTORY_REG(A)",
    "blanks": "REG_OP(A)" + " " * N * 10 + "\n" * N + ".INPUT(x," + " " * N * 10 + "T",
    "starred comment": "/*" + " *" * N + "\n" + " " * N * 10 + "x\n*/REG_OP(A).OP_END_FACTORY_REG(A)",
    "strings with REG_OP": 'REG_OP(A) "REG_OP(" ' * N,
    "unknown types": "REG_OP(A).INPUT(x, TensorType({"
    + ", ".join(f"T{i}" for i in range(2000))
    + "})).OP_END_FACTORY_REG(A)",
    "macro tree": "#define A0 DT_FLOAT,\n"
    + "".join(f"#define A{i} {' '.join([f'A{i - 1}'] * 8)}\n" for i in range(1, 8))
    + "REG_OP(A).INPUT(x, TensorType({A7})).ATTR(a, ListInt, A7).OP_END_FACTORY_REG(A)",
    "condition tree": "#define A0 1\n"
    + "".join(f"#define A{i} (A{i - 1} + A{i - 1})\n" for i in range(1, 40))
    + "#if A39\nREG_OP(A).OP_END_FACTORY_REG(A)\n#endif",
    "blank constant": "const bool ok = " + " " * N + "a <= b;\nREG_OP(A).ATTR(a, Bool, ok).OP_END_FACTORY_REG(A)",
    "escaped quotes": "REG_OP(A).INPUT(x, " + '\\"' * N * 5,
    "open conditionals": "#if a\n" * N * 5,
    "conditionals": "#if a\n#endif\n" * N,
    "macro uses": "#define A(x) REG_OP(x).OP_END_FACTORY_REG(x)\n" + "A(Abc)\n" * N * 3,
    "many macros": "".join(f"#define R{i} REG_OP\n" for i in range(N)) + "R1(A)\n" * N,
    "casts": "REG_OP(A).ATTR(a, Int, " + "(int)" * N + "1).OP_END_FACTORY_REG(A)",
    "open classes": "class A : public OpDef {" * N,
    "calls": "REG_OP(A)" + "".join(f".INPUT(x{i}, T)" for i in range(3000)) + ".OP_END_FACTORY_REG(A)",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_ends_soon(text: str) -> None:
    start = time.process_time()
    result = parse_text(text)
    assert time.process_time() - start < 5
    assert len(result.diagnostics) <= MAX_DIAGNOSTICS + 2
    assert all(len(str(diagnostic)) < 2000 for diagnostic in result.diagnostics)


FRAGMENTS = [
    "REG_OP(",
    "A",
    ")",
    ".INPUT(",
    "x",
    ",",
    "TensorType({",
    "DT_FLOAT",
    "})",
    ".ATTR(",
    "Int",
    "Float",
    "String",
    "ListInt",
    "1",
    "-",
    "1e5f",
    '"',
    "\\",
    "'",
    "{",
    "}",
    "(",
    "[",
    "]",
    "/*",
    "*/",
    "//",
    "\n",
    "\r\n",
    "#if 0",
    "#endif",
    "#define X ",
    "X",
    ".DATATYPE(",
    ".GRAPH(",
    ".OP_END_FACTORY_REG(",
    ";",
    ":",
    "::",
    "<",
    ">",
    "0x",
    "中",
    "\0",
    "static_cast<",
    "std::numeric_limits<",
    "nan",
    "..",
    "T",
    '"T"',
    "Promote(",
    "0b",
    "0x1p",
    "1'0",
]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=3), max_size=60).map("".join))
@example("REG_OP(A).ATTR(a, Float, 0x)")
def test_any_text_is_read_without_an_exception(text: str) -> None:
    parse_text(text)


@settings(max_examples=200, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 6))
def test_damaged_headers_are_read_without_an_exception(rng: random.Random, damages: int) -> None:
    text = GOOD.replace("Good)\n", 'Good)\n    .ATTR(s, String, "a\\"b")\n    .ATTR(l, ListListInt, {{1}, {2}})\n', 1)
    for _ in range(damages):
        position = rng.randrange(len(text) + 1)
        text = text[:position] + rng.choice([*FRAGMENTS, ""]) + text[position + rng.randrange(4) :]
    parse_text(text + "\n" + GOOD)


@pytest.mark.slow
def test_a_file_of_100_mb(tmp_path: Path) -> None:
    path = tmp_path / "large.h"
    with path.open("w") as file:
        for _ in range(100):
            file.write("/* " + "x" * (1 << 20) + " */\n")
        file.write(GOOD)
    start = time.process_time()
    assert [prototype.op_type for prototype in parse_file(path).prototypes] == ["Good"]
    assert time.process_time() - start < 30

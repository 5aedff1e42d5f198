"""Random relations give one answer in all back ends, refusals included; and a back end with a wrong rule is found."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from ascend_graph.shapes.form import Op
from ascend_graph.shapes.lowering import expression_types, expressions
from ascend_graph.shapes.lowering.statements import _Lowering
from ascend_graph.shapes.relation import _parsed
from benchmarks import _relations as differential

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def all_back_ends() -> list[Any]:
    return [differential.InferShapes(), differential.Programs(), differential.Packages()]


def faultless(report: Any) -> None:
    assert report.differences[:3] == []
    assert report.unsound[:3] == []
    assert report.does_not_compile == []


def test_all_back_ends_say_what_python_says() -> None:
    found = differential.cases(20, 80)
    report = differential.compare(found, all_back_ends(), calls=10, batch=50)
    faultless(report)
    assert report.covered["infer_shape"] > 60
    assert min(report.runs[backend] for backend in ("eager_program", "generated_package")) > 30
    assert report.informative > 0.5 * report.unknown > 50


def test_python_says_what_the_text_says() -> None:
    report = differential.RelationReport()
    differential.compare_reading(report, differential.cases(23, 150), calls=8)
    faultless(report)
    assert report.runs["text"] - report.refusals > 300


@pytest.mark.parametrize("planted", ["kind", "operator", "default dtype"])
def test_a_fault_of_what_all_back_ends_share_is_found(monkeypatch: pytest.MonkeyPatch, planted: str) -> None:
    if planted == "kind":  # a bool is a size
        monkeypatch.setattr(expressions.Expressions, "size", expressions.Expressions.number)
    elif planted == "operator":
        monkeypatch.setitem(expression_types.ARITHMETIC_OPS, "//", Op.CEIL_DIVIDE)
    else:
        monkeypatch.setattr(_Lowering, "default_dtype", lambda self, _: self.dtype_of(self.inputs[-1]))
    report = differential.RelationReport()
    _parsed.cache_clear()  # relations keep what they were lowered to
    try:
        differential.compare_reading(report, differential.cases(28, 150), calls=8)
    finally:
        _parsed.cache_clear()
    assert report.differences


def test_symbolic_sizes_say_what_ints_say() -> None:
    report = differential.RelationReport()
    differential.compare_symbolic(report, differential.cases(21, 60))
    faultless(report)
    assert report.runs["symbolic"] > 30


@pytest.mark.slow  # it compiles a package
def test_numbers_end_at_63_bits_everywhere() -> None:
    texts = [
        "y[n * (n - 9223372036854775807 - 1)]",
        "y[-(9223372036854775807 - n) % 5]",
        "y[(9223372036854775807 + n) % 5]",
    ]
    found = [differential.case_of(f"x[n] -> {text}", f"Ends{i}") for i, text in enumerate(texts)]
    report = differential.compare(found, all_back_ends(), calls=40)
    faultless(report)
    assert report.refusals > 0


def test_numbers_of_the_eager_program_end_at_63_bits() -> None:
    found = [differential.case_of("x[n] -> y[n * (n - 9223372036854775807 - 1)]", "Ends")]
    report = differential.compare(found, [differential.Programs()], calls=40)
    faultless(report)
    assert report.refusals > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_more_relations(seed: int) -> None:
    found = differential.cases(seed, 1000)
    report = differential.compare(found, all_back_ends(), seed=seed, calls=8)
    differential.compare_symbolic(report, found, seed=seed)
    differential.compare_reading(report, found, seed=seed)
    faultless(report)


def planted(backend: str, right: str, wrong: str, *, slow: bool = True) -> Any:
    return pytest.param(backend, right, wrong, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize(
    ("backend", "right", "wrong"),
    [
        # A condition on a size that is not known holds.
        planted(
            "infer_shape", "bool Either() { return Choose(2) == 0; }", "bool Either() { return true; }", slow=False
        ),
        # Division rounds to zero.
        planted("infer_shape", "x / y - (x % y != 0 && (x < 0) != (y < 0))", "x / y", slow=False),
        # Broadcasting that takes a size of 1 for the other's.
        planted(
            "infer_shape",
            "if (size.known && size.value == 1) continue;",
            "if (size.known && size.value == 2) continue;",
        ),
        # What two ways say is not compared.
        planted(
            "infer_shape", "if (!second.known || (size.known && size.value != second.value))", "if (!second.known)"
        ),
        # An output may be negative.
        planted("infer_shape", "result[axis].value < 0) throw", "result[axis].value < -9) throw"),
        planted("generated_package", "sym_size(0)", "sym_size(-1)", slow=False),
        planted("generated_package", "false);", "true);", slow=False),
        planted("generated_package", "add(", "subtract(", slow=False),
    ],
)
def test_a_wrong_rule_is_found(backend: str, right: str, wrong: str) -> None:
    spoiled = 0

    def change(name: str, source: str) -> str:
        nonlocal spoiled
        assert name == backend
        spoiled += right in source
        return source.replace(right, wrong)

    one = [b for b in all_back_ends() if b.name == backend]
    # Of the random ones few have a size that two ways know to differ, or divide something negative.
    rare = {"TwoWays": "x[n] -> y[2 if n > 3 else 3]", "Rounds": "x[n] -> y[(1 - n) // 2 + 9]"}
    found = [*differential.cases(22, 80), *(differential.case_of(text, name) for name, text in rare.items())]
    report = differential.compare(found, one, calls=12, batch=82, change=change)
    assert spoiled
    assert report.does_not_compile == []
    assert report.differences or report.unsound


def test_a_wrong_rule_of_the_eager_program_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from ascend_graph.eager import shape_code

    monkeypatch.setitem(shape_code._SAME, Op.ADD, shape_code._SAME[Op.MULTIPLY])
    report = differential.compare(differential.cases(22, 80), [differential.Programs()], calls=12, batch=80)
    assert report.differences

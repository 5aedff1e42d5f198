"""Sources of output shapes are compared on the same calls: who disagrees with whom, and on which."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from ascend_graph.checks.shape_evidence import (
    EvidenceError,
    compare_sources,
    overload_kernel,
    overload_meta,
    prototype_differences,
    prototype_of,
    python_meta,
    schema_prototype,
    search,
)
from ascend_graph.cli import main
from ascend_graph.prototypes import OpPrototype, parse_text

(HALF,) = parse_text(
    """
    REG_OP(EvidenceHalf)
        .INPUT(x, TensorType({DT_FLOAT16, DT_FLOAT}))
        .OUTPUT(y, TensorType({DT_FLOAT16, DT_FLOAT}))
        .ATTR(parts, Int, 2)
        .OP_END_FACTORY_REG(EvidenceHalf)
    """
).prototypes


def half(x: torch.Tensor, parts: int = 2) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], x.shape[-1] // 2))


def larger(x: torch.Tensor) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], x.shape[-1] // 2 + 1), dtype=torch.int64)


@pytest.fixture
def overload() -> Iterator[Any]:
    library = torch.library.Library("shape_evidence", "DEF")
    library.define("evidence_half(Tensor x, int parts=2) -> Tensor")
    library.impl("evidence_half", lambda x, parts=2: x[..., : x.shape[-1] // 2].contiguous(), "CPU")
    library.impl("evidence_half", lambda x, parts=2: larger(x).float(), "Meta")
    yield torch.ops.shape_evidence.evidence_half.default
    library._destroy()


def test_a_meta_that_differs_from_the_kernel_is_told_with_a_call(overload: Any) -> None:
    meta, kernel = overload_meta(overload, HALF), overload_kernel(overload, HALF, "cpu")
    relation = search(meta, isolated=False).relation
    assert str(relation).startswith("x[*s, n] -> y[*s, n // 2 + 1]")
    (compared,) = compare_sources([meta, kernel], [relation])
    assert compared.differing > 10
    assert "the first makes y[" in str(compared)
    assert "differ in" in str(compared)


def test_a_dtype_that_the_prototype_lacks_is_told() -> None:
    (difference,) = prototype_differences(python_meta(larger, HALF), None)
    assert "makes y DT_INT64 of x[" in difference
    assert difference.endswith("the prototype has DT_FLOAT16, DT_FLOAT")


def test_a_parameter_that_is_neither_input_nor_attr_is_refused() -> None:
    def strange(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return x

    with pytest.raises(EvidenceError, match="its parameter other is neither an input nor an attr of EvidenceHalf"):
        python_meta(strange, HALF)


def test_a_schema_stands_for_a_prototype_that_is_not_there() -> None:
    prototype = schema_prototype(torch.ops.aten.sum.dim_IntList)
    assert isinstance(prototype, OpPrototype)
    assert [p.name for p in prototype.inputs] == ["self"]
    assert [a.name for a in prototype.attrs] == ["dim", "keepdim", "dtype"]
    assert prototype_of("my::evidence_half_meta", [HALF]) == HALF


def test_the_command_compares_a_python_meta(tmp_path: Path) -> None:
    fakes = tmp_path / "fakes.py"
    fakes.write_text("def evidence_half_fake(x):\n    return x.new_empty((*x.shape[:-1], x.shape[-1] // 2))\n")
    header = tmp_path / "op.h"
    header.write_text(
        "REG_OP(EvidenceHalf).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT}))"
        ".OP_END_FACTORY_REG(EvidenceHalf)\n"
    )
    arguments = ["infer", "--meta", f"{fakes}:evidence_half_fake", "--from", str(header), "--format", "json"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["sources"][0]["relation"].startswith("x[*s, n] -> y[*s, n // 2]")
    assert found["prototype"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["mine::half", "-o", "relations.ini"], "-o does not go with NAMESPACE::OP: leave it out"),
        (["mine::half", "--op", "Half", "--from", "."], "--from, --op does not go with NAMESPACE::OP: leave it out"),
        (["--package", ".", "--import", "mine"], "--import does not go with --package: leave it out"),
        (["half.cpp", "--op", "Half"], "--op does not go with sources: leave it out"),
        (["--meta", "mine:half", "-o", "relations.ini"], "-o does not go with --meta: leave it out"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(main, ["infer", *arguments])
    assert result.exit_code == 2
    assert said in result.output


def test_an_op_type_alone_is_told_of_packages_and_metas() -> None:
    result = CliRunner().invoke(main, ["infer", "EvidenceHalf"])
    assert result.exit_code == 2
    assert "EvidenceHalf: expected one of NAMESPACE::OP" in result.output
    assert "write --package DIR OP" in result.output

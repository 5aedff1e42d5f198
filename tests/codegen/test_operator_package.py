"""What the files of a generated operator package refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from ascend_graph.codegen.operator_package import generate_project_package
from ascend_graph.codegen.rendering import GenerationError

from ascend_graph.prototypes.model import OpPrototype, Parameter


def test_two_operators_do_not_write_one_header(tmp_path: Path) -> None:
    ops = [OpPrototype(name, (Parameter("x"),), (), (Parameter("y"),)) for name in ("MatMulV2", "MatMul_V2")]
    with pytest.raises(GenerationError, match=r"MatMulV2 and MatMul_V2 would both have the header aclnn_mat_mul_v2\.h"):
        generate_project_package(ops, tmp_path)
    assert not list(tmp_path.iterdir())

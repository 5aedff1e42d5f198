"""Every public package can be the first that a process imports, and what needs no torch imports none."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT_TORCH = ["ascend_graph", "ascend_graph.prototypes", "ascend_graph.aclnn", "ascend_graph.sources", "ascend_graph.headers", "ascend_graph.shapes", "ascend_graph.gradients", "ascend_graph.codegen", "ascend_graph.cli", "ascend_graph.eager", "ascend_graph.host"]  # fmt: skip
WITH_TORCH = ["registration", "eager.operators", "checks", "raw_ops", "host.engine", "host.package"]


@pytest.mark.parametrize("module", WITHOUT_TORCH)
def test_imports_no_torch(module: str) -> None:
    code = f"import sys, {module}; print(any(m.partition('.')[0] in ('torch', 'torch_npu') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("module", WITH_TORCH)
def test_can_be_imported_first(module: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", f"import ascend_graph.{module}"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr

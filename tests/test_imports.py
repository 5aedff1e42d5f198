"""Every public package can be the first that a process imports, and what needs no torch imports none."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ascend_graph

WITHOUT_TORCH = ["ascend_graph", "ascend_graph.prototypes", "ascend_graph.aclnn", "ascend_graph.binding", "ascend_graph.sources", "ascend_graph.headers", "ascend_graph.shapes", "ascend_graph.gradients", "ascend_graph.codegen", "ascend_graph.cli", "ascend_graph.eager", "ascend_graph.host"]  # fmt: skip
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


#: What each of the packages that all others are built on may import of this one, besides itself and the errors.
BELOW = {
    "sources": set(),
    "prototypes": {"sources"},
    "aclnn": {"sources"},
    "shapes": set(),
    "binding": {"prototypes", "aclnn", "shapes", "sources", "synonyms"},
}


@pytest.mark.parametrize("package", BELOW)
def test_imports_go_one_way(package: str) -> None:
    directory = Path(ascend_graph.__file__).parent / package
    for path in sorted(directory.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: a relative import"
                names = [node.module or ""]
            for name in names:
                root, _, rest = name.partition(".")
                if root == "ascend_graph" and rest:
                    used = rest.partition(".")[0]
                    assert used in BELOW[package] | {package, "errors"}, f"{path} imports {name}"
                assert root not in ("torch", "torch_npu"), f"{path} imports {name}"

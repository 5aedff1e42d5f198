"""Every public package can be the first that a process imports, and what needs no torch imports none."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import ascend_graph.codegen
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


#: The packages and modules of this one, each above those that may import it, as docs/architecture.md draws them. The first
#: ones are read without torch; what they import of it, functions import that are given something of torch's.
WITHOUT = ["errors", "sources", "prototypes", "aclnn", "shapes", "binding", "gradients", "headers"]
ORDER = [
    *WITHOUT,
    "versions",
    "compilation",
    "raw_ops",
    "dispatch",
    "eager",
    "inference",
    "registration",
    "codegen",
    "host",
    "checks",
    "cli",
]


def _places() -> dict[str, list[Path]]:
    """The files of each package or module; codegen is elsewhere in the tree, and here when installed."""
    root = Path(ascend_graph.__file__).parent
    found = {path.stem: [path] for path in root.glob("*.py") if path.stem != "__init__"}
    packages = [path.parent for path in root.glob("*/__init__.py")]
    packages += [Path(ascend_graph.codegen.__file__).parent]
    return found | {path.name: sorted(path.rglob("*.py")) for path in packages}


def test_every_package_has_its_place() -> None:
    assert sorted(_places()) == sorted(ORDER)


@pytest.mark.parametrize("package", ORDER)
def test_imports_go_one_way(package: str) -> None:
    for path in _places()[package]:
        tree = ast.parse(path.read_text())
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        inside = {node for function in functions for node in ast.walk(function)}
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: a relative import"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                root, _, rest = name.partition(".")
                used = rest.partition(".")[0]
                if root == "ascend_graph" and used in ORDER:
                    assert ORDER.index(used) <= ORDER.index(package), f"{path} imports {name}"
                if root in ("torch", "torch_npu"):
                    assert package not in WITHOUT or node in inside, f"{path} imports {name}"

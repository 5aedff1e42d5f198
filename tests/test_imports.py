"""Every public package can be the first that a process imports, and what needs no torch imports none."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import ascend_graph.codegen
import pytest

import ascend_graph
from ascend_graph.former_names import FORMER_NAMES

WITHOUT_TORCH = [
    "ascend_graph",
    "ascend_graph.prototypes",
    "ascend_graph.aclnn",
    "ascend_graph.binding",
    "ascend_graph.sources",
    "ascend_graph.headers",
    "ascend_graph.adoption",
    "ascend_graph.shapes",
    "ascend_graph.autograd",
    "ascend_graph.codegen",
    "ascend_graph.cli",
    "ascend_graph.eager",
    "ascend_graph.host",
]
WITH_TORCH = ["registration", "eager.operators", "checks", "raw_ops", "host.runtime.engine", "host.packages.load"]


@pytest.mark.parametrize("module", WITHOUT_TORCH)
def test_imports_no_torch(module: str) -> None:
    code = f"import sys, {module}; print(any(m.partition('.')[0] in ('torch', 'torch_npu') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def _imports_of_commands() -> dict[str, list[str]]:
    """Return by command what it imports before it starts on the host runtime, without which torch_npu may not load."""
    found: dict[str, list[str]] = {}
    for file in Path(ascend_graph.__file__).parent.glob("cli/*.py"):
        for function in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(function, ast.FunctionDef) or not any(
                "command" in ast.unparse(decorator) for decorator in function.decorator_list
            ):
                continue
            nodes = list(ast.walk(function))
            calls = [node for node in nodes if isinstance(node, ast.Call)]
            restart = min((c.lineno for c in calls if ast.unparse(c.func) == "needs_torch_npu"), default=sys.maxsize)
            imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.lineno < restart]
            found[function.name] = [str(node.module) for node in imports]
    return found


def test_commands_import_no_torch_before_they_start_on_the_host_runtime() -> None:
    commands = _imports_of_commands()
    assert {"check", "doctor", "explain", "infer", "new", "picture", "selftest"} <= commands.keys()
    code = "import importlib, sys\n"
    code += f"for command, names in {commands}.items():\n"
    code += "    for name in names:\n"
    code += "        importlib.import_module(name)\n"
    code += "        assert 'torch' not in sys.modules, f'{command}: {name}'\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1000:]


@pytest.mark.parametrize("module", WITH_TORCH)
def test_can_be_imported_first(module: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", f"import ascend_graph.{module}"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", FORMER_NAMES)
def test_former_names_are_imported_with_a_warning(name: str) -> None:
    code = f"import warnings; warnings.simplefilter('error'); import {name}"
    refused = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"DeprecationWarning: {name} is deprecated: import {FORMER_NAMES[name]}" in refused.stderr
    today = import_module(FORMER_NAMES[name])
    with pytest.warns(DeprecationWarning, match=name):
        former = import_module(name)
    public = next(value for value in getattr(today, "__all__", vars(today)) if not value.startswith("_"))
    assert getattr(former, public) is getattr(today, public)


#: The packages and modules of this one, each above those that may import it, as docs/architecture.md draws them. The first
#: ones are read without torch; what they import of it, functions import that are given something of torch's.
WITHOUT = [
    "errors",
    "signatures",
    "former_names",
    "lazy",
    "tables",
    "processors",
    "environment",
    "import_patches",
    "stand_ins",
    "sources",
    "prototypes",
    "aclnn",
    "shapes",
    "binding",
    "headers",
    "adoption",
]
ORDER = [
    *WITHOUT,
    "versions",
    "compilation",
    "workers",
    "raw_ops",
    "dispatch",
    "eager",
    "inference",
    "autograd",
    "registration",
    "packages",
    "codegen",
    "host",
    "doctor",
    "checks",
    "pictures",
    "selftest",
    "cli",
    "__main__",
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


#: What may know the inside of the host runtime: the command line, and what a process is told of by its environment.
_INSIDERS = ("cli", "host", "environment")


def test_nothing_outside_imports_the_inside_of_the_host_runtime() -> None:
    inside = [
        f"{path.name}: {name}"
        for package, paths in _places().items()
        if package not in _INSIDERS
        for path in paths
        for node in ast.walk(ast.parse(path.read_text()))
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [])
        if name is not None and name.startswith("ascend_graph.host.")
    ]
    assert inside == []


@pytest.mark.parametrize("module", ["host.runtime.engine", "host.packages.load", "host.packages.output_specs"])
def test_what_runs_graphs_imports_no_code_generator(module: str) -> None:
    code = (
        f"import sys, ascend_graph.{module}; print([m for m in sys.modules if m in ('ascend_graph.codegen', 'jinja2')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"

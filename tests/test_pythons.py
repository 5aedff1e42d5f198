"""What needs no torch runs on every Python that the package supports, as far as this machine has them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import ascend_graph.codegen
import pytest

import ascend_graph

TREE = Path(__file__).resolve().parents[1]
HEADER = TREE / "examples/add_custom/op_proto.h"
#: The dependencies of what needs no torch, and theirs; all run without their compiled parts.
DEPENDENCIES = ["jinja2", "markupsafe", "click", "rich", "pygments", "markdown_it", "mdurl"]

PROGRAM = f"""
import pathlib, sys, tempfile
import ascend_graph
from ascend_graph.codegen.eager_library.project import generate_project
from ascend_graph.codegen.raw_op_module import raw_op_module
from ascend_graph.cli import main

assert ascend_graph.load_prototypes({str(HEADER)!r})
prototype = ascend_graph.find_prototype("AddCustom")
relation = ascend_graph.parse_relation("x[..., m, k], w[k, n] -> y[..., m, n]")
assert str(relation)
directory = pathlib.Path(tempfile.mkdtemp())
shapes = {{"AddCustom": "x[*s], y[*s] -> z[*s]"}}
project = generate_project(directory / "my_ops", [pathlib.Path({str(HEADER)!r})], shapes=shapes)
assert len(project.written) > 10
compile((directory / "my_ops/my_ops/_generated.py").read_text(), "generated", "exec")
assert not any(name.partition(".")[0] == "torch" for name in sys.modules)
main(["--version"], standalone_mode=False)
print("ok", prototype.op_type, *sys.version_info[:2])
"""


def interpreter(minor: int) -> str | None:
    """A Python 3 of this machine, on PATH or of pyenv."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [*versions.glob(f"3.{minor}.*/bin/python3"), shutil.which(f"python3.{minor}")]
    return next((str(path) for path in found if path), None)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it is installed, and what it depends on, without any package that is compiled."""
    directory = tmp_path_factory.mktemp("site")
    package = directory / "ascend_graph"
    package.mkdir()
    for path in filter(Path.is_file, Path(ascend_graph.__file__).parent.iterdir()):
        (package / path.name).symlink_to(path)
    for name in [*(path.parent.name for path in Path(ascend_graph.__file__).parent.glob("*/__init__.py")), "codegen"]:
        (package / name).mkdir()
        spec = importlib.util.find_spec(f"ascend_graph.{name}")
        places = spec.submodule_search_locations if spec else None
        for place in filter(Path.is_dir, map(Path, places or ())):  # the tree's, and what was compiled
            for path in place.iterdir():
                if not (package / name / path.name).exists():
                    (package / name / path.name).symlink_to(path)
    for name in DEPENDENCIES:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        (directory / name).symlink_to(Path(spec.origin).parent)
    # Pythons before 3.11 need tomli; this one has pip's, whose import setuptools would watch.
    (directory / "tomli").symlink_to(Path(sysconfig.get_path("purelib")) / "pip/_vendor/tomli")
    return directory


@pytest.mark.parametrize("minor", [10, 11, 12, 13, 14])
def test_pure_parts(minor: int, site: Path, tmp_path: Path) -> None:
    python = sys.executable if minor == sys.version_info.minor else interpreter(minor)
    if python is None:
        pytest.skip(f"Python 3.{minor} is not installed")
    environment = {
        "PYTHONPATH": str(site),
        "PYTHONPYCACHEPREFIX": str(tmp_path),
        "PATH": os.defpath,
        "HOME": str(tmp_path),
    }
    result = subprocess.run(
        [python, "-S", "-W", "error", "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    assert result.stderr == ""
    assert result.stdout.splitlines()[-1] == f"ok AddCustom 3 {minor}"

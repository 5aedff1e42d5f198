"""A kernel launched from a pybind module, built with CMake by the document's run script."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .conftest import Builder, host_python, python, run

pytestmark = pytest.mark.slow  # compiles a module that includes all of PyTorch


@pytest.fixture(scope="module")
def directory(built: Builder) -> Path:
    def build(work: Path) -> None:
        run(host_python("run.sh"), work)
        run([sys.executable, "package.py", "build/opp"], work)

    package = ["op_proto.h", "host_op.asc", "package.py"]
    return built("pybind_launch", build, ["add_custom.cpp", "pybind11.cpp", "CMakeLists.txt", "run.sh", *package])


def test_the_documents_script(directory: Path) -> None:
    assert "OK" in python(directory, "add_custom_test.py")


def test_compiled_in_every_mode(directory: Path) -> None:
    assert python(directory, "graph.py", opp=directory / "build/opp").count("agrees with the CPU") == 3

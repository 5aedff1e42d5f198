"""A kernel launched from a pybind module, built with CMake by the document's run script."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .conftest import Builder, host_python, run


@pytest.fixture(scope="module")
def directory(built: Builder) -> Path:
    def build(work: Path) -> None:
        run(host_python("run.sh"), work)
        run([sys.executable, "package.py", "build/opp"], work)

    package = ["op_proto.h", "host_op.asc", "package.py"]
    return built("pybind_launch", build, ["add_custom.cpp", "pybind11.cpp", "CMakeLists.txt", "run.sh", *package])


def test_the_documents_script(directory: Path) -> None:
    assert "OK" in run(host_python("add_custom_test.py"), directory)


def test_compiled_in_every_mode(directory: Path) -> None:
    assert run(host_python("graph.py", opp=directory / "build/opp"), directory).count("agrees with the CPU") == 3

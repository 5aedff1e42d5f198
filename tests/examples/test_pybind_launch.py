"""A kernel launched from a pybind module, built with CMake by the document's run script."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Builder, host_python, run


@pytest.fixture(scope="module")
def directory(built: Builder) -> Path:
    return built(
        "pybind_launch",
        lambda work: run(host_python("run.sh"), work),
        ["add_custom.cpp", "pybind11.cpp", "CMakeLists.txt", "run.sh"],
    )


def test_the_documents_script(directory: Path) -> None:
    assert "OK" in run(host_python("add_custom_test.py"), directory)


def test_compiled_in_every_mode(directory: Path, opp: Path) -> None:
    assert run(host_python("graph.py", opp=opp), directory).count("agrees with the CPU") == 3

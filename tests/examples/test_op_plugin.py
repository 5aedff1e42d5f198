"""An operator added as op-plugin adds it: functions yaml, aclnn adapter, meta function, converter."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Builder, host_python, run

pytestmark = pytest.mark.slow  # compiles files that include all of PyTorch


@pytest.fixture(scope="module")
def directory(built: Builder, opp: Path) -> Path:
    sources = ["op_plugin_patch", "setup.py", "run_op_plugin.sh"]

    def build(work: Path) -> None:
        run(host_python("run_op_plugin.sh", opp=opp), work)

    return built("op_plugin", build, sources, has_kernels=False)


@pytest.mark.parametrize("script", ["test_ops_custom.py", "test_ops_custom_register_in_graph.py"])
def test_the_documents_scripts(directory: Path, opp: Path, script: str) -> None:
    assert "OK" in run(host_python(script, opp=opp), directory)


def test_compiled_in_every_mode(directory: Path, opp: Path) -> None:
    assert run(host_python("graph.py", opp=opp), directory).count("agrees with the CPU") == 3

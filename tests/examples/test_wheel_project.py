"""The wheel project: built with ``python -m build``, installed into an empty environment, tested there."""

from __future__ import annotations

import site
import sys
import venv
from pathlib import Path

import pytest

from .conftest import EXAMPLES, Builder, host_python, run

pytestmark = pytest.mark.slow  # it builds a wheel and installs it


@pytest.fixture(scope="module")
def directory(built: Builder) -> Path:
    def build(work: Path) -> None:
        quick = {"CFLAGS": "-O0 -g0", "CXXFLAGS": "-O0 -g0"}  # the functions are called a few times
        command = host_python("-m", "build", "--wheel", "--no-isolation", "-o", "dist")
        run(command, work, USE_NINJA="1", MAX_JOBS="2", **quick)

    return built("wheel_project", build, ["csrc", "custom_ops", "setup.py"], has_kernels=False)


@pytest.fixture(scope="module")
def installed(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with nothing but the wheel; PyTorch and this project come from the one that runs
    the tests."""
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, with_pip=False)
    wheels = list((directory / "dist").glob("*.whl"))
    assert len(wheels) == 1
    target = next((environment / "lib").glob("python*/site-packages"))
    run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--no-index",
            "--target",
            str(target),
            str(wheels[0]),
        ],
        directory,
    )
    inherited = "\n".join(f"import site; site.addsitedir({p!r})" for p in site.getsitepackages())
    (target / "inherited.pth").write_text(inherited + "\n")
    return environment / "bin/python"


def _run_test(installed: Path, name: str, tmp_path: Path, opp: Path) -> str:
    # The tests run on the host runtime: what they start does too.
    script = EXAMPLES / "wheel_project/test" / name
    return run([str(installed), str(script)], tmp_path, PYTHONPATH=str(tmp_path), ASCEND_CUSTOM_OPP_PATH=str(opp))


def test_the_documents_eager_test(installed: Path, opp: Path, tmp_path: Path) -> None:
    assert "OK" in _run_test(installed, "test_add_custom.py", tmp_path, opp)


def test_the_documents_graph_test(installed: Path, opp: Path, tmp_path: Path) -> None:
    header = EXAMPLES / "wheel_project/custom_ops/custom_reg_op.h"
    module = tmp_path / "auto_generated_ge_raw_custom_ops.py"
    run([str(Path(sys.executable).parent / "ascend-graph"), "gen", "raw-ops", str(header), "-o", str(module)], tmp_path)
    assert "OK" in _run_test(installed, "test_add_custom_graph.py", tmp_path, opp)


def test_every_mode_by_one_call(installed: Path, opp: Path, tmp_path: Path) -> None:
    assert "OK" in _run_test(installed, "test_registered.py", tmp_path, opp)


def test_the_wheel_holds_what_it_needs(directory: Path) -> None:
    listing = run([sys.executable, "-m", "zipfile", "-l", str(next((directory / "dist").glob("*.whl")))], directory)
    for name in ("custom_ops/__init__.py", "custom_ops/graph.py", "custom_ops/custom_reg_op.h", "custom_ops_lib"):
        assert name in listing

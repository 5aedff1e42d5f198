"""Kernels of many tiling keys: the package has one, and a launch compiles another for the first time."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_graph.host import BuildOptions, OperatorPackageError, build_project_package
from ascend_graph.host.packages.kernel_keys import compile_key
from ascend_graph.host.projects import kernels

PROJECT = Path(__file__).parent / "project"
#: A process that launches a key of each kind: compiled, compiled now, not the kernel's.
LAUNCH = """
import torch, torch_npu, ascend_graph
op = ascend_graph.register_op("Keyed", shape="x[*s] -> y[*s]")
x = torch.tensor([1.0, -2.0, 4.0]).npu()
print(op(x, key=2).tolist(), op(x, key=3).tolist())
try:
    op(x, key=4)
    torch.npu.synchronize()
except RuntimeError as error:
    print("compiled for no tiling key 4" in str(error))
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of its own: its sources are changed."""
    directory = tmp_path_factory.mktemp("project")
    for file in PROJECT.glob("op_*/keyed*"):
        (directory / file.parent.name).mkdir(exist_ok=True)
        shutil.copyfile(file, directory / file.relative_to(PROJECT))
    return directory


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "MOST_KEYS", 1)
        return build_project_package(tmp_path_factory.mktemp("opp") / "vendor", source)


@pytest.fixture
def package(built: Path, tmp_path: Path) -> Path:
    """The package after a move."""
    return Path(shutil.copytree(built, tmp_path / "moved"))


def libraries(package: Path) -> list[str]:
    return sorted(path.name for path in (package / "op_impl/host/kernels").glob("*.so"))


@pytest.mark.slow
def test_one_key_is_compiled_by_the_build_and_another_by_its_launch(package: Path) -> None:
    assert libraries(package) == ["keyed_0_2.so", "keyed_1_2.so"]
    stem = package / "op_impl/host/kernels/keyed_0"
    assert stem.with_suffix(".keys").read_text().splitlines() == [sys.executable, "2", "3"]
    made = compile_key(stem, 3)
    assert libraries(package) == ["keyed_0_2.so", "keyed_0_3.so", "keyed_1_2.so"]
    assert ctypes.CDLL(str(made)).ascendgraphLaunchKernel
    with pytest.raises(OperatorPackageError, match="keyed_0: tiling key 4 is not one of the kernel's; expected 2, 3"):
        compile_key(stem, 4)


@pytest.mark.slow
def test_sources_that_changed_are_not_compiled_into_an_older_package(package: Path, source: Path) -> None:
    header = source / "op_kernel/keyed.h"
    before = header.read_text()
    stem = package / "op_impl/host/kernels/keyed_0"
    try:
        header.write_text(f"{before}\n// changed\n")
        with pytest.raises(OperatorPackageError, match=r"keyed\.h: it changed since the package was built.*--all-keys"):
            compile_key(stem, 3)
        header.unlink()
        with pytest.raises(OperatorPackageError, match=r"keyed\.h: it is gone since"):
            compile_key(stem, 3)
    finally:
        header.write_text(before)
    assert libraries(package) == ["keyed_0_2.so", "keyed_1_2.so"]


@pytest.mark.slow
def test_all_keys_are_compiled_on_demand(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "MOST_KEYS", 1)
    package = build_project_package(tmp_path / "opp", source, options=BuildOptions(all_keys=True))
    assert libraries(package) == ["keyed_0_2.so", "keyed_0_3.so", "keyed_1_2.so"]
    assert not list(package.rglob("*.keys"))


@pytest.mark.slow
def test_a_launch_compiles_its_key(package: Path) -> None:
    environment = {**os.environ, "ASCEND_CUSTOM_OPP_PATH": str(package)}
    command = [sys.executable, "-c", LAUNCH]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=600)
    assert done.stdout == "[2.0, -4.0, 8.0] [3.0, -6.0, 12.0]\nTrue\n", done.stderr
    assert libraries(package) == ["keyed_0_2.so", "keyed_0_3.so", "keyed_1_2.so"]

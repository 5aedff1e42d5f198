"""Examples are built and run as their documents say, in a copy; a build is kept as long as nothing it is made of
changes."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import preloaded
import pytest

from ascend_graph.compilation import cache_directory, locked
from ascend_graph.environment import toolkit_directory

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PACKAGE = EXAMPLES.parent / "ascend_graph"


def run(command: list[str], directory: Path, **environment: str) -> str:
    """Standard output of a command that must succeed."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COV_"))}
    result = subprocess.run(
        command, cwd=directory, env=inherited | environment, capture_output=True, text=True, check=False, timeout=1500
    )
    assert result.returncode == 0, f"{' '.join(command)}:\n{result.stdout}\n{result.stderr}"
    return result.stdout + result.stderr


def python(directory: Path, *arguments: str | Path, opp: Path | None = None) -> str:
    """Output of a Python program, with an operator package, that must succeed."""
    package = {"ASCEND_CUSTOM_OPP_PATH": str(opp)} if opp else {}
    result = preloaded.run([sys.executable, *arguments], cwd=directory, env={**os.environ, **package}, timeout=1500)
    assert result.returncode == 0, f"{arguments}:\n{result.stdout}\n{result.stderr}"
    return result.stdout + result.stderr


def host_python(*arguments: str | Path, opp: Path | None = None) -> list[str]:
    """The command that runs a script on the host runtime."""
    package = ["--opp", str(opp)] if opp else []
    return [sys.executable, "-m", "ascend_graph.host", "--quiet", *package, *map(str, arguments)]


def digest(paths: Iterable[Path]) -> str:
    """A digest of files and of the files of directories."""
    result = hashlib.sha256(sys.version.encode())
    for name in ("torch", "torch_npu"):
        result.update(importlib.metadata.version(name).encode())
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and file.suffix not in (".pyc", ".md"):
                result.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return result.hexdigest()[:16]


Builder = Callable[..., Path]


@pytest.fixture(scope="session")
def built() -> Builder:
    """``built(name, build)``: a copy of the example in which ``build(directory)`` has run, and the tests' own scripts.

    What is made from ``sources`` alone survives a change of the others, the scripts that use it.
    """

    def make(name: str, build: Callable[[Path], object], sources: Iterable[str], *, has_kernels: bool = True) -> Path:
        example = EXAMPLES / name
        files = [example / source for source in sources]
        if has_kernels:  # they are compiled by the toolkit
            toolkit = toolkit_directory()
            files += [toolkit / "include", toolkit / "compiler/tikcpp/ascendc_kernel_cmake"]
            files += [PACKAGE / "host" / name for name in ("ascendc", "packages", "projects")]
        target = cache_directory() / "examples" / f"{name}-{digest(files)}"
        with locked(target.with_suffix(".lock")):
            if not target.exists():
                work = target.with_name(f"{target.name}.work")
                shutil.rmtree(work, ignore_errors=True)
                shutil.copytree(example, work, ignore=shutil.ignore_patterns("build", "__pycache__", "*.egg-info"))
                build(work)
                work.rename(target)
            for script in example.rglob("*"):
                if script.is_file() and "build" not in script.relative_to(example).parts:
                    copy = target / script.relative_to(example)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    if not copy.exists() or copy.read_bytes() != script.read_bytes():
                        shutil.copy2(script, copy)
        return target

    return make


@pytest.fixture(scope="session")
def opp(built: Builder) -> Path:
    """The operator package of AddCustom, whose kernel is written in Ascend C."""
    directory = built(
        "operator_package",
        lambda work: run([sys.executable, "-m", "ascend_graph.cli", "build", ".", "-o", "build"], work),
        ["op_host/add_custom.cpp", "op_host/add_custom_tiling.h", "op_kernel/add_custom.cpp"],
    )
    return directory / "build"

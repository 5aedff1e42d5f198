# ruff: noqa: E501, PLR0917, RUF100 - kernels and build files are quoted as they are written
"""A host toolkit with a stand-in for the host runtime, and kernels compiled by its compiler, cached by content."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ascend_graph.environment import toolkit_directory
from ascend_graph.host.ascendc import command, cores, driver, translate
from ascend_graph.sources import kernels

from . import standalone
from .standalone import LIBRARY, SOURCES, assemble


@dataclass(frozen=True)
class Toolkit:
    """A laid out toolkit and the seam of its runtime."""

    home: Path
    key: str  # of everything a compiled kernel depends on, except its source
    seam: ctypes.CDLL

    def message(self) -> str:
        self.seam.seam_message.restype = ctypes.c_char_p
        return self.seam.seam_message().decode()

    def bisheng(self, *arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [str(self.home / "bin/bisheng"), *map(str, arguments)]
        environment = {**os.environ, "ASCEND_GRAPH_PYTHON": sys.executable}
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=900, cwd=cwd, env=environment
        )


def _digest(*paths: Path) -> str:
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:20]


@pytest.fixture(scope="session")
def cache(request: pytest.FixtureRequest) -> Path:
    return request.config.cache.mkdir("ascendc")


@pytest.fixture(scope="session")
def tools(cache: Path) -> Toolkit:
    installed = toolkit_directory()
    runtime = _digest(SOURCES / "include", Path(standalone.__file__), *LIBRARY)
    headers = installed / "include"
    key = _digest(
        headers,
        *LIBRARY,
        Path(standalone.__file__),
        Path(cores.__file__),
        Path(command.__file__),
        Path(driver.__file__),
        Path(translate.__file__),
        Path(kernels.__file__),
    )
    home = cache / f"home-{runtime}"
    library = assemble(home)
    # For the kernels' libraries alone: in the global scope the seam could stand before the host runtime's own
    # functions.
    return Toolkit(home, key, ctypes.CDLL(str(library), mode=ctypes.RTLD_LOCAL))


@pytest.fixture(autouse=True)
def _faults(tools: Toolkit) -> None:
    """Faults of kernels are the seam's: integer divisions of tensors, of tests before, are asked about by the host
    runtime."""
    tools.seam.ascendgraphHandleDivisions(None)


Build = Callable[..., ctypes.CDLL]


@pytest.fixture(scope="session")
def build(tools: Toolkit, cache: Path) -> Build:
    """``build(source or text)``: the shared library of a kernel source, with its launch functions."""

    def compile_kernel(source: Path | str, *options: str) -> ctypes.CDLL:
        text = source.read_text() if isinstance(source, Path) else source
        name = source.stem if isinstance(source, Path) else "kernel"
        key = hashlib.sha256("\0".join([tools.key, text, *options]).encode()).hexdigest()[:20]
        library = cache / f"{name}-{key}.so"
        if not library.exists():
            directory = Path(
                tempfile.mkdtemp(prefix="build-", dir=cache)
            )  # its own: other workers may compile the same
            path = directory / f"{name}.asc"
            path.write_text(text)
            result = tools.bisheng(
                *(
                    "-x",
                    "asc",
                    "--npu-arch=dav-2201",
                    "-O0",
                    "-shared",
                    "-fPIC",
                    "-std=c++17",
                    f"--launch-stubs={directory}",
                ),
                *options,
                path,
                "-o",
                directory / "out.so",
            )
            if result.returncode != 0:
                raise AssertionError(f"{name} does not compile:\n{result.stderr}")
            (directory / "out.so").rename(library)
            shutil.rmtree(directory)
        # Its own dependencies before what the process has: the seam, not the host runtime.
        return ctypes.CDLL(str(library), mode=ctypes.RTLD_LOCAL | os.RTLD_DEEPBIND)

    return compile_kernel


def launch(library: ctypes.CDLL, kernel: str, blocks: int, *arguments: np.ndarray | int | float | None) -> int:
    """Launches ``kernel``: arrays are passed as their addresses, numbers as int32 or float."""
    converted = [
        ctypes.c_void_p(argument.ctypes.data)
        if isinstance(argument, np.ndarray)
        else ctypes.c_float(argument)
        if isinstance(argument, float)
        else ctypes.c_void_p(None)
        if argument is None
        else ctypes.c_uint32(argument)
        for argument in arguments
    ]
    function = getattr(library, f"aclrtlaunch_{kernel}")
    function.restype = ctypes.c_uint32
    return function(ctypes.c_uint32(blocks), ctypes.c_void_p(None), *converted)

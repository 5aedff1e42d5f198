"""The libraries for aarch64, cross-compiled and run under emulation: ACL's functions, and kernels of Ascend C.

Needs Debian's g++-aarch64-linux-gnu and qemu-user-static.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from . import other_compilers
from .runtime.test_acl_programs import PROGRAM

COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64-static"
LIBRARIES = "/usr/aarch64-linux-gnu"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which(COMPILER) and shutil.which(EMULATOR)), reason=f"needs {COMPILER} and {EMULATOR}"
    ),
]

run = partial(other_compilers.run, system_libraries=(f"{LIBRARIES}/lib",), emulator=(EMULATOR, "-L", LIBRARIES))


@pytest.fixture(scope="module")
def toolkit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toolkit as a wheel for aarch64 has it."""
    system = ("-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64")
    return other_compilers.build_toolkit(tmp_path_factory.mktemp("aarch64"), COMPILER, *system)


def test_functions_of_acl(toolkit: Path, tmp_path: Path) -> None:
    assert run(toolkit, tmp_path, COMPILER, PROGRAM, "--flag") == "ok\n"


def test_kernels_of_ascend_c(toolkit: Path, tmp_path: Path) -> None:
    other_compilers.build_kernel(toolkit, tmp_path, COMPILER)
    assert run(toolkit, tmp_path, COMPILER, other_compilers.KERNELS, libraries=("add",)) == "ok\n"

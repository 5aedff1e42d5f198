"""The installed toolkit is where authors' build files and programs look for CANN."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_graph.compilation import compiler
from ascend_graph.environment import toolkit_directory

PROGRAM = r"""
#include <acl/acl.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    aclrtStream stream = NULL;
    void* device = NULL;
    char host[8] = {0};
    if (aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) return 1;
    if (aclrtCreateStream(&stream) != ACL_SUCCESS) return 2;
    if (aclrtMalloc(&device, 8, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return 3;
    aclrtMemcpy(device, 8, "ascend", 7, ACL_MEMCPY_HOST_TO_DEVICE);
    aclrtMemcpyAsync(host, 8, device, 7, ACL_MEMCPY_DEVICE_TO_HOST, stream);
    if (aclrtSynchronizeStream(stream) != ACL_SUCCESS || strcmp(host, "ascend") != 0) return 4;
    if (aclrtMemcpy(host, 8, device, 9, ACL_MEMCPY_DEVICE_TO_HOST) != ACL_ERROR_INVALID_PARAM) return 5;
    puts(aclGetRecentErrMsg());
    return aclrtFree(device) || aclrtDestroyStream(stream) || aclrtResetDevice(0) || aclFinalize();
}
"""


@pytest.mark.parametrize(
    "path",
    [
        "bin/bisheng",
        "compiler/ccec_compiler/bin/bisheng",
        "compiler/tikcpp/ascendc_kernel_cmake/ascendc.cmake",
        "compiler/tikcpp/tikcfw/kernel_operator.h",
        "tools/tikcpp/ascendc_kernel_cmake/ascendc.cmake",
        "include/acl/acl.h",
        "include/kernel_operator.h",
        "lib64/cmake/ASC/asc-config.cmake",
        "lib64/libascendc_runtime.so",
        "set_env.sh",
        "bin/setenv.bash",
        "python/site-packages/acl/__init__.py",
    ],
)
def test_layout(path: str) -> None:
    assert (toolkit_directory() / path).is_file()


@pytest.mark.parametrize("program", ["bin/bisheng", "compiler/ccec_compiler/bin/bisheng"])
def test_the_compiler_runs_from_both_places(program: str) -> None:
    result = subprocess.run([toolkit_directory() / program, "--version"], capture_output=True, text=True, check=False)
    assert result.returncode == 0
    assert "Ascend C for the host" in result.stdout


def test_the_compiler_finds_its_python_without_the_launcher(tmp_path: Path) -> None:
    """The python3 on PATH may be another: it has no part in it."""
    foreign = tmp_path / "python3"
    foreign.write_text("#!/bin/sh\necho 'a foreign Python' >&2\nexit 3\n")
    foreign.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    command = [toolkit_directory() / "bin/bisheng", "--version"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_a_compiler_without_a_python_says_what_to_set(tmp_path: Path) -> None:
    """A copy of the toolkit elsewhere lies in no Python's directory."""
    (tmp_path / "copy/lib64").mkdir(parents=True)
    (tmp_path / "copy/lib64/libascendc_runtime.so").touch()
    shutil.copytree(toolkit_directory() / "bin", tmp_path / "copy/bin")
    foreign = tmp_path / "python3"
    foreign.write_text("#!/bin/sh\nexit 3\n")
    foreign.chmod(0o755)
    command = [tmp_path / "copy/bin/bisheng", "--version"]
    result = subprocess.run(
        command, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert f"error: bisheng: {foreign} does not have ascend_graph; expected a Python that has it" in result.stderr
    assert "set ASCEND_GRAPH_PYTHON" in result.stderr


@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_program_of_acl(language: str, tmp_path: Path) -> None:
    source = tmp_path / f"program.{language}"
    source.write_text(PROGRAM)
    home = toolkit_directory()
    options = ["-x", language, "-Wall", "-Werror", f"-I{home}/include", str(source), "-x", "none"]
    libraries = [f"-L{home}/lib64", f"-Wl,-rpath,{home}/lib64", "-lascendcl"]
    subprocess.run([*compiler(), *options, "-o", tmp_path / "program", *libraries], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "ASCEND_GRAPH_HOST_BRIDGE"}
    result = subprocess.run([tmp_path / "program"], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "9 bytes do not fit; expected at most 8" in result.stdout


def test_set_env_selects_the_toolkit() -> None:
    script = f". {toolkit_directory()}/bin/setenv.bash && command -v bisheng && echo $ASCEND_HOME_PATH"
    result = subprocess.run(
        ["bash", "-c", script], env={"PATH": os.defpath}, capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == [f"{toolkit_directory()}/bin/bisheng", str(toolkit_directory())]


def test_the_launcher_runs_a_script_of_the_shell(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text('echo "$1" "$(command -v bisheng)" "$(command -v python3)"\n')
    command = [sys.executable, "-m", "ascend_graph.host", "--quiet", str(script), "argument"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = ["argument", f"{toolkit_directory()}/bin/bisheng", str(Path(sys.executable).parent / "python3")]
    assert result.stdout.split() == expected

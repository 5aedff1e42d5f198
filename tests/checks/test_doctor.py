"""``ascend-graph doctor``: one line for each thing, and a status that says whether something has to be done."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_graph.checks.doctor import cann_version
from ascend_graph.host.toolkit import toolkit_directory


def doctor(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ascend_graph.cli", "doctor"],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip


def test_what_is_installed_here() -> None:
    result = doctor()
    assert result.returncode == 0, result.stdout + result.stderr
    lines = dict(re.split(r"  +", line[4:], maxsplit=1) for line in result.stdout.splitlines())
    assert all(line.startswith("ok  ") for line in result.stdout.splitlines())
    assert list(lines) == [
        "Python", "torch", "torch_npu", "C++ for torch", "torch and torch_npu", "C++ compiler", "ninja", "cache",
        "host runtime", "CANN",
    ]  # fmt: skip
    assert lines["host runtime"] == str(toolkit_directory())


def test_what_is_wrong_is_a_line_and_the_status(tmp_path: Path) -> None:
    result = doctor(CXX="no-such-compiler")
    assert result.returncode == 1
    assert "!!  C++ compiler         no C++ compiler: looked for no-such-compiler on PATH" in result.stdout
    assert result.stderr == ""


def test_an_installed_cann_and_its_version(tmp_path: Path) -> None:
    (tmp_path / "aarch64-linux").mkdir()
    (tmp_path / "aarch64-linux/ascend_toolkit_install.info").write_text("package_name=Ascend\nversion=8.3.RC1\n")
    result = doctor(ASCEND_HOME_PATH=str(tmp_path))
    assert result.stdout.splitlines()[-1] == f"ok  CANN                 ASCEND_HOME_PATH={tmp_path}, version 8.3.RC1"


@pytest.mark.parametrize(
    ("text", "version"), [("Version=8.5.0\n", "8.5.0"), ("version=[8.0.RC2]\n", "8.0.RC2"), ("", None)]
)
def test_the_version_of_a_cann(tmp_path: Path, text: str, version: str | None) -> None:
    (tmp_path / "compiler").mkdir()
    (tmp_path / "compiler/version.info").write_text(text)
    assert cann_version(tmp_path) == version

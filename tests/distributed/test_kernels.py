"""Operators whose kernels communicate, in processes with PyTorch."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranks import HERE, under_torchrun

from ascend_graph.host.project import build_project_package


def test_kernels_communicate_eager_in_graphs_and_in_captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = build_project_package(tmp_path / "vendor", HERE.parent / "host/communication")
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(package))
    done = under_torchrun(HERE / "kernels.py", 2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("54 runs are equal") == 2, done.stdout

"""Operators whose kernels communicate, in processes with PyTorch."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranks import HERE, in_ranks

from ascend_graph.host.projects.build import build_project_package


def test_kernels_communicate_eager_in_graphs_and_in_captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = build_project_package(tmp_path / "vendor", HERE.parent / "host/runtime/communication")
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(package))
    said = in_ranks(HERE / "kernels.py", 2)
    assert said.count("54 runs are equal") == 2, said

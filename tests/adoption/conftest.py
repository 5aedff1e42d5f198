"""A repository of a few files, written for each test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ascend_graph.adoption import AdoptionReport, Decision, adopt

Write = Callable[[dict[str, str]], Path]
Adopt = Callable[[dict[str, str]], AdoptionReport]


@pytest.fixture
def repository(tmp_path: Path) -> Write:
    """Write files of a repository, and return its directory."""

    def write(files: dict[str, str]) -> Path:
        root = tmp_path / "client"
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return root

    return write


@pytest.fixture
def adopted(repository: Write, tmp_path: Path) -> Adopt:
    """Adopt a repository of these files."""
    return lambda files: adopt(repository(files), tmp_path / "operators.py")


def decision(report: AdoptionReport, name: str) -> Decision:
    """Return the decision on one operator."""
    (found,) = [one for one in report.decisions if one.name == name]
    return found


def schema_of(one: Decision) -> str:
    """Return the schema of an operator that the written module defines; empty if it defines none."""
    return one.defined_from[0] if one.defined_from else ""

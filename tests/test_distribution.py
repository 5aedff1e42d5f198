"""What is handed out: the sdist has every file of the tree that building, testing and reading need."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[1]


@pytest.mark.slow
@pytest.mark.skipif(not (TREE / ".git").exists(), reason="this tree is no checkout")
def test_the_sdist_is_the_tree(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "build", "--sdist", "-o", tmp_path, TREE], check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("ascend_graph-*.tar.gz"))) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    listed = subprocess.run(["git", "ls-files"], cwd=TREE, check=True, capture_output=True, text=True).stdout
    assert {f for f in listed.splitlines() if not f.startswith(".ci/")} - packed == set()

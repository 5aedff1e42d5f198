"""The READMEs count lines of code; the counts are those of the files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import EXAMPLES

READMES = sorted(EXAMPLES.glob("*/README.md"))


def code_lines(path: Path) -> int:
    """Lines that are neither blank nor a comment nor a file's docstring."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        text = re.sub(r'\A"""(?:.|\n)*?"""\n', "", text)
    comment = "//" if path.suffix in (".cpp", ".h", ".asc") else "#"
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith(comment))


@pytest.mark.parametrize("readme", READMES, ids=lambda p: p.parent.name)
def test_counts(readme: Path) -> None:
    claims = re.findall(r"`([\w./]+)` \((\d+)\)", readme.read_text(encoding="utf-8"))
    assert claims, f"{readme} counts no file"
    wrong = {
        name: (int(n), code_lines(readme.parent / name))
        for name, n in claims
        if code_lines(readme.parent / name) != int(n)
    }
    assert not wrong, f"file: (README, counted): {wrong}"


def test_every_example_has_one() -> None:
    assert {p.parent for p in READMES} == {p for p in EXAMPLES.iterdir() if p.is_dir() and p.name != "__pycache__"}

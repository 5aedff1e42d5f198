"""Every example in a docstring and in docs/ runs, and docstrings begin with a verb or a noun."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from benchmarks.words import headless_docstrings

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted((ROOT / "docs").rglob("*.md"))


def modules() -> list[str]:
    names = []
    for directory, package in ((ROOT / "ascend_graph", "ascend_graph"), (ROOT / "codegen", "ascend_graph.codegen")):
        for path in directory.rglob("*.py"):
            parts = path.relative_to(directory).with_suffix("").parts
            if "__main__" not in parts and "templates" not in parts:
                names.append(".".join([package, *(p for p in parts if p != "__init__")]))
    return sorted(names)


@pytest.mark.parametrize("name", modules())
def test_docstring_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert result.failed == 0


@pytest.mark.parametrize("path", DOCS, ids=lambda p: str(p.relative_to(ROOT)))
def test_document_examples(path: Path) -> None:
    result = doctest.testfile(str(path), module_relative=False, optionflags=OPTIONS)
    assert result.failed == 0


@pytest.mark.parametrize("package", ["ascend_graph", "codegen"])
def test_docstrings_begin_with_a_verb_or_a_noun(package: str) -> None:
    assert headless_docstrings(package) == [], "write 'Return …' for a function, a noun first for a class or a module"

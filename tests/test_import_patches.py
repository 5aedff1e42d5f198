"""Patches of other packages' modules, applied as these are imported."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from ascend_graph.import_patches import Patch, patch_modules


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module that lists who patched it."""
    (tmp_path / "patched_by_two.py").write_text("patches = []\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield "patched_by_two"
    sys.modules.pop("patched_by_two", None)


def patch(name: str) -> Patch:
    def append(module: ModuleType) -> Iterator[None]:
        yield
        module.patches.append(name)

    return append


def test_a_module_may_be_patched_by_two(module: str) -> None:
    """The host runtime and registering patch the same compiler: neither asks the other for the module for ever."""
    assert patch_modules({module: patch("first")})
    assert patch_modules({module: patch("second")})
    assert sorted(importlib.import_module(module).patches) == ["first", "second"]
    del sys.modules[module]
    assert sorted(importlib.import_module(module).patches) == ["first", "second"]


def test_the_same_patches_are_applied_once(module: str) -> None:
    only = patch("only")
    assert patch_modules({module: only})
    assert not patch_modules({module: only})
    assert importlib.import_module(module).patches == ["only"]
    assert patch_modules({module: patch("later")})
    assert importlib.import_module(module).patches == ["only", "later"]

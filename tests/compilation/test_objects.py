"""Cached objects: which sources have the same, and which cannot have any."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ascend_graph.compilation import compiler, objects
from ascend_graph.compilation.objects import ObjectCache, object_key
from ascend_graph.compilation.precompiled import SplitSource
from ascend_graph.compilation.source_compiler import compile_source

SOURCE = SplitSource("int header();\n", "int own;\n")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASCEND_GRAPH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache/objects"


def test_a_key_is_of_text_options_and_versions() -> None:
    keys = {
        object_key(SOURCE, ["-O2"], ["g++ 12"]),
        object_key(SplitSource("int header();\n", "int other;\n"), ["-O2"], ["g++ 12"]),
        object_key(SplitSource("int changed();\n", "int own;\n"), ["-O2"], ["g++ 12"]),
        object_key(SOURCE, ["-O0"], ["g++ 12"]),
        object_key(SOURCE, ["-O2"], ["g++ 13"]),
    }
    assert len(keys) == 5
    assert object_key(SOURCE, ["-O2"], ["g++ 12"]) in keys


@pytest.mark.parametrize("option", ["-g", "-ggdb3", "--coverage", "-save-temps", "-fprofile-arcs", "-flto"])
def test_an_object_that_depends_on_its_place_is_not_cached(option: str, tmp_path: Path) -> None:
    key = object_key(SOURCE, ["-O2", option], ["g++"])
    assert key is None
    (tmp_path / "own.o").write_text("object")
    ObjectCache().keep(key, tmp_path / "own.o")
    assert not ObjectCache().restore(key, tmp_path / "own.o")


def test_an_object_is_restored_until_others_need_its_room(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_MOST_BYTES", 110)
    compiled, target = tmp_path / "compiled.o", tmp_path / "target.o"
    compiled.write_bytes(b"x" * 40)
    for age, key in enumerate(("first", "second")):
        ObjectCache().keep(key, compiled)
        os.utime(cache / f"{key}.o", (age, age))
    assert ObjectCache().restore("first", target)
    assert target.read_bytes() == compiled.read_bytes()
    ObjectCache().keep("third", compiled)
    assert ObjectCache().restore("first", target)
    assert not ObjectCache().restore("second", target), "it was not used for longest"
    assert not list(cache.glob("new-*"))


def test_a_cache_that_cannot_be_written_has_no_objects(tmp_path: Path, cache: Path) -> None:
    cache.parent.write_text("a file\n")
    (tmp_path / "compiled.o").write_text("object")
    ObjectCache().keep("key", tmp_path / "compiled.o")
    assert not ObjectCache().restore("key", tmp_path / "target.o")


def test_a_source_is_compiled_once_and_again_when_its_text_changes(tmp_path: Path, cache: Path) -> None:
    source, target = tmp_path / "source.cpp", tmp_path / "source.o"

    def compiled(text: str, *options: str) -> bytes:
        source.write_text(text)
        assert compile_source([], compiler(), [*options, "-c", str(source), "-o", str(target)]) == 0
        return target.read_bytes()

    first = compiled("int value = VALUE;\n", "-DVALUE=1")
    if not cache.exists():
        pytest.skip("the compiler is not g++")
    assert compiled("int value = VALUE; // a comment\n", "-DVALUE=1", "-DOTHER") == first
    assert len(list(cache.glob("*.o"))) == 1
    assert compiled("int value = VALUE;\n", "-DVALUE=2") != first
    assert len(list(cache.glob("*.o"))) == 2


def test_messages_are_given_each_time(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "source.cpp"
    source.write_text("int value() { int unused; return 1; }\n")
    for _ in range(2):
        arguments = ["-Wall", "-c", str(source), "-o", str(tmp_path / "source.o")]
        assert compile_source([], compiler(), arguments) == 0
        assert "unused" in capfd.readouterr().err

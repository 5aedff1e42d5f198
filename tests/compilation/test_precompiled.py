"""Precompiled headers of preprocessed sources: what is taken out, and that nothing but time depends on it."""

from __future__ import annotations

import ctypes
import fcntl
import itertools
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ascend_graph.compilation import compiler, precompiled
from ascend_graph.compilation.precompiled import split
from ascend_graph.compilation.source_compiler import command, compile_source

GCC = precompiled.is_gcc(subprocess.run([*compiler(), "--version"], capture_output=True, text=True, check=True).stdout)
NUMBERS = itertools.count()
needs_gcc = pytest.mark.skipif(not GCC, reason="only g++ reads preprocessed text with precompiled headers")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with headers that are stable, however small."""
    monkeypatch.setenv("ASCEND_GRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(precompiled, "_SMALLEST", 1)
    api = tmp_path / "api"
    api.mkdir()
    (api / "first.h").write_text('#include "second.h"\ninline int first() { return second() + VALUE; }\n')
    (api / "second.h").write_text("#pragma once\n#include <cstddef>\ninline int second() { return 1; }\n")
    return tmp_path


def compile_text(place: Path, text: str, *options: str) -> tuple[int, int | None]:
    """Compile a library of ``text`` as ninja does; return the status and, if it has one, what its answer() returns."""
    source, target = place / "source.cpp", place / "source.o"
    number = next(NUMBERS)
    source.write_text(f"{text}int own{number};\n")  # another text: the objects are cached, too
    target.unlink(missing_ok=True)
    arguments = ["-O1", "-fPIC", *options, f"-I{place}/api", f"-I{place}", "-MD", "-MF", str(place / "source.d")]
    status = compile_source([f"{place}/api"], compiler(), [*arguments, "-c", str(source), "-o", str(target)])
    if status != 0:
        return status, None
    library = place / f"library{number}.so"
    subprocess.run([*compiler(), "-shared", str(target), "-o", str(library)], check=True)
    return 0, ctypes.CDLL(str(library)).answer()


ANSWER = '#define VALUE {value}\n#include "first.h"\nextern "C" int answer() {{ return first(); }}\n'


def headers(place: Path) -> list[Path]:
    return sorted((place / "cache/precompiled").glob("*.gch"))


@needs_gcc
def test_headers_are_precompiled_when_their_text_comes_again(place: Path) -> None:
    for value, expected in (3, 0), (3, 1), (3, 1), (4, 1), (4, 2):
        assert compile_text(place, ANSWER.format(value=value)) == (0, value + 1)
        assert len(headers(place)) == expected
    before = headers(place)
    assert compile_text(place, f"{ANSWER.format(value=4)}\nint other;\n") == (0, 5)
    assert compile_text(place, ANSWER.format(value=4), "-O0") == (0, 5)
    assert headers(place) == before, "other options are another text"
    assert "first.h" in (place / "source.d").read_text()


@needs_gcc
def test_a_change_of_a_header_is_seen(place: Path) -> None:
    for _ in range(3):
        assert compile_text(place, ANSWER.format(value=3)) == (0, 4)
    (place / "api/second.h").write_text("#pragma once\ninline int second() { return 100; }\n")
    assert compile_text(place, ANSWER.format(value=3)) == (0, 103)


@needs_gcc
def test_the_text_of_the_author_says_where_its_errors_are(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (place / "own.h").write_text('\n#include "first.h"\n#ifdef WRONG\nint wrong = nothing;\n#endif\n')
    text = '#define VALUE 2\n\n#include "own.h"\nextern "C" int answer() { return first(); }\n'
    for _ in range(3):
        assert compile_text(place, text) == (0, 3)
    assert len(headers(place)) == 1
    assert compile_text(place, f"#define WRONG\n{text}")[0] != 0
    said = capfd.readouterr().err
    assert f"{place}/own.h:4:13: error:" in said
    assert "source.cpp:4" in said
    assert len(headers(place)) == 1, "the source is at fault, not the header"


@needs_gcc
def test_a_damaged_header_is_not_used_again(place: Path) -> None:
    for _ in range(2):
        compile_text(place, ANSWER.format(value=3))
    (made,) = headers(place)
    made.write_bytes(made.read_bytes()[: made.stat().st_size // 2])
    for _ in range(2):
        assert compile_text(place, ANSWER.format(value=3)) == (0, 4)


@needs_gcc
def test_a_header_that_another_process_makes_is_not_waited_for(place: Path) -> None:
    compile_text(place, ANSWER.format(value=3))
    (seen,) = (place / "cache/precompiled").glob("*.seen")
    with seen.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert compile_text(place, ANSWER.format(value=3)) == (0, 4)
        assert not headers(place)
    assert compile_text(place, ANSWER.format(value=3)) == (0, 4)
    assert len(headers(place)) == 1


def test_a_cache_that_cannot_be_written_costs_time_only(place: Path) -> None:
    (place / "cache").write_text("a file\n")
    for _ in range(2):
        assert compile_text(place, ANSWER.format(value=3)) == (0, 4)


def test_the_last_used_headers_are_kept(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not GCC:
        pytest.skip("no header is made")
    monkeypatch.setattr(precompiled, "_MOST", 2)
    for value in (1, 1, 2, 2, 3, 3):
        compile_text(place, ANSWER.format(value=value))
    assert len(headers(place)) == 2


def test_another_compiler_compiles_whole_sources(place: Path) -> None:
    wrapper = place / "c++"
    wrapper.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exec echo other\nexec {shlex.join(compiler())} "$@"\n')
    wrapper.chmod(0o755)
    source = place / "source.cpp"
    source.write_text("int value;\n")
    for _ in range(2):
        arguments = ["-c", str(source), "-o", str(place / "source.o")]
        assert compile_source([f"{place}/api"], [str(wrapper)], arguments) == 0
    assert not (place / "cache").exists()


def test_a_program_compiles_a_source(place: Path) -> None:
    source = place / "source.cpp"
    source.write_text("int value = no_value;\n")
    words = [*command([place / "api"]), *compiler(), "--", "-c", str(source), "-o", str(place / "source.o")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert words[0] == sys.executable
    assert done.returncode != 0
    assert "source.cpp:1:13: error:" in done.stderr


def preprocess(place: Path, text: str) -> str:
    source = place / "source.cpp"
    source.write_text(text)
    words = [*compiler(), "-E", f"-I{place}/api", f"-I{place}", str(source)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ('#include "first.h"\nint own;\n', True),
        ('// comment\n#define NAME 1\n\n#include "first.h"\n#include <cstdint>\nint own;\n', True),
        ('#include "own.h"\nint own;\n', True),
        ('int own;\n#include "first.h"\n', False),
        ('#pragma pack(1)\n#include "first.h"\nint own;\n', False),
        ('extern "C" {\n#include "first.h"\n}\nint own;\n', False),
        ('#include "mine.h"\n#include "first.h"\nint own;\n', False),
        ('#include "api_of_mine.h"\nint own;\n', False),
        ("", False),
    ],
)
def test_only_headers_before_any_other_text_are_taken_out(place: Path, text: str, taken: bool) -> None:
    (place / "own.h").write_text('#pragma once\n#include "first.h"\n')
    (place / "mine.h").write_text("struct Mine {};\n")
    (place / "api/api_of_mine.h").write_text('int api;\n#include "mine.h"\nint second();\n')
    whole = preprocess(place, text)
    parts = split(whole, [f"{place}/api/"])
    assert ("int second()" in parts.headers) is taken
    assert "own" not in parts.headers.replace("own.h", "")
    tokens = [line for line in whole.splitlines() if line.strip() and not line.startswith("# ")]
    apart = [line for line in (parts.headers + parts.rest).splitlines() if line.strip() and not line.startswith("# ")]
    assert apart == tokens


def test_headers_do_not_depend_on_the_file_that_includes_them(place: Path) -> None:
    first = split(preprocess(place, '#include "first.h"\nint own;\n'), [f"{place}/api/"])
    (place / "own.h").write_text('\n\n#include "first.h"\nint mine;\n')
    second = split(preprocess(place, '\n#include "own.h"\nint own;\n'), [f"{place}/api/"])
    assert first.headers == second.headers
    assert f'# 4 "{place}/own.h" 1\nint mine;\n' in second.rest

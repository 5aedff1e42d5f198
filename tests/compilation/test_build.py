"""Compiling into the cache: paths, processes, killed builds, bad compilers, changed headers."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ascend_graph.compilation import BuildError, CppLibrary, cache_directory, compiler, jobs
from ascend_graph.compilation.cache import entries, files_of_rule

SLOW_COMPILER = """#!/bin/sh
case "$*" in *--version*) echo slow 1.0; exit 0;; esac
case "$*" in *" -c "*) echo $$ >> "{pids}"; sleep 30;; esac
exec g++ "$@"
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "cache"
    monkeypatch.setenv("ASCEND_GRAPH_CACHE", str(directory))
    for variable in ("CXX", "CXXFLAGS", "LDFLAGS", "CPATH", "CPLUS_INCLUDE_PATH", "MAX_JOBS"):
        monkeypatch.delenv(variable, raising=False)
    return directory


def answering(directory: Path, body: str = "42", *, include: str = "") -> CppLibrary:
    directory.mkdir(parents=True, exist_ok=True)
    source = directory / "answer.cpp"
    source.write_text(f'{include}\nextern "C" int answer() {{ return {body}; }}\n')
    return CppLibrary(name="answer", sources=(source,))


def answer(path: Path) -> int:
    return int(ctypes.CDLL(str(path)).answer())


@pytest.mark.parametrize(
    "name", ["plain", "with space", "中文 ü", "semi;touch ran", "$HOME `id` 'q' \"d\"", "a:b,c#d%e&f(g)"]
)
def test_any_path_compiles_and_nothing_of_it_reaches_the_shell(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_GRAPH_CACHE", str(tmp_path / name / "cache"))
    (tmp_path / name / "include").mkdir(parents=True)
    (tmp_path / name / "include/value.h").write_text("#define VALUE 7\n")
    library = answering(tmp_path / name, "VALUE + OTHER", include='#include "value.h"')
    made = CppLibrary(
        name="answer",
        sources=library.sources,
        include_directories=(tmp_path / name / "include",),
        library_directories=(tmp_path / name,),
        flags=('-DOTHER=sizeof("a b;c$d") - 8',),
    )
    assert answer(made.build()) == 7
    assert not list(tmp_path.rglob("ran"))


def test_a_library_is_compiled_once(tmp_path: Path) -> None:
    library = answering(tmp_path)
    assert library.cached() is None
    first = library.build()
    assert library.cached() == first
    before = first.stat().st_mtime_ns
    assert library.build() == first
    assert first.stat().st_mtime_ns == before


@pytest.mark.parametrize("variable", ["CPATH", "CPLUS_INCLUDE_PATH", "-I", "neighbour"])
def test_a_changed_header_compiles_anew_whatever_path_leads_to_it(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "src" if variable == "neighbour" else tmp_path / "elsewhere"
    directory.mkdir()
    if variable.startswith("CP"):
        monkeypatch.setenv(variable, str(directory))
    library = answering(tmp_path / "src", "VALUE", include='#include "value.h"')
    if variable == "-I":
        library = CppLibrary(name="answer", sources=library.sources, include_directories=(directory,))
    header = directory / "value.h"
    for value in (1, 2):
        header.write_text(f"#define VALUE {value}\n")
        assert library.cached() is None
        assert answer(library.build()) == value
    header.write_text("#define VALUE 1\n")  # back again: it is still there
    found = library.cached()
    assert found is not None
    assert answer(found) == 1


def test_only_some_versions_of_one_library_are_kept(tmp_path: Path, cache: Path) -> None:
    library = answering(tmp_path / "src", "VALUE", include='#include "value.h"')
    for value in range(6):
        (tmp_path / "src/value.h").write_text(f"#define VALUE {value}\n")
        library.build()
    (manifest,) = cache.glob("*.json")
    kept = {entry.directory for entry in entries(manifest)}
    assert len(kept) == 4
    assert {path.name for path in cache.iterdir() if path.is_dir()} == kept


@pytest.mark.parametrize("damage", ["truncated", "removed", "manifest"])
def test_a_damaged_cache_is_compiled_anew(damage: str, tmp_path: Path, cache: Path) -> None:
    library = answering(tmp_path)
    path = library.build()
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:100])
    elif damage == "removed":
        path.unlink()
    else:
        next(cache.glob("*.json")).write_text('[{"directory": 3}]')
    assert library.cached() is None
    assert answer(library.build()) == 42


BUILD = (
    "import sys; from pathlib import Path; from ascend_graph.compilation import CppLibrary; "
    "print(CppLibrary(name='answer', sources=(Path(sys.argv[1]),)).build())"
)


def building(source: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, source],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_eight_processes_at_once_compile_once(tmp_path: Path, cache: Path) -> None:
    (source,) = answering(tmp_path).sources
    log = tmp_path / "calls"
    script = tmp_path / "counting"
    script.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec g++ "$@"\n')
    script.chmod(0o755)
    processes = [building(source, CXX=str(script)) for _ in range(8)]
    outputs = [process.communicate(timeout=900) for process in processes]
    assert {process.returncode for process in processes} == {0}, outputs
    assert len({output for output, _ in outputs}) == 1
    assert sum(" -c " in line for line in log.read_text().splitlines()) == 1
    assert {path.suffix for path in cache.iterdir()} == {"", ".json"}


def test_a_killed_build_leaves_nothing_after_the_next(tmp_path: Path, cache: Path) -> None:
    (source,) = answering(tmp_path).sources
    pids = tmp_path / "pids"
    script = tmp_path / "slow"
    script.write_text(SLOW_COMPILER.format(pids=pids))
    script.chmod(0o755)
    process = building(source, CXX=str(script))
    wait_for(lambda: pids.exists() and bool(pids.read_text().strip()))
    process.kill()
    process.communicate(timeout=600)
    assert list(cache.glob("build-*"))
    library = CppLibrary(name="answer", sources=(source,))
    assert answer(library.build()) == 42
    assert {path.suffix for path in cache.iterdir()} == {"", ".json"}
    assert not list(cache.glob("build-*"))
    for pid in pids.read_text().split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def test_sources_that_change_meanwhile_are_compiled_as_they_are_now(tmp_path: Path) -> None:
    library = answering(tmp_path / "src", "1")
    (source,) = library.sources
    script = tmp_path / "editing"  # edits the source behind the compiler's back, once
    script.write_text(
        f'#!/bin/sh\ng++ "$@" || exit 1\n'
        f'case "$*" in *" -c "*) [ -e {tmp_path}/done ] || {{ touch {tmp_path}/done; sed -i s/1/2/ {source}; }};; esac\n'
    )
    script.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXX", str(script))
        path = library.build()
        assert answer(path) == 2
        assert library.cached() == path


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("CXX", "/bin/true", r"reported success but made no shared library; set CXX"),
        ("CXX", "/bin/false", r"the compiler /bin/false does not run.*set CXX"),
        ("CXX", "no-such-compiler", r"looked for no-such-compiler on PATH.*set CXX"),
        ("CXX", "g++ 'open", r"CXX=.* is no command"),
        ("CXXFLAGS", "-DA='open", r"CXXFLAGS=.* is no list of options"),
        ("MAX_JOBS", "abc", r"MAX_JOBS='abc' is no number of compilers"),
        ("MAX_JOBS", "0", r"MAX_JOBS='0' is no number of compilers"),
        ("ASCEND_GRAPH_CACHE", "/dev/null/cache", r"cannot be written: Not a directory.*set ASCEND_GRAPH_CACHE"),
        ("ASCEND_GRAPH_CACHE", "/proc/cache", r"cannot be written.*set ASCEND_GRAPH_CACHE"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    variable: str, value: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(BuildError, match=message) as raised:
        answering(tmp_path).build()
    assert "\n" not in str(raised.value)


def test_a_missing_header_of_a_known_library_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "lacking"
    script.write_text(
        '#!/bin/sh\ncase "$*" in *--version*) exec g++ "$@";; esac\n'
        "echo 'a.h:1:10: fatal error: nlohmann/json.hpp: No such file or directory' >&2; exit 1\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    with pytest.raises(BuildError, match="nlohmann/json.hpp is in the package nlohmann-json3-dev of Debian"):
        answering(tmp_path).build()


@pytest.mark.parametrize(
    "said",
    [
        "unrecognized command line option '-std=c++20'; did you mean '-std=c++2a'?",
        "invalid value 'c++20' in '-std=c++20'",
    ],
)
def test_a_compiler_before_the_standard_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    script = tmp_path / "old"
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *--version*) exec g++ "$@";; esac\ncat >&2 <<"END"\nerror: {said}\nEND\nexit 1\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    with pytest.raises(
        BuildError, match=r"asks for c\+\+20, which this compiler does not know: set CXX to a newer one"
    ):
        answering(tmp_path).build()


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "full"
    script.write_text(
        '#!/bin/sh\ncase "$*" in *--version*) exec g++ "$@";; esac\n'
        "echo 'fatal error: error writing to /tmp/x.s: No space left on device' >&2; exit 1\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    with pytest.raises(BuildError, match="The disk is full: set ASCEND_GRAPH_CACHE"):
        answering(tmp_path).build()
    assert not [path for path in cache_directory().iterdir() if path.is_dir()]


def test_a_compiler_with_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "env ANSWER=1 g++ -DVALUE=9")
    assert compiler()[1:] == ("ANSWER=1", "g++", "-DVALUE=9")
    assert answer(answering(tmp_path, "VALUE").build()) == 9


def test_options_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = answering(tmp_path, "VALUE")
    monkeypatch.setenv("CXXFLAGS", "-DVALUE=5")
    monkeypatch.setenv("LDFLAGS", "-Wl,-soname,of-the-environment.so")
    path = library.build()
    assert answer(path) == 5
    assert b"of-the-environment.so" in path.read_bytes()
    monkeypatch.setenv("CXXFLAGS", "-DVALUE=6")
    assert answer(library.build()) == 6


def test_a_source_that_does_not_compile_leaves_nothing(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(BuildError, match=r"(?s)compiling answer failed.*was not declared") as raised:
        answering(tmp_path, "no_such_name").build()
    assert "answer.cpp:2" in str(raised.value)
    assert not list(cache.iterdir())


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"the source .*none.cpp cannot be read: No such file"):
        CppLibrary(name="none", sources=(tmp_path / "none.cpp",)).build()


def test_a_long_compilation_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    """What, once, what for, where it is kept, and how long it took."""
    script = tmp_path / "sleeping"
    script.write_text('#!/bin/sh\ncase "$*" in *" -c "*) sleep 2.5;; esac\nexec g++ "$@"\n')
    script.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXX", str(script))
        replace(answering(tmp_path), why="for torch 2.13.0, one to three minutes").build()
    said = capsys.readouterr().err.splitlines()
    assert said[0] == (
        f"ascend_graph: compiling answer (once for torch 2.13.0, one to three minutes; kept in {cache}) …"
    )
    assert said[1].startswith("ascend_graph: compiled answer in ")
    answering(tmp_path / "quick", "8").build()


def test_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert jobs() >= 1
    monkeypatch.setenv("MAX_JOBS", "3")
    assert jobs() == 3


def test_dependency_files_are_read_with_every_character_of_a_name() -> None:
    rule = "0.o: /a/b.cpp \\\n /with\\ space/x.h /price$$/y.h \\\n  /hash\\#/z.h /中/w.h\n"
    assert [str(path) for path in files_of_rule(rule)] == [
        "/a/b.cpp", "/with space/x.h", "/price$/y.h", "/hash#/z.h", "/中/w.h",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py"], "there is no file 'missing.py' to run"),
        (["-m", "no_such_module_here"], "there is no module 'no_such_module_here'"),
        (["--opp", "/nowhere", "-c", "pass"], "no operator package there"),
    ],
)
def test_the_launcher_checks_its_arguments_before_it_compiles(arguments: list[str], message: str, cache: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ascend_graph.host", "--force", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert not cache.exists()


def test_another_build_of_one_version_of_torch_npu_is_compiled_for_anew(tmp_path: Path) -> None:
    """Post releases differ, and so do two builds that have one number: in the list of their files."""

    def key(directory: str, version: str, digest: str) -> str:
        site = tmp_path / directory
        for name, number, record in (("torch", "2.13.0", ""), ("torch_npu", version, f"torch_npu/lib.so,{digest},1\n")):
            (site / name).mkdir(parents=True)
            (site / name / "__init__.py").touch()
            information = site / f"{name}-{number}.dist-info"
            information.mkdir()
            (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n")
            (information / "RECORD").write_text(record)
        code = "from ascend_graph.compilation import torch_library; print(torch_library('l', []).key())"
        environment = {**os.environ, "PYTHONPATH": str(site)}
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
        ).stdout

    first = key("first", "2.13.0", "sha256=a")
    assert key("again", "2.13.0", "sha256=a") == first
    assert key("rebuilt", "2.13.0", "sha256=b") != first
    assert key("post", "2.13.0.post1", "sha256=a") != first

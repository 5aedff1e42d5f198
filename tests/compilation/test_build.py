"""Compiling into the cache: paths, processes, killed builds, bad compilers, changed headers."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from ascend_graph.compilation import BuildError, CppLibrary, cache_directory, compiler, jobs
from ascend_graph.compilation.cache import entries, files_of_rule
from ascend_graph.compilation.progress import announced
from ascend_graph.host.toolkit import host_environment


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


@pytest.mark.parametrize("variable", ["CPATH", "CPLUS_INCLUDE_PATH", "-I", "neighbor"])
def test_a_changed_header_compiles_anew_whatever_path_leads_to_it(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "src" if variable == "neighbor" else tmp_path / "elsewhere"
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


#: A compiler that writes down what it compiles, and takes long for slow.cpp while the gate is there.
GATED_COMPILER = """#!/bin/sh
case "$*" in
    *" -c "*slow.cpp*) [ ! -e "{gate}" ] || {{ echo $$ >> "{pids}"; while [ -e "{gate}" ]; do sleep 0.1; done; }};;
esac
case "$*" in *" -c "*) echo "$@" >> "{log}";; esac
exec g++ "$@"
"""


class Gated:
    """Two sources, one of which takes long to compile while a gate is there."""

    def __init__(self, directory: Path) -> None:
        self.source = directory / "src"
        self.gate, self.pids, self.log, self.compiler = (directory / n for n in ("gate", "pids", "log", "compiler"))
        self.source.mkdir()
        (self.source / "value.h").write_text("#define VALUE 40\n")
        (self.source / "fast.cpp").write_text('#include "value.h"\nint fast() { return VALUE; }\n')
        (self.source / "slow.cpp").write_text('int fast();\nextern "C" int answer() { return fast() + 2; }\n')
        self.compiler.write_text(GATED_COMPILER.format(gate=self.gate, pids=self.pids, log=self.log))
        self.compiler.chmod(0o755)
        self.gate.touch()
        self.library = CppLibrary(name="answer", sources=tuple(sorted(self.source.glob("*.cpp"))))

    def start(self) -> subprocess.Popen[str]:
        """Build in another process; return when one source is compiled and the other not."""
        code = f"from pathlib import Path; from ascend_graph.compilation import CppLibrary; {self.library!r}.build()"
        code = code.replace("PosixPath", "Path")
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stderr=subprocess.PIPE, text=True, env={**os.environ, "CXX": str(self.compiler), "MAX_JOBS": "2"},
        )  # fmt: skip
        logs = partial(cache_directory().glob, "build-*/.ninja_log")
        wait_for(lambda: self.pids.exists() and any("0.o" in log.read_text() for log in logs()))
        return process

    def end(self) -> None:
        for pid in self.pids.read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    def compiled(self) -> list[str]:
        """The names of the sources that were compiled."""
        words = self.log.read_text().split()
        return sorted(Path(word).name for word in words if word.endswith(".cpp"))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_build_goes_on_with_its_objects(
    number: signal.Signals, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gated = Gated(tmp_path)
    process = gated.start()
    process.send_signal(number)
    process.communicate(timeout=600)
    gated.end()
    gated.gate.unlink()
    assert list(cache.glob("build-*/0.o"))
    monkeypatch.setenv("CXX", str(gated.compiler))
    assert answer(gated.library.build()) == 42
    assert gated.compiled() == ["fast.cpp", "slow.cpp"]
    assert not list(cache.glob("build-*"))


def test_what_changed_after_an_interruption_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the file's time says that it is old."""
    gated = Gated(tmp_path)
    process = gated.start()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=600)
    gated.gate.unlink()
    header = gated.source / "value.h"
    before = header.stat()
    header.write_text("#define VALUE 50\n")
    os.utime(header, ns=(before.st_atime_ns, before.st_mtime_ns))
    monkeypatch.setenv("CXX", str(gated.compiler))
    assert answer(gated.library.build()) == 52
    assert gated.compiled() == ["fast.cpp", "fast.cpp", "slow.cpp"]


def test_a_build_without_memory_goes_on_with_its_objects(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gated = Gated(tmp_path)
    text = gated.compiler.read_text()
    killed = "echo 'g++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1"
    gated.compiler.write_text(
        text.replace(f'echo $$ >> "{gated.pids}"; while [ -e "{gated.gate}" ]; do sleep 0.1; done', killed)
    )
    monkeypatch.setenv("CXX", str(gated.compiler))
    monkeypatch.setenv("MAX_JOBS", "1")
    with pytest.raises(BuildError, match="set MAX_JOBS=1, or to fewer than before; what is compiled is kept"):
        gated.library.build()
    gated.gate.unlink()
    assert answer(gated.library.build()) == 42
    assert gated.compiled() == ["fast.cpp", "slow.cpp"]
    assert not list(cache.glob("build-*"))


def test_objects_that_nobody_goes_on_with_are_removed(tmp_path: Path, cache: Path) -> None:
    """Those of the same library at once, those of others after a day."""
    old, young, same = (cache / name for name in ("build-other-1", "build-other-2", "build-answer-0"))
    for directory in (old, young, same):
        directory.mkdir(parents=True)
    os.utime(old, (time.time() - 2 * 24 * 3600,) * 2)
    answering(tmp_path).build()
    assert set(cache.glob("build-*")) == {young}


def test_who_waits_for_another_build_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        gated = Gated(tmp_path)
        process = gated.start()
        patch.setenv("CXX", str(gated.compiler))
        threading.Timer(3.0, gated.gate.unlink).start()
        gated.library.build()
        process.communicate(timeout=600)
    assert "ascend_graph: waiting for another process: compiling answer …" in capsys.readouterr().err.splitlines()


def test_a_compiler_that_vanishes_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "vanishing"
    script.write_text('#!/bin/sh\ncase "$*" in *--version*) rm "$0"; exec g++ "$@";; esac\n')
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    with pytest.raises(BuildError, match=r"the compiler .*vanishing is gone; install it again, or set CXX") as raised:
        answering(tmp_path).build()
    assert "\n" not in str(raised.value)


def test_a_cache_that_fills_up_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("ascend_graph.compilation.library.add_entry", full)
    with pytest.raises(
        BuildError, match=r"cannot be written: No space left on device; set ASCEND_GRAPH_CACHE"
    ) as raised:
        answering(tmp_path).build()
    assert "\n" not in str(raised.value)


def test_sources_that_change_meanwhile_are_compiled_as_they_are_now(tmp_path: Path) -> None:
    library = answering(tmp_path / "src", "1")
    (source,) = library.sources
    script = tmp_path / "editing"  # edits the source behind the compiler's back, once
    script.write_text(
        f'#!/bin/sh\ng++ "$@" || exit 1\n'
        f'case "$*" in *" -c "*) [ -e {tmp_path}/done ] || {{ touch {tmp_path}/done; sed -i s/1/2/ {source}; }};; '
        f"esac\n"
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
        ("CXX", "g++ 'open", r"CXX=.* is not a command"),
        ("CXXFLAGS", "-DA='open", r"CXXFLAGS=.* is not a list of options"),
        ("MAX_JOBS", "abc", r"MAX_JOBS='abc' is not a number of compilers"),
        ("MAX_JOBS", "0", r"MAX_JOBS='0' is not a number of compilers"),
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


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("nlohmann/json.hpp", "nlohmann/json.hpp is in the package nlohmann-json3-dev of Debian"),
        ("atvoss/reduce/reduce_sch.h", "reduce_sch.h is not found: ascend-graph build takes -I DIR, and --cann DIR"),
    ],
)
def test_a_missing_header_says_where_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str, message: str
) -> None:
    script = tmp_path / "lacking"
    script.write_text(
        '#!/bin/sh\ncase "$*" in *--version*) exec g++ "$@";; esac\n'
        f"echo 'a.h:1:10: fatal error: {header}: No such file or directory' >&2; exit 1\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    with pytest.raises(BuildError, match=message):
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


def test_the_sentence_comes_first_and_the_output_is_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "noisy"
    noise = "\n".join(f"  required from here {n}" for n in range(500))
    script.write_text(
        '#!/bin/sh\ncase "$*" in *--version*) exec g++ "$@";; esac\n'
        f"cat >&2 <<'END'\nnote: of the compiler\n/a.h:7:1: error: no such thing\n{noise}\nNo space left on device\n"
        f"END\nexit 1\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with pytest.raises(BuildError) as raised:
        answering(tmp_path).build()
    first, second, *rest, last = str(raised.value).splitlines()
    assert first == "compiling answer failed. The disk is full: set ASCEND_GRAPH_CACHE to a directory on another"
    assert second == "/a.h:7:1: error: no such thing"
    assert len(rest) == 40
    assert rest[-1].startswith("… and ")
    assert "-fPIC" not in str(raised.value)  # a command of the build
    log = Path(last.rpartition(" ")[2])
    assert "-fPIC" in log.read_text()
    assert "required from here 499" in log.read_text()


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ('c10/macros.h:3:2: error: #error "You need C++20 to compile PyTorch"', "asks for c++20, which this compiler"),
        ("g++: fatal error: Killed signal terminated program cc1plus", "had too little memory: set MAX_JOBS=1"),
    ],
)
def test_what_a_compiler_lacks_is_the_first_line(
    said: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "lacking"
    script.write_text(f"""#!/bin/sh\ncase "$*" in *--version*) exec g++ "$@";; esac\necho '{said}' >&2; exit 1\n""")
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    with pytest.raises(BuildError) as raised:
        answering(tmp_path).build()
    assert sentence in str(raised.value).splitlines()[0]


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


def test_a_library_that_is_optimized_always(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options with which users compile their own code do not make it anew; others do."""
    library = replace(answering(tmp_path, "__OPTIMIZE__ + VALUE"), optimized_always=True)
    monkeypatch.setenv("CXXFLAGS", "-DVALUE=1")
    path = library.build()
    assert answer(path) == 2
    monkeypatch.setenv("CXXFLAGS", "-O0 -DVALUE=1 -g -gdwarf-4")
    assert library.cached() == path
    monkeypatch.setenv("CXXFLAGS", "-O0 -DVALUE=3")
    assert answer(library.build()) == 4


def test_a_source_that_does_not_compile_leaves_nothing(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(BuildError, match=r"(?s)compiling answer failed.*was not declared") as raised:
        answering(tmp_path, "no_such_name").build()
    assert "answer.cpp:2" in str(raised.value)
    assert not list(cache.iterdir())


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"the source .*none.cpp cannot be read: No such file"):
        CppLibrary(name="none", sources=(tmp_path / "none.cpp",)).build()


def test_a_long_compilation_says_how_far_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work, why, where its result is kept; the steps and the time so far; the time of the last build."""
    monkeypatch.setattr("ascend_graph.compilation.progress.QUIET_SECONDS", 0.2)
    monkeypatch.setattr("ascend_graph.compilation.progress.LINE_SECONDS", 0.5)
    monkeypatch.setenv("MAX_JOBS", "1")
    library = replace(Gated(tmp_path).library, why="for torch 2.13.0")
    script = tmp_path / "sleeping"
    script.write_text('#!/bin/sh\ncase "$*" in *slow.cpp*) sleep 2;; esac\nexec g++ "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    library.build()
    first, *between, last = capsys.readouterr().err.splitlines()
    assert first == f"ascend_graph: compiling answer (once for torch 2.13.0; kept in {cache}) …"
    assert any(re.fullmatch(r"ascend_graph: compiling answer: 1 of 3 steps, \d s", line) for line in between)
    assert re.fullmatch(r"ascend_graph: compiling answer took \d s", last)
    replace(library, flags=("-DOTHER",)).build()
    first, *between, last = capsys.readouterr().err.splitlines()
    assert re.search(r"kept in .*; last time \d s\) …$", first)
    assert any(re.search(r": 1 of 3 steps, \d s \(last time \d s\)$", line) for line in between)


def test_a_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setattr("ascend_graph.compilation.progress.QUIET_SECONDS", 0.1)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with announced("compiling answer", "once", cache) as steps:
        steps.done, steps.all = 1, 3
        wait_for(lambda: "1 of 3 steps, 1 s" in terminal.getvalue())
    first, shown = terminal.getvalue().split("\n", 1)
    assert first == "\r\x1b[Kascend_graph: compiling answer (once) …"
    assert shown.startswith("\r\x1b[Kascend_graph: [########................] 1 of 3 steps")
    assert shown.endswith("\r\x1b[Kascend_graph: compiling answer took 1 s\n")


def test_two_works_at_once_draw_no_bars(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setattr("ascend_graph.compilation.progress.QUIET_SECONDS", 0.1)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with announced("compiling one", "", cache), announced("compiling two", "", cache):
        time.sleep(1.5)
    assert "[#" not in terminal.getvalue()
    assert "[." not in terminal.getvalue()


class Terminal(io.StringIO):
    """Text that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def waiting(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ascend_graph.compilation.waiting", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_waiting_shows_the_output_of_what_fails_alone() -> None:
    done = waiting("saying it", "sh", "-c", "echo said")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    failed = waiting("saying it", "sh", "-c", "echo error: said; exit 3")
    assert failed.returncode == 1
    first, second, last = failed.stderr.splitlines()
    assert (first, second) == ("error: saying it failed:", "error: said")
    assert Path(last.rpartition(" ")[2]).read_text() == "error: said\n"
    said = [
        "\N{MULTIPLICATION SIGN} Building did not run.",
        "[1/2] c++ a.cpp",
        "FAILED: a.o",
        "c++ a.cpp",
        "a.cpp:1:2: error: a",
    ]
    built = "\n    ".join(["  error: subprocess-exited-with-error", *said])
    by_pip = waiting("building", "sh", "-c", f"echo '{built}'; exit 1")
    assert by_pip.stderr.splitlines()[:2] == ["error: building failed:", "    a.cpp:1:2: error: a"]
    absent = waiting("saying it", "no-such-program")
    assert (
        absent.stderr
        == "error: saying it: no-such-program does not start: No such file or directory; install it, or correct PATH\n"
    )
    assert waiting("alone").returncode == 2


def test_waiting_does_the_same_work_in_one_directory_once_at_a_time(tmp_path: Path) -> None:
    """As two ``make setup`` in one tree do."""
    command = [sys.executable, "-m", "ascend_graph.compilation.waiting", "setting up", "sh", "-c"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    both = [
        subprocess.Popen([*command, "mkdir busy && sleep 0.5 && rmdir busy"], cwd=tmp_path, env=environment)
        for _ in range(2)
    ]
    assert [one.wait() for one in both] == [0, 0]


def test_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert jobs() >= 1
    monkeypatch.setenv("MAX_JOBS", "3")
    assert jobs() == 3


def test_dependency_files_are_read_with_every_character_of_a_name() -> None:
    rule = "0.o: /a/b.cpp \\\n /with\\ space/x.h /price$$/y.h \\\n  /hash\\#/z.h /中/w.h\n"
    assert [str(path) for path in files_of_rule(rule)] == [
        "/a/b.cpp",
        "/with space/x.h",
        "/price$/y.h",
        "/hash#/z.h",
        "/中/w.h",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py"], "file 'missing.py' was not found"),
        (["-m", "no_such_module_here"], "module 'no_such_module_here' was not found"),
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
            (site / name).mkdir(parents=True, exist_ok=True)
            (site / name / "__init__.py").touch()
            information = site / f"{name}-{number}.dist-info"
            information.mkdir(exist_ok=True)
            (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n")
            (information / "RECORD").write_text(record)
        code = "from ascend_graph.compilation import torch_library; print(torch_library('l', []).key())"
        environment = {**os.environ, "PYTHONPATH": str(site)}
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
        ).stdout

    first = key("first", "2.13.0", "sha256=a")
    assert key("first", "2.13.0", "sha256=a") == first
    assert key("elsewhere", "2.13.0", "sha256=a") != first  # the library finds PyTorch's by their place
    assert key("rebuilt", "2.13.0", "sha256=b") != first
    assert key("post", "2.13.0.post1", "sha256=a") != first


def test_a_machine_without_a_compiler_takes_what_was_compiled_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = tmp_path / "compilers_own.h"
    header.write_text("#define VALUE 42\n")
    library = replace(answering(tmp_path, "VALUE", include='#include "compilers_own.h"'), depends_on=("torch 1",))
    made = library.build()
    header.unlink()  # as the compiler's own headers are
    monkeypatch.setenv("PATH", str(tmp_path))
    assert library.cached() == made
    assert answer(library.build()) == 42
    with pytest.raises(BuildError, match=r"no C\+\+ compiler"):
        replace(library, depends_on=("torch 2",)).build()
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(BuildError, match="looked for no-such-compiler"):
        library.cached()


def test_a_library_is_the_same_inside_and_outside_the_host_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launcher adds directories of its toolkit; what was compiled before is found, others' still count."""
    library = answering(tmp_path / "source")
    outside = library.key()
    environment = host_environment(host_environment(os.environ, None), None)
    assert environment["CPLUS_INCLUDE_PATH"]
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", environment["CPLUS_INCLUDE_PATH"])
    assert library.key() == outside
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", f"{tmp_path}:{environment['CPLUS_INCLUDE_PATH']}")
    assert library.key() != outside


def test_a_launcher_in_a_launcher_adds_nothing() -> None:
    once = host_environment(os.environ, None)
    assert host_environment(once, None) == once

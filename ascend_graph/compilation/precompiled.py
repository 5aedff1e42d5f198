"""Precompiled headers for preprocessed sources: the headers that a source includes first are parsed by g++ once.

A source is preprocessed as always. The text of the headers at its beginning is then taken out, and g++ loads its own
memory of them (``#pragma GCC pch_preprocess``) before it compiles the rest. The text itself is the key, so no rule about
macros or include directories is needed: a macro that changes a header makes another key.

A precompiled header is made when a text is compiled for the second time. Only g++ reads preprocessed text in this way;
sources for other compilers are compiled whole, as is a source for which anything goes wrong.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ascend_graph.compilation.cache import cache_directory

#: Characters of preprocessed headers below which loading them costs as much as parsing them, and above which the
#: precompiled header is too large (PyTorch's headers make 500 MB).
_SMALLEST, _LARGEST = 300_000, 8_000_000
#: Precompiled headers that the cache keeps, the last used ones; each has about 25 times the size of its text.
_MOST = 16
_MARKER = re.compile(r'^# (\d+) "((?:[^"\\\n]|\\.)*)"((?: \d)*)$', re.MULTILINE)
_NAME = "ascend_graph_headers"


@dataclass(frozen=True, slots=True)
class SplitSource:
    """Preprocessed source as its first headers and the rest; ``rest`` alone is not valid without them."""

    headers: str
    rest: str


@dataclass(slots=True)
class _File:
    """File on the include stack, with the line that is read."""

    name: str
    line: int
    stable: bool


def split(text: str, directories: Sequence[str]) -> SplitSource:
    """Take the text of the headers at the beginning out of a preprocessed source.

    Args:
        text: The output of the preprocessor, with line markers.
        directories: Directories of stable headers, besides those of the system; each ends with a slash.

    Returns:
        The headers up to the first text of another file, independent of that file's name. They are empty if the source
        begins with its own text.

    >>> text = '# 1 "k.cpp"\\n# 1 "/api/a.h" 1\\nint a;\\n# 2 "k.cpp" 2\\n\\nint b;\\n'
    >>> split(text, ["/api/"])
    SplitSource(headers='# 1 "/api/a.h" 1\\nint a;\\n# 1 "ascend_graph_headers" 2\\n', rest='# 2 "k.cpp"\\n\\nint b;\\n')
    """
    prefixes = tuple(directories)
    stack: list[_File] = []
    headers: list[str] = []
    region = -1  # start of the text of a stable header that an unstable file includes
    outside: list[_File] = []  # the stack before that header
    markers = _MARKER.finditer(text)
    found = next(markers, None)
    while found is not None:
        following = next(markers, None)
        end = following.start() if following is not None else len(text)
        line, name, flags = int(found[1]), found[2], found[3].split()
        stable = "3" in flags or name.startswith(prefixes)
        if "2" in flags and len(stack) > 1:
            if region >= 0 and len(stack) - 1 == len(outside):
                headers.append(f'{text[region : found.start()]}# 1 "{_NAME}" 2\n')
                region = -1
            stack.pop()
            stack[-1].name, stack[-1].line = name, line
        elif "1" in flags or not stack:
            if region < 0 and stable and stack:
                region, outside = found.start(), [_File(one.name, one.line, False) for one in stack]
            elif region >= 0 and not stable:
                return _cut(headers, outside, text[region:])
            stack.append(_File(name, line, stable))
        else:
            stack[-1].name, stack[-1].line = name, line
        if region < 0 and text[found.end() : end].strip():
            return _cut(headers, stack, text[found.end() + 1 :])
        stack[-1].line += text.count("\n", found.end() + 1, end)
        found = following
    return _cut(headers, outside if region >= 0 else stack, text[region:] if region >= 0 else "")


def _cut(headers: Sequence[str], stack: Sequence[_File], rest: str) -> SplitSource:
    """Return the two parts; the rest begins with markers that enter its files again."""
    markers = (f'# {file.line} "{file.name}"{" 1" if index else ""}\n' for index, file in enumerate(stack))
    return SplitSource("".join(headers), "".join(markers) + rest)


#: Options of the preprocessor, joined with their values or before them.
_FOR_PREPROCESSOR = ("-isystem", "-idirafter", "-iquote", "-include", "-imacros", "-I", "-D", "-U")
_DEPENDENCIES, _DEPENDENCY_FILES = ("-MD", "-MMD", "-MP"), ("-MF", "-MT", "-MQ")


def for_preprocessed(options: Sequence[str]) -> list[str]:
    """Return the options that concern the compilation of a preprocessed source; of optimization levels the last.

    >>> for_preprocessed(["-O2", "-DNAME=1", "-I", "include", "-isystem/usr/local/include", "-MD", "-MF", "a.d", "-fPIC"])
    ['-O2', '-fPIC']
    """
    kept: list[str] = []
    rest = iter(options)
    for option in rest:
        if option in (*_FOR_PREPROCESSOR, *_DEPENDENCY_FILES):
            next(rest, None)
        elif option not in _DEPENDENCIES and not option.startswith(_FOR_PREPROCESSOR):
            kept.append(option)
    levels = ["-O0", *(option for option in kept if option.startswith("-O"))]  # the first is what no option says
    return [levels[-1], *(option for option in kept if not option.startswith("-O"))]


def _is_of_the_source(said: str) -> bool:
    """Return whether g++ says that a source is wrong, not that it fails itself or was told to refuse a warning.

    >>> _is_of_the_source("k.asc:3:5: error: 'x' was not declared"), _is_of_the_source("internal compiler error: …")
    (True, False)
    """
    return ": error: " in said and "internal compiler error" not in said and "[-Werror" not in said


def is_gcc(version: str) -> bool:
    """Return whether a compiler is GCC, by the text that its ``--version`` prints."""
    return "Free Software Foundation" in version


class PrecompiledHeaders:
    """Precompiled headers in the cache, for one compiler.

    Args:
        compiler: The command of a GCC.
        version: The text that its ``--version`` prints.
        directory: Their directory; the user's cache by default.
    """

    def __init__(self, compiler: Sequence[str], version: str, directory: Path | None = None) -> None:
        self._compiler, self._version = tuple(compiler), version
        self._directory = directory or cache_directory() / "precompiled"

    def compile(
        self, source: SplitSource, options: Sequence[str], target: Path, scratch: Path, translate: Callable[[str], str]
    ) -> tuple[bool, str] | None:
        """Compile a source with its headers' precompiled form.

        Args:
            source: The source, whose rest is translated already.
            options: Options of the compile step, without the preprocessor's.
            target: The object to write.
            scratch: A directory for the rest of the source.
            translate: Called with the headers before they are compiled.

        Returns:
            Whether the source compiles, and the compiler's messages; None if it must be compiled whole: a cause of any
            kind but an error of the source.
        """
        with contextlib.suppress(OSError):
            header = self._header(source.headers, options, translate)
            if header is None:
                return None
            rest = scratch / f"{target.stem}.rest.ii"
            text = f'#pragma GCC pch_preprocess "{header}"\n{source.rest}'
            rest.write_text(text, encoding="utf-8", errors="surrogateescape")
            done = self._run([*options, "-x", "c++-cpp-output", "-c", str(rest), "-o", str(target)])
            said = done.stderr.decode(errors="replace")
            if done.returncode == 0:
                os.utime(header)
                return True, said
            if header.name in said and header.exists():  # it is invalid; otherwise the source has an error
                header.with_suffix(".refused").touch()
                header.unlink()
            elif _is_of_the_source(said):
                return False, said
        return None

    def _path(self, headers: str, options: Sequence[str]) -> Path:
        digest = hashlib.sha256()
        for text in (*self._compiler, self._version, *options, headers):
            digest.update(text.encode(errors="surrogateescape") + b"\0")
        return self._directory / f"{digest.hexdigest()[:32]}.gch"

    def _header(self, headers: str, options: Sequence[str], translate: Callable[[str], str]) -> Path | None:
        """Return a precompiled header; make it if its text was seen before."""
        if not _SMALLEST <= len(headers) <= _LARGEST:
            return None
        path = self._path(headers, options)
        if path.exists():
            return path
        seen = path.with_suffix(".seen")
        if path.with_suffix(".refused").exists():
            return None
        if not seen.exists():
            self._directory.mkdir(parents=True, exist_ok=True)
            seen.touch()
            return None
        with _free(path.with_suffix(".lock")) as free:
            if not free or path.exists():  # another process makes it, or has just made it
                return path if path.exists() else None
            return self._make(path, translate(headers), options)

    def _make(self, path: Path, text: str, options: Sequence[str]) -> Path | None:
        with tempfile.TemporaryDirectory(prefix="making-", dir=self._directory) as directory:
            source, made = Path(directory) / "headers.ii", Path(directory) / "headers.gch"
            source.write_text(f'# 1 "{_NAME}"\n{text}', encoding="utf-8", errors="surrogateescape")
            done = self._run([*options, "-w", "-x", "c++-header", "-fpreprocessed", str(source), "-o", str(made)])
            if done.returncode != 0 or not made.is_file():
                path.with_suffix(".refused").touch()
                return None
            made.rename(path)
        self._prune(path)
        return path

    def _prune(self, new: Path) -> None:
        """Remove the precompiled headers that were not used for longest."""
        ages = {one: _modified(one) for one in self._directory.glob("*.gch") if one != new}
        for old in sorted(ages, key=ages.__getitem__, reverse=True)[_MOST - 1 :]:
            old.unlink(missing_ok=True)

    def _run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*self._compiler, *arguments], check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )  # fmt: skip


@contextlib.contextmanager
def _free(path: Path) -> Iterator[bool]:
    """Lock a file without waiting, and yield whether that succeeded: who cannot have the header compiles without it."""
    with path.open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0

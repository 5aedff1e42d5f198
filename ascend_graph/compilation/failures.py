"""Messages of failed builds: the helpful sentence first, then the compiler's errors, and a file with all output."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ascend_graph.compilation.toolchain import BuildError

#: Number of lines of a compiler's output that an error shows.
_SHOWN = 40

#: Debian packages of header libraries that sources include, by the beginning of the include.
_HEADER_PACKAGES = {
    "nlohmann/": "nlohmann-json3-dev",
    "Eigen/": "libeigen3-dev",
    "gtest/": "libgtest-dev",
    "Python.h": "python3-dev",
}
_NO_HEADER = re.compile(r"fatal error: (\S+): No such file")
#: Messages of compilers, and of PyTorch's headers, about an unknown C++ standard.
_NO_STANDARD = re.compile(
    r"(?:unrecognized command[- ]line option .-std=|invalid value '|\berror:? [^\n]*\b)(c\+\+(?:1[1-9]|2\d))\b",
    re.IGNORECASE,
)
_NO_MEMORY = re.compile(
    r"virtual memory exhausted|out of memory allocating|std::bad_alloc|Killed signal terminated program|Cannot allocate memory"
)
_NO_SPACE = re.compile("No space left on device|Disk quota exceeded")
_FAILED = re.compile(r"\s*FAILED: ")
#: Lines of ninja, and of pip, which indents what a build says.
_NO_DIAGNOSTIC = re.compile(r"\s*(?:ninja: |\[\d+/\d+\] |[\xd7│╰]|error: subprocess-exited-with-error)")
_ERROR = re.compile(r"\b(?:fatal )?error\b|undefined reference|cannot find -l|ld returned", re.IGNORECASE)


def build_error(what: str, output: str, name: str) -> BuildError:
    """Return the error of a failed build.

    Args:
        what: The work: ``compiling libcust_opapi``.
        output: All output of ninja and the compiler.
        name: The name of the compiled library, and of the file with the whole output.
    """
    said = list(_diagnostics(output.splitlines()))
    shown = _selected(said)
    lines = [f"{what} failed{f'. {hint}' if (hint := _hint(output)) else ':'}", *shown]
    if (file := _kept(name, output)) is not None:
        lines.append(f"All that the compiler says is in {file}")
    error = BuildError("\n".join(lines))
    error.may_go_on = bool(_NO_MEMORY.search(output)) and not _NO_SPACE.search(output)
    return error


def _diagnostics(lines: Sequence[str]) -> Iterator[str]:
    """Yield the compiler's output, without the lines of ninja and pip and the commands that ninja repeats."""
    is_command = False
    for line in lines:
        if is_command:
            is_command = False
        elif _FAILED.match(line):
            is_command = True  # the command follows, some screens of it
        elif line.strip() and not _NO_DIAGNOSTIC.match(line):
            yield line.rstrip()


def _selected(lines: Sequence[str]) -> list[str]:
    """Return all lines, or if they are many the first ones from the first error on."""
    if len(lines) <= _SHOWN:
        return list(lines)
    first = next((n for n, line in enumerate(lines) if _ERROR.search(line)), max(len(lines) - _SHOWN, 0))
    chosen = list(lines[first : first + _SHOWN])
    left = len(lines) - len(chosen)
    return [*chosen, f"… and {left} lines"] if left else chosen


def _kept(name: str, output: str) -> Path | None:
    """Write the whole output to a file of its own; return None if the temporary directory cannot hold it."""
    readable = re.sub(r"[^\w.+-]", "_", name)
    try:
        with tempfile.NamedTemporaryFile(
            "w",
            encoding="utf-8",
            prefix=f"ascend-graph-{readable}-",
            suffix=".log",
            delete=False,
            errors="surrogateescape",
        ) as file:
            path = Path(file.name)
            try:
                file.write(output)
                file.flush()
            except OSError:
                path.unlink()
                return None
    except OSError:
        return None
    return path


def _hint(output: str) -> str:
    """Return advice on a compiler's errors, as far as the output shows the cause."""
    if _NO_SPACE.search(output):
        return "The disk is full: set ASCEND_GRAPH_CACHE to a directory on another"
    if (standard := _NO_STANDARD.search(output)) is not None:
        return (
            f"The installed torch asks for {standard[1].lower()}, which this compiler does not know: set CXX to a newer one, "
            "g++ 10 or clang++ 14"
        )
    if _NO_MEMORY.search(output):
        return "The compiler had too little memory: set MAX_JOBS=1, or to fewer than before; what is compiled is kept"
    return ". ".join(sorted({_where(header) for header in _NO_HEADER.findall(output)}))


def _where(header: str) -> str:
    """Return where to get a header that was not found."""
    for begin, package in _HEADER_PACKAGES.items():
        if header.startswith(begin):
            return f"{header} is in the package {package} of Debian and Ubuntu; a copy elsewhere is found by CPLUS_INCLUDE_PATH"
    return (
        f"{header} is not found: ascend-graph build takes -I DIR, and --cann DIR for a CANN toolkit or a checkout of its "
        "sources (opbase has atvoss), which headers are taken from"
    )

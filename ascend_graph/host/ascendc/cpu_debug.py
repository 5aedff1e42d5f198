"""Compiler launcher for CPU debugging: the build's own compiler, but ``bisheng`` for sources that define kernels.

CMake puts it before its C++ compiler, as ``find_package(tikicpulib)`` sets it up:
``bisheng --cpu-debug c++ -g -o kernel.o -c kernel.cpp``.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ascend_graph.errors import AscendGraphError
from ascend_graph.host.ascendc import command as command_line
from ascend_graph.host.ascendc import driver

#: Definition of a kernel: the body follows the parameters, unlike in a declaration.
_KERNEL = re.compile(r"\b__global__\b[^;{}]*\)\s*\{")


def compile_source(command: Sequence[str]) -> None:
    """Run the compiler's command, with the kernel compiler if its source defines a kernel.

    Args:
        command: the compiler, possibly after another launcher, and its arguments.

    Raises:
        SystemExit: a step fails, with its status.
        CompilerOptionError: the command line is incomplete.
    """
    first = next((index for index, word in enumerate(command) if word.startswith("-")), len(command))
    arguments = command[first:]
    parsed = command_line.parse(arguments)
    sources = [path for path, _ in parsed.sources.values()]
    if not parsed.compile_only or not any(map(defines_kernel, sources)):
        _start(command[:first], [word for word in arguments if not command_line.is_for_device(word)])
    with tempfile.TemporaryDirectory(prefix="bisheng-") as headers:
        driver.run(["-x", "asc", f"--launch-stubs={headers}", *arguments])


def defines_kernel(source: Path) -> bool:
    """Return whether a source's own text defines a function marked ``__global__``."""
    return source.is_file() and _KERNEL.search(source.read_text(encoding="utf-8", errors="replace")) is not None


def _start(compiler: Sequence[str], arguments: Sequence[str]) -> NoReturn:
    if not compiler:
        raise command_line.CompilerOptionError(
            "bisheng: --cpu-debug: no compiler is named; expected: --cpu-debug c++ OPTION…"
        )
    os.execvp(compiler[0], [*compiler, *arguments])


def main() -> None:
    """Run this process's command line; print errors as a compiler does and exit with its status."""
    try:
        compile_source(sys.argv[1:])
    except AscendGraphError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()

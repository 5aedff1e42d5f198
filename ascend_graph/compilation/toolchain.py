"""The compiler and ninja of this machine, and the variables that choose them."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from functools import cache

from ascend_graph.errors import AscendGraphError

#: Variables that change what a compiler does.
_COMPILER_VARIABLES = (
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "GCC_EXEC_PREFIX",
    "COMPILER_PATH",
    "CXXFLAGS",
    "LDFLAGS",
)


class BuildError(AscendGraphError):
    """Something cannot be compiled: a compiler is missing or rejects a source, or the cache cannot be written."""


def compiler() -> tuple[str, ...]:
    """The command of the C++ compiler: ``$CXX`` (which may have arguments), or the first of g++, c++ and clang++ on PATH.

    Raises:
        BuildError: there is none.
    """
    return _compiler(os.environ.get("CXX", ""), os.environ.get("PATH", ""))


@cache
def _compiler(chosen: str, path: str) -> tuple[str, ...]:
    try:
        candidates = [shlex.split(chosen)] if chosen.strip() else [["g++"], ["c++"], ["clang++"]]
    except ValueError as error:
        raise BuildError(
            f"CXX={chosen!r} is no command: {error}; write it as for a shell, such as CXX='ccache g++'"
        ) from None
    for program, *arguments in candidates:
        found = shutil.which(program, path=path or None)
        if found:
            return found, *arguments
    names = ", ".join(candidate[0] for candidate in candidates)
    raise BuildError(
        f"no C++ compiler: looked for {names} on PATH; install one with C++17 (on Debian: g++), or set CXX to its command"
    )


def options_of(variable: str) -> list[str]:
    """The options that ``$CXXFLAGS`` or ``$LDFLAGS`` adds to those of a library.

    Raises:
        BuildError: they are no words of a shell.
    """
    text = os.environ.get(variable, "")
    try:
        return shlex.split(text)
    except ValueError as error:
        raise BuildError(f"{variable}={text!r} is no list of options: {error}; write them as for a shell") from None


@cache
def compiler_version(command: tuple[str, ...]) -> str:
    """What a compiler says of itself, in one line.

    Raises:
        BuildError: it does not run.
    """
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        detail = (getattr(error, "stderr", "") or str(error)).strip().partition("\n")[0]
        raise BuildError(f"the compiler {shlex.join(command)} does not run: {detail}; set CXX to another") from None
    return done.stdout.partition("\n")[0]


def toolchain_key() -> tuple[str, ...]:
    """What a compiled file depends on besides its sources and flags: compiler, version, variables."""
    variables = (f"{name}={os.environ[name]}" for name in _COMPILER_VARIABLES if os.environ.get(name))
    return (*compiler(), compiler_version(compiler()), *variables)


def ninja() -> tuple[str, ...]:
    """The command of ninja.

    Raises:
        BuildError: it is not installed.
    """
    if importlib.util.find_spec("ninja") is not None:
        return sys.executable, "-m", "ninja"
    found = shutil.which("ninja")
    if found:
        return (found,)
    raise BuildError("ninja is not installed; install it with: pip install ninja")


def jobs() -> int:
    """How many compilers may run at a time: ``$MAX_JOBS``, or one for each processor.

    Raises:
        BuildError: the variable is no positive number.
    """
    text = os.environ.get("MAX_JOBS", "").strip()
    if not text:
        return len(os.sched_getaffinity(0))
    if not text.isdecimal() or int(text) < 1:
        raise BuildError(f"MAX_JOBS={text!r} is no number of compilers; write a number from 1, or unset it")
    return int(text)

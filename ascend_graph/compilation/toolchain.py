"""Compiler and ninja of this machine, and the variables that select them."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from ascend_graph.environment import host_directories
from ascend_graph.errors import AscendGraphError

#: Variables that change the behavior of a compiler.
_COMPILER_VARIABLES = (
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "GCC_EXEC_PREFIX",
    "COMPILER_PATH",
)


class BuildError(AscendGraphError):
    """Error of a failed compilation: a compiler is missing or rejects a source, or the cache cannot be written."""

    #: True if the same build, started again, may continue with the compiled objects: no source is at fault.
    may_go_on = False


class NoCompilerError(BuildError):
    """Error of a machine without a C++ compiler; libraries that were compiled ahead can be used."""


def compiler() -> tuple[str, ...]:
    """Return the C++ compiler command: ``$CXX`` with its arguments, or the first of g++, c++ and clang++ on PATH.

    Raises:
        BuildError: There is no compiler.
    """
    return _compiler(os.environ.get("CXX", ""), os.environ.get("PATH", ""))


@cache
def _compiler(chosen: str, path: str) -> tuple[str, ...]:
    try:
        candidates = [shlex.split(chosen)] if chosen.strip() else [["g++"], ["c++"], ["clang++"]]
    except ValueError as error:
        raise BuildError(
            f"CXX={chosen!r} is not a command: {error}; write it as for a shell, such as CXX='ccache g++'"
        ) from None
    for program, *arguments in candidates:
        found = shutil.which(program, path=path or None)
        if found:
            return found, *arguments
    names = ", ".join(candidate[0] for candidate in candidates)
    # A compiler that was chosen and is missing is a mistake; a machine without one may have compiled libraries.
    raise (BuildError if chosen.strip() else NoCompilerError)(
        f"no C++ compiler: looked for {names} on PATH; install one with C++17 (on Debian: g++), or set CXX to its command"
    )


def options_of(variable: str) -> list[str]:
    """Return the options that ``$CXXFLAGS`` or ``$LDFLAGS`` adds to those of a library.

    Raises:
        BuildError: The text cannot be split as a shell command.
    """
    text = os.environ.get(variable, "")
    try:
        return shlex.split(text)
    except ValueError as error:
        raise BuildError(f"{variable}={text!r} is not a list of options: {error}; write them as for a shell") from None


@cache
def compiler_version(command: tuple[str, ...]) -> str:
    """Return the first line of a compiler's version text.

    Raises:
        BuildError: It does not run.
    """
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        detail = (getattr(error, "stderr", "") or str(error)).strip().partition("\n")[0]
        raise BuildError(f"the compiler {shlex.join(command)} does not run: {detail}; set CXX to another") from None
    return done.stdout.partition("\n")[0]


def toolchain_key() -> tuple[str, ...]:
    """Return the inputs of a compiled file besides its sources and options: compiler, version, variables.

    Directories of the host toolkit are left out: the launcher adds them, so one library would be compiled once outside and
    once inside the host runtime. What the compiler reads of them is compared by itself.
    """
    values = {name: _without_toolkit(os.environ[name]) for name in _COMPILER_VARIABLES if os.environ.get(name)}
    return (*compiler(), compiler_version(compiler()), *(f"{name}={value}" for name, value in values.items() if value))


def _without_toolkit(value: str) -> str:
    toolkits = tuple(str(Path(directory) / "toolkit") for directory in host_directories())
    return ":".join(one for one in value.split(":") if not one.startswith(toolkits))


def ninja() -> tuple[str, ...]:
    """Return the command of ninja.

    Raises:
        BuildError: It is not installed.
    """
    if importlib.util.find_spec("ninja") is not None:
        return sys.executable, "-m", "ninja"
    found = shutil.which("ninja")
    if found:
        return (found,)
    raise BuildError("ninja is not installed; install it with: pip install ninja")


def jobs() -> int:
    """Return the number of compilers that may run at a time: ``$MAX_JOBS``, or one for each processor.

    Raises:
        BuildError: The variable is not a positive number.
    """
    text = os.environ.get("MAX_JOBS", "").strip()
    if not text:
        return len(os.sched_getaffinity(0))
    if not text.isdecimal() or int(text) < 1:
        raise BuildError(f"MAX_JOBS={text!r} is not a number of compilers; expected a number from 1, or unset it")
    return int(text)

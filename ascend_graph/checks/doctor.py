"""What of an installation works together, said without importing torch: Python, torch and torch_npu, the compiler, CANN."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ascend_graph.compilation import cache_directory, compiler
from ascend_graph.compilation.toolchain import compiler_version, ninja
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.toolkit import real_cann, toolkit_directory
from ascend_graph.versions import check, cxx_flags, installed


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was looked at, what was found, and whether something has to be done."""

    subject: str
    text: str
    is_wrong: bool = False


def examine(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Look at the installation that ``environment`` selects. Nothing is imported, compiled or written."""
    machine = platform.machine()
    known = machine in ("x86_64", "aarch64") and sys.maxsize > 2**32
    library = " ".join(platform.libc_ver()) or "a C library that is not glibc"
    python = f"{platform.python_version()}, {machine}, {library}"
    if not known or "glibc" not in library:
        yield Finding("Python", f"{python}: torch_npu's wheels are for glibc on 64-bit x86_64 and aarch64", True)
    else:
        yield Finding("Python", python)
    yield from _torch(environment)
    yield _tried("C++ compiler", lambda: compiler_version(compiler()))
    yield _tried("ninja", lambda: " ".join(ninja()))
    yield Finding("cache", str(cache_directory()))
    yield _tried("host runtime", lambda: str(toolkit_directory()))
    cann = _tried("CANN", lambda: real_cann(environment) or "none: operators run on the host runtime")
    place = re.search(r"(?:=|^)(/\S*)", cann.text)
    version = cann_version(Path(place[1])) if place else None
    yield Finding(cann.subject, f"{cann.text}{f', version {version}' if version else ''}", cann.is_wrong)


def _torch(environment: Mapping[str, str]) -> Iterator[Finding]:
    packages = {name: installed(name) for name in ("torch", "torch_npu")}
    for name, package in packages.items():
        if package is None:
            yield Finding(name, "not installed; operators need it: pip install 'ascend-graph[torch]'", True)
        else:
            yield Finding(name, f"{package.version}, {package.directory}")
    torch = packages["torch"]
    if torch is not None:
        yield Finding("C++ for torch", " ".join(cxx_flags(torch.directory)))
    if None not in packages.values():
        yield _tried("torch and torch_npu", lambda: check(environment) or "tested together")


def _tried(subject: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(subject, look())
    except AscendGraphError as error:
        return Finding(subject, str(error), True)


def cann_version(home: Path) -> str | None:
    """The version of the CANN toolkit in a directory, as its own files say; None where none does."""
    places = (
        *sorted(home.glob("*-linux/ascend_toolkit_install.info")),
        home / "compiler/version.info",
        home / "version.info",
    )
    for place in places:
        try:
            found = re.search(r"^version=(\S+)", place.read_text(errors="replace"), re.IGNORECASE | re.MULTILINE)
        except OSError:
            continue
        if found is not None:
            return found[1].strip("[]")
    return None

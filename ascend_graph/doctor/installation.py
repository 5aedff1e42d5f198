"""Checks of an installation: Python, torch and torch_npu, the compiler, CANN. Nothing is imported or compiled."""

from __future__ import annotations

import ctypes.util
import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ascend_graph.compilation import compiler
from ascend_graph.compilation.toolchain import compiler_version, ninja
from ascend_graph.doctor.finding import Finding
from ascend_graph.doctor.libraries import Library, read_library
from ascend_graph.environment import real_cann, toolkit_directory
from ascend_graph.errors import AscendGraphError
from ascend_graph.sources.installed import cann_version
from ascend_graph.versions import Installed, check, cxx_flags, installed, release

#: Libraries of the two packages with the highest system requirements; torch's largest needs no more and is slow to read.
_LIBRARIES = {
    "torch": ("lib/libc10.so", "lib/libtorch_python.so"),
    "torch_npu": ("lib/libtorch_npu.so",),
}


def installation(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield findings about Python, torch, torch_npu and their system requirements, compilers, host runtime and CANN."""
    machine = platform.machine()
    known = machine in ("x86_64", "aarch64") and sys.maxsize > 2**32
    name, number = platform.libc_ver()
    library = f"glibc {number}" if name == "glibc" else "a C library that is not glibc"
    python = f"{platform.python_version()}, {machine}, {library}"
    if not known or name != "glibc":
        yield Finding(
            "Python",
            f"{python}: torch_npu's wheels are for glibc on 64-bit x86_64 and aarch64",
            True,
            "use such a machine, or an image of one: docker run --platform linux/amd64 …",
        )
    else:
        yield Finding("Python", python)
    packages = {name: installed(name) for name in ("torch", "torch_npu")}
    yield from _torch(packages, environment)
    yield from _abi(packages, environment)
    yield tried("C++ compiler", lambda: compiler_version(compiler()), "apt-get install g++  # or: export CXX=COMMAND")
    yield tried("ninja", lambda: " ".join(ninja()), "pip install ninja")
    yield tried("host runtime", lambda: str(toolkit_directory()), "pip install --force-reinstall ascend-graph")
    cann = tried("CANN", lambda: real_cann(environment) or "none: operators run on the host runtime")
    place = re.search(r"(?:=|^)(/.*)", cann.text)
    version = cann_version(Path(place[1])) if place else None
    yield Finding(cann.subject, f"{cann.text}{f', version {version}' if version else ''}", cann.is_wrong, cann.fix)


def tried(subject: str, look: Callable[[], str], fix: str = "") -> Finding:
    """Return a finding with the result of ``look``, or with its error and ``fix``."""
    try:
        return Finding(subject, look())
    except AscendGraphError as error:
        return Finding(subject, str(error), True, fix)


def _torch(packages: Mapping[str, Installed | None], environment: Mapping[str, str]) -> Iterator[Finding]:
    for name, package in packages.items():
        if package is None:
            fix = "pip install 'ascend-graph[torch]'"
            yield Finding(name, f"not installed; operators need it: {fix}", True, fix)
        else:
            yield Finding(name, f"{package.version}, {package.directory}")
    torch, torch_npu = packages["torch"], packages["torch_npu"]
    if torch is not None:
        yield Finding("C++ for torch", " ".join(cxx_flags(torch.directory)))
    if torch is not None and torch_npu is not None:
        number = release(torch_npu.version)
        yield tried(
            "torch and torch_npu",
            lambda: check(environment) or "tested together",
            f"pip install torch=={number} torch_npu=={torch_npu.version} --index-url PYTORCHS_CPU_WHEELS --extra-index-url "
            "https://pypi.org/simple",
        )


def _abi(packages: Mapping[str, Installed | None], environment: Mapping[str, str]) -> Iterator[Finding]:
    """Check the C and C++ libraries that a process would load against what torch and torch_npu need."""
    asked: dict[str, tuple[tuple[int, ...], str]] = {}
    for name, files in _LIBRARIES.items():
        package = packages[name]
        for library in filter(None, (read_library(package.directory / f) for f in files) if package else ()):
            if not library.is_for_this_machine:
                text = f"{library.path} is for {library.machine}; this machine is {platform.machine()}"
                yield Finding(name, text, True, f"pip install --force-reinstall --no-cache-dir {name}")
            for interface, version in library.interfaces.items():
                asked[interface] = max(asked.get(interface, ((), "")), (version, library.path.name))
    provided = standard_library(environment)
    if not asked or provided is None:
        return
    offered = dict(provided.interfaces) | {"GLIBC": _system_version()}
    missing = [
        f"{library} needs {interface}_{_text(version)}, and there is {interface}_{_text(offered.get(interface, ()))}"
        for interface, (version, library) in sorted(asked.items())
        if offered.get(interface) and version > offered[interface]
    ]
    needs = ", ".join(f"{i}_{_text(v)}" for i, (v, _) in sorted(asked.items()))
    if not missing:
        yield Finding("C++ library", f"{provided.path}; torch and torch_npu need {needs}")
        return
    yield Finding(
        "C++ library",
        f"{provided.path}: {'; '.join(missing)}",
        True,
        "a newer system or image, for a C library cannot be added to one"
        if any("GLIBC_" in text for text in missing)
        else 'export LD_LIBRARY_PATH="$(dirname "$(g++ -print-file-name=libstdc++.so.6)"):$LD_LIBRARY_PATH"',
    )


def standard_library(environment: Mapping[str, str]) -> Library | None:
    """Return the C++ library that a Python process with this environment loads, or None."""
    named = environment.get("LD_LIBRARY_PATH", "").split(":")
    triplet = f"{platform.machine()}-linux-gnu"
    system = [f"/lib/{triplet}", f"/usr/lib/{triplet}", "/lib64", "/usr/lib64", "/usr/lib"]
    name = ctypes.util.find_library("stdc++") or "libstdc++.so.6"
    for directory in (*filter(None, named), f"{sys.base_prefix}/lib", *system):
        found = read_library(Path(directory) / name)
        if found is not None:
            return found
    return None


def _system_version() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", platform.libc_ver()[1]))


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))

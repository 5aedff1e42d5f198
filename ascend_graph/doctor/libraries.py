"""Shared libraries read as ELF files: defined and undefined symbols, and target machine. Nothing is loaded."""

from __future__ import annotations

import functools
import mmap
import platform
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

#: Machines that NPUs exist for, by e_machine.
_MACHINES = {62: "x86_64", 183: "aarch64"}
_SYMBOLS, _DYNAMIC = 11, 6  # SHT_DYNSYM, SHT_DYNAMIC
_NEEDED = 1  # DT_NEEDED
#: Maximum length of a name; a longer one is damage.
_LONGEST_NAME = 1 << 16
_VERSIONS = re.compile(rb"\0((GLIBCXX|CXXABI|GLIBC)_(\d+(?:\.\d+)*))(?=\0)")


@dataclass(frozen=True, slots=True)
class Library:
    """Shared library (ELF, 64 bits, little endian)."""

    path: Path
    #: Machine: ``x86_64``, ``aarch64``, or the number of another one.
    machine: str
    #: Names of the libraries that it is linked to.
    needed: tuple[str, ...]
    defined: frozenset[str]
    #: Symbols that other libraries have to define.
    undefined: frozenset[str]
    #: Newest version that it names of each compiler or system interface, needed or provided.
    interfaces: Mapping[str, tuple[int, ...]]

    @property
    def is_for_this_machine(self) -> bool:
        """True if this machine can load it."""
        return self.machine == platform.machine()


def read_library(path: Path) -> Library | None:
    """Read a library's file; return None if it does not exist or is not a shared library."""
    try:
        status = path.stat()
    except OSError:
        return None
    return _read(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=64)
def _read(path: Path, _changed: int, _size: int) -> Library | None:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _parse(path, data) if data[:6] == b"\x7fELF\x02\x01" else None
    except (OSError, ValueError, struct.error, IndexError, OverflowError):  # unreadable, empty, cut off, or damaged
        return None


def _parse(path: Path, data: mmap.mmap) -> Library:
    (machine,) = struct.unpack_from("<H", data, 18)
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    # Of a section: its type, its place, its length, and the section with its names.
    sections = [struct.unpack_from("<4xI16xQQI", data, table + size * n) for n in range(count)]
    defined, undefined, needed = set(), set(), []
    versions: dict[str, tuple[int, ...]] = {}
    for kind, start, length, link in sections:
        if kind not in (_SYMBOLS, _DYNAMIC):
            continue
        _, names_at, names_size, _ = sections[link]
        names, content = data[names_at : names_at + names_size], data[start : start + length]

        def name(offset: int, names: bytes = names) -> str:
            return names[offset : names.index(b"\0", offset, offset + _LONGEST_NAME)].decode(errors="replace")

        if kind == _DYNAMIC:
            needed += [name(value) for tag, value in struct.iter_unpack("<qQ", content) if tag == _NEEDED]
            continue
        versions = _newest((found[2].decode(), found[3].decode()) for found in _VERSIONS.finditer(names))
        for offset, info, section in struct.iter_unpack("<IBxH16x", content):
            is_weak = info >> 4 == 2
            if offset and section:
                defined.add(name(offset))
            elif offset and not is_weak:
                undefined.add(name(offset))
    return Library(
        path,
        _MACHINES.get(machine, f"machine {machine}"),
        tuple(needed),
        frozenset(defined),
        frozenset(undefined),
        versions,
    )


def _newest(versions: Iterable[tuple[str, str]]) -> dict[str, tuple[int, ...]]:
    newest: dict[str, tuple[int, ...]] = {}
    for interface, text in versions:
        newest[interface] = max(newest.get(interface, ()), tuple(map(int, text.split("."))))
    return newest


def functions_of(library: Library) -> frozenset[str]:
    """Return the aclnn functions of a library: those with both phases defined."""
    phase = "GetWorkspaceSize"
    names = {name for name in library.defined if name.startswith("aclnn")}
    return frozenset(name for name in names if f"{name}{phase}" in names)

"""Native libraries of a wheel: what each needs that neither the wheel nor this machine's host runtime has."""

from __future__ import annotations

import os
import platform
import re
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from ascend_graph.doctor.libraries import Library, read_library
from ascend_graph.environment import toolkit_directory
from ascend_graph.versions import installed

_PYTHON = re.compile(r"_?Py[A-Z_]\w*$")
_LIBRARY = re.compile(r"\.so(\.\d+)*$")
#: Namespaces of PyTorch and torch_npu in mangled names.
_TORCH = re.compile(r"(2at|3c10|4c10d|5torch|6caffe2|6at_npu|9torch_npu|8pybind11)(?=\d|[A-Z])|^THP")
#: Namespaces of LLVM's C++ standard library (``std::__1``) in mangled names; the host's C++ is libstdc++.
_LIBCXX = re.compile(r"St\d+__(?:n?d?k?1)")
_SYSTEM = (
    "libc.so.6",
    "libm.so.6",
    "libstdc++.so.6",
    "libgcc_s.so.1",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
)
_LINKED_TORCH = re.compile(r"lib(torch|c10)(_\w+)?\.so$")
_OPERATORS = "_ZN5torch7LibraryC"  # torch::Library's constructor, which TORCH_LIBRARY calls
_EXTENSION = "PyInit_"

#: Roles of libraries by name: a path's last part, and the part of an operator package that it belongs to.
_ROLES = (
    ("libcust_opapi", "aclnn functions"),
    ("libcust_opmaster", "tiling"),
    ("liboptiling", "tiling"),
    ("libcust_opsproto", "prototypes"),
    ("libcust_op_proto", "prototypes"),
    ("_parsers", "framework parser"),
    ("aicpu_kernels", "AI CPU kernels"),
)


@dataclass(frozen=True, slots=True)
class LibraryFacts:
    """Facts about one native library of a wheel."""

    path: str
    #: Role: ``torch library``, ``Python extension``, a part of an operator package, or ``library``.
    role: str
    machine: str
    #: Undefined symbols that neither the wheel, nor the host runtime, nor a linked library of this machine defines.
    missing: tuple[str, ...]
    #: Undefined symbols of PyTorch and torch_npu that the installed ones do not have; None if they are not installed.
    missing_torch: tuple[str, ...] | None
    #: Linked libraries that are neither in the wheel nor on this machine.
    missing_libraries: tuple[str, ...]
    #: ABI of ``std::string`` in its undefined symbols: ``cxx11``, ``old``, ``both``, or empty.
    strings: str
    #: Sentences about an ABI that this machine cannot serve.
    abi: tuple[str, ...]

    @property
    def loads(self) -> bool:
        """True if nothing that the library needs is missing."""
        return not (self.missing or self.missing_torch or self.missing_libraries or self.abi)


class AvailableSymbols:
    """Symbols and libraries that this machine has: the host runtime's, and those of PyTorch and torch_npu."""

    @cached_property
    def host(self) -> frozenset[str]:
        """Symbols that the host runtime's libraries define."""
        return _defined(_libraries_in(toolkit_directory() / "lib64"))

    @cached_property
    def torch(self) -> frozenset[str]:
        """Symbols that the installed PyTorch and torch_npu define; empty if PyTorch is not installed."""
        if installed("torch") is None:
            return frozenset()
        return _defined(path for directory in self._torch_directories for path in _libraries_in(directory))

    @cached_property
    def system(self) -> frozenset[str]:
        """Symbols of the libraries that every C++ program links."""
        return frozenset().union(*(library.defined for library in self._system_libraries))

    @cached_property
    def interfaces(self) -> Mapping[str, tuple[int, ...]]:
        """Newest version of each interface of the C and C++ libraries, e.g. ``{"GLIBC": (2, 36)}``."""
        found: dict[str, tuple[int, ...]] = {}
        for library in self._system_libraries:
            for interface, version in library.interfaces.items():
                found[interface] = max(version, found.get(interface, ()))
        return found

    @cached_property
    def _system_libraries(self) -> list[Library]:
        return [library for name in _SYSTEM if (library := self.library(name)) is not None]

    @cached_property
    def uses_new_strings(self) -> bool:
        """True if the installed PyTorch was compiled with ``_GLIBCXX_USE_CXX11_ABI=1``."""
        return not any(string_abi(symbol) == "old" for symbol in self.torch if "5torch7LibraryC1E" in symbol)

    @cached_property
    def _torch_directories(self) -> list[Path]:
        found = [package.directory / "lib" for name in ("torch", "torch_npu") if (package := installed(name))]
        return [path for path in found if path.is_dir()]

    def library(self, name: str) -> Library | None:
        """Return a linked library of this machine, or None if it does not have it."""
        if name not in self._libraries:
            found = (read_library(directory / name) for directory in self._directories)
            self._libraries[name] = next((library for library in found if library is not None), None)
        return self._libraries[name]

    @cached_property
    def _libraries(self) -> dict[str, Library | None]:
        return {}

    @cached_property
    def _directories(self) -> list[Path]:
        multiarch = sysconfig.get_config_var("MULTIARCH") or f"{platform.machine()}-linux-gnu"
        roots = [Path(root) for root in ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")]
        python = [Path(place) for place in (sysconfig.get_config_var("LIBDIR"),) if place]
        given = [Path(place) for place in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if place]
        system = [*roots, *(root / multiarch for root in roots)]
        return [toolkit_directory() / "lib64", *self._torch_directories, *given, *python, *system]


def _libraries_in(directory: Path) -> list[Path]:
    return sorted(path for path in directory.glob("*.so*") if _LIBRARY.search(path.name))


def _defined(paths: Iterable[Path]) -> frozenset[str]:
    return frozenset().union(*(library.defined for library in map(read_library, paths) if library is not None))


def library_facts(root: Path, files: Iterable[PurePosixPath], machine: AvailableSymbols) -> tuple[LibraryFacts, ...]:
    """Return the facts about every shared library among the files of a wheel."""
    read: dict[PurePosixPath, Library] = {}
    for path in files:
        if _LIBRARY.search(path.name) and (library := read_library(root / path)) is not None:
            read[path] = library
    own = {path.name for path in read}
    return tuple(
        _facts(path, library, _own_symbols(path, library, read), own, machine) for path, library in read.items()
    )


def _own_symbols(path: PurePosixPath, library: Library, read: Mapping[PurePosixPath, Library]) -> frozenset[str]:
    """Return the symbols that the wheel itself defines for a library, directly or through what it links."""
    by_name: dict[str, list[PurePosixPath]] = {}
    for other in read:
        by_name.setdefault(other.name, []).append(other)
    waiting, seen, found = list(library.needed), {path}, set(library.defined)
    while waiting:
        for other in by_name.get(waiting.pop(), ()):
            if other not in seen:
                seen.add(other)
                found |= read[other].defined
                waiting += read[other].needed
    return frozenset(found)


def _facts(
    path: PurePosixPath, library: Library, own: frozenset[str], names: set[str], machine: AvailableSymbols
) -> LibraryFacts:
    linked = {name: machine.library(name) for name in library.needed if name not in names}
    is_torch = any(map(_LINKED_TORCH.match, library.needed)) or any(map(_TORCH.search, library.undefined))
    there = own.union(machine.host, machine.system, *(one.defined for one in linked.values() if one is not None))
    open_symbols = {
        symbol
        for symbol in library.undefined - there - (machine.torch if is_torch else frozenset())
        if not _PYTHON.match(symbol) and not _LIBCXX.search(symbol)
    }
    of_torch = {symbol for symbol in open_symbols if _TORCH.search(symbol)}
    strings = string_abi(*library.undefined)
    return LibraryFacts(
        str(path),
        _role(path, library, is_torch),
        library.machine,
        tuple(sorted(open_symbols - of_torch)),
        tuple(sorted(of_torch)) if not is_torch or machine.torch else None,
        tuple(sorted(name for name, found in linked.items() if found is None)),
        strings,
        tuple(_abi_problems(library, strings if is_torch and machine.torch else "", machine)),
    )


def _abi_problems(library: Library, strings: str, machine: AvailableSymbols) -> Iterable[str]:
    """Yield the reasons why this machine cannot load a library; ``strings`` is empty if it does not link PyTorch."""
    if not library.is_for_this_machine:
        yield f"compiled for {library.machine}; this machine is {platform.machine()}"
    if any(name.startswith(("libc++.", "libc++abi.")) for name in library.needed) or any(
        map(_LIBCXX.search, library.undefined)
    ):
        yield "compiled with libc++ (std::__1); PyTorch, torch_npu and the host runtime are compiled with libstdc++"
    for interface, version in library.interfaces.items():
        if version > (there := machine.interfaces.get(interface, version)):
            needed, has = (".".join(map(str, one)) for one in (version, there))
            yield f"needs {interface}_{needed}; this machine has {interface}_{has}"
    if strings == "old" and machine.uses_new_strings:
        yield "compiled with _GLIBCXX_USE_CXX11_ABI=0; the installed PyTorch is compiled with _GLIBCXX_USE_CXX11_ABI=1"


def _role(path: PurePosixPath, library: Library, is_torch: bool) -> str:
    for part, role in _ROLES:
        if part in path.name:
            return role
    is_extension = any(name.startswith(_EXTENSION) for name in library.defined)
    if any(name.startswith(_OPERATORS) for name in library.undefined):
        return "torch library"
    if is_extension:
        return "Python extension"
    return "library for PyTorch" if is_torch else "library"


def string_abi(*symbols: str) -> str:
    """Return the ABI of ``std::string`` in mangled names: ``cxx11``, ``old``, ``both``, or an empty text.

    >>> string_abi("_ZN2fe4BindERKSs"), string_abi("_ZN2at4BindENSt7__cxx1112basic_stringIcE"), string_abi("f")
    ('old', 'cxx11', '')
    """
    found = set()
    for symbol in symbols:
        if not symbol.startswith("_Z"):
            continue
        parts, grammar = _identifiers(symbol)
        if "__cxx11" in parts:
            found.add("cxx11")
        elif "Ss" in grammar:
            found.add("old")
    return "both" if len(found) == 2 else "".join(found)


def _identifiers(symbol: str) -> tuple[list[str], str]:
    """Return the identifiers of a mangled name, and the rest of it with a space in place of each."""
    parts, rest, position = [], [], 0
    for found in re.finditer(r"\d+", symbol):
        if found.start() < position:  # a digit of an identifier
            continue
        length = int(found[0][:6])
        rest.append(symbol[position : found.start()])
        parts.append(symbol[found.end() : found.end() + length])
        position = found.end() + length
    return parts, " ".join([*rest, symbol[position:]])


def readable(symbol: str) -> str:
    """Return the qualified name within a mangled name, without parameters; other names as they are.

    >>> readable("_ZN2fe13PlatFormInfos13GetLocalMemBwERKNS_12LocalMemTypeERm"), readable("memcpy_s")
    ('fe::PlatFormInfos::GetLocalMemBw', 'memcpy_s')
    """
    nested = re.match(r"_ZN[rVKRO]*((?:\d+[A-Za-z_]\w*)|)", symbol)
    if nested is None:
        single = re.match(r"_Z(\d+)", symbol)
        return symbol[single.end() :][: int(single[1][:6])] if single else symbol
    position, parts = nested.start(1), []
    while (length := re.match(r"\d{1,6}(?!\d)", symbol[position:])) is not None:
        begin = position + length.end()
        position = begin + int(length[0])
        parts.append(symbol[begin:position])
    special = {"C1": "constructor", "C2": "constructor", "D0": "destructor", "D1": "destructor", "D2": "destructor"}
    if (what := special.get(symbol[position : position + 2])) is not None:
        parts.append(what)
    elif symbol[position : position + 2] in ("aS", "ix"):
        parts.append("operator=" if symbol[position] == "a" else "operator[]")
    return "::".join(parts) or symbol

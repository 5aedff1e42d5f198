"""Checks of operator packages: the selected ones, their search order, and definitions that hide others."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ascend_graph.aclnn import AclnnFunction
from ascend_graph.aclnn.catalog import read_functions
from ascend_graph.aclnn.declaration import FIRST_PHASE
from ascend_graph.doctor.finding import Finding
from ascend_graph.doctor.libraries import Library, functions_of, read_library
from ascend_graph.doctor.wheels.contents import LIBRARY, PROTOTYPES
from ascend_graph.doctor.wheels.needs import AvailableSymbols, library_facts, readable
from ascend_graph.environment import is_active
from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import OpPrototype
from ascend_graph.prototypes.loading import read_prototypes
from ascend_graph.sources.installed import cann_version, named_packages, opp_roots, vendor_packages, version_in
from ascend_graph.versions import installed, release

#: Path in an operator package of the declarations of its aclnn functions.
HEADERS = Path("op_api/include")
_VARIABLE = "ASCEND_CUSTOM_OPP_PATH"


@dataclass(frozen=True, slots=True)
class Place:
    """Place that is searched for operators: an operator package, or CANN itself."""

    directory: Path
    #: Variable or directory that names it.
    source: str
    libraries: tuple[Library, ...]
    headers: Path
    version: str | None
    is_package: bool = True

    @property
    def functions(self) -> Mapping[str, Library]:
        """Callable aclnn functions, with the library of each."""
        return {name: library for library in reversed(self.libraries) for name in functions_of(library)}

    def declared(self) -> Mapping[str, AclnnFunction]:
        """Return the aclnn functions that its headers declare."""
        if not self.headers.is_dir():
            return {}
        try:
            return {function.name: function for function in read_functions(self.headers).functions}
        except AscendGraphError:
            return {}

    def prototypes(self) -> Mapping[str, OpPrototype]:
        """Return the prototypes of its operators."""
        directory = self.directory / PROTOTYPES
        if not directory.is_dir():
            return {}
        try:
            return {prototype.op_type: prototype for prototype in read_prototypes(directory).prototypes}
        except AscendGraphError:
            return {}


def places(environment: Mapping[str, str]) -> tuple[Place, ...]:
    """Return the places that are searched for operators, in order: existing packages, then CANN's own libraries."""
    found: dict[Path, Place] = {}
    named = [(path, _VARIABLE) for path in named_packages(environment)]
    for root in opp_roots(environment):
        named += [(path, f"{root}/vendors") for path in vendor_packages(root)]
    for path, source in named:
        if path.is_dir() and path.resolve() not in found:
            library = read_library(path / LIBRARY)
            libraries = () if library is None else (library,)
            version = version_in((path / "version.info",))
            found[path.resolve()] = Place(path, source, libraries, path / HEADERS, version)
    for home, source in _toolkits(environment):
        files = [home / "lib64/libopapi.so", *sorted((home / "lib64").glob("libaclnn_*.so"))]
        files += _parts(home) if _looks_in_parts() else []
        read = tuple(library for library in map(read_library, files) if library is not None)
        if read:
            found[home.resolve()] = Place(home, source, read, home / "include/aclnnop", cann_version(home), False)
            break
    return tuple(found.values())


def unsearched(environment: Mapping[str, str]) -> tuple[Library, ...]:
    """Return the parts of CANN's libopapi.so that the installed torch_npu is too old to search."""
    homes = [] if _looks_in_parts() else [home for home, _ in _toolkits(environment)]
    return tuple(library for home in homes[:1] for library in map(read_library, _parts(home)) if library is not None)


def _parts(home: Path) -> list[Path]:
    """Return the libraries for kinds of operators (``libopapi_nn.so``) that newer CANN versions have."""
    return sorted((home / "lib64").glob("libopapi_*.so"))


def _looks_in_parts() -> bool:
    package = installed("torch_npu")
    library = None if package is None else package.directory / "lib/libtorch_npu.so"
    try:
        return library is None or _mentions(library, library.stat().st_mtime_ns)
    except OSError:
        return True


@lru_cache(maxsize=1)
def _mentions(library: Path, changed: int) -> bool:
    return b"libopapi_" in library.read_bytes()


def _toolkits(environment: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Yield the directories that may have CANN's libraries and what names them, in the loader's order."""
    for entry in environment.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        if entry and (Path(entry) / "libopapi.so").is_file():
            yield Path(entry).parent, "LD_LIBRARY_PATH"
    for variable in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"):
        if environment.get(variable):
            yield Path(environment[variable]), variable


def packages(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield findings about each named or installed operator package: problems, and definitions that it hides."""
    yield from _named(environment)
    for root in opp_roots(environment):
        yield from _vendors(root)
    known = places(environment)
    for place in known:
        if place.is_package:
            yield from _package(place, environment)
    yield from _hidden(known)
    if not any(place.is_package for place in known):
        yield Finding("operator packages", f"none: {_VARIABLE} names none, and none is installed")


def _named(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield findings about problems of the variable that names packages."""
    value = environment.get(_VARIABLE, "")
    for separator in (";", ","):
        if separator in value:
            fix = f"export {_VARIABLE}={os.pathsep.join(part for part in value.split(separator) if part)}"
            yield Finding(_VARIABLE, f"{value}: paths are separated by {os.pathsep!r}, not {separator!r}", True, fix)
            return
    for path in named_packages(environment):
        if not path.is_absolute():
            yield Finding(
                _VARIABLE,
                f"{path} is relative: a process that works in another directory does not find it",
                True,
                f"export {_VARIABLE}={path.resolve()}",
            )
        if (path / LIBRARY).is_file():
            continue
        inside = sorted({found.parents[2] for found in path.glob(f"**/{LIBRARY}")}) if path.is_dir() else []
        if not path.exists():
            yield Finding(
                _VARIABLE, f"{path} does not exist", True, f"export {_VARIABLE}=PACKAGE  # with {LIBRARY} in it"
            )
        elif inside:
            fix = f"export {_VARIABLE}={os.pathsep.join(map(str, inside))}"
            yield Finding(_VARIABLE, f"{path} is not an operator package, but has some in it", True, fix)
        elif not (path / PROTOTYPES).is_dir():
            fix = f"ascend-graph build PROJECT -o {shlex.quote(str(path))}  # or name the package that was meant"
            yield Finding(_VARIABLE, f"{path} is not an operator package: {LIBRARY} is missing", True, fix)


def _vendors(root: Path) -> Iterator[Finding]:
    """Yield findings about installed packages that are not searched, and listed names without a package."""
    directory = root / "vendors"
    listed = [path.name for path in vendor_packages(root)]
    try:
        there = sorted(path.name for path in directory.iterdir() if path.is_dir())
    except OSError:
        return
    config = directory / "config.ini"
    order = "load_priority=" + ",".join([*(name for name in listed if name in there), *sorted({*there} - {*listed})])
    fix = f"sed -i 's/^load_priority.*/{order}/' {shlex.quote(str(config))}"
    if not config.is_file():
        if there:
            text = f"{config} does not exist: torch_npu finds none of {', '.join(there)}"
            yield Finding("vendors", text, True, f"echo {order} > {shlex.quote(str(config))}")
        return
    for name in there:
        if name not in listed and (directory / name / LIBRARY).is_file():
            text = (
                f"{directory / name} is installed, and load_priority of config.ini does not name it: it is not searched"
            )
            yield Finding("vendors", text, True, fix)
    for name in listed:
        if name not in there:
            yield Finding("vendors", f"{config} names {name}, which is not installed", True, fix)


def _package(place: Place, environment: Mapping[str, str]) -> Iterator[Finding]:
    callable_, declared, prototypes = place.functions, place.declared(), place.prototypes()
    what = [f"{len(callable_)} aclnn functions", f"{len(prototypes)} prototypes"]
    version = "" if place.version is None else f", for CANN {place.version}"
    yield Finding("operator package", f"{place.directory} ({place.source}{version}): {', '.join(what)}")
    for library in place.libraries:
        if not library.is_for_this_machine:
            yield Finding(
                "operator package",
                f"{library.path} is for {library.machine}; this machine is {platform.machine()}",
                True,
                f"ascend-graph build PROJECT -o {shlex.quote(str(place.directory))}  # or the author's package for {platform.machine()}",
            )
    yield from _unloadable(place)
    if place.libraries and (missing := _undefined(declared.values(), place.libraries, callable_)):
        text = (
            f"{place.headers} declares {', '.join(missing)}, and {place.libraries[0].path} does not have them: headers and library "
            "are of different builds"
        )
        yield Finding("operator package", text, True, "build and install the package anew, as a whole")
    home = environment.get("ASCEND_HOME_PATH")
    cann = cann_version(Path(home)) if home else None
    if place.version and cann and _series(place.version) != _series(cann):
        yield Finding(
            "operator package",
            f"{place.directory} was made with CANN {place.version}, and CANN {cann} is selected",
            True,
            f"build it with CANN {cann}, or source the set_env.sh of CANN {place.version}",
        )


def _undefined(
    declared: Iterable[AclnnFunction], libraries: Iterable[Library], callable_: Mapping[str, Library]
) -> list[str]:
    """Return the declared functions that no library defines.

    A variant of a function may have a first phase alone: the second phase is that of the function.
    """
    defined = frozenset().union(*(library.defined for library in libraries))
    return sorted(
        function.name
        for function in declared
        if function.name not in callable_
        and (function.has_second_phase or f"{function.name}{FIRST_PHASE}" not in defined)
    )


def _unloadable(place: Place) -> Iterator[Finding]:
    """Yield a finding if the host runtime lacks what the package's library needs; a CANN's libraries are not read."""
    if not (is_active() and place.libraries and place.libraries[0].is_for_this_machine):
        return
    for facts in library_facts(place.directory, [LIBRARY], AvailableSymbols()):
        if facts.loads:
            continue
        missing = sorted({readable(symbol) for symbol in (*facts.missing, *facts.missing_libraries)})
        reason = [
            *facts.abi,
            *([f"{len(missing)} symbols or libraries are missing, such as {missing[0]}"] if missing else []),
        ]
        yield Finding(
            "operator package",
            f"{place.libraries[0].path} does not load on the host runtime: {'; '.join(reason)}",
            True,
            "ascend-graph survey WHEEL  # lists what it misses; build its project with ascend-graph build PROJECT",
        )


def _series(version: str) -> tuple[str, ...]:
    """Return the numbers that compatible versions have in common."""
    return tuple(release(version).split(".")[:2])


def _hidden(known: tuple[Place, ...]) -> Iterator[Finding]:
    """Yield findings about functions and prototypes in several places: the used one, and whether the others differ."""
    used: dict[str, tuple[Place, AclnnFunction | None]] = {}
    shapes: dict[str, tuple[Place, OpPrototype]] = {}
    for place in known:
        declared = place.declared() if place.is_package else {}
        for name in sorted(place.functions):
            first, meant = used.setdefault(name, (place, declared.get(name)))
            if first is place:
                continue
            own = declared.get(name)
            differs = meant is not None and own is not None and not own.agrees_with(meant)
            text = f"{name} of {first.directory} hides that of {place.directory}"
            if differs:
                fix = f"export {_VARIABLE}={shlex.quote(str(place.directory))}:${_VARIABLE}  # if {place.directory} is meant; else remove it"
                yield Finding("hidden", f"{text}, which takes other parameters: {own}", True, fix)
            else:
                yield Finding("hidden", text)
        for name, prototype in (place.prototypes() if place.is_package else {}).items():
            other, wins = shapes.setdefault(name, (place, prototype))
            if other is not place and wins != prototype:
                text = f"REG_OP({name}) of {wins.place} hides another definition, {prototype.place}"
                fix = f"export {_VARIABLE}={shlex.quote(str(place.directory))}:${_VARIABLE}  # if {place.directory} is meant; else remove it"
                yield Finding("hidden", text, True, fix)

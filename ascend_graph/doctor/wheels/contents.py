"""Contents of a wheel, read as files: metadata, native libraries, operator packages and entry points."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import asdict, dataclass
from email.parser import HeaderParser
from pathlib import PurePosixPath
from typing import Any

from ascend_graph.doctor.libraries import functions_of, read_library
from ascend_graph.doctor.wheels.archive import OpenedWheel, WheelError
from ascend_graph.doctor.wheels.needs import AvailableSymbols, LibraryFacts, library_facts
from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes.loading import read_prototypes

#: Paths in an operator package of its aclnn functions and its prototypes.
LIBRARY = PurePosixPath("op_api/lib/libcust_opapi.so")
PROTOTYPES = PurePosixPath("op_proto/inc")
#: Directories of an operator package.
_PARTS = frozenset(["op_api", "op_proto", "op_impl"])
_BINARIES = re.compile(r"op_impl/ai_core/tbe/kernel/(?P<soc>[^/]+)/(?P<operator>[^/]+)/[^/]+\.o$")
_SOURCES = re.compile(r"op_impl/ai_core/tbe/[^/]+_impl/.*\.(?:cpp|asc|cce)$")
_OPERATORS = re.compile(r"op_impl/ai_core/tbe/config/(?P<soc>[^/]+)/.*ops-info\.json$")
_PYTHON_TAG = re.compile(r"(?:py|cp)(\d)(\d*)$")


@dataclass(frozen=True, slots=True)
class PackageFacts:
    """Facts about one operator package of a wheel."""

    path: str
    #: aclnn functions that its library defines with both phases.
    functions: tuple[str, ...]
    #: Prototypes that its headers declare.
    prototypes: tuple[str, ...]
    #: Operators that its configuration lists, by SoC.
    operators: dict[str, tuple[str, ...]]
    #: Numbers of binary kernels, by SoC.
    binaries: dict[str, int]
    #: Kernel sources (files that are compiled, not headers).
    sources: tuple[str, ...]

    @property
    def kernels(self) -> str:
        """Form of its kernels: ``sources``, ``binaries``, ``both``, or ``none``."""
        if self.sources:
            return "both" if self.binaries else "sources"
        return "binaries" if self.binaries else "none"

    @property
    def is_empty(self) -> bool:
        """True for a directory that is only named as a package's: headers of a kit, for instance."""
        return not (self.functions or self.prototypes or self.operators or self.binaries or self.sources)


@dataclass(frozen=True, slots=True)
class WheelSurvey:
    """Facts about one wheel, read without executing anything of it."""

    wheel: str
    name: str
    version: str
    #: Sentences about another Python version.
    python: tuple[str, ...]
    requires: tuple[str, ...]
    #: Modules that a program imports from it.
    modules: tuple[str, ...]
    #: Entry points: group, name and object.
    entry_points: tuple[tuple[str, str, str], ...]
    libraries: tuple[LibraryFacts, ...]
    packages: tuple[PackageFacts, ...]

    @property
    def missing(self) -> dict[str, int]:
        """Symbols that no library defines, with the number of libraries that need each, the most frequent first."""
        counts = Counter(symbol for library in self.libraries for symbol in library.missing)
        return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))

    def as_json(self) -> dict[str, Any]:
        """Return the value that ``--format json`` prints."""
        return {
            **{key: value for key, value in asdict(self).items() if key not in ("libraries", "packages")},
            "loadable": sum(library.loads for library in self.libraries),
            "missing": self.missing,
            "libraries": [{**asdict(one), "loads": one.loads} for one in self.libraries],
            "packages": [{**asdict(one), "kernels": one.kernels} for one in self.packages],
        }


def survey_wheel(wheel: OpenedWheel, machine: AvailableSymbols | None = None) -> WheelSurvey:
    """Read the facts about an opened wheel.

    Raises:
        WheelError: It has no metadata of a wheel.
    """
    metadata = HeaderParser().parsestr(wheel.text("METADATA"))
    if not metadata["Name"]:
        raise WheelError(
            f"{wheel.given}: not a wheel: a *.dist-info directory with METADATA was not found; "
            "expected a .whl file, an unpacked one, or the name of an installed distribution"
        )
    tags = HeaderParser().parsestr(wheel.text("WHEEL")).get_all("Tag") or []
    return WheelSurvey(
        wheel.given,
        metadata["Name"],
        metadata["Version"] or "",
        tuple(_python_problem(tags)),
        tuple(metadata.get_all("Requires-Dist") or ()),
        _modules(wheel),
        tuple(_entry_points(wheel.text("entry_points.txt"))),
        library_facts(wheel.root, wheel.files, machine or AvailableSymbols()),
        tuple(_packages(wheel)),
    )


def _python_problem(tags: Sequence[str]) -> Iterator[str]:
    """Yield a sentence if no tag of a wheel allows this Python version."""
    found = [(match, tag) for tag in tags for match in [_PYTHON_TAG.match(tag.split("-")[0])] if match]
    if found and not any(_allows(match, tag) for match, tag in found):
        versions = sorted({".".join(filter(None, match.groups())) for match, _ in found})
        yield f"made for Python {', '.join(versions)}; this is Python {sys.version_info[0]}.{sys.version_info[1]}"


def _allows(match: re.Match[str], tag: str) -> bool:
    major, minor = int(match[1]), int(match[2] or 0)
    if tag.startswith("py") or "-abi3-" in tag:
        return (major, minor) <= sys.version_info[:2] and major == sys.version_info[0]
    return (major, minor) == sys.version_info[:2]


def _modules(wheel: OpenedWheel) -> tuple[str, ...]:
    """Return the importable modules at a wheel's top."""
    found = set()
    for path in wheel.files:
        first, *rest = path.parts
        if not rest:
            name, _, suffix = first.partition(".")
            if suffix == "py" or (suffix.startswith("cpython-") and suffix.endswith(".so")) or suffix == "abi3.so":
                found.add(name)
        elif rest == ["__init__.py"]:
            found.add(first)
    own = {line.strip() for line in wheel.text("top_level.txt").splitlines()}
    return tuple(sorted(name for name in found if name.isidentifier() and (not own or name in own)))


def _entry_points(text: str) -> Iterator[tuple[str, str, str]]:
    parser = ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    try:
        parser.read_string(text)
    except ConfigError:
        return
    for group in parser.sections():
        for name, value in parser.items(group):
            yield group, name, value


def _packages(wheel: OpenedWheel) -> Iterator[PackageFacts]:
    inside: dict[PurePosixPath, list[PurePosixPath]] = {}
    for path in wheel.files:
        at = next((n for n, part in enumerate(path.parts[:-1]) if part in _PARTS), None)
        if at is not None:
            root = PurePosixPath(*path.parts[:at])
            inside.setdefault(root, []).append(path.relative_to(root))
    for root, files in sorted(inside.items()):
        if not (package := _package(wheel, root, files)).is_empty:
            yield package


def _package(wheel: OpenedWheel, root: PurePosixPath, files: Iterable[PurePosixPath]) -> PackageFacts:
    names = [str(path) for path in files]
    binaries = Counter(found["soc"] for name in names for found in [_BINARIES.search(name)] if found)
    operators: dict[str, tuple[str, ...]] = {}
    for name in names:
        if (found := _OPERATORS.search(name)) is not None:
            operators[found["soc"]] = _listed(wheel, root / name)
    library = read_library(wheel.root / root / LIBRARY)
    return PackageFacts(
        str(root),
        tuple(sorted(functions_of(library))) if library is not None else (),
        _prototypes(wheel, root),
        operators,
        dict(sorted(binaries.items())),
        tuple(sorted(name for name in names if _SOURCES.search(name))),
    )


def _prototypes(wheel: OpenedWheel, root: PurePosixPath) -> tuple[str, ...]:
    directory = wheel.root / root / PROTOTYPES
    if not directory.is_dir():
        return ()
    try:
        return tuple(sorted(one.op_type for one in read_prototypes(directory).prototypes))
    except (AscendGraphError, OSError):
        return ()


def _listed(wheel: OpenedWheel, path: PurePosixPath) -> tuple[str, ...]:
    try:
        content = json.loads((wheel.root / path).read_bytes())
    except (OSError, ValueError, RecursionError):
        return ()
    return tuple(sorted(content)) if isinstance(content, dict) else ()

"""Reading of a whole repository: its own files, without those of others."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ascend_graph.adoption.bound.extensions import read_extensions
from ascend_graph.adoption.cpp.definitions import CPP_SUFFIXES, read_cpp
from ascend_graph.adoption.known import Known
from ascend_graph.adoption.model import Findings, SourcePlace, relative
from ascend_graph.adoption.python.definitions import read_python
from ascend_graph.adoption.python.registered import leave_out_registered
from ascend_graph.adoption.yaml_definitions import read_yaml
from ascend_graph.errors import AscendGraphError
from ascend_graph.headers import read_headers
from ascend_graph.prototypes.loading import is_prototype_file
from ascend_graph.sources import Severity

#: Directories with the sources of others, or with what a build made.
_OTHERS = frozenset(
    {
        "third_party", "thirdparty", "third-party", "3rdparty", "3rd_party", "node_modules", "site-packages", "__pycache__", "venv",
    }
)  # fmt: skip
#: Directories whose operators are examples of tests.
_TESTS = frozenset({"test", "tests", "testing", "benchmark", "benchmarks", "ut", "st"})
#: Endings of files that may define operators.
_SOURCES = (*CPP_SUFFIXES, ".py", ".yaml", ".yml")
#: Maximum number of files that are read.
MAX_FILES = 200_000


class AdoptionError(AscendGraphError):
    """Adoption that cannot begin, or whose result cannot be written."""


def own_files(root: Path, *, tests: bool = False) -> list[Path]:
    """Return the repository's own files in name order, without tests; with ``tests`` only those of tests."""
    found: list[Path] = []
    for parent, directories, names in os.walk(root):
        here = Path(parent)
        inner = here.relative_to(root).parts
        directories[:] = sorted(
            name
            for name in directories
            if not name.startswith(".")
            and name.lower() not in _OTHERS
            and not (here / name / "pyvenv.cfg").exists()
            # A submodule is another repository.
            and not (here / name / ".git").exists()
        )
        is_test = any(part.lower() in _TESTS for part in inner)
        if is_test == tests:
            found += [path for path in (here / name for name in sorted(names)) if _is_own(path)]
        if len(found) > MAX_FILES:
            raise AdoptionError(f"{root}: more than {MAX_FILES:,} files; expected one repository. Name a part of it")
    return found


def _is_own(path: Path) -> bool:
    """Return whether a path is a file itself: a link names one that is read elsewhere, and a pipe is never read."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _links_outside(root: Path) -> Iterator[tuple[SourcePlace, str]]:
    """Yield the links to sources outside of a repository, with what they name."""
    for parent, directories, names in os.walk(root):
        here = Path(parent)
        directories[:] = sorted(
            name for name in directories if not name.startswith(".") and name.lower() not in _OTHERS
        )
        for path in (here / name for name in (*directories, *sorted(names))):
            if not path.is_symlink() or not (path.is_dir() or path.name.endswith(_SOURCES)):
                continue
            target = Path(os.path.realpath(path))
            if target.exists() and not target.is_relative_to(root) and not root.is_relative_to(target):
                yield SourcePlace(relative(path, root), 1), str(target)


def _read_sources(files: list[Path], root: Path) -> Findings:
    """Return what C++, Python and YAML files state."""
    findings = Findings()
    read_cpp(files, root, findings)
    read_python(files, root, findings)
    read_yaml(files, root, findings)
    findings.leave_out_other_devices()
    return findings


def _empty_submodules(root: Path) -> Iterator[tuple[SourcePlace, str]]:
    """Yield the submodules of a repository that were not fetched, with where .gitmodules names them."""
    try:
        lines = (root / ".gitmodules").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for number, line in enumerate(lines, 1):
        key, _, path = (part.strip() for part in line.partition("="))
        if key == "path" and path and not any((root / path).glob("*")):
            yield SourcePlace(".gitmodules", number), path


def read_repository(root: Path) -> tuple[Findings, Known]:
    """Read the operators, prototypes and declarations of a repository; nothing is compiled or imported.

    Raises:
        AdoptionError: The directory does not exist, or is too large.
    """
    if not root.is_dir():
        raise AdoptionError(f"{root}: is not a directory; expected a repository or a part of one")
    files = own_files(root)
    findings = _read_sources(files, root)
    headers = read_headers(path for path in files if is_prototype_file(path))
    if headers.prototypes and not findings.definitions and not findings.bound_functions:
        # A library of kernels alone: what calls them from PyTorch are its tests.
        files += own_files(root, tests=True)
        findings = _read_sources(files, root)
    leave_out_registered(files, root, findings)
    prototypes: dict[str, list[object]] = {}
    functions: dict[str, list[object]] = {}
    from dataclasses import replace

    for prototype in headers.prototypes:
        named = replace(prototype, file=relative(Path(prototype.file), root))
        prototypes.setdefault(prototype.op_type, []).append(named)
    for function in headers.functions:
        functions.setdefault(function.name, []).append(replace(function, file=relative(Path(function.file), root)))
    errors = [replace(one, file=relative(Path(one.file), root)) for one in headers.errors]
    findings.diagnostics += [one for one in errors if one not in findings.diagnostics]
    for place, name in _empty_submodules(root):
        findings.report(
            place, f"submodule {name} is empty, and what it defines is not known here: git submodule update --init {name}",
            severity=Severity.WARNING,
        )  # fmt: skip
    for place, target in _links_outside(root):
        findings.report(
            place, f"is a link to {target}, outside of the directory, and was not read. Name a directory with both",
            severity=Severity.WARNING,
        )  # fmt: skip
    names = {one.name.partition(".")[0] for one in findings.bound_functions}
    extensions = read_extensions([*files, *own_files(root, tests=True)] if names else [], root, names)
    return findings, Known(prototypes, functions, extensions)  # type: ignore[arg-type]

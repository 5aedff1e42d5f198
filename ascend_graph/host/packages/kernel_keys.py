"""Kernels that are compiled for a tiling key when it is first launched.

CANN compiles a kernel for each of its tiling keys; some have hundreds, of which a model launches a few. A package whose
kernel has many is built with one of them. Next to that library are the list of the other keys and the library's
description, with which a launch on the host starts this program: ``python -m ascend_graph.host.packages.kernel_keys STEM
KEY``. It needs the author's sources as they were, and a compiler; ``ascend-graph build --all-keys`` compiles all.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from ascend_graph.compilation import CppLibrary
from ascend_graph.environment import toolkit_directory
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.packages.build import TRANSLATOR, install_library, kernel_compiler
from ascend_graph.host.packages.format import OperatorPackageError

#: Keys of one kernel and combination of dtypes up to which all are compiled when the package is built.
MOST_KEYS = 16
#: Stands for a key where one library is for all tiling keys.
WHOLE = "whole"
#: Seconds that compiling one key may take.
_LIMIT = 600.0
_PACKAGE, _TOOLKIT = "{package}", "{toolkit}"
#: Fields of a library that are described; the others are of this installation.
_PATHS = ("sources", "include_directories", "library_directories", "stable_directories")
_TEXTS = ("libraries", "flags", "link_first", "link_options")


def write_later_keys(libraries: Sequence[CppLibrary], keys: Sequence[str], package: Path, directory: Path) -> None:
    """Write into a package what compiles a kernel's other tiling keys.

    Args:
        libraries: The libraries of one kernel and combination of dtypes, which differ in their names' and last flags' key.
        keys: The tiling key of each, or :data:`WHOLE` for a library that is for all of them.
        package: The package's directory.
        directory: The directory of its kernels.
    """
    stem = directory / libraries[0].name.removesuffix(f"_{keys[0]}")
    described = {
        "flags_by_key": {key: library.flags[-1] for key, library in zip(keys, libraries, strict=True)},
        "library": _described(libraries[0], package) | {"flags": list(libraries[0].flags[:-1])},
        "files": _digests(libraries[0], package),
    }
    directory.mkdir(parents=True, exist_ok=True)
    stem.with_name(f"{stem.name}.json").write_text(json.dumps(described))
    lines = [sys.executable, *keys, ""]
    stem.with_name(f"{stem.name}.keys").write_text("\n".join(lines), errors="surrogateescape")


def compile_key(stem: Path, key: int | str) -> Path:
    """Compile a kernel's library for one tiling key, or for all of them, into its package.

    Args:
        stem: The path of the kernel's files without their ends, ``<package>/op_impl/host/kernels/add_custom_0``.
        key: The tiling key, or :data:`WHOLE`.

    Raises:
        OperatorPackageError: The package does not have the key, the author's sources have changed, or the package cannot
            be written.
        BuildError: The source does not compile.
    """
    package = stem.absolute().parents[3]
    described = json.loads(stem.with_name(f"{stem.name}.json").read_text())
    flag = described["flags_by_key"].get(str(key))
    if flag is None:
        known = ", ".join(described["flags_by_key"])
        raise OperatorPackageError(f"{stem.name}: tiling key {key} is not one of the kernel's; expected {known}")
    _check_files(described["files"], package)
    name = stem.name if key == WHOLE else f"{stem.name}_{key}"
    library = _library(described["library"], package, name, flag, described["files"])
    target = stem.with_name(f"{name}.so")
    compiled = library.build(time_limit=_LIMIT)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        install_library(compiled, draft)
        draft.replace(target)
    except OSError as error:
        raise OperatorPackageError(
            f"{target}: tiling key {key} is compiled, but the package cannot be written: {error.strerror}. Build it with "
            f"--all-keys"
        ) from None
    return target


def _described(library: CppLibrary, package: Path) -> dict[str, Any]:
    texts: dict[str, Any] = {name: list(getattr(library, name)) for name in _TEXTS}
    return texts | {name: [_moved(path, package) for path in getattr(library, name)] for name in _PATHS}


def _moved(path: Path, package: Path) -> str:
    """Return a path that a moved package or another toolkit still has."""
    for mark, directory in ((_PACKAGE, package), (_TOOLKIT, toolkit_directory())):
        if path.is_relative_to(directory):
            return f"{mark}/{path.relative_to(directory)}"
    return str(path)


def _found(text: str, package: Path) -> Path:
    for mark, directory in ((_PACKAGE, package), (_TOOLKIT, toolkit_directory())):
        if text.startswith(f"{mark}/"):
            return directory / text.removeprefix(f"{mark}/")
    return Path(text)


def _digests(library: CppLibrary, package: Path) -> dict[str, str]:
    """Return digests of the author's files that the library may read."""
    own = (path for path in (*library.sources, *library.headers) if path not in TRANSLATOR)
    named = {_moved(path, package): path for path in own}
    return {name: _digest(path) for name, path in named.items() if not name.startswith(_TOOLKIT)}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:32]


def _check_files(files: Mapping[str, str], package: Path) -> None:
    for name, digest in files.items():
        path = _found(name, package)
        if not path.is_file() or _digest(path) != digest:
            state = "changed" if path.is_file() else "is gone"
            raise OperatorPackageError(
                f"{path}: it {state} since the package was built, and a tiling key is compiled when it is first launched; "
                f"build the package again, or build it with --all-keys"
            )


def _library(
    described: Mapping[str, Sequence[str]], package: Path, name: str, flag: str, files: Iterable[str]
) -> CppLibrary:
    values: dict[str, Any] = {key: tuple(described[key]) for key in _TEXTS}
    values |= {key: tuple(_found(text, package) for text in described[key]) for key in _PATHS}
    values["flags"] = (*values["flags"], flag)
    headers = tuple(path for path in (_found(text, package) for text in files) if path not in values["sources"])
    known = {one.name for one in fields(CppLibrary)}
    assert values.keys() <= known
    return CppLibrary(name=name, headers=(*headers, *TRANSLATOR), kernel_compiler=kernel_compiler(), **values)


def main() -> None:
    """Compile the key that this process's arguments name; print what is wrong and exit with 1 if it fails."""
    try:
        compile_key(Path(sys.argv[1]), sys.argv[2])
    except (AscendGraphError, OSError, ValueError, KeyError) as error:
        print(error)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()

"""Search for an installed operator package by its directory, its vendor, or a Python distribution. Imports no torch."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from ascend_graph.errors import AscendGraphError
from ascend_graph.sources.installed import custom_packages

#: Directories of which an operator package has at least one.
_PARTS = ("op_proto/inc", "op_api/include")
#: Depth below a Python package at which an operator package is found: ``opp/vendors/<vendor>``, and one directory above.
_DEPTH = 4


class PackageNotFound(AscendGraphError, LookupError):  # noqa: N818 - the name that importlib.metadata uses
    """Error of a name or directory that is not an operator package."""


def locate_package(place: str | Path) -> Path:
    """Return the directory of an operator package.

    Args:
        place: The directory, one that holds exactly one package (``opp``, ``vendors``), the name of a vendor that the
            environment selects, or the name of an installed Python distribution or module that holds a package.

    Raises:
        PackageNotFound: There is no package there, or there are several.

    >>> locate_package("no_such_vendor")
    Traceback (most recent call last):
        ...
    ascend_graph.packages.locate.PackageNotFound: 'no_such_vendor': not an operator package; expected a directory with ...
    """
    if not isinstance(place, str | os.PathLike):
        raise PackageNotFound(
            f"{place!r}: not a name or a path; expected a directory with {_parts()}, or the name of a package"
        )
    text = os.fspath(place)
    directory = Path(text).expanduser()
    if directory.is_dir():
        return _only(list(_packages_in(directory)), text)
    if isinstance(place, Path) or os.sep in text:
        raise PackageNotFound(f"{text}: the directory does not exist; expected an operator package with {_parts()}")
    vendors = {package.name: package for package in reversed(custom_packages()) if _is_package(package)}
    if text in vendors:
        return vendors[text].resolve()
    roots = list(_python_directories(text))
    if roots:
        found = dict.fromkeys(package for root in roots for package in _packages_in(root))
        return _only(list(found), text)
    near = difflib.get_close_matches(text, vendors, 3)
    hint = f"; vendors with a similar name: {', '.join(near)}" if near else ""
    raise PackageNotFound(
        f"{text!r}: not an operator package; expected a directory with {_parts()}, a vendor that ASCEND_CUSTOM_OPP_PATH or "
        f"ASCEND_OPP_PATH selects (now: {', '.join(vendors) or 'none'}), or an installed Python distribution{hint}"
    )


def _parts() -> str:
    return " or ".join(_PARTS)


def _is_package(directory: Path) -> bool:
    return any((directory / part).is_dir() for part in _PARTS)


def _packages_in(directory: Path, depth: int = _DEPTH) -> Iterator[Path]:
    """Yield the operator packages in a directory, itself included; those in a package are not looked for."""
    if _is_package(directory):
        yield directory.resolve()
    elif depth:
        try:
            children = sorted(child for child in directory.iterdir() if child.is_dir())
        except OSError:
            return
        for child in children:
            if not child.name.startswith((".", "__")):
                yield from _packages_in(child, depth - 1)


def _only(found: list[Path], place: str) -> Path:
    if not found:
        raise PackageNotFound(f"{place}: has no operator package; expected a directory with {_parts()}")
    if len(found) > 1:
        raise PackageNotFound(
            f"{place}: has {len(found)} operator packages; expected one. Write one of: {', '.join(map(str, found))}"
        )
    return found[0]


def _python_directories(name: str) -> Iterator[Path]:
    """Yield the directories of the Python packages of a distribution, or of a module of that name, without importing it."""
    modules = [name] if name.isidentifier() else []
    try:
        found = distribution(name)
    except (PackageNotFoundError, ValueError):
        pass
    else:
        top = (found.read_text("top_level.txt") or "").split()
        modules += top or sorted({file.parts[0] for file in found.files or () if len(file.parts) > 1})
        modules.append(name.replace("-", "_"))
    for module in dict.fromkeys(module for module in modules if module.isidentifier()):
        try:
            spec = find_spec(module)
        except (ImportError, ValueError):
            continue
        if spec is not None:
            yield from (Path(place) for place in spec.submodule_search_locations or ())

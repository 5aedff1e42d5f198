"""Directories of CANN and of installed operator packages, in CANN's search order."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

#: The environment variables that name the directories.
VARIABLES = ("ASCEND_CUSTOM_OPP_PATH", "ASCEND_OPP_PATH", "ASCEND_HOME_PATH")


#: Path in an operator package of the host runtime's metadata about its operators.
HOST_METADATA = Path("op_impl/host/kernels.json")


_T = TypeVar("_T")
#: What was found within :func:`one_state`, by the function that found it; None outside.
_found: ContextVar[dict[Any, Any] | None] = ContextVar("_found", default=None)


@contextlib.contextmanager
def one_state() -> Iterator[None]:
    """Look at the installed packages at most once during the context: a registration sees one state of them."""
    token = None if _found.get() is not None else _found.set({})
    try:
        yield
    finally:
        if token is not None:
            _found.reset(token)


def once_a_state(find: Callable[[], _T]) -> _T:
    """Return the result of a function; within :func:`one_state` it is called once.

    >>> with one_state():
    ...     once_a_state(named_places) is once_a_state(named_places)
    True
    """
    found = _found.get()
    if found is None:
        return find()
    if find not in found:
        found[find] = find()
    return cast(_T, found[find])


def named_places() -> tuple[str | None, ...]:
    """Return the current values of ``VARIABLES``; equal values mean the same installation."""
    return tuple(os.environ.get(variable) for variable in VARIABLES)


def custom_packages(environment: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Return the directories of custom operator packages: the named ones, then vendors; they may not exist."""
    vendors = [package for root in opp_roots(environment) for package in vendor_packages(root)]
    return (*named_packages(environment), *vendors)


def named_packages(environment: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Return the paths in ASCEND_CUSTOM_OPP_PATH."""
    environment = os.environ if environment is None else environment
    return _paths(environment.get("ASCEND_CUSTOM_OPP_PATH", ""))


@lru_cache(maxsize=32)
def _paths(variable: str) -> tuple[Path, ...]:
    return tuple(Path(part) for part in variable.split(os.pathsep) if part.strip())


@lru_cache(maxsize=32)
def inside(directories: tuple[Path, ...], *parts: str) -> tuple[Path, ...]:
    """Return a path in each of some directories; kept, as it is asked for at each registration."""
    return tuple(directory.joinpath(*parts) for directory in directories)


def vendor_packages(root: Path) -> tuple[Path, ...]:
    """Return the packages installed under an ``opp`` directory.

    The order is that of ``load_priority`` in vendors/config.ini, or by name without such a file.
    """
    vendors = os.path.join(root, "vendors")  # noqa: PTH118 - asked for at each registration
    return _vendor_packages(Path(vendors), modified(vendors), modified(f"{vendors}/config.ini"))


@lru_cache(maxsize=32)
def _vendor_packages(vendors: Path, changed: int, configured: int) -> tuple[Path, ...]:
    """Return the packages in a directory; a modified one, or a modified config.ini, is a new cache entry."""
    return tuple(vendors / vendor for vendor in _vendors(vendors))


def modified(path: str | Path) -> int:
    """Return the modification time of a file or directory in nanoseconds; 0 if there is none."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - asked for at each registration
    except OSError:
        return 0


def opp_roots(environment: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Return the ``opp`` directories of ASCEND_OPP_PATH and ASCEND_HOME_PATH."""
    environment = os.environ if environment is None else environment
    opp, home = environment.get("ASCEND_OPP_PATH"), environment.get("ASCEND_HOME_PATH")
    # CANN's own set_env.sh names one directory twice.
    return tuple(dict.fromkeys((*(_paths(opp) if opp else ()), *(inside(_paths(home), "opp") if home else ()))))


def existing(candidates: Iterable[Path]) -> tuple[Path, ...]:
    """Return the candidates that are directories, without duplicates; the first spelling is kept."""
    found: dict[tuple[int, int], Path] = {}
    for candidate in candidates:
        try:
            status = os.stat(candidate)  # noqa: PTH116 - asked for at each registration
        except OSError:
            continue
        if stat.S_ISDIR(status.st_mode):
            found.setdefault((status.st_dev, status.st_ino), candidate)
    return tuple(found.values())


def cann_version(home: Path) -> str | None:
    """Return the CANN toolkit version that a directory's own files name, or None."""
    places = (
        *sorted(home.glob("*-linux/ascend_toolkit_install.info")),
        home / "compiler/version.info",
        home / "version.info",
    )
    return version_in(places)


def version_in(places: tuple[Path, ...]) -> str | None:
    """Return the version that the first of some files names, or None."""
    for place in places:
        try:
            text = place.read_text(errors="replace")
        except OSError:
            continue
        # An operator package names the version of the compiler that made it.
        found = re.search(r"^(?:custom_opp_compiler_)?version=(\S+)", text, re.IGNORECASE | re.MULTILINE)
        if found is not None:
            return found[1].strip("[]")
    return None


def made_with(file: str | Path) -> str | None:
    """Return the CANN version that an installed file, or its operator package, belongs to; None if unknown."""
    for directory in Path(file).absolute().parents:
        # CANN's opp directory has a version of its own; the toolkit's is what people know.
        version = None if directory.name == "opp" else cann_version(directory)
        if version is not None:
            return version
    return None


def _vendors(directory: Path) -> list[str]:
    try:
        for line in (directory / "config.ini").read_text(errors="replace").splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "load_priority":
                return [vendor.strip() for vendor in value.split(",") if vendor.strip()]
    except OSError:
        pass
    try:
        return sorted(entry.name for entry in directory.iterdir() if entry.is_dir())
    except OSError:
        return []

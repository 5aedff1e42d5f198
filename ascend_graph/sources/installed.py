"""Where CANN and operator packages are installed, in the order in which CANN searches them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

#: What names the places.
VARIABLES = ("ASCEND_CUSTOM_OPP_PATH", "ASCEND_OPP_PATH", "ASCEND_HOME_PATH")


def named_places() -> tuple[str | None, ...]:
    """What the environment says now; while it says the same, the same is installed."""
    return tuple(os.environ.get(variable) for variable in VARIABLES)


def custom_packages(environment: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """The directories of custom operator packages: those named, then the vendors; whether they exist or not."""
    vendors = [package for root in opp_roots(environment) for package in vendor_packages(root)]
    return (*named_packages(environment), *vendors)


def named_packages(environment: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """The paths of ASCEND_CUSTOM_OPP_PATH."""
    environment = os.environ if environment is None else environment
    parts = environment.get("ASCEND_CUSTOM_OPP_PATH", "").split(os.pathsep)
    return tuple(Path(part) for part in parts if part.strip())


def vendor_packages(root: Path) -> tuple[Path, ...]:
    """The packages installed below an ``opp`` directory.

    In the order of ``load_priority`` in vendors/config.ini, or by name where there is no such file.
    """
    return tuple(root / "vendors" / vendor for vendor in _vendors(root / "vendors"))


def opp_roots(environment: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """The ``opp`` directories: ASCEND_OPP_PATH, and the one of ASCEND_HOME_PATH."""
    environment = os.environ if environment is None else environment
    roots = []
    if environment.get("ASCEND_OPP_PATH"):
        roots.append(Path(environment["ASCEND_OPP_PATH"]))
    if environment.get("ASCEND_HOME_PATH"):
        roots.append(Path(environment["ASCEND_HOME_PATH"]) / "opp")
    return tuple(roots)


def existing(candidates: list[Path]) -> tuple[Path, ...]:
    """Those of the candidates that are directories, each once, as it was first named."""
    found: dict[Path, Path] = {}
    for candidate in candidates:
        if candidate.is_dir():
            found.setdefault(candidate.resolve(), candidate)
    return tuple(found.values())


def cann_version(home: Path) -> str | None:
    """The version of the CANN toolkit in a directory, as its own files say; None where none does."""
    places = (
        *sorted(home.glob("*-linux/ascend_toolkit_install.info")),
        home / "compiler/version.info",
        home / "version.info",
    )
    return version_in(places)


def version_in(places: tuple[Path, ...]) -> str | None:
    """The version that the first of some files names; None where none does."""
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
    """The version of CANN that an installed file belongs to, or that its operator package was made with; None where nothing says."""
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

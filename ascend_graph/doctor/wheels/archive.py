"""Wheels on disk: an archive is unpacked within limits, a directory or an installed distribution is read in place."""

from __future__ import annotations

import importlib.metadata
import lzma
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ascend_graph.errors import AscendGraphError

#: Limits of an archive. The largest known wheels for NPUs have 400 MB and 10,000 files.
MAX_FILES = 200_000
MAX_BYTES = 8 << 30
_CHUNK = 1 << 20
#: Errors of a damaged archive. An encrypted member is a RuntimeError, an unknown method a NotImplementedError.
_DAMAGE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,
    OSError,
    ValueError,
)


class WheelError(AscendGraphError):
    """Failure to open a wheel: it does not exist, is not a wheel, or its archive is damaged or unsafe."""


@dataclass(frozen=True, slots=True)
class OpenedWheel:
    """Files of a wheel below one directory."""

    #: The name that the user gave.
    given: str
    root: Path
    #: Paths of its files, relative to the root.
    files: tuple[PurePosixPath, ...]

    def text(self, name: str) -> str:
        """Return a file of the metadata directory (``*.dist-info``), or an empty text if it does not exist."""
        found = [one for one in self.files if one.name == name and one.parent.name.endswith(".dist-info")]
        if not found:
            return ""
        return (self.root / min(found, key=lambda one: len(one.parts))).read_text(errors="replace")


@contextmanager
def opened(wheel: str) -> Iterator[OpenedWheel]:
    """Open a wheel: a ``.whl`` file, the directory of an unpacked one, or the name of an installed distribution.

    An archive is unpacked to a temporary directory that exists until the context ends.

    Raises:
        WheelError: The wheel does not exist, is not a wheel, or its archive is damaged, unsafe or over the limits.
    """
    path = Path(wheel)
    if path.is_file():
        with tempfile.TemporaryDirectory(prefix="ascend-graph-wheel-") as directory:
            yield OpenedWheel(wheel, Path(directory), _unpack(path, Path(directory)))
        return
    if path.is_dir():
        yield OpenedWheel(wheel, path, _files_of(path))
        return
    try:
        distribution = importlib.metadata.distribution(wheel)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        raise WheelError(
            f"wheel {wheel!r}: neither a file, a directory nor an installed distribution; "
            "expected a path to a .whl file, an unpacked wheel, or a name that pip list shows"
        ) from None
    root = Path(str(distribution.locate_file("")))
    files = [PurePosixPath(str(one)) for one in distribution.files or ()]
    yield OpenedWheel(wheel, root, tuple(one for one in files if ".." not in one.parts and (root / one).is_file()))


def _files_of(root: Path) -> tuple[PurePosixPath, ...]:
    """Return the files of a directory without following links out of it."""
    inside = root.resolve()
    found = (path for path in sorted(root.rglob("*")) if path.is_file() and path.resolve().is_relative_to(inside))
    return tuple(PurePosixPath(path.relative_to(root).as_posix()) for path in found)


def _unpack(path: Path, directory: Path) -> tuple[PurePosixPath, ...]:
    """Unpack an archive into an empty directory and return its files."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [one for one in archive.infolist() if not one.is_dir()]
            if len(members) > MAX_FILES:
                raise WheelError(f"{path}: {len(members)} files; expected at most {MAX_FILES}")
            names = tuple(_safe_name(path, member) for member in members)
            left = MAX_BYTES
            for member, name in zip(members, names, strict=True):
                left -= _extract(archive, member, directory / name, left)
                if left < 0:
                    raise WheelError(f"{path}: more than {MAX_BYTES >> 30} GiB unpacked, at {name}; expected less")
            return tuple(sorted(set(names)))
    except _DAMAGE as error:
        raise WheelError(f"{path}: not a readable wheel: {error}; expected the archive as pip downloads it") from None


def _safe_name(path: Path, member: zipfile.ZipInfo) -> PurePosixPath:
    """Return a member's name.

    Raises:
        WheelError: It is a link or a device, or its name leads out of the directory that it is unpacked to.
    """
    name = PurePosixPath(member.filename)
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise WheelError(f"{path}: {member.filename} is a link or a device; a wheel must have regular files alone")
    if name.is_absolute() or ".." in name.parts or not name.parts or "\\" in member.filename:
        raise WheelError(f"{path}: {member.filename!r} leads out of the wheel; expected a relative path without '..'")
    return name


def _extract(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, limit: int) -> int:
    """Write a member, at most some bytes more than the limit, and return the number of written bytes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    # The size that the archive declares may be wrong.
    with archive.open(member) as source, target.open("wb") as file:
        while written <= limit and (chunk := source.read(_CHUNK)):
            written += file.write(chunk)
    if member.external_attr >> 16 & stat.S_IXUSR:
        target.chmod(0o755)
    return written

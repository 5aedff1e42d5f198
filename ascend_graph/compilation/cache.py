"""The directory of compiled libraries: who writes it when, and what a library in it was made from."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from ascend_graph.compilation.toolchain import BuildError

#: Names of directories that a build works in; one that nobody holds locked is left over from a build that was killed.
_SCRATCH = "build-"


def cache_directory() -> Path:
    """Where compiled libraries are kept: ``$ASCEND_GRAPH_CACHE``, or ``ascend_graph`` in the user's cache directory."""
    override = os.environ.get("ASCEND_GRAPH_CACHE")
    if override:
        return Path(override)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ascend_graph"


@contextlib.contextmanager
def writable_cache() -> Iterator[Path]:
    """The cache's directory, made if need be; what the system refuses inside becomes one sentence.

    Raises:
        BuildError: it cannot be written, or the disk is full.
    """
    directory = cache_directory()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        yield directory
    except OSError as error:
        place = f" ({error.filename})" if error.filename and str(error.filename) != str(directory) else ""
        raise BuildError(
            f"the cache of compiled libraries, {directory}, cannot be written: {error.strerror or error}{place}; set "
            "ASCEND_GRAPH_CACHE to a directory that can be"
        ) from None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path`` between processes; the file is gone when nobody holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not _is_at(file.fileno(), path):
                continue  # its last holder removed it while this process waited
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def scratch_directory(cache: Path) -> Iterator[Path]:
    """An empty directory inside the cache, gone afterwards; what killed builds left goes first."""
    for left in (*cache.glob(f"{_SCRATCH}*"), *cache.glob("*.lock")):
        _remove_if_unused(left)
    directory, descriptor = _locked_directory(cache)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(descriptor)


def _locked_directory(cache: Path) -> tuple[Path, int]:
    while True:
        directory = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=cache))
        try:
            descriptor = os.open(directory, os.O_RDONLY)
        except FileNotFoundError:
            continue  # taken for a leftover before it was locked
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_at(descriptor, directory):
            return directory, descriptor
        os.close(descriptor)


def _remove_if_unused(path: Path) -> None:
    """Remove a directory or lock file that no process holds locked."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return  # a build works in it
    else:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif _is_at(descriptor, path):
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that a compiler read, as it was then."""

    path: str
    size: int
    modified_ns: int
    digest: str

    @staticmethod
    def of(path: Path) -> ReadFile:
        """The file as it is now."""
        before = path.stat()
        return ReadFile(str(path), before.st_size, before.st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())

    def is_unchanged(self) -> bool:
        """Whether the file has the same bytes; they are read only where its size or time says they may differ."""
        try:
            now = Path(self.path).stat()
            if (now.st_size, now.st_mtime_ns) == (self.size, self.modified_ns):
                return True
            return now.st_size == self.size and ReadFile.of(Path(self.path)).digest == self.digest
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class Entry:
    """One compiled library: its directory's name, its size, the headers it was made from, and the versions it was made for."""

    directory: str
    size: int
    read: tuple[ReadFile, ...]
    made_for: tuple[str, ...] = ()

    def is_valid(self, cache: Path, file: str) -> bool:
        """Whether the library is there whole, and nothing it was made from has changed."""
        try:
            present = (cache / self.directory / file).stat().st_size == self.size
        except OSError:
            return False
        return present and all(file.is_unchanged() for file in self.read)


#: Libraries of the same sources with other headers; a development tree goes back and forth between a few.
_MOST_ENTRIES = 4


def entries(manifest: Path) -> tuple[Entry, ...]:
    """What is known of the libraries of one key, the newest first; nothing where the file is absent or damaged."""
    try:
        return tuple(
            Entry(
                entry["directory"],
                entry["size"],
                tuple(ReadFile(**file) for file in entry["read"]),
                tuple(entry.get("made_for", ())),
            )
            for entry in json.loads(manifest.read_text())
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ()


def add_entry(manifest: Path, entry: Entry, scratch: Path) -> None:
    """Put an entry before the others, whole or not at all; libraries that are no longer listed are removed."""
    listed = [old for old in entries(manifest) if old.directory != entry.directory]
    kept = [entry, *listed[: _MOST_ENTRIES - 1]]
    draft = scratch / "manifest.json"
    draft.write_text(json.dumps([asdict(each) for each in kept]))
    draft.replace(manifest)
    for old in listed[_MOST_ENTRIES - 1 :]:
        shutil.rmtree(manifest.parent / old.directory, ignore_errors=True)


def files_of_rule(text: str) -> Iterator[Path]:
    """The files that a compiler's dependency file (``-MD``) names after its target, in make's syntax."""
    _, _, names = text.partition(": ")
    for name in _split_rule(names.replace("\\\n", " ")):
        yield Path(name)


def _split_rule(text: str) -> Iterable[str]:
    word: list[str] = []
    characters = iter(text)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            word.append(following if following in " #\\" else "\\" + following)
        elif character == "$":
            next(characters, "")
            word.append("$")
        elif character.isspace():
            if word:
                yield "".join(word)
                word.clear()
        else:
            word.append(character)
    if word:
        yield "".join(word)

"""Cache directory of compiled libraries: its locks, and the inputs of each library."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from ascend_graph.compilation.progress import announced
from ascend_graph.compilation.toolchain import BuildError

#: Prefix of the directories of builds; one that is not locked is left over from an interrupted build.
_SCRATCH = "build-"
#: Time that it is kept for the next build, in seconds.
_KEPT_SECONDS = 24 * 3600.0


def cache_directory() -> Path:
    """Return the directory of compiled libraries: ``$ASCEND_GRAPH_CACHE``, or ``ascend_graph`` in the user's cache."""
    override = os.environ.get("ASCEND_GRAPH_CACHE")
    if override:
        return Path(override)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ascend_graph"


@contextlib.contextmanager
def writable_cache() -> Iterator[Path]:
    """Yield the cache directory, created if needed; report an error of the system inside in one sentence.

    Raises:
        BuildError: It cannot be written, or the disk is full.
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
def locked(path: Path, what: str = "") -> Iterator[None]:
    """Hold an exclusive lock on ``path`` between processes; the last holder removes the file.

    Args:
        path: The lock's file.
        what: The work of the holder, such as ``compiling libcust_opapi``, named in a message about a wait.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("w", encoding="utf-8") as file:
            _lock(file.fileno(), path.parent, what or path.stem)
            if not _is_at(file.fileno(), path):
                continue  # its last holder removed it while this process waited
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _lock(descriptor: int, cache: Path, what: str) -> None:
    """Lock a descriptor, and announce the wait if another process holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with announced(f"waiting for another process: {what}", "", cache, whole=False):
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


@dataclass(frozen=True, slots=True)
class BuildDirectory:
    """Directory of a build; an interrupted build leaves it to the next one of the same name."""

    path: Path
    #: Descriptor that locks the directory; a program that inherits it keeps the lock as long as it runs.
    lock: int
    #: Time of the directory's creation, in nanoseconds.
    began_ns: int


@contextlib.contextmanager
def build_directory(cache: Path, library: str, key: str) -> Iterator[BuildDirectory]:
    """Yield a directory for a build of a library, and remove it afterwards unless the build may be continued.

    It may be if a signal ended it, or if a :class:`BuildError` says so. Abandoned directories of other builds of the
    library are removed, and any left for a day.
    """
    path = cache / f"{_SCRATCH}{library}-{key}"
    for left in cache.glob(f"{_SCRATCH}*"):
        if left != path and (left.name.startswith(f"{_SCRATCH}{library}-") or _age(left) > _KEPT_SECONDS):
            _remove_if_unused(left)
    for left in cache.glob("*.lock"):
        _remove_if_unused(left)
    descriptor = _locked_directory(path, f"compiling {library}")
    try:
        began = path / "began"
        if not began.exists():
            began.touch()
        keep = False
        try:
            yield BuildDirectory(path, descriptor, began.stat().st_mtime_ns)
        except (KeyboardInterrupt, SystemExit):
            keep = True
            raise
        except BuildError as error:
            keep = error.may_go_on
            raise
        finally:
            if not keep:
                shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)


def _locked_directory(path: Path, what: str) -> int:
    while True:
        path.mkdir(exist_ok=True)
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue  # taken for a leftover before it was locked
        _lock(descriptor, path.parent, what)
        if _is_at(descriptor, path):
            return descriptor
        os.close(descriptor)


def _age(path: Path) -> float:
    """Return the seconds since a directory was last written to; 0 if it is gone."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


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
    """File that a compiler read, in its state at that time."""

    path: str
    size: int
    modified_ns: int
    digest: str

    @staticmethod
    def of(path: Path) -> ReadFile:
        """Return the current state of a file."""
        before = path.stat()
        return ReadFile(str(path), before.st_size, before.st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())

    def is_unchanged(self) -> bool:
        """Return whether the file has the same bytes; read them only if its size or time leaves it open."""
        try:
            now = Path(self.path).stat()
            if (now.st_size, now.st_mtime_ns) == (self.size, self.modified_ns):
                return True
            return now.st_size == self.size and ReadFile.of(Path(self.path)).digest == self.digest
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of a compiled library: its directory's name, its size, the headers read, and the versions it is for."""

    directory: str
    size: int
    read: tuple[ReadFile, ...]
    made_for: tuple[str, ...] = ()
    #: Digest of the inputs that do not belong to the compiler.
    inputs: str = ""

    def is_complete(self, cache: Path, file: str) -> bool:
        """Return whether the library is there as it was made."""
        try:
            return (cache / self.directory / file).stat().st_size == self.size
        except OSError:
            return False

    def is_valid(self, cache: Path, file: str) -> bool:
        """Return whether the library is complete, and none of its inputs has changed."""
        return self.is_complete(cache, file) and all(file.is_unchanged() for file in self.read)


#: Number of libraries kept of the same sources with other headers; a development tree alternates between a few.
_MOST_ENTRIES = 4


def entries(manifest: Path) -> tuple[Entry, ...]:
    """Return the entries of the libraries of one key, the newest first; empty if the file is absent or damaged."""
    try:
        return tuple(
            Entry(
                entry["directory"],
                entry["size"],
                tuple(ReadFile(**file) for file in entry["read"]),
                tuple(entry.get("made_for", ())),
                str(entry.get("inputs", "")),
            )
            for entry in json.loads(manifest.read_text(encoding="utf-8"))
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ()


def add_entry(manifest: Path, entry: Entry, scratch: Path) -> None:
    """Put an entry before the others, atomically, and remove libraries that are no longer listed."""
    listed = [old for old in entries(manifest) if old.directory != entry.directory]
    kept = [entry, *listed[: _MOST_ENTRIES - 1]]
    draft = scratch / "manifest.json"
    draft.write_text(json.dumps([asdict(each) for each in kept]))
    draft.replace(manifest)
    for old in listed[_MOST_ENTRIES - 1 :]:
        shutil.rmtree(manifest.parent / old.directory, ignore_errors=True)


def files_of_rule(text: str) -> Iterator[Path]:
    """Yield the files that a compiler's dependency file (``-MD``) names after its target, in make's syntax."""
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

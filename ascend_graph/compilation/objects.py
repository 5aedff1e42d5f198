"""Cache of compiled objects by the preprocessed text of their sources, as ccache does it for a compiler's sources.

A library is compiled again when any file changes that it might read. Its objects are not: a source whose preprocessed
text is the same has the same object.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from ascend_graph.compilation.cache import cache_directory
from ascend_graph.compilation.precompiled import SplitSource

#: Bytes of objects that the cache keeps, the last used ones.
_MOST_BYTES = 1_000_000_000
#: Options with which a compiler writes more than the object, or something of its place into the object.
_SPECIAL = (
    "-g",
    "--coverage",
    "-fprofile",
    "-ftest-coverage",
    "-save-temps",
    "-fdump",
    "-fstack-usage",
    "-flto",
    "-Wa,",
)


def object_key(source: SplitSource, options: Sequence[str], versions: Iterable[str]) -> str | None:
    """Return the key of a source's object, or None if it cannot be cached.

    Args:
        source: The preprocessed source.
        options: Options of the compile step, without the preprocessor's.
        versions: The compiler and whatever else the object depends on.

    >>> object_key(SplitSource("", "int a;"), ["-O2", "-g"], ["g++"])
    """
    if any(option.startswith(_SPECIAL) and option != "-g0" for option in options):
        return None
    digest = hashlib.sha256()
    for text in (*versions, *options, source.headers, source.rest):
        digest.update(text.encode(errors="surrogateescape") + b"\0")
    return digest.hexdigest()[:32]


class ObjectCache:
    """Cached objects in a directory, that of the user's cache by default."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or cache_directory() / "objects"

    def restore(self, key: str | None, target: Path) -> bool:
        """Write a cached object to ``target``; return False if there is none."""
        if key is None:
            return False
        try:
            shutil.copyfile(self._path(key), target)
            os.utime(self._path(key))
        except OSError:
            return False
        return True

    def keep(self, key: str | None, compiled: Path) -> None:
        """Put an object into the cache if it can be written."""
        if key is None:
            return
        with contextlib.suppress(OSError):
            self._directory.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._directory, prefix="new-", delete=False) as draft:
                path = Path(draft.name)
            try:
                shutil.copyfile(compiled, path)
                path.rename(self._path(key))
            finally:
                path.unlink(missing_ok=True)
            self._prune()

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}.o"

    def _prune(self) -> None:
        """Remove the objects that were not used for longest, down to three quarters of the limit."""
        files = [(entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in os.scandir(self._directory)]
        size = sum(one[1] for one in files)
        if size <= _MOST_BYTES:
            return
        for _, bytes_, path in sorted(files):
            if size <= _MOST_BYTES * 3 // 4:
                return
            Path(path).unlink(missing_ok=True)
            size -= bytes_

"""Generated sources at places that their contents name.

A compiler's output names its sources, by line markers and by ``__FILE__``. Sources that are generated anew for each
build, in a temporary directory, would have no object in the cache, although nothing in them has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ascend_graph.compilation.cache import cache_directory, writable_cache

#: Sets of files that the cache keeps, the last used ones.
_MOST = 200


def lasting_copies(files: Iterable[Path]) -> Path:
    """Return a directory with copies of files, at the same place whenever they have the same names and contents.

    Args:
        files: Files with different names.

    Returns:
        A directory of the cache.

    Raises:
        BuildError: The cache lacks one of the copies, and cannot be written.

    Example::

        generated = lasting_copies([work / "op_api.cpp", work / "aclnn_add.h"])
        CppLibrary("libcust_opapi", (generated / "op_api.cpp",), include_directories=(generated,)).build()
    """
    contents = {path.name: path.read_bytes() for path in files}
    digest = hashlib.sha256()
    for name in sorted(contents):
        digest.update(name.encode(errors="surrogateescape") + b"\0" + hashlib.sha256(contents[name]).digest())
    place = cache_directory() / "generated"
    target = place / digest.hexdigest()[:16]
    if all(_has(target / name, data) for name, data in contents.items()):
        with contextlib.suppress(OSError):
            os.utime(target)
        return target
    with writable_cache():
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="new-", dir=place) as draft:
            for name, data in contents.items():
                (Path(draft) / name).write_bytes(data)
            target.mkdir(exist_ok=True)
            for name in contents:
                (Path(draft) / name).replace(target / name)
    with contextlib.suppress(OSError):  # another process removes them, too
        _prune(place)
    return target


def _has(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False


def _prune(place: Path) -> None:
    """Remove the directories that were not used for longest."""
    ages = sorted((entry.stat().st_mtime, entry.path) for entry in os.scandir(place))
    for _, path in ages[:-_MOST]:
        shutil.rmtree(path, ignore_errors=True)

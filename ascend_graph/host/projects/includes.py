"""Includes of sources, found in the repository around them and in CANN.

A repository's build files name include directories by variables and functions of their own. Their result is in the sources
themselves: an include names the end of a path, and the repository has such a file or not. So the directories are found from
the includes, the nearest file first.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path, PurePosixPath

from ascend_graph.compilation import compiler
from ascend_graph.host.projects.model import ARCHITECTURE_DIRECTORY, IncludedFiles
from ascend_graph.host.projects.repository import OTHER_FORMS, Repository, files_below
from ascend_graph.host.projects.source_text import SOURCE_SUFFIXES, included, text_of

_GUARD = re.compile(r"^#ifndef[ \t]+(\w+)[ \t]*\n#define[ \t]+\1\b", re.MULTILINE)


def find_includes(
    repository: Repository,
    sources: Sequence[Path],
    directories: Sequence[Path],
    toolkit: Sequence[Path],
    *,
    form: str | None = None,
) -> IncludedFiles:
    """Return the repository files that sources include, directly or not.

    Args:
        repository: the files to search.
        sources: the files to start from.
        directories: include directories that come before any that is found.
        toolkit: the toolkit's directories; the repository is not searched for their files.
        form: directories of another form of an operator (``op_api``) whose sources are helpers here.
    """
    return _Search(repository, sources, directories, toolkit, form).result()


def late_includes(repository: Repository, includes: IncludedFiles, toolkit: Sequence[Path]) -> tuple[str, ...]:
    """Return compiler options for CANN's headers that the host toolkit lacks, and for the headers that those include.

    They come after all others, because the host runs what its own toolkit declares. Stand-ins of the repository come last.
    """
    roots = repository.options.cann
    directories: dict[Path, None] = {}
    seen: set[Path] = set()
    todo = list(includes.missing) if roots else []
    while todo:
        text, source = todo.pop(0)
        near = source.parent / text
        if near.is_file():
            path = near
        elif _in_any(text, (*toolkit, *_system_directories())):
            continue
        else:
            found = next((one for root in roots if (one := _below(root, text, source)) is not None), None)
            if found is None:
                continue
            path = found[0]
            directories[found[1]] = None
        if path not in seen:
            seen.add(path)
            todo += [(name, path) for name, _ in included(path)]
    return tuple(f"-idirafter{directory}" for directory in (*directories, *includes.stand_ins))


def host_header_options(repository: Repository, includes: IncludedFiles, toolkit: Sequence[Path]) -> tuple[str, ...]:
    """Return compiler options for headers of op_host and op_api that come from elsewhere, or must not.

    Args:
        repository: The repository.
        includes: What its sources include.
        toolkit: The toolkit's include directories for op_host, its own first.
    """
    return (*copied_headers(includes, toolkit[0]), *late_includes(repository, includes, toolkit))


def copied_headers(includes: IncludedFiles, toolkit: Path) -> tuple[str, ...]:
    """Return compiler options that include a toolkit directory's headers before the copies that a repository has of them.

    A copy is one that an include may find, in a known directory or next to a known file, with the same guard.
    """
    around = dict.fromkeys((*includes.directories, *(path.parent for path in includes.files)))
    return tuple(
        part
        for name, guard in _guards(toolkit).items()
        if any((path := directory / name).is_file() and _guard(path) == guard for directory in around)
        for part in ("-include", str(toolkit / name))
    )


def has_headers(root: Path) -> bool:
    """Return whether a directory given as a CANN root contains any header."""
    return bool(files_below(root))


class _Search:
    """Search from some sources through all files that they include."""

    def __init__(
        self,
        repository: Repository,
        sources: Sequence[Path],
        directories: Sequence[Path],
        toolkit: Sequence[Path],
        form: str | None,
    ) -> None:
        self._repository, self._sources, self._form = repository, tuple(sources), form
        self._given = frozenset(directories)
        self._toolkit = (*repository.options.include_directories, *toolkit)
        self._directories: dict[Path, None] = dict.fromkeys(directories)
        self._files: dict[Path, None] = {}
        self._helpers: dict[Path, None] = {}
        self._siblings: dict[str, Path] = {}
        self._missing: dict[str, Path] = {}

    def result(self) -> IncludedFiles:
        """Run the search."""
        todo = list(self._sources)
        while todo:
            source = todo.pop(0)
            for text, is_system in included(source):
                todo += self._follow(source, text, is_system)
        is_stand_in = self._repository.is_stand_in
        found = [path for path in self._directories if path not in self._given]
        return IncludedFiles(
            (*self._repository.options.include_directories, *(path for path in found if not is_stand_in(path))),
            tuple(path for path in found if is_stand_in(path)),
            tuple(self._files),
            tuple(self._helpers),
            tuple(self._siblings.items()),
            tuple(self._missing.items()),
        )

    def _follow(self, source: Path, text: str, is_system: bool) -> list[Path]:
        """Return the new files that one include brings."""
        path = self._find(source, text, is_system)
        if path is None:
            if not _in_any(text, (*self._toolkit, *_system_directories())):
                self._missing.setdefault(text, source)
            return []
        if path in self._files or (self._repository.is_other_architecture(path) and not _names_architecture(text)):
            return []
        self._files[path] = None
        new = [path]
        for helper in self._helpers_of(path):
            if helper not in self._helpers and helper not in self._sources:
                self._helpers[helper] = None
                new.append(helper)
        return new

    def _find(self, source: Path, text: str, is_system: bool) -> Path | None:
        path = self._near(source, text)
        if path is None and not _in_any(text, (*self._toolkit, *(_system_directories() if is_system else ()))):
            path = self._by_end(source, text)
        if path is None and text.startswith("../"):
            path = self._side_by_side(text)
        return path

    def _near(self, source: Path, text: str) -> Path | None:
        """Return the file next to the source or under a known include directory."""
        directories = (one for one in self._directories if not self._repository.is_stand_in(one))
        for directory in (source.parent, *directories):
            path = Path(os.path.normpath(directory / text))
            if path.is_relative_to(self._repository.root) and path.is_file():
                return path
        return None

    def _by_end(self, source: Path, text: str) -> Path | None:
        """Return the nearest file whose path ends like the include; the directory above that end becomes known."""
        if text.startswith("../"):
            return None
        parts = PurePosixPath(os.path.normpath(text)).parts
        candidates = _ending(self._repository.named(parts[-1]), parts)
        if not candidates:
            return None
        path = min(candidates, key=lambda one: self._repository.distance(source, one))
        # An include may name another architecture: tiling functions choose between architectures at run time.
        if not self._repository.is_other_architecture(path) or _names_architecture(text):
            self._directories[path.parents[len(parts) - 1]] = None
        return path

    def _side_by_side(self, text: str) -> Path | None:
        """Return the file of ``../<operator>/<file>``: CANN's build puts all operators' ``op_kernel`` side by side."""
        operator, *rest = PurePosixPath(text.lstrip("./")).parts
        if not rest:
            return None
        end = (operator, "op_kernel", *rest)
        path = min(_ending(self._repository.named(rest[-1]), end), default=None)
        if path is not None:
            self._siblings[operator] = path.parents[len(rest) - 1]
        return path

    def _helpers_of(self, header: Path) -> Iterator[Path]:
        """Yield the source of a header's functions: the nearest with the header's name."""
        if header.suffix in SOURCE_SUFFIXES or "op_kernel" in header.parts:
            return
        repository = self._repository
        if self._form is not None and self._form in header.relative_to(repository.root).parts:
            yield from [p for suffix in SOURCE_SUFFIXES if (p := header.with_suffix(suffix)).is_file()][:1]
            return
        candidates = [
            path
            for suffix in SOURCE_SUFFIXES
            for path in repository.named(header.stem + suffix)
            if OTHER_FORMS.isdisjoint(path.relative_to(repository.root).parts)
            and not repository.is_stand_in(path)
            and not repository.is_other_architecture(path)
            and repository.belongs_to(path, header)
        ]
        if candidates:
            yield min(candidates, key=lambda one: repository.distance(header, one))


@cache
def _guards(toolkit: Path) -> Mapping[str, str]:
    """Return the include guards of the headers in the toolkit's directories, by their paths."""
    found = sorted(path for directory in toolkit.iterdir() if directory.is_dir() for path in directory.rglob("*.h"))
    return {str(path.relative_to(toolkit)): guard for path in found if (guard := _guard(path))}


def _guard(header: Path) -> str:
    found = _GUARD.search(text_of(header))
    return found[1] if found is not None else ""


def _below(root: Path, text: str, source: Path) -> tuple[Path, Path] | None:
    """Return the nearest header whose path ends like an include, and the directory above that end."""
    parts = PurePosixPath(os.path.normpath(text)).parts
    candidates = _ending(files_below(root).get(parts[-1], ()), parts)
    if not candidates:
        return None

    def order(path: Path) -> tuple[int, int, str]:
        return -len(Path(os.path.commonpath([source, path])).parts), len(path.parts), str(path)

    path = min(candidates, key=order)
    return path, path.parents[len(parts) - 1]


def _ending(paths: Iterable[Path], end: tuple[str, ...]) -> list[Path]:
    return [path for path in paths if path.parts[-len(end) :] == end]


def _names_architecture(include: str) -> bool:
    return any(ARCHITECTURE_DIRECTORY.fullmatch(part) for part in PurePosixPath(include).parts[:-1])


def _in_any(text: str, directories: Iterable[Path]) -> bool:
    return any((directory / text).is_file() for directory in directories)


@cache
def _system_directories() -> tuple[Path, ...]:
    """Return the compiler's own include directories."""
    done = subprocess.run(
        [*compiler(), "-x", "c++", "-E", "-v", os.devnull], capture_output=True, text=True, check=False
    )
    _, _, listed = done.stderr.partition("search starts here:")
    return tuple(Path(line.strip()) for line in listed.splitlines() if line.startswith(" /"))

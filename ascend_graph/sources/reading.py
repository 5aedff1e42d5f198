"""Reading of a text, a file or a directory with one reader."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ascend_graph.sources.diagnostics import Diagnostic, Severity
from ascend_graph.sources.text import SourceError

#: The headers of a directory; a file named explicitly may have any name.
HEADER_SUFFIXES = (".h", ".hpp", ".hh")

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Reader(Generic[Result]):
    """Reading functions for one kind of source."""

    #: Tells whether a string is a text of this kind, not a path.
    is_text: Callable[[str], bool]
    parse_text: Callable[[str], Result]
    parse_file: Callable[[Path], Result]
    #: Tells whether a file of a directory may be of this kind.
    belongs: Callable[[Path], bool]
    merge: Callable[[Iterable[Result]], Result]
    #: Builds a result that contains only a diagnostic.
    remark: Callable[[Diagnostic], Result]
    #: The valid sources, for the error message of a missing path.
    expected: str

    def read(self, source: str | Path) -> Result:
        """Read a text, a file, or every matching file under a directory in name order.

        A file of a directory that cannot be read is reported in the diagnostics; one named directly is an error.

        Raises:
            SourceError: ``source`` is neither a text nor a readable path.
        """
        if isinstance(source, str) and self.is_text(source):
            return self.parse_text(source)
        if not isinstance(source, str | os.PathLike) or not os.fspath(source):
            raise SourceError(f"source={source!r}: not a path and not a text; pass {self.expected}")
        path = Path(source).expanduser()
        if path.is_dir():
            return self.read_all(self.files(path))
        if not path.exists():
            raise SourceError(f"{source}: file or directory not found; pass {self.expected}")
        return self.parse_file(path)

    def read_all(self, paths: Iterable[Path]) -> Result:
        """Read several files; one that cannot be read is reported in the diagnostics."""
        return self.merge(self.read_or_report(path) for path in paths)

    def read_or_report(self, path: Path) -> Result:
        """Read a file; report one that cannot be read as a diagnostic."""
        try:
            return self.parse_file(path)
        except SourceError as error:
            return self.remark(Diagnostic(Severity.ERROR, str(error).removeprefix(f"{path}: "), str(path)))

    def files(self, directory: Path) -> Iterator[Path]:
        """Yield the matching files under a directory in name order."""
        for parent, directories, names in os.walk(directory):
            directories.sort()
            for path in (Path(parent, name) for name in sorted(names)):
                if self.belongs(path):
                    yield path

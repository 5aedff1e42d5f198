"""A text, a file or a directory → what a reader makes of it."""

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
    """How sources of one sort are read."""

    #: Whether a string is a text of this sort and not a path.
    is_text: Callable[[str], bool]
    parse_text: Callable[[str], Result]
    parse_file: Callable[[Path], Result]
    #: Whether a file of a directory may be of this sort.
    belongs: Callable[[Path], bool]
    merge: Callable[[Iterable[Result]], Result]
    #: The result that is nothing but a remark.
    remark: Callable[[Diagnostic], Result]
    #: What to pass, for the message of a path that does not exist.
    expected: str

    def read(self, source: str | Path) -> Result:
        """Read a text, a file, or every file below a directory that belongs, in the order of their names.

        A file of a directory that cannot be read is reported in the diagnostics; one named directly is an error.

        Raises:
            SourceError: ``source`` is no text, and no path that can be read.
        """
        if isinstance(source, str) and self.is_text(source):
            return self.parse_text(source)
        path = Path(source).expanduser()
        if path.is_dir():
            return self.read_all(self.files(path))
        if not path.exists():
            raise SourceError(f"{source}: there is no such file or directory; pass {self.expected}")
        return self.parse_file(path)

    def read_all(self, paths: Iterable[Path]) -> Result:
        """Read several files; one that cannot be read is reported in the diagnostics."""
        return self.merge(self.read_or_report(path) for path in paths)

    def read_or_report(self, path: Path) -> Result:
        """Read a file; that it cannot be read is a remark."""
        try:
            return self.parse_file(path)
        except SourceError as error:
            return self.remark(Diagnostic(Severity.ERROR, str(error).removeprefix(f"{path}: "), str(path)))

    def files(self, directory: Path) -> Iterator[Path]:
        """The files below a directory that belong, in the order of their names."""
        for parent, directories, names in os.walk(directory):
            directories.sort()
            for path in (Path(parent, name) for name in sorted(names)):
                if self.belongs(path):
                    yield path

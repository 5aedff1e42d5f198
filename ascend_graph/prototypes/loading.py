"""Files, directories and texts → prototypes, whatever form the source has."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ascend_graph.prototypes.msopgen import parse_msopgen
from ascend_graph.prototypes.opdef import mentions_op_def, parse_op_defs
from ascend_graph.prototypes.parser import ParseResult, merge_results, parse_source, parse_text
from ascend_graph.sources.diagnostics import Diagnostic, Severity
from ascend_graph.sources.text import SourceError, SourceText, read_source

#: The files of a directory that may hold prototypes; a file named explicitly may have any name.
HEADER_SUFFIXES = (".h", ".hpp", ".hh")


def is_text(source: str) -> bool:
    """Whether a string is prototype text and not a path: it has several lines or a REG_OP call.

    >>> is_text("REG_OP(A).OP_END_FACTORY_REG(A)"), is_text("op_proto/add_custom.h")
    (True, False)
    """
    return "\n" in source or "REG_OP(" in source.replace(" ", "")


def read_prototypes(source: str | Path) -> ParseResult:
    """Read a text, a file, or every header below a directory, in the order of their names.

    A file of a directory that cannot be read is reported in the diagnostics; one named directly is an error.

    Raises:
        SourceError: ``source`` is no text, and no path that can be read.
    """
    if isinstance(source, str) and is_text(source):
        return parse_text(source)
    path = Path(source).expanduser()
    if path.is_dir():
        return read_all(prototype_files(path))
    if not path.exists():
        raise SourceError(
            f"{source}: there is no such file or directory; pass a header, a directory with headers, or REG_OP text"
        )
    return read_file(path)


def read_file(path: Path) -> ParseResult:
    """Read one file by the form it has."""
    return parse_any(read_source(path), path.suffix)


def parse_any(source: SourceText, suffix: str) -> ParseResult:
    """Read a source by the form it has: msOpGen JSON, OpDef classes, or REG_OP text."""
    if suffix == ".json":
        return parse_msopgen(source)
    if mentions_op_def(source.code):
        classes = parse_op_defs(source)
        macros = parse_source(source)  # its remarks include those made before
        return ParseResult((*classes.prototypes, *macros.prototypes), macros.diagnostics)
    return parse_source(source)


def prototype_files(directory: Path) -> Iterator[Path]:
    """The headers and OpDef sources below a directory, in the order of their names."""
    for parent, directories, names in os.walk(directory):
        directories.sort()
        for name in sorted(names):
            is_op_host = Path(parent).name == "op_host" and name.endswith((".cpp", ".cc"))
            if name.endswith((*HEADER_SUFFIXES, "_def.cpp")) or is_op_host:
                yield Path(parent, name)


def read_all(paths: Iterable[Path]) -> ParseResult:
    """Read several files; one that cannot be read is reported in the diagnostics."""
    return merge_results(_read_or_report(path) for path in paths)


def _read_or_report(path: Path) -> ParseResult:
    try:
        return read_file(path)
    except SourceError as error:
        message = str(error).removeprefix(f"{path}: ")
        return ParseResult(diagnostics=(Diagnostic(Severity.ERROR, message, str(path)),))

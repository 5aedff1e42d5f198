"""Loading of prototypes from files, directories and texts, whatever form the source has."""

from __future__ import annotations

from pathlib import Path

from ascend_graph.prototypes.msopgen import parse_msopgen
from ascend_graph.prototypes.opdef import mentions_op_def, parse_op_defs
from ascend_graph.prototypes.parser import ParseResult, merge_results, parse_source, parse_text
from ascend_graph.sources.reading import HEADER_SUFFIXES, Reader
from ascend_graph.sources.text import SourceText, read_source


def is_text(source: str) -> bool:
    """Return whether a string is prototype text, not a path: it has several lines or a REG_OP call.

    >>> is_text("REG_OP(A).OP_END_FACTORY_REG(A)"), is_text("op_proto/add_custom.h")
    (True, False)
    """
    return "\n" in source or "REG_OP(" in source.replace(" ", "")


def read_file(path: Path) -> ParseResult:
    """Read one file according to its form."""
    source = read_source(path)
    if mentions_op_def(source.code):
        source.add_included(path)
    return parse_any(source, path.suffix)


def parse_any(source: SourceText, suffix: str) -> ParseResult:
    """Read a source according to its form: msOpGen JSON, OpDef classes, or REG_OP text."""
    if suffix == ".json":
        return parse_msopgen(source)
    if mentions_op_def(source.code):
        classes = parse_op_defs(source)
        macros = parse_source(source)  # its remarks include those made before
        return ParseResult((*classes.prototypes, *macros.prototypes), macros.diagnostics)
    return parse_source(source)


def is_prototype_file(path: Path) -> bool:
    """Return whether a file of a directory may hold prototypes: a header, or the source of OpDefs."""
    is_op_host = path.parent.name == "op_host" and path.name.endswith((".cpp", ".cc"))
    return path.name.endswith((*HEADER_SUFFIXES, "_def.cpp")) or is_op_host


_READER = Reader(
    is_text,
    parse_text,
    read_file,
    is_prototype_file,
    merge_results,
    lambda diagnostic: ParseResult(diagnostics=(diagnostic,)),
    "a header, a directory with headers, or REG_OP text",
)
#: Reader of a text, a file, or a whole directory; see :meth:`~ascend_graph.sources.reading.Reader.read`.
read_prototypes = _READER.read
#: Reader of several files; one that cannot be read is reported in the diagnostics.
read_all = _READER.read_all
#: Iterator over the headers and OpDef sources under a directory, in name order.
prototype_files = _READER.files

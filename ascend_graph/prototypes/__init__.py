"""Parser from REG_OP text to immutable prototypes, and the process's catalog of them.

Pure Python: no torch, no compiler.
"""

from ascend_graph.prototypes.catalog import (
    Catalog,
    PrototypeSyntaxError,
    PrototypeWarning,
    UnknownPrototypeError,
    find_prototype,
    load_prototypes,
    package_directories,
    process_catalog,
)
from ascend_graph.prototypes.dtypes import DataType
from ascend_graph.prototypes.loading import read_prototypes
from ascend_graph.prototypes.model import (
    Attr,
    AttrType,
    AttrValue,
    DataTypeSymbol,
    OpPrototype,
    Parameter,
    ParameterKind,
    PassedAs,
    Subgraph,
)
from ascend_graph.prototypes.parser import ParseResult, parse_file, parse_text
from ascend_graph.sources import SourceError as PrototypeSourceError
from ascend_graph.sources.diagnostics import Diagnostic, Severity

__all__ = [
    "Attr",
    "AttrType",
    "AttrValue",
    "Catalog",
    "DataType",
    "DataTypeSymbol",
    "Diagnostic",
    "OpPrototype",
    "Parameter",
    "ParameterKind",
    "ParseResult",
    "PassedAs",
    "PrototypeSourceError",
    "PrototypeSyntaxError",
    "PrototypeWarning",
    "Severity",
    "Subgraph",
    "UnknownPrototypeError",
    "find_prototype",
    "load_prototypes",
    "package_directories",
    "parse_file",
    "parse_text",
    "process_catalog",
    "read_prototypes",
]

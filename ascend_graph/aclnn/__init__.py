"""Parser from C headers to immutable aclnn functions, and the process's catalog of them.

Pure Python: no torch, no compiler.
"""

from ascend_graph.aclnn.catalog import (
    AclnnCatalog,
    AclnnWarning,
    ConflictingDeclarationsError,
    UnknownFunctionError,
    find_aclnn,
    header_directories,
    load_aclnn,
    process_catalog,
)
from ascend_graph.aclnn.model import AclnnFunction, AclnnParameter, CType, Direction, ValueKind
from ascend_graph.aclnn.parser import AclnnResult, parse_file, parse_text

__all__ = [
    "AclnnCatalog",
    "AclnnFunction",
    "AclnnParameter",
    "AclnnResult",
    "AclnnWarning",
    "CType",
    "ConflictingDeclarationsError",
    "Direction",
    "UnknownFunctionError",
    "ValueKind",
    "find_aclnn",
    "header_directories",
    "load_aclnn",
    "parse_file",
    "parse_text",
    "process_catalog",
]

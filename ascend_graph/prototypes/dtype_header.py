"""Generator of the C++ header of GE's data types: ``python -m ascend_graph.prototypes.dtype_header FILE``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from ascend_graph.prototypes.dtypes import _NOT_OF_ACL, BITS, TORCH_NAMES, DataType


def cpp_header() -> str:
    """Return the header: lists of dtypes as macros, for enumerations and tables in C and C++."""
    of_acl = [dtype for dtype in DataType if dtype not in _NOT_OF_ACL]
    return (
        "// GE's data types, made of ascend_graph/prototypes/dtypes.py.\n"
        "#ifndef ASCEND_GRAPH_DTYPE_TABLE_H\n"
        "#define ASCEND_GRAPH_DTYPE_TABLE_H\n\n"
        "// X(name, number, bits of an element or 0, name in PyTorch or an empty one)\n"
        f"{_macro('ASCEND_GRAPH_DTYPES', DataType)}\n"
        "// Those that ACL has.\n"
        f"{_macro('ASCEND_GRAPH_ACL_DTYPES', of_acl)}\n"
        "#endif  // ASCEND_GRAPH_DTYPE_TABLE_H\n"
    )


def _macro(name: str, dtypes: Iterable[DataType]) -> str:
    rows = (
        f'    X({dtype.name}, {dtype.value}, {BITS.get(dtype, 0)}, "{TORCH_NAMES.get(dtype, "")}")' for dtype in dtypes
    )
    return f"#define {name}(X) \\\n" + " \\\n".join(rows) + "\n"


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.is_file() or target.read_text(encoding="utf-8") != cpp_header():
        target.write_text(cpp_header(), encoding="utf-8")

"""C++ source of the table's functions: ``python -m ascend_graph.host.runtime.aclnn_functions.source FILE`` writes it.

libopapi is compiled from it. Each function has the two functions of the aclnn interface, and a third one: torch_npu
asks it for the memory that a captured graph keeps.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ascend_graph.host.runtime.aclnn_functions.table import C_TYPES, Function, functions


def source() -> str:
    """Return the C++ of the exported functions."""
    return "\n".join(
        ['#include "opapi/function.h"', "", *(_definition(f) for f in functions().values() if f.is_exported)]
    )


def _definition(function: Function) -> str:
    declared = "".join(f"{C_TYPES[p.type]} {p.name}, " for p in function.parameters)
    given = "".join(f", {p.name}" for p in function.parameters)
    sizes = "".join(
        f"ACLNN aclnn{function.name}{which}({declared}uint64_t* workspace_size_, aclOpExecutor** executor_) {{\n"
        f'    return prepare("{function.name}", workspace_size_, executor_{given});\n'
        "}\n"
        for which in ("GetWorkspaceSize", "GetMaxWorkspaceSize")
    )
    return (
        f"{sizes}"
        f"ACLNN aclnn{function.name}(void*, uint64_t, aclOpExecutor* executor, void* stream) {{\n"
        "    return ascendgraphRunExecutor(executor, stream);\n"
        "}\n"
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(source(), encoding="utf-8")

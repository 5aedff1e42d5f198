"""Bridge between the host runtime's libraries and the installed PyTorch.

It is built once and loaded when a device is initialized.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType

from ascend_graph.compilation import CppLibrary, torch_library
from ascend_graph.environment import HostRuntimeError, toolkit_directory
from ascend_graph.host.toolkit import source_directory

NAME = "ascend_graph_host_bridge"


def bridge_library() -> CppLibrary:
    """Return the library that compiles the bridge's sources: each ``unit_*.cpp`` includes some of the others."""
    sources = source_directory() / "bridge"
    toolkit = toolkit_directory()
    units = sorted(sources.glob("unit_*.cpp"), reverse=True)  # the longest first
    included = sorted({*sources.glob("*.cpp")} - {*units})
    library = torch_library(
        NAME,
        units,
        headers=[*included, *sorted(sources.glob("*.h")), *sorted((toolkit / "include/ascend_graph").glob("*.h"))],
        include_directories=[toolkit / "include"],
        library_directories=[toolkit / "lib64"],
        libraries=["ascendcl", "opapi", "ge_runner", "hccl"],
    )
    return replace(library, optimized_always=True)


@cache
def bridge() -> ModuleType:
    """Load the bridge and return it as a Python module.

    Raises:
        HostRuntimeError: the process does not run on the host runtime.
    """
    path = os.environ.get("ASCEND_GRAPH_HOST_BRIDGE")
    if not path:
        raise HostRuntimeError(
            "this process does not run on the host runtime; start it with: python -m ascend_graph.host …"
        )
    spec = importlib.util.spec_from_file_location(NAME, Path(path))
    if spec is None or spec.loader is None:
        raise HostRuntimeError(
            f"ASCEND_GRAPH_HOST_BRIDGE={path} is not an extension module; unset it, or name a .so file"
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

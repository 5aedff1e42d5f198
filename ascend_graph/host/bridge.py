"""The bridge between the host runtime's libraries and the installed PyTorch: built once, loaded when a device is initialised."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path
from types import ModuleType

from ascend_graph.compilation import CppLibrary, torch_library
from ascend_graph.host.toolkit import HostRuntimeError, source_directory, toolkit_directory

NAME = "ascend_graph_host_bridge"


def bridge_library() -> CppLibrary:
    """The bridge's sources and how they are compiled."""
    sources = source_directory() / "bridge"
    toolkit = toolkit_directory()
    return torch_library(
        NAME,
        sorted(sources.glob("*.cpp")),
        headers=[*sorted(sources.glob("*.h")), *sorted((toolkit / "include/ascend_graph").glob("*.h"))],
        include_directories=[toolkit / "include"],
        library_directories=[toolkit / "lib64"],
        libraries=["ascendcl", "opapi", "ge_runner", "hccl"],
    )


@cache
def bridge() -> ModuleType:
    """The loaded bridge, as a Python module.

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
        raise HostRuntimeError(f"ASCEND_GRAPH_HOST_BRIDGE={path} is no extension module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

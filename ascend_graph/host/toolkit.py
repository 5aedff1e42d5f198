"""Host toolkit: the location of its libraries and headers, and the environment that selects them.

The directory is laid out like an installed CANN toolkit (``lib64/``, ``include/``, ``bin/bisheng``, ``compiler/tikcpp/``),
so tools that follow ``ASCEND_HOME_PATH`` find their files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ascend_graph.environment import (
    ACTIVE_VARIABLE,
    AUTHOR_SHAPES_VARIABLE,
    BRIDGE_VARIABLE,
    TRITON_VARIABLE,
    HostRuntimeError,
    host_directories,
    is_strict,
    kernel_timeout,
    processor,
    toolkit_directory,
)


def source_directory() -> Path:
    """Return the directory of the C++ sources that are compiled against the installed PyTorch."""
    for directory in host_directories():
        sources = Path(directory) / "csrc"
        if (sources / "bridge").is_dir():
            return sources
    raise HostRuntimeError(
        "the host runtime's C++ sources are not installed next to ascend_graph/host; install ascend-graph again"
    )


def host_path(environment: Mapping[str, str]) -> str:
    """Return the PATH on the host runtime: first ``bisheng`` and this Python, then the given PATH.

    Authors' scripts thus start the ``python3`` that has this package installed.

    >>> host_path({"PATH": "/usr/bin"}).endswith(":/usr/bin")
    True
    """
    programs = [
        str(toolkit_directory() / "bin"),
        str(Path(sys.executable).parent),
        *environment.get("PATH", os.defpath).split(":"),
    ]
    return ":".join(dict.fromkeys(programs))


def _directories(*parts: str | Path) -> str:
    """Return lists of directories as one, each directory once: a program on the host runtime may start another."""
    return ":".join(dict.fromkeys(one for part in parts for one in str(part).split(":") if one))


def host_environment(environment: Mapping[str, str], bridge: Path | None) -> dict[str, str]:
    """Return ``environment`` with the host toolkit selected.

    The libraries of the operator packages in ``ASCEND_CUSTOM_OPP_PATH`` are on the library path, as a package's own
    ``set_env.bash`` puts them: extensions with an older ``pytorch_npu_helper.hpp`` look for ``libcust_opapi.so`` there.

    The task queue is off: host kernels read memory immediately, so work queued on another thread would be read before it
    is done.

    Raises:
        HostRuntimeError: ``ASCEND_GRAPH_KERNEL_TIMEOUT`` or ``ASCEND_GRAPH_HOST_SOC`` is malformed.
    """
    kernel_timeout(environment)
    processor(environment)
    toolkit = toolkit_directory()
    packages = filter(None, environment.get("ASCEND_CUSTOM_OPP_PATH", "").split(":"))
    library_path = [
        str(toolkit / "lib64"),
        *(f"{package}/op_api/lib" for package in packages),
        *filter(None, environment.get("LD_LIBRARY_PATH", "").split(":")),
    ]
    result = dict(environment)
    result |= {
        ACTIVE_VARIABLE: str(toolkit),
        AUTHOR_SHAPES_VARIABLE: "ascend_graph.host.packages.author_shapes",
        TRITON_VARIABLE: "ascend_graph.host.triton.hook",
        "ASCEND_GRAPH_PYTHON": sys.executable,
        "LD_LIBRARY_PATH": ":".join(dict.fromkeys(library_path)),
        "PATH": host_path(environment),
        # CANN's Python modules (acl), where its own set_env.sh has them.
        "PYTHONPATH": ":".join(
            dict.fromkeys(
                [str(toolkit / "python/site-packages"), *filter(None, environment.get("PYTHONPATH", "").split(":"))]
            )
        ),
        # GE's headers for operators are searched last: torch_npu has some of the same names.
        "CPLUS_INCLUDE_PATH": _directories(environment.get("CPLUS_INCLUDE_PATH", ""), toolkit / "include/op_host"),
        "CMAKE_PREFIX_PATH": _directories(toolkit / "lib64/cmake", environment.get("CMAKE_PREFIX_PATH", "")),
        "ASCEND_HOME_PATH": str(toolkit),
        "ASCEND_TOOLKIT_HOME": str(toolkit),
        "ASCEND_CANN_PACKAGE_PATH": str(toolkit),
        "ASCEND_OPP_PATH": str(toolkit / "opp"),
        "TASK_QUEUE_ENABLE": "0",
    }
    # Build files that name the CANN of another machine, or carry functions around its tools, find the host toolkit by it.
    result.setdefault(
        "CMAKE_TOOLCHAIN_FILE", str(toolkit / "compiler/tikcpp/ascendc_kernel_cmake/host-toolchain.cmake")
    )
    if is_strict(environment):
        # Each tensor then has its own memory, and frees it with the tensor.
        result["PYTORCH_NO_NPU_MEMORY_CACHING"] = "1"
    # Development and CI machines are shared: a CPU kernel's idle threads sleep instead of spinning.
    result.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if bridge is not None:
        result[BRIDGE_VARIABLE] = str(bridge)
    return result

"""The host toolkit: where its libraries and headers are, and the environment that selects them.

The directory is laid out like an installed CANN toolkit (``lib64/``, ``include/``, ``bin/bisheng``, ``compiler/tikcpp/``),
so whatever follows ``ASCEND_HOME_PATH`` finds what it looks for.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import ascend_graph.host
from ascend_graph.errors import AscendGraphError

#: Set, to the toolkit's directory, in every process that runs on the host runtime.
ACTIVE_VARIABLE = "ASCEND_GRAPH_HOST"

#: The library between the host runtime and PyTorch, in every process that has both.
BRIDGE_VARIABLE = "ASCEND_GRAPH_HOST_BRIDGE"

#: The processor that the host stands for, by the name that CANN gives it.
PROCESSOR_VARIABLE = "ASCEND_GRAPH_HOST_SOC"

#: The processors that there are, the default first, and how documents call their series. csrc/host/acl/device.cpp has the names, too.
PROCESSORS = {
    "Ascend910B1": "Atlas A2",
    "Ascend910_9391": "Atlas A3",
    "Ascend950PR_9589": "Ascend 950",
    "Ascend310P3": "Atlas inference series",
}

#: Whether device memory is protected.
STRICT_VARIABLE = "ASCEND_GRAPH_STRICT"

#: Seconds that a kernel, a tiling or a shape function of an author may take.
TIMEOUT_VARIABLE = "ASCEND_GRAPH_KERNEL_TIMEOUT"


#: What the dynamic loader says of a library that it does not find.
_MISSING_LIBRARY = re.compile(r"(lib[\w.+-]+\.so)[\d.]*: cannot open shared object file")


class HostRuntimeError(AscendGraphError):
    """The host runtime is not installed, not active, or must not be activated."""


def toolkit_directory() -> Path:
    """The installed toolkit's directory."""
    for directory in ascend_graph.host.__path__:
        toolkit = Path(directory) / "toolkit"
        if (toolkit / "lib64" / "libascendcl.so").exists():
            return toolkit
    raise HostRuntimeError(
        "the host runtime's libraries are not installed: expected toolkit/lib64/libascendcl.so in "
        f"{', '.join(ascend_graph.host.__path__)}; install ascend-graph from a wheel or with 'pip install -e .'"
    )


def source_directory() -> Path:
    """The C++ sources that are compiled against the installed PyTorch."""
    for directory in ascend_graph.host.__path__:
        sources = Path(directory) / "csrc"
        if (sources / "bridge").is_dir():
            return sources
    raise HostRuntimeError("the host runtime's C++ sources are not installed beside ascend_graph/host")


def is_active() -> bool:
    """Whether this process runs on the host runtime."""
    return ACTIVE_VARIABLE in os.environ


def is_strict(environment: Mapping[str, str]) -> bool:
    """Whether device memory is kept from everybody but kernels and copies.

    Raises:
        HostRuntimeError: ``ASCEND_GRAPH_STRICT`` is neither 0 nor 1.
    """
    value = environment.get(STRICT_VARIABLE, "0") or "0"
    if value not in ("0", "1"):
        raise HostRuntimeError(f"{STRICT_VARIABLE}={value}: write 1, or 0")
    return value == "1"


def processor(environment: Mapping[str, str]) -> str:
    """The processor that the host stands for.

    Raises:
        HostRuntimeError: ``ASCEND_GRAPH_HOST_SOC`` is none of ``PROCESSORS``.

    >>> processor({}), processor({"ASCEND_GRAPH_HOST_SOC": "Ascend950PR_9589"})
    ('Ascend910B1', 'Ascend950PR_9589')
    """
    name = environment.get(PROCESSOR_VARIABLE, "") or next(iter(PROCESSORS))
    if name not in PROCESSORS:
        raise HostRuntimeError(f"{PROCESSOR_VARIABLE}={name}: write one of {', '.join(PROCESSORS)}")
    return name


def real_cann(environment: Mapping[str, str]) -> str | None:
    """The first place where the environment names a CANN that is not the host toolkit's, or None."""
    toolkit = str(toolkit_directory())
    for variable in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH"):
        value = environment.get(variable)
        if value and not value.startswith(toolkit) and Path(value).exists():
            return f"{variable}={value}"
    for entry in environment.get("LD_LIBRARY_PATH", "").split(":"):
        if entry and not entry.startswith(toolkit) and (Path(entry) / "libascendcl.so").exists():
            return f"LD_LIBRARY_PATH has {entry}/libascendcl.so"
    default = Path("/usr/local/Ascend/ascend-toolkit/latest")
    return str(default) if default.exists() else None


def without_cann(error: BaseException) -> str | None:
    """What to do, in one sentence, where an import failed because there is no CANN; None for another error.

    PyTorch imports torch_npu with itself, so that ``import torch`` fails with what torch_npu misses.
    """
    found: BaseException | None = error
    while found is not None:
        missing = _MISSING_LIBRARY.search(str(found)) if isinstance(found, ImportError) else None
        if missing is not None and (toolkit_directory() / "lib64" / missing[1]).exists():
            if cann := real_cann(os.environ):
                return (
                    f"torch_npu does not find {missing[1]} of CANN ({cann}): source the set_env.sh of that installation"
                )
            return (
                f"torch_npu does not find {missing[1]}, as there is no CANN here: on a machine with an NPU source CANN's "
                "set_env.sh; without one start the program on the host runtime: ascend-graph run script.py, "
                "or ascend-graph run -m pytest"
            )
        found = found.__cause__ or found.__context__
    return None


def kernel_timeout(environment: Mapping[str, str]) -> float | None:
    """The seconds after which authors' code (kernels, tiling and shape functions) is ended; None for no limit.

    Raises:
        HostRuntimeError: ``ASCEND_GRAPH_KERNEL_TIMEOUT`` is no number of seconds from 0.001 to 1e9.
    """
    text = environment.get(TIMEOUT_VARIABLE, "")
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 1e-3 <= seconds <= 1e9:
        raise HostRuntimeError(f"{TIMEOUT_VARIABLE}={text}: write seconds, from 0.001 to 1e9; unset it for no limit")
    return seconds


def host_environment(environment: Mapping[str, str], bridge: Path | None) -> dict[str, str]:
    """``environment`` with the host toolkit selected.

    The libraries of the operator packages in ``ASCEND_CUSTOM_OPP_PATH`` are on the library path, as a package's own
    ``set_env.bash`` puts them: extensions with an older ``pytorch_npu_helper.hpp`` look for ``libcust_opapi.so`` there.

    The task queue is off: the kernels that stand in for the device read memory at once, so work queued on another thread
    would be read before it is done.

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
    # `bisheng`, and the `python3` of authors' build scripts: the one that has this package.
    programs = [str(toolkit / "bin"), str(Path(sys.executable).parent), *environment.get("PATH", os.defpath).split(":")]
    result = dict(environment)
    result |= {
        ACTIVE_VARIABLE: str(toolkit),
        "ASCEND_GRAPH_PYTHON": sys.executable,
        "LD_LIBRARY_PATH": ":".join(dict.fromkeys(library_path)),
        "PATH": ":".join(dict.fromkeys(programs)),
        # GE's headers for operators are looked for last: torch_npu has some of the same names.
        "CPLUS_INCLUDE_PATH": ":".join(
            [*filter(None, environment.get("CPLUS_INCLUDE_PATH", "").split(":")), str(toolkit / "include/op_host")]
        ),
        "CMAKE_PREFIX_PATH": ":".join(
            [str(toolkit / "lib64/cmake"), *filter(None, environment.get("CMAKE_PREFIX_PATH", "").split(":"))]
        ),
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
        # Each tensor has memory of its own then, and gives it back when it goes.
        result["PYTORCH_NO_NPU_MEMORY_CACHING"] = "1"
    # Development and CI machines are shared: a CPU kernel's idle threads sleep instead of spinning.
    result.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if bridge is not None:
        result[BRIDGE_VARIABLE] = str(bridge)
    return result

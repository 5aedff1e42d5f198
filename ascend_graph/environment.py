"""Environment of this process: presence of a real CANN, state of the host runtime, and place of its toolkit."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from ascend_graph.errors import AscendGraphError
from ascend_graph.processors import DEFAULT_PROCESSOR, PROCESSORS

#: Variable with the toolkit's directory, set in every process that runs on the host runtime.
ACTIVE_VARIABLE = "ASCEND_GRAPH_HOST"


#: Variable with the library between the host runtime and PyTorch, set in every process that has both.
BRIDGE_VARIABLE = "ASCEND_GRAPH_HOST_BRIDGE"


#: Variable with the SoC that the host stands for, by CANN's name.
PROCESSOR_VARIABLE = "ASCEND_GRAPH_HOST_SOC"


#: Variable that protects device memory if it is 1.
STRICT_VARIABLE = "ASCEND_GRAPH_STRICT"


#: Variable with the module that infers installed packages' shapes, set in every process on the host runtime.
AUTHOR_SHAPES_VARIABLE = "ASCEND_GRAPH_AUTHOR_SHAPES"


#: Variable with the module that lets Triton-Ascend find the host's devices, set in every process on the host runtime.
TRITON_VARIABLE = "ASCEND_GRAPH_TRITON"


#: Variable that lets kernels in Ascend C check that their pipes wait for one another.
PIPES_VARIABLE = "ASCEND_GRAPH_KERNEL_PIPES"


#: Variable that lets operations of kernels in Ascend C go on beyond their buffer, as on a device.
OVERRUNS_VARIABLE = "ASCEND_GRAPH_KERNEL_OVERRUNS"


#: Variable with the time limit of an author's kernel, tiling or shape function, in seconds.
TIMEOUT_VARIABLE = "ASCEND_GRAPH_KERNEL_TIMEOUT"


#: Message of the dynamic loader about a library that it does not find.
_MISSING_LIBRARY = re.compile(r"(lib[\w.+-]+\.so)[\d.]*: cannot open shared object file")


class HostRuntimeError(AscendGraphError):
    """Error of a host runtime that is not installed, not active, or must not be activated."""


def host_directories() -> list[str]:
    """Return the directories of the package ``ascend_graph.host``: an editable install has two."""
    spec = find_spec("ascend_graph.host")
    return list(spec.submodule_search_locations or ()) if spec is not None else []


def toolkit_directory() -> Path:
    """Return the installed toolkit's directory."""
    for directory in host_directories():
        toolkit = Path(directory) / "toolkit"
        if (toolkit / "lib64" / "libascendcl.so").exists():
            return toolkit
    raise HostRuntimeError(
        "the host runtime's libraries are not installed: expected toolkit/lib64/libascendcl.so in "
        f"{', '.join(host_directories())}; install ascend-graph from a wheel or with 'pip install -e .'"
    )


def is_active() -> bool:
    """Return whether this process runs on the host runtime."""
    return ACTIVE_VARIABLE in os.environ


def is_strict(environment: Mapping[str, str]) -> bool:
    """Return whether only kernels and copies may access device memory.

    Raises:
        HostRuntimeError: ``ASCEND_GRAPH_STRICT`` is neither 0 nor 1.
    """
    value = environment.get(STRICT_VARIABLE, "0") or "0"
    if value not in ("0", "1"):
        raise HostRuntimeError(f"{STRICT_VARIABLE}={value}: write 1, or 0")
    return value == "1"


def processor(environment: Mapping[str, str]) -> str:
    """Return the name of the SoC that the host stands for.

    Raises:
        HostRuntimeError: ``ASCEND_GRAPH_HOST_SOC`` is not one of ``PROCESSORS``.

    >>> processor({}), processor({"ASCEND_GRAPH_HOST_SOC": "Ascend950PR_9589"})
    ('Ascend910B1', 'Ascend950PR_9589')
    """
    name = environment.get(PROCESSOR_VARIABLE, "") or DEFAULT_PROCESSOR
    if name not in PROCESSORS:
        raise HostRuntimeError(f"{PROCESSOR_VARIABLE}={name}: write one of {', '.join(PROCESSORS)}")
    return name


def real_cann(environment: Mapping[str, str]) -> str | None:
    """Return the first place in the environment with a CANN other than the host toolkit, or None."""
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
    """Return the remedy, in one sentence, for an import that failed without CANN; None for another error.

    PyTorch imports torch_npu with itself, so ``import torch`` fails if torch_npu lacks a library.
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
                f"torch_npu does not find {missing[1]}, as CANN is not installed here: on a machine with an NPU source CANN's "
                "set_env.sh; without one start the program on the host runtime: ascend-graph run script.py, "
                "or ascend-graph run -m pytest"
            )
        found = found.__cause__ or found.__context__
    return None


def kernel_timeout(environment: Mapping[str, str]) -> float | None:
    """Return the time limit in seconds of authors' code (kernels, tiling and shape functions), or None for no limit.

    Raises:
        HostRuntimeError: ``ASCEND_GRAPH_KERNEL_TIMEOUT`` is not a number of seconds from 0.001 to 1e9.
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

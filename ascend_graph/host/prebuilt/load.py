"""Load companions of installed packages that CANN built into the graph engine."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.packages.format import LIBRARY, OperatorPackageError, open_package
from ascend_graph.host.packages.load import package_kernel
from ascend_graph.host.packages.prebuilt import prebuilt_package

if TYPE_CHECKING:
    from ascend_graph.host.kernels import HostKernel

#: Without the working directory, where anything may lie.
_BUILD = "import sys; sys.path.pop(0); from ascend_graph.host.prebuilt.companion import main; main()"
_loaded: dict[Path, ctypes.CDLL] = {}


@cache
def find_prebuilt_kernel(op_type: str) -> HostKernel | None:
    """Return the kernel of an operator that the first installed package with it carries as a source, or None.

    Raises:
        OperatorPackageError: The package has the operator, but cannot be used on the host.
    """
    directory = prebuilt_package(op_type)
    if directory is None:
        return None
    # In a process of its own, as for aclnn calls: the package's libraries are asked what they register.
    run = subprocess.run(
        [sys.executable, "-c", _BUILD, str(directory), op_type], stdout=subprocess.PIPE, text=True, check=False
    )
    if run.returncode != 0:
        raise OperatorPackageError(
            run.stdout.strip() or f"{op_type}: the build of its kernel failed without a message; see the output above"
        )
    package = open_package(Path(run.stdout.strip()))
    if package is None:
        raise HostRuntimeError(f"{op_type}: {run.stdout.strip()} is not an operator package; remove it from the cache")
    library = package.directory / LIBRARY
    # Its functions have the names of the package's own, which callers mean.
    _loaded[library] = ctypes.CDLL(str(library), os.RTLD_NOW | os.RTLD_LOCAL)
    return package_kernel(package, op_type)

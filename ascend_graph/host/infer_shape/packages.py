"""InferShape functions of a package that need not be installed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ascend_graph.host.packages.author_shapes import package_function
from ascend_graph.host.packages.format import OperatorPackageError, open_package, package_prototype
from ascend_graph.host.packages.load import installed_packages
from ascend_graph.shapes.functions import ShapeFunction


def package_functions(directory: Path, op_types: Iterable[str] = ()) -> list[ShapeFunction]:
    """Return the InferShape functions of a package, of all its operators or of some.

    This process then has the package as its only one (``ASCEND_CUSTOM_OPP_PATH``).

    Raises:
        OperatorPackageError: The directory is not a package with host kernels, it lacks an operator, or no operator has an
            InferShape function.
    """
    directory = directory.resolve()
    package = open_package(directory)
    if package is None:
        raise OperatorPackageError(
            f"{directory}: is not an operator package with host kernels; expected the output of ascend-graph build"
        )
    wanted = tuple(op_types) or tuple(package.metadata)
    if missing := [name for name in wanted if name not in package.metadata]:
        known = ", ".join(package.metadata)
        raise OperatorPackageError(f"{directory}: has no operator {', '.join(missing)}; expected {known}")
    os.environ["ASCEND_CUSTOM_OPP_PATH"] = str(directory)
    installed_packages()
    found = (package_function(package, package_prototype(directory, name)) for name in wanted)
    functions = [function for function in found if function is not None]
    if not functions:
        raise OperatorPackageError(
            f"{directory}: has no InferShape function of {', '.join(wanted)}, as a package of Python kernels has none. Write "
            f"the relations in {directory.name}/relations.ini, or ask a meta function: ascend-graph infer --meta MODULE:FUNCTION"
        )
    return functions

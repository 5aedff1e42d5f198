"""Search for the call of an operator's function: by the header that declares it, or in msOpGen's order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ascend_graph.aclnn import process_catalog
from ascend_graph.binding.calls.call import AclnnCall, msopgen_call
from ascend_graph.binding.calls.matching import bind_call
from ascend_graph.binding.errors import BindingError
from ascend_graph.prototypes import OpPrototype

#: The library of an operator package; CANN's own have other names.
PACKAGE_LIBRARY = "libcust_opapi.so"


def is_package_library(path: str) -> bool:
    """Return whether a library belongs to a custom operator package.

    >>> is_package_library("/opp/vendors/a/op_api/lib/libcust_opapi.so"), is_package_library("/cann/lib64/libopapi.so")
    (True, False)
    """
    return Path(path).name == PACKAGE_LIBRARY


def find_call(
    prototype: OpPrototype,
    function: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    library: str | None = None,
) -> AclnnCall:
    """Return the call plan of an operator's aclnn function.

    Args:
        prototype: The operator.
        function: The function's name, ``aclnn<OpType>`` by default.
        arguments: See :func:`~ascend_graph.binding.calls.matching.bind_call`.
        library: The library that has the function, if that is known.

    Raises:
        BindingError: The declaration does not fit; or no header declares a function of CANN's own libraries, one not
            named ``aclnn<OpType>``, or one with ``arguments``.
        ConflictingDeclarationsError: Two headers declare it differently.
    """
    name = function or f"aclnn{prototype.op_type}"
    declared = process_catalog.get(name)
    if declared is not None:
        return bind_call(prototype, declared, arguments)
    why = "" if library is None or is_package_library(library) else f"{library} is CANN's own, and "
    if why or arguments or name != f"aclnn{prototype.op_type}":
        raise BindingError(
            f"{prototype.op_type} ↔ {name}: no header declares it, {why}its parameters are not known: a function that is called "
            "with others than it has corrupts memory. Its header is looked for in op_api/include of the operator packages and in "
            f'$ASCEND_HOME_PATH/include/aclnnop. Write: ascend_graph.load_aclnn("…/aclnn_….h")'
        )
    if library is None:
        return msopgen_call(
            prototype, name, f"no header declares {name}: msOpGen's order, if an operator package has it"
        )
    return msopgen_call(prototype, name, f"no header declares {name}: msOpGen's order, for a function of {library}")

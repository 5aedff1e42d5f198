"""Lookup of operators by name, for the command line."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import torch

from ascend_graph.errors import AscendGraphError


class OperatorNotFoundError(AscendGraphError, LookupError):
    """Error of a module that cannot be imported, or of an unknown operator."""


def import_extension(module: str) -> None:
    """Import a module that defines operators: a Python module, or a library file for ``torch.ops.load_library``.

    Raises:
        OperatorNotFoundError: It cannot be loaded.
    """
    try:
        if module.endswith(".so"):
            torch.ops.load_library(str(Path(module).resolve()))
        else:
            sys.path.insert(0, "")
            importlib.import_module(module)
    except (ImportError, OSError) as error:
        raise OperatorNotFoundError(
            f"{module}: cannot be imported: {error}. Install it, or correct its name"
        ) from error


def find_overload(name: str) -> torch._ops.OpOverload:
    """Return the overload of ``namespace::op`` or ``namespace::op.overload``.

    >>> find_overload("aten::relu")
    <OpOverload(op='aten.relu', overload='default')>

    Raises:
        OperatorNotFoundError: No overload has that name, or several do and the name does not select one.
    """
    namespace, separator, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    if not separator or not operator:
        raise OperatorNotFoundError(f"{name!r} is not an operator name; write namespace::op or namespace::op.overload")
    packet = getattr(getattr(torch.ops, namespace), operator, None)
    if packet is None:
        raise OperatorNotFoundError(
            f"no operator {namespace}::{operator} is defined; import its extension with --import"
        )
    overloads = packet.overloads()
    if not overload and len(overloads) > 1 and "default" not in overloads:
        raise OperatorNotFoundError(
            f"{name} has several overloads: {', '.join(overloads)}; write {name}.{overloads[0]}"
        )
    wanted = overload or ("default" if "default" in overloads else overloads[0])
    if wanted not in overloads:
        raise OperatorNotFoundError(
            f"{namespace}::{operator} has no overload {wanted!r}; it has: {', '.join(overloads)}"
        )
    found: torch._ops.OpOverload = getattr(packet, wanted)
    return found


def kernel_device(overload: torch._ops.OpOverload) -> str:
    """Return the device of the operator's kernel: ``npu`` if it has one there, otherwise ``cpu``."""
    return "npu" if overload.has_kernel_for_dispatch_key(torch._C.DispatchKey.PrivateUse1) else "cpu"

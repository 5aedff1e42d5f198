"""Operators by name: what the command line is told about operators."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import torch

from ascend_graph.errors import AscendGraphError


class OperatorNotFoundError(AscendGraphError, LookupError):
    """A module cannot be imported, or defines no such operator."""


def import_extension(module: str) -> None:
    """Import what defines operators: a Python module, or the file of a library for ``torch.ops.load_library``.

    Raises:
        OperatorNotFoundError: it cannot be loaded.
    """
    try:
        if module.endswith(".so"):
            torch.ops.load_library(str(Path(module).resolve()))
        else:
            sys.path.insert(0, "")
            importlib.import_module(module)
    except (ImportError, OSError) as error:
        raise OperatorNotFoundError(f"{module}: cannot be imported: {error}") from error


def find_overload(name: str) -> torch._ops.OpOverload:
    """The overload of ``namespace::op`` or ``namespace::op.overload``.

    >>> find_overload("aten::relu")
    <OpOverload(op='aten.relu', overload='default')>

    Raises:
        OperatorNotFoundError: there is none of that name, or several and the name does not say which.
    """
    namespace, separator, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    if not separator or not operator:
        raise OperatorNotFoundError(f"{name!r} is no operator name; write namespace::op or namespace::op.overload")
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
    """Where the operator has a kernel: ``npu`` if there, otherwise ``cpu``."""
    return "npu" if overload.has_kernel_for_dispatch_key(torch._C.DispatchKey.PrivateUse1) else "cpu"

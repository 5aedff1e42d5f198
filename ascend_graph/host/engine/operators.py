"""What the graph engine knows of an operator by its name: its kernel and its prototype."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_graph.host.ops import HostKernel, find_host_kernel
from ascend_graph.host.toolkit import HostRuntimeError

if TYPE_CHECKING:
    from ascend_graph.prototypes import OpPrototype


def find_kernel(op_type: str) -> HostKernel | None:
    """The kernel of a GE operator: of an installed operator package, or else built in."""
    from ascend_graph.host.package import find_package_kernel

    return find_package_kernel(op_type) or find_host_kernel(op_type)


def describe_operator(op_type: str) -> list[tuple[str, str, str]]:
    """Role, name and kind of an operator's parameters, as the graph engine reports registered operators.

    Installed operator packages and loaded headers come first, then the prototypes that torchair's wheel documents.

    Raises:
        HostRuntimeError: no prototype is known.
    """
    prototype = _prototype(op_type)
    if prototype is None:
        raise HostRuntimeError(f"no prototype of {op_type} is loaded, installed or documented by torchair")
    return [
        *(("i", p.name, p.kind.value) for p in prototype.inputs),
        *(("o", p.name, p.kind.value) for p in prototype.outputs),
        *(("a", a.name, _IR_TYPES.get(a.type.value, "VT_" + a.type.value.upper())) for a in prototype.attrs),
    ]


_IR_TYPES = {
    "Int": "VT_INT",
    "Float": "VT_FLOAT",
    "Bool": "VT_BOOL",
    "String": "VT_STRING",
    "Type": "VT_DATA_TYPE",
    "Tensor": "VT_TENSOR",
    "Bytes": "VT_BYTES",
    "ListInt": "VT_LIST_INT",
    "ListFloat": "VT_LIST_FLOAT",
    "ListBool": "VT_LIST_BOOL",
    "ListString": "VT_LIST_STRING",
    "ListType": "VT_LIST_DATA_TYPE",
    "ListTensor": "VT_LIST_TENSOR",
    "ListListInt": "VT_LIST_LIST_INT",
    "NamedAttrs": "VT_NAMED_ATTRS",
    "ListNamedAttrs": "VT_LIST_NAMED_ATTRS",
}


def _prototype(op_type: str) -> OpPrototype | None:
    from ascend_graph.prototypes import UnknownPrototypeError, find_prototype

    try:
        return find_prototype(op_type)
    except UnknownPrototypeError:
        return documented_prototype(op_type)


def documented_prototype(op_type: str) -> OpPrototype | None:
    """The prototype that torchair's wheel carries as the docstring of the operator's raw op; None without one."""
    from torchair._ge_concrete_graph import auto_generated_ge_raw_ops as raw_ops

    from ascend_graph.prototypes import parse_text

    function = getattr(raw_ops, op_type, None) or getattr(raw_ops, f"_{op_type}", None)
    text = getattr(function, "__doc__", None)
    if not text:
        return None
    parsed = parse_text(f"{text}\n.OP_END_FACTORY_REG({op_type})").prototypes  # the wheel leaves the end off
    return next((p for p in parsed if p.op_type == op_type), None)

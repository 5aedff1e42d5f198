"""Kernel and prototype of an operator, found by its name."""

from __future__ import annotations

import ast
import contextlib
import inspect
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.kernels import HostKernel, find_host_kernel
from ascend_graph.host.runtime.aclnn_functions.dtypes import documented_dtypes
from ascend_graph.host.runtime.aclnn_functions.table import functions

if TYPE_CHECKING:
    from ascend_graph.prototypes import DataType, OpPrototype


def find_kernel(op_type: str) -> HostKernel | None:
    """Find the kernel of a GE operator: an installed operator package's, a built-in one, or a library class's."""
    from ascend_graph.host.packages.load import find_package_kernel
    from ascend_graph.host.prebuilt.load import find_prebuilt_kernel
    from ascend_graph.host.runtime.engine.custom import find_custom_kernel

    return (
        find_package_kernel(op_type)
        or find_prebuilt_kernel(op_type)
        or find_host_kernel(op_type)
        or find_custom_kernel(op_type)
    )


def describe_operator(op_type: str) -> list[tuple[str, str, str]]:
    """Return role, name and kind of an operator's parameters, as the graph engine reports registered operators.

    Installed operator packages and loaded headers come first, then the prototypes that torchair's wheel documents, then
    those of libraries that execute the operator. For other operators the host's kernel is the source, which does not
    know names of outputs.

    Raises:
        HostRuntimeError: no prototype is known.
    """
    prototype, kernel = _prototype(op_type), find_host_kernel(op_type)
    if prototype is None and kernel is not None:
        return _described(kernel)
    if prototype is None:
        raise HostRuntimeError(
            f"no prototype of {op_type} is loaded, installed or documented by torchair; load its REG_OP with "
            "load_prototypes"
        )
    return [
        *(("i", p.name, p.kind.value) for p in prototype.inputs),
        *(("o", p.name, p.kind.value) for p in prototype.outputs),
        *(("a", a.name, _IR_TYPES.get(a.type.value, "VT_" + a.type.value.upper())) for a in prototype.attrs),
    ]


def input_dtypes(op_type: str) -> Mapping[str, frozenset[DataType]]:
    """Return the dtypes that an operator takes by input, from the documents of its aclnn functions and its prototypes.

    Prototypes alone do not suffice, for the wheel's are older than TorchAir's converters, which declare cases with more
    dtypes. An input is left out if a function has no documented dtypes for it.
    """
    from ascend_graph.prototypes import UnknownPrototypeError, find_prototype

    found = dict(_documented_inputs().get(op_type, {}))
    known = [documented_prototype(op_type)]
    with contextlib.suppress(UnknownPrototypeError):
        known.append(find_prototype(op_type))
    for parameter in (parameter for prototype in known if prototype is not None for parameter in prototype.inputs):
        if parameter.name in found:
            found[parameter.name] |= frozenset(parameter.dtypes)
    return found


@cache
def _documented_inputs() -> Mapping[str, Mapping[str, frozenset[DataType]]]:
    """Return by operator and input the dtypes documented for it in every aclnn function of the operator."""
    rules: dict[str, dict[str, list[frozenset[DataType] | None]]] = {}
    for function in functions().values():
        kernel = find_host_kernel(function.op_type)
        documented = documented_dtypes().get(function.symbol, {})
        for name, given in zip(kernel.inputs if kernel is not None else (), function.inputs, strict=False):
            if isinstance(given, ast.Name):
                rules.setdefault(function.op_type, {}).setdefault(name, []).append(documented.get(given.id))
    return {
        op_type: {
            name: frozenset().union(*(dtypes for dtypes in all_ if dtypes))
            for name, all_ in inputs.items()
            if all(all_)
        }
        for op_type, inputs in rules.items()
    }


def _described(kernel: HostKernel) -> list[tuple[str, str, str]]:
    """Describe an operator by its kernel's signature."""
    parameters = inspect.signature(kernel.function).parameters
    kinds = {str: "String", int: "Int", float: "Float", bool: "Bool"}
    types = {kind.__name__: _IR_TYPES[name] for kind, name in kinds.items()}
    types |= {f"list[{kind.__name__}]": _IR_TYPES["List" + name] for kind, name in kinds.items()}
    annotations = {name: str(parameters[name].annotation).split(" | ")[0] for name in sorted(kernel.attrs)}
    return [
        *(("i", name, "dynamic" if name in kernel.dynamic_inputs else _need(kernel, name)) for name in kernel.inputs),
        *(("a", name, types[text]) for name, text in annotations.items() if text in types),
    ]


def _need(kernel: HostKernel, name: str) -> str:
    return "required" if name in kernel.required_inputs else "optional"


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
    from ascend_graph.host.runtime.engine.custom import custom_prototype
    from ascend_graph.prototypes import UnknownPrototypeError, find_prototype

    try:
        return find_prototype(op_type)
    except UnknownPrototypeError:
        return documented_prototype(op_type) or custom_prototype(op_type)


def documented_prototype(op_type: str) -> OpPrototype | None:
    """Return the prototype in the docstring of torchair's raw op of the operator, or None."""
    from torchair._ge_concrete_graph import auto_generated_ge_raw_ops as raw_ops

    from ascend_graph.prototypes import parse_text

    function = getattr(raw_ops, op_type, None) or getattr(raw_ops, f"_{op_type}", None)
    text = getattr(function, "__doc__", None)
    if not text:
        return None
    parsed = parse_text(f"{text}\n.OP_END_FACTORY_REG({op_type})").prototypes  # the wheel leaves the end off
    return next((p for p in parsed if p.op_type == op_type), None)

"""Single operators without a graph, run by the graph engine's kernels: a GE operator type, tensors and attrs.

torch_npu sends operators without an aclnn function here, through the aclop interface. Hand-written aclnn functions
launch operators that no operator package has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.dtypes import ge_dtype
from ascend_graph.host.kernels import HostKernel
from ascend_graph.host.runtime.engine import describe_operator, find_kernel

Named = tuple[str, Any]


def run_operator(op_type: str, inputs: Sequence[Named], attrs: Sequence[Named], outputs: Sequence[Named]) -> None:
    """Run one operator and write its outputs.

    Args:
        op_type: GE's operator type.
        inputs: name (may be empty) and CPU tensor, or None for an absent optional input, in the prototype's order.
        attrs: name and value; without names in the prototype's order.
        outputs: name and the CPU tensor to write.

    Raises:
        HostRuntimeError: there is no kernel, or its results do not fit the outputs.
    """
    for (name, target), result in zip(outputs, _results(op_type, inputs, attrs), strict=False):
        if target is None or target is result:
            continue
        if target.numel() != result.numel():
            raise HostRuntimeError(
                f"{op_type}: output {name or '?'} has shape {tuple(result.shape)}; expected {tuple(target.shape)}, as "
                "the caller allocated"
            )
        target.copy_(result.reshape(target.shape))


def infer_operator(op_type: str, inputs: Sequence[Named], attrs: Sequence[Named], outputs: Sequence[Named]) -> None:
    """Write dtype, rank and sizes of an operator's outputs, as its kernel computes them of tensors without values.

    Args:
        op_type: GE's operator type.
        inputs: name (may be empty) and CPU tensor, which has no memory if its values are not known.
        attrs: name and value; without names in the prototype's order.
        outputs: name and an int64 tensor for each output.

    Raises:
        HostRuntimeError: there is no kernel, or the shapes depend on values that are not known.
    """
    given = [(name, _without_memory(value)) for name, value in inputs]
    try:
        results = _results(op_type, given, attrs)
    except HostRuntimeError:
        raise
    except RuntimeError as error:
        raise HostRuntimeError(
            f"{op_type}: the shapes of its outputs are not known before it runs: {error}; expected shapes that depend on no "
            "values, or on constants (ConvertToTensor)"
        ) from error
    for (_, target), result in zip(outputs, results, strict=False):
        found = (int(ge_dtype(result.dtype)), result.dim(), *result.shape)
        target[: len(found)] = torch.tensor(found)


def _without_memory(value: Any) -> Any:
    """Return meta tensors for tensors without memory; a tensor without elements has its values."""
    if isinstance(value, (list, tuple)):
        return [_without_memory(one) for one in value]
    if not isinstance(value, torch.Tensor) or value.numel() == 0 or value.data_ptr() != 0:
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")


def _results(op_type: str, inputs: Sequence[Named], attrs: Sequence[Named]) -> list[torch.Tensor]:
    """Return what an operator's kernel computes."""
    kernel = find_kernel(op_type)
    if kernel is None:
        raise HostRuntimeError(
            f"the host runtime has no kernel for GE operator {op_type}; give it one in an operator package "
            "(ascend_graph.host.build_operator_package)"
        )
    named = _named(op_type, attrs)
    public = {name: value for name, value in named.items() if not name.startswith("_")}  # the rest is for compilers
    return _flat(kernel.function(*_arrange(kernel, inputs), **kernel.bind_attrs(public)))


def _named(op_type: str, attrs: Sequence[Named]) -> Mapping[str, Any]:
    if all(name for name, _ in attrs):
        return dict(attrs)
    known = [name for role, name, _ in describe_operator(op_type) if role == "a"]
    if len(attrs) > len(known):
        raise HostRuntimeError(f"{op_type} takes at most {len(known)} attrs ({', '.join(known)}), got {len(attrs)}")
    return {name or known[i]: value for i, (name, value) in enumerate(attrs) if value is not None}


def _arrange(kernel: HostKernel, inputs: Sequence[Named]) -> list[Any]:
    """Arrange the inputs in the kernel's order: by name, or without one, the next after the input before."""
    arranged: dict[str, Any] = {name: [] if name in kernel.dynamic_inputs else None for name in kernel.inputs}
    surplus = len(inputs) - len(kernel.inputs)
    position = 0
    for name, tensor in inputs:
        owner = next((d for d in kernel.dynamic_inputs if name.startswith(d) and name[len(d) :].isdigit()), None)
        if owner is not None:
            arranged[owner].append(tensor)
            continue
        if name in arranged:
            position = kernel.inputs.index(name)
        elif position >= len(kernel.inputs):
            raise HostRuntimeError(
                f"{kernel.op_type} takes {len(kernel.inputs)} inputs ({', '.join(kernel.inputs)}), got more"
            )
        parameter = kernel.inputs[position]
        if parameter in kernel.dynamic_inputs:
            arranged[parameter].append(tensor)
            if surplus > 0:  # a list without names takes what the other inputs leave
                surplus -= 1
                continue
        else:
            arranged[parameter] = tensor
        position += 1
    return list(arranged.values())


def _flat(results: Any) -> list[torch.Tensor]:
    if results is None:
        return []
    if isinstance(results, torch.Tensor):
        return [results]
    return [t for result in results for t in (result if isinstance(result, (list, tuple)) else (result,))]

"""Operators executed by C++ classes (GE's ``EagerExecuteOp``).

TorchAir compiles such classes for PyTorch operators without a converter. Authors write them to launch their own
kernels.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.kernels import HostKernel

if TYPE_CHECKING:
    from ascend_graph.prototypes import OpPrototype


def find_custom_kernel(op_type: str) -> HostKernel | None:
    """Return the kernel of an operator that a loaded library executes, or None."""
    from ascend_graph.host.bridge import bridge

    return _kernel(op_type) if bridge().has_custom_operator(op_type) else None


def custom_prototype(op_type: str) -> OpPrototype | None:
    """Return the prototype that a loaded library has next to the class that executes the operator."""
    from ascend_graph.host.bridge import bridge
    from ascend_graph.prototypes import parse_text

    text = bridge().custom_prototype(op_type)
    if text is None:
        return None
    return next((p for p in parse_text(text).prototypes if p.op_type == op_type), None)


@cache
def _kernel(op_type: str) -> HostKernel:
    from ascend_graph.host.bridge import bridge
    from ascend_graph.host.packages.python_kernels import references
    from ascend_graph.prototypes import ParameterKind, find_prototype

    prototype = custom_prototype(op_type) or find_prototype(op_type)
    dynamic = frozenset(p.name for p in prototype.inputs if p.kind is ParameterKind.DYNAMIC)
    written = frozenset(p.name for p in prototype.inputs if p.name in prototype.in_place)
    defaults = {a.name: a.default for a in prototype.attrs}
    required = frozenset(a.name for a in prototype.attrs if a.required)
    kinds = [
        *("tensors" if p.name in dynamic else "tensor" for p in prototype.inputs),
        *(a.type.value for a in prototype.attrs),
    ]
    call = bridge().call_custom_operator

    def run(*inputs: Any, **given: Any) -> list[Any]:
        laid_out = [_contiguous(value) for value in inputs]
        outputs: list[Any] = call(op_type, [*laid_out, *(defaults | given).values()], kinds, len(inputs))
        for value, copy in zip(_flat(inputs), _flat(laid_out), strict=True):
            if copy is value:
                continue
            if any(output is copy for output in outputs):  # it was written to
                value.copy_(copy)
                outputs = [value if output is copy else output for output in outputs]
        lacking = [index for index, output in enumerate(outputs) if output is None]
        if lacking:
            raise HostRuntimeError(f"{op_type}: Execute must give memory to output {lacking[0]}")
        return outputs

    return HostKernel(
        op_type=op_type,
        function=run,
        inputs=tuple(p.name for p in prototype.inputs),
        attrs=frozenset(defaults),
        dynamic_inputs=dynamic,
        required_inputs=frozenset(p.name for p in prototype.inputs if p.kind is ParameterKind.REQUIRED),
        required_attrs=required,
        written_inputs=written,
        references=references(prototype),
        views=frozenset(p.name for p in prototype.inputs),  # of any input: MakeOutputRefInput
        data_dependent=True,  # shapes are known when it has run
    )


def _contiguous(value: Any) -> Any:
    if isinstance(value, list):
        return [_contiguous(item) for item in value]
    return value.contiguous() if isinstance(value, torch.Tensor) else value


def _flat(values: Any) -> list[torch.Tensor]:
    """Return the tensors of inputs, with those of lists flattened."""
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, list):
            found += value
        elif value is not None:
            found.append(value)
    return found

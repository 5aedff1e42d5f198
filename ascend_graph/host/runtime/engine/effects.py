"""Memory effects of kernels: shared memory of values, and checks of a kernel's declarations.

A value of a graph is the result of its node: an operator that writes to one value does not change others, even if they
share memory on the host. A kernel's declarations (``HostKernel.written_inputs``, ``references`` and ``views``) are
enough to place the copies needed. With ``ASCEND_GRAPH_CHECK_EFFECTS`` set, declarations are checked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.kernels import HostKernel
from ascend_graph.host.kernels.quantization.four_bits import integers
from ascend_graph.host.kernels.registry import flat_results

VARIABLE = "ASCEND_GRAPH_CHECK_EFFECTS"


class EffectError(HostRuntimeError):
    """Error for an effect on memory that a kernel does not declare."""


class Memory:
    """Map of the slots that may share memory."""

    def __init__(self) -> None:
        # A slot may lie in the memory that any of its origins came with, which are slots too.
        self._origins: dict[int, frozenset[int]] = {}
        self._slots: dict[int, set[int]] = {}

    def add(self, slot: int, shared_with: Iterable[int] = ()) -> None:
        """Add a slot, in memory of its own or in that of others."""
        origins = frozenset({slot}.union(*(self.origins(other) for other in shared_with)))
        self._origins[slot] = origins
        for origin in origins:
            self._slots.setdefault(origin, set()).add(slot)

    def origins(self, slot: int) -> frozenset[int]:
        """Return the slots whose memory this one may lie in, itself included."""
        return self._origins.get(slot, frozenset())

    def overlapping(self, slot: int) -> set[int]:
        """Return the other slots that may share memory with this one."""
        return set().union(*(self._slots[origin] for origin in self.origins(slot))) - {slot}


def are_checked() -> bool:
    """Return whether kernels are checked in graphs compiled from now on."""
    return os.environ.get(VARIABLE, "0") != "0"


def checked(kernel: HostKernel, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the kernel's function to compare its effects with the kernel's declarations.

    Raises:
        EffectError: when called: it wrote to an input, or gave an output in memory of an input or another output, and
            does not declare it; or an output that it declares to be an input is another tensor.
    """

    def call(*arguments: Any, **attrs: Any) -> Any:
        named = [
            (name, tensor)
            for name, argument in zip(kernel.inputs, arguments, strict=True)
            for tensor in (argument if isinstance(argument, list) else [argument])
            if isinstance(tensor, torch.Tensor) and not tensor.is_meta
        ]
        written = {_address(tensor) for name, tensor in named if name in kernel.written_inputs}
        before = [(name, tensor, _bytes(tensor)) for name, tensor in named if _address(tensor) not in written]
        results = function(*arguments, **attrs)
        for name, tensor, content in before:
            if not torch.equal(_bytes(tensor), content):
                raise EffectError(
                    f"{kernel.op_type}: the kernel wrote to input {name} and must declare it: host_kernel(…, writes=)"
                )
        _check_outputs(kernel, arguments, named, results)
        return results

    return call


def _check_outputs(
    kernel: HostKernel, arguments: Sequence[Any], named: Sequence[tuple[str, torch.Tensor]], results: Any
) -> None:
    outputs = [t for t in flat_results(results) if isinstance(t, torch.Tensor) and not t.is_meta]
    references = kernel.referenced(len(argument) if isinstance(argument, list) else 1 for argument in arguments)
    shareable = kernel.views | kernel.written_inputs
    seen: dict[int, int] = {}
    for index, output in enumerate(outputs):
        if output.numel() == 0:
            continue
        if index in references:
            position, item = references[index]
            argument = arguments[position]
            source = argument[item] if isinstance(argument, list) else argument
            if source is not None and _address(source) != _address(output):
                name = kernel.inputs[position]
                raise EffectError(
                    f"{kernel.op_type}: output {index} is declared to be input {name} and is another tensor; return "
                    "the input"
                )
            continue
        for name, tensor in named:
            if tensor.numel() and _address(tensor) == _address(output) and name not in shareable:
                raise EffectError(
                    f"{kernel.op_type}: output {index} shares memory with input {name}, not declared; return a new "
                    "tensor, or declare views="
                )
        other = seen.setdefault(_address(output), index)
        if other != index and not kernel.views:
            raise EffectError(f"{kernel.op_type}: outputs {other} and {index} share memory; return new tensors")


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor's elements as bytes, so that NaN equals itself."""
    plain = integers(tensor.detach())
    return plain.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)

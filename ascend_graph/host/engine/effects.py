"""What kernels do to memory: which values share it, and whether a kernel does what it declares.

A value of a graph is what its node computed: an operator that writes to one of them changes no other, whatever memory
they share on the host. What a kernel declares (``HostKernel.written_inputs``, ``references`` and ``views``) is enough to
put copies where they are needed, and no declaration is trusted where ``ASCEND_GRAPH_CHECK_EFFECTS`` is set.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from ascend_graph.host.ops import HostKernel
from ascend_graph.host.ops.four_bits import integers
from ascend_graph.host.ops.registry import flat_results
from ascend_graph.host.toolkit import HostRuntimeError

VARIABLE = "ASCEND_GRAPH_CHECK_EFFECTS"


class EffectError(HostRuntimeError):
    """A kernel does to memory what it does not declare."""


class Memory:
    """Which slots may lie in the same memory."""

    def __init__(self) -> None:
        # A slot may lie in the memory that any of its origins came with, which are slots too.
        self._origins: dict[int, frozenset[int]] = {}
        self._slots: dict[int, set[int]] = {}

    def add(self, slot: int, shared_with: Iterable[int] = ()) -> None:
        """A new slot, in memory of its own or in that of others."""
        origins = frozenset({slot}.union(*(self.origins(other) for other in shared_with)))
        self._origins[slot] = origins
        for origin in origins:
            self._slots.setdefault(origin, set()).add(slot)

    def origins(self, slot: int) -> frozenset[int]:
        """The slots whose memory this one may lie in, itself among them."""
        return self._origins.get(slot, frozenset())

    def overlapping(self, slot: int) -> set[int]:
        """The other slots that may share memory with this one."""
        return set().union(*(self._slots[origin] for origin in self.origins(slot))) - {slot}


def are_checked() -> bool:
    """Whether kernels are checked in the graphs that are compiled from now on."""
    return os.environ.get(VARIABLE, "0") != "0"


def checked(kernel: HostKernel, function: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel's function, which also compares what it did with what the kernel declares.

    Raises:
        EffectError: when called: it wrote to an input, or gave an output in memory of an input or another output, and does
            not declare it; or an output that it declares to be an input is another tensor.
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
                raise EffectError(f"{kernel.op_type}: the kernel wrote to input {name} and does not declare it")
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
                    f"{kernel.op_type}: output {index} is declared to be input {name} and is another tensor"
                )
            continue
        for name, tensor in named:
            if tensor.numel() and _address(tensor) == _address(output) and name not in shareable:
                raise EffectError(f"{kernel.op_type}: output {index} shares memory with input {name}, not declared")
        other = seen.setdefault(_address(output), index)
        if other != index and not kernel.views:
            raise EffectError(f"{kernel.op_type}: outputs {other} and {index} share memory")


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's elements as bytes, so that NaN equals itself."""
    plain = integers(tensor.detach())
    return plain.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)

"""Compiled Triton kernels: a program reads the IR once, and runs over a grid any number of times."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ascend_graph.environment import processor
from ascend_graph.host.triton.body import FunctionBuilder, IrFunction
from ascend_graph.host.triton.elements import Array, kept_dtype, to_element
from ascend_graph.host.triton.frame import Frame
from ascend_graph.host.triton.ir import IrOperation, Module, TritonProgramError, Type
from ascend_graph.host.triton.memory import KernelMemory

# What they register is looked up by name.
from ascend_graph.host.triton.operations import access, arithmetic, reductions, tensors
from ascend_graph.host.triton.operations.control import run_function
from ascend_graph.host.triton.origins import Origins
from ascend_graph.host.triton.parsing import parse
from ascend_graph.host.triton.turns import Turns
from ascend_graph.processors import PROCESSORS

REGISTERED = (access, arithmetic, reductions, tensors)

#: Elements of the largest tensor of the programs that run together: what fits into a core's cache.
_TOGETHER = 1 << 15


class Program:
    """Triton kernel, ready to run.

    Args:
        text: Module in MLIR's generic form.

    Raises:
        TritonProgramError: the module has an operation that the host does not know.
    """

    def __init__(self, text: str) -> None:
        module = parse(text)
        kernel = module.kernel
        self.name = str(kernel.attributes["sym_name"])
        inputs, _ = kernel.attributes["function_type"]
        self.parameters: tuple[Type, ...] = inputs
        functions: dict[str, IrFunction] = {}
        self._function = FunctionBuilder(module, kernel, Origins(module), functions).build()
        self._together = _programs_together(module)
        self._waits = _waits(module)
        self._has_matmul = "tt.dot" in _names(module)

    def run(self, grid: tuple[int, int, int], arguments: Sequence[Any], memory: KernelMemory) -> None:
        """Run the programs of a grid.

        Args:
            grid: Number of programs in each dimension.
            arguments: Numbers, and addresses in the place of pointers.
            memory: Memory that the kernel may touch.

        Raises:
            TritonKernelError: the kernel leaves its memory, or what else ends it.
        """
        values = [_argument(value, type_) for value, type_ in zip(arguments, self.parameters, strict=True)]
        if self._waits:
            self._run_in_turns(grid, values, memory)
            return
        for programs in _parts(grid, self._together):
            self._run_programs(programs, grid, values, memory)

    def _run_programs(
        self, programs: tuple[Array, ...], grid: tuple[int, int, int], values: Sequence[Array], memory: KernelMemory
    ) -> None:
        with np.errstate(all="ignore"):  # of the thread
            run_function(self._function, Frame([], programs, grid, memory), values)

    def _run_in_turns(self, grid: tuple[int, int, int], values: Sequence[Array], memory: KernelMemory) -> None:
        """Run as many programs together as the device has cores: one may wait for what another one writes."""
        soc = PROCESSORS[processor(os.environ)]
        turns = Turns(soc.cube_cores if self._has_matmul else soc.vector_cores)
        memory.before_access = turns.give_away

        def program(programs: tuple[Array, ...]) -> Callable[[], None]:
            return lambda: self._run_programs(programs, grid, values, memory)

        turns.run(program(programs) for programs in _parts(grid, 1))


def _argument(value: Any, type_: Type) -> Array:
    dtype = kept_dtype(type_.element)
    if np.dtype(dtype).kind == "i":
        width = np.dtype(dtype).itemsize * 8
        return np.array([int(value) & ((1 << width) - 1)], f"u{width // 8}").view(dtype)
    return to_element(np.array([value]), type_.element) if type_.element != "i1" else np.array([bool(value)])


def _parts(grid: tuple[int, int, int], together: int) -> Iterator[tuple[Array, ...]]:
    """Yield the coordinates of the programs that run together, the first dimension fastest."""
    x, y, _ = grid
    count = int(np.prod(grid))
    for begin in range(0, count, together):
        flat = np.arange(begin, min(begin + together, count))
        yield tuple(axis.astype(np.int32) for axis in (flat % x, flat // x % y, flat // (x * y)))


def _operations(operation: IrOperation) -> Iterator[IrOperation]:
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner
                yield from _operations(inner)


def _programs_together(module: Module) -> int:
    """Return how many programs run together, as one."""
    operations = (operation for function in module.functions.values() for operation in _operations(function))
    largest = max((int(np.prod(t.shape)) for operation in operations for t in operation.result_types), default=1)
    return max(1, _TOGETHER // largest)


def _names(module: Module) -> set[str]:
    return {operation.name for function in module.functions.values() for operation in _operations(function)}


def _waits(module: Module) -> bool:
    """Return whether a program may wait for another one: by volatile loads, or until an atomic operation lets it go on."""
    names = _names(module)
    repeated = "scf.while" in names and not names.isdisjoint(("tt.atomic_rmw", "tt.atomic_cas"))
    return repeated or any(
        operation.attributes.get("isVolatile")
        for function in module.functions.values()
        for operation in _operations(function)
        if operation.name == "tt.load"
    )


__all__ = ["Program", "TritonProgramError"]

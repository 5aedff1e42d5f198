"""Compiled graph: the steps that its nodes became, and the loop that runs them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.kernels import HostKernel
from ascend_graph.host.kernels.registry import flat_results
from ascend_graph.host.runtime.engine import effects
from ascend_graph.host.runtime.engine.model import ABSENT, Source

Slots = list[Any]
Run = Callable[..., Sequence[torch.Tensor]]

# A step as the loop over nodes has it: itself, what is called, the slots of its first two inputs, the slot and the shape of its
# output, and the slots that nothing reads after it. In the place of the first slot: how the inputs are given where they are not
# one or two; the second is then what takes them from the slots, if anything.
Instruction = tuple["Step", Callable[..., Any], int, Any, int, torch.Size | None, tuple[int, ...]]
_ONE_INPUT, _BY_GETTER, _BY_CLOSURE = -1, -2, -3


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """Output of a graph: GE's dtype number and sizes, -1 if the size is not known before the graph runs."""

    dtype: int
    sizes: tuple[int, ...]
    #: Node that computes it.
    node: str


@dataclass(frozen=True, slots=True)
class CompiledGraph:
    """Graph in compiled form; ``run`` takes and returns CPU tensors in the graph's order.

    The results may be the graph's inputs or constants, or share their memory: the caller copies results before it
    passes them on.
    """

    is_static: bool
    outputs: tuple[OutputSpec, ...]
    run: Run
    #: Function like ``run``, with every node a range of PyTorch's profiler.
    traced: Run


@dataclass(frozen=True, slots=True)
class Step:
    """Step of a graph for one node: it reads input slots, calls the kernel and writes output slots."""

    node: str
    kernel: HostKernel
    attrs: Mapping[str, Any]
    #: Source of each kernel input: a slot, or the slots of a dynamic one.
    sources: tuple[Source, ...]
    first_target: int
    targets: int
    #: True if each run checks the shapes of the inputs against the kernel's: they were not known when the graph was
    #: compiled.
    checks_shapes: bool = False

    def function(self) -> Callable[..., Any]:
        """Return the kernel's function with this node's attrs."""
        function = functools.partial(self.kernel.function, **self.attrs) if self.attrs else self.kernel.function
        if self.checks_shapes:
            function = self._with_checked_shapes(function)
        return effects.checked(self.kernel, function) if effects.are_checked() else function

    def _with_checked_shapes(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            self.kernel.check_shapes(arguments, self.attrs)
            return function(*arguments)

        return run

    def arguments(self, slots: Slots) -> list[Any]:
        """Return the arguments of the kernel's call."""
        return [[slots[i] for i in s] if isinstance(s, tuple) else slots[s] for s in self.sources]

    def reads(self) -> Iterator[int]:
        """Yield every slot that the step reads."""
        for source in self.sources:
            yield from source if isinstance(source, tuple) else (source,)

    def outputs(self, results: Any) -> list[torch.Tensor | None]:
        """Return the kernel's results, one tensor per output; None for an output that is absent.

        Raises:
            HostRuntimeError: they are too few, or not tensors.
        """
        tensors = flat_results(results)
        if len(tensors) < self.targets:
            raise HostRuntimeError(f"the kernel gave {len(tensors)} outputs; expected {self.targets}, as the node has")
        for tensor in tensors[: self.targets]:
            if not isinstance(tensor, torch.Tensor) and (tensor is not None or not self.kernel.optional_outputs):
                raise HostRuntimeError(f"the kernel gave {type(tensor).__name__} ; expected a tensor")
        return tensors[: self.targets]

    def closure(self, inferred: Sequence[torch.Size | None]) -> Callable[[Slots], None]:
        """Return a function that runs this step on a list of slots.

        Args:
            inferred: the shape of each output as far as compiling found it out; a kernel that gives another one fails.
        """
        function = self.function()
        return lambda slots: self.store(slots, function(*self.arguments(slots)), inferred)

    def store(self, slots: Slots, results: Any, inferred: Sequence[torch.Size | None]) -> None:
        """Store the kernel's results.

        Raises:
            HostRuntimeError: it gave too few outputs, others than tensors, or other shapes.
        """
        tensors = self.outputs(results)
        for index, (tensor, shape) in enumerate(zip(tensors, inferred, strict=True)):
            if shape is not None and (tensor is None or tensor.shape != shape):
                raise _other_shape(index, tensor, shape)
        slots[self.first_target : self.first_target + self.targets] = tensors

    def instruction(self, inferred: Sequence[torch.Size | None], unused: Sequence[int]) -> Instruction:
        """Return the step as an instruction of the loop over nodes."""
        if self.targets != 1 or not self.sources or any(isinstance(source, tuple) for source in self.sources):
            return self, self.closure(inferred), _BY_CLOSURE, 0, 0, None, tuple(unused)
        (shape,), target = inferred, self.first_target
        match self.sources:
            case (int(a),):
                return self, self.function(), a, _ONE_INPUT, target, shape, tuple(unused)
            case (int(a), int(b)):
                return self, self.function(), a, b, target, shape, tuple(unused)
        taken = operator.itemgetter(*cast("tuple[int, ...]", self.sources))
        return self, self.function(), _BY_GETTER, taken, target, shape, tuple(unused)

    def absence(self, slot: int) -> HostRuntimeError:
        """Return the error for an absent output that the graph reads."""
        names = self.kernel.optional_outputs
        index = slot - self.first_target
        name = names[index] if len(names) == self.targets else str(index)
        return HostRuntimeError(
            f"the kernel returned None for output {name}, which the graph reads; expected a tensor. For an output that is "
            f"absent write '{name}[…] if … else None' in the relation"
        )

    def error(self, cause: Exception, slots: Slots) -> HostRuntimeError:
        """Return the error for a kernel that failed on these slots."""
        shown = ", ".join(
            f"{name}={_describe(value)}" for name, value in zip(self.kernel.inputs, self.arguments(slots), strict=True)
        )
        return HostRuntimeError(f"node {self.node} ({self.kernel.op_type}): {cause}; its inputs: {shown or 'none'}")


def _other_shape(index: int, result: torch.Tensor | None, shape: torch.Size) -> HostRuntimeError:
    found = "is absent" if result is None else f"has shape {list(result.shape)}"
    return HostRuntimeError(f"output {index} {found}; {list(shape)} was inferred when the graph was compiled")


def _number(given: torch.Tensor, declared: torch.dtype, index: int) -> torch.Tensor:
    """Return a number that is given as a tensor of one, without dimensions.

    Raises:
        HostRuntimeError: It has another dtype than the graph declares: nodes read its bytes as that.
    """
    if given.dtype is not declared:
        raise HostRuntimeError(
            f"input {index} is a number, which the graph declares as {str(declared).removeprefix('torch.')} and is given as "
            f"{str(given.dtype).removeprefix('torch.')}. TorchAir hands symbolic floats over so (docs/wheel-faults.md, "
            "symbolic-float-truncated); compile with dynamic=False, or give a constant"
        )
    return given.reshape(())


def _describe(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, list):
        return f"[{', '.join(map(_describe, value))}]"
    return "absent"


@dataclass(frozen=True)
class GraphProgram:
    """Steps of a graph and their initial slots."""

    steps: Sequence[Step]
    #: Number of slots.
    size: int
    #: Contents of slots before the first step: constants and frozen parameters.
    values: Mapping[int, torch.Tensor]
    #: Slots of the graph's inputs and outputs, in the graph's order.
    inputs: Sequence[int]
    outputs: Sequence[int]
    #: Tensors without data for the slots whose shapes are known.
    shapes: Mapping[int, torch.Tensor]

    def traced_runner(self) -> Run:
        """Return a function like :meth:`runner`'s, with every node a range of PyTorch's profiler.

        It is built at its first call.
        """
        made = functools.cache(functools.partial(self.runner, traced=True))

        def run(*inputs: torch.Tensor) -> Sequence[torch.Tensor]:
            return made()(*inputs)

        return run

    def runner(self, *, traced: bool = False) -> Run:
        """Return a function of the graph's inputs; it may be called on several threads at once."""
        template: Slots = [None] * self.size
        for slot, tensor in self.values.items():
            template[slot] = tensor
        positions, outputs = tuple(self.inputs), tuple(self.outputs)
        # TorchAir hands a number, which the graph declares without dimensions, over as a tensor of one.
        numbers = tuple(p for p in positions if p in self.shapes and self.shapes[p].dim() == 0)
        program = [
            self._traced(step, unused) if traced else self._instruction(step, unused)
            for step, unused in zip(self.steps, self._last_uses(), strict=True)
        ]

        def run(*inputs: torch.Tensor) -> Sequence[torch.Tensor]:
            if len(inputs) != len(positions):
                raise HostRuntimeError(f"the graph takes {len(positions)} inputs and was given {len(inputs)}")
            slots = template.copy()
            for position, tensor in zip(positions, inputs, strict=True):
                slots[position] = tensor
            for position in numbers:
                slots[position] = _number(slots[position], self.shapes[position].dtype, positions.index(position))
            step = None
            try:
                # What a small graph costs is this loop: a node has the call of its kernel here, and no other.
                for step, function, a, b, target, shape, unused in program:
                    if a >= 0:
                        result = function(slots[a]) if b == _ONE_INPUT else function(slots[a], slots[b])
                    elif a == _BY_GETTER:
                        result = function(*b(slots))
                    else:
                        function(slots)
                        for slot in unused:
                            slots[slot] = None
                        continue
                    if type(result) is torch.Tensor and (result.shape == shape or shape is None):
                        slots[target] = result
                    else:
                        step.store(slots, result, (shape,))
                    for slot in unused:
                        slots[slot] = None
            except Exception as error:  # of kernels, which anybody may write: all is reported, with the node
                assert step is not None
                raise step.error(error, slots) from error
            return [slots[i] for i in outputs]

        return run

    def _instruction(self, step: Step, unused: Sequence[int]) -> Instruction:
        if step.kernel.optional_outputs:
            return step, self._closure(step), _BY_CLOSURE, 0, 0, None, tuple(unused)
        return step.instruction(self._inferred(step), unused)

    def _closure(self, step: Step) -> Callable[[Slots], None]:
        """Return a function that runs a step and refuses an absent output that another node or the caller reads."""
        closure = step.closure(self._inferred(step))
        if not step.kernel.optional_outputs:
            return closure
        read = self._read & {*range(step.first_target, step.first_target + step.targets)}

        def run(slots: Slots) -> None:
            closure(slots)
            for slot in read:
                if slots[slot] is None:
                    raise step.absence(slot)

        return run

    @functools.cached_property
    def _read(self) -> set[int]:
        """Slots that a step or the caller reads."""
        return {*self.outputs, *(slot for step in self.steps for slot in step.reads())}

    def _traced(self, step: Step, unused: Sequence[int]) -> Instruction:
        """Return the step as a range of PyTorch's profiler."""
        from ascend_graph.host.bridge import bridge

        closure = self._closure(step)
        name = f"{step.kernel.op_type}: {step.node}"
        begins, ends = bridge().work_begins, bridge().work_ends

        def range_of_the_profiler(slots: Slots) -> None:
            with torch.profiler.record_function(name):
                began = begins()
                try:
                    closure(slots)
                finally:
                    ends(began, name)

        return step, range_of_the_profiler, _BY_CLOSURE, 0, 0, None, tuple(unused)

    def _inferred(self, step: Step) -> list[torch.Size | None]:
        known = [self.shapes.get(slot) for slot in range(step.first_target, step.first_target + step.targets)]
        return [None if tensor is None else tensor.shape for tensor in known]

    def _last_uses(self) -> list[list[int]]:
        """Return, for each step, the slots that nothing reads after it."""
        kept = {ABSENT, *self.values, *self.outputs}
        last_use: dict[int, int] = {}
        for i, step in enumerate(self.steps):
            written = range(step.first_target, step.first_target + step.targets)
            last_use.update((slot, i) for slot in (*step.reads(), *written) if slot not in kept)
        dead: list[list[int]] = [[] for _ in self.steps]
        for slot, i in last_use.items():
            dead[i].append(slot)
        return dead

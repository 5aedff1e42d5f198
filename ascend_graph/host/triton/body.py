"""Functions and regions as steps: each operation becomes a function of the frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ascend_graph.host.triton.frame import Frame
from ascend_graph.host.triton.ir import Block, IrOperation, IrRegion, Module, TritonProgramError
from ascend_graph.host.triton.memory import TritonKernelError
from ascend_graph.host.triton.operations.pure import PURE
from ascend_graph.host.triton.origins import Origins

Step = Callable[[Frame], None]

#: What makes the step of an operation that needs more than its operands, by the operation's name.
STEPS: dict[str, Callable[[IrOperation, FunctionBuilder], Step]] = {}

#: Operations that change nothing that a program could see.
_NOTHING = frozenset(
    "tt.annotation annotation.mark gpu.barrier llvm.intr.assume ttg.barrier hivm.hir.pipe_barrier".split()  # noqa: SIM905
)

_TERMINATORS = frozenset(
    "scf.yield scf.condition tt.return cf.br cf.cond_br tt.reduce.return tt.scan.return".split()  # noqa: SIM905
)


def step(
    *names: str,
) -> Callable[[Callable[[IrOperation, FunctionBuilder], Step]], Callable[[IrOperation, FunctionBuilder], Step]]:
    """Register what makes the steps of some operations."""

    def register(
        make: Callable[[IrOperation, FunctionBuilder], Step],
    ) -> Callable[[IrOperation, FunctionBuilder], Step]:
        STEPS.update(dict.fromkeys(names, make))
        return make

    return register


@dataclass
class Body:
    """Block as steps: the slots of its arguments, of what its terminator names, and of what it takes from around."""

    arguments: list[int]
    steps: list[Step]
    terminator: IrOperation
    outputs: list[int]
    operations: list[IrOperation] = field(default_factory=list)  # of the steps
    captured: list[int] = field(default_factory=list)
    successors: list[list[int]] = field(default_factory=list)  # the slots of what each is given

    def run(self, frame: Frame) -> None:
        at = 0
        try:
            for at, one in enumerate(self.steps):  # noqa: B007
                one(frame)
        except TritonKernelError:
            raise
        except Exception as error:
            operation = self.operations[at]
            raise TritonKernelError(f"{operation.name} at {operation.location}: {error}") from error

    def results(self, frame: Frame) -> list[Any]:
        self.run(frame)
        return frame.get(self.outputs)


@dataclass
class IrFunction:
    """Function as blocks, and how many slots a frame of it has."""

    name: str
    blocks: list[Body]
    labels: dict[str, int]
    slots: int


class FunctionBuilder:
    """Builder of a function's steps.

    Args:
        functions: Functions that are built already, which this one may call; they are built on first use.
    """

    def __init__(
        self, module: Module, operation: IrOperation, origins: Origins, functions: dict[str, IrFunction]
    ) -> None:
        self.module, self.origins, self.functions = module, origins, functions
        self.name = str(operation.attributes["sym_name"])
        self._slots: dict[str, int] = {}
        self._operation = operation

    def slot(self, value: str) -> int:
        return self._slots.setdefault(value, len(self._slots))

    def slots(self, values: list[str]) -> list[int]:
        return [self.slot(value) for value in values]

    def build(self) -> IrFunction:
        region = self._operation.regions[0]
        blocks = [self.body(block) for block in region.blocks]
        return IrFunction(self.name, blocks, region.labels, len(self._slots))

    def function(self, name: str) -> IrFunction:
        """Return a function of the module; it is built on first use."""
        if name not in self.functions:
            operation = self.module.functions[name]
            self.functions[name] = FunctionBuilder(self.module, operation, self.origins, self.functions).build()
        return self.functions[name]

    def region(self, region: IrRegion) -> Body:
        """Build a region of one block.

        Raises:
            TritonProgramError: it has several.
        """
        if len(region.blocks) != 1:
            raise TritonProgramError(f"a region of {len(region.blocks)} blocks inside an operation; expected 1")
        body = self.body(region.blocks[0])
        body.captured = [self.slot(value) for value in sorted(_captured(region.blocks[0]))]
        return body

    def body(self, block: Block) -> Body:
        *operations, terminator = block.operations
        if terminator.name not in _TERMINATORS:
            raise TritonProgramError(f"{terminator.name}: a block must not end with it")
        arguments = self.slots(block.arguments)
        operations = [operation for operation in operations if operation.name not in _NOTHING]
        steps = [self._step(operation) for operation in operations]
        successors = [self.slots(given) for _, given in terminator.successors]
        return Body(arguments, steps, terminator, self.slots(terminator.operands), operations, [], successors)

    def _step(self, operation: IrOperation) -> Step:
        if operation.name in STEPS:
            return STEPS[operation.name](operation, self)
        if operation.name not in PURE:
            raise TritonProgramError(
                f"{operation.location}: {operation.name} is not there on the host: it is a feature of the device's compiler"
            )
        return self._pure_step(operation)

    def _pure_step(self, operation: IrOperation) -> Step:
        function = PURE[operation.name](operation)
        inputs, outputs = self.slots(operation.operands), self.slots(operation.results)
        if len(outputs) == 1:
            return _one_result(function, inputs, outputs[0])

        def run(frame: Frame) -> None:
            frame.put(outputs, function(*frame.get(inputs)))

        return run


def _one_result(function: Callable[..., Any], inputs: list[int], output: int) -> Step:
    """Return the step of a function of one result; two operands or one are most of them."""
    if len(inputs) == 2:
        a, b = inputs

        def binary(frame: Frame) -> None:
            values = frame.values
            values[output] = function(values[a], values[b])

        return binary
    if len(inputs) == 1:
        (a,) = inputs

        def unary(frame: Frame) -> None:
            frame.values[output] = function(frame.values[a])

        return unary

    def run(frame: Frame) -> None:
        frame.values[output] = function(*(frame.values[slot] for slot in inputs))

    return run


def _captured(block: Block) -> set[str]:
    """Return the values that a block takes from around itself."""
    inside = set(block.arguments)
    used: set[str] = set()
    for operation in block.operations:
        used |= set(operation.operands)
        for _, arguments in operation.successors:
            used |= set(arguments)
        for region in operation.regions:
            for inner in region.blocks:
                used |= _captured(inner)
        inside |= set(operation.results)
    return used - inside

"""Control flow: programs of one frame that part ways run in frames of their own until they meet again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ascend_graph.host.triton.body import Body, FunctionBuilder, IrFunction, Step, step
from ascend_graph.host.triton.elements import Array
from ascend_graph.host.triton.frame import Frame, merge_all, select
from ascend_graph.host.triton.ir import IrOperation, TritonProgramError


def _same_everywhere(a: Array) -> bool:
    return a.shape[0] == 1 or bool((a == a[0]).all())


@step("scf.if")
def _if(operation: IrOperation, builder: FunctionBuilder) -> Step:
    condition = builder.slot(operation.operands[0])
    bodies = [builder.region(region) for region in operation.regions if region.blocks]
    results = builder.slots(operation.results)

    def run(frame: Frame) -> None:
        chosen = frame.values[condition]
        if _same_everywhere(chosen):
            if bool(chosen[0]):
                frame.put(results, bodies[0].results(frame))
            elif len(bodies) > 1:
                frame.put(results, bodies[1].results(frame))
            return
        parts = []
        for body, programs in zip(bodies, (np.flatnonzero(chosen), np.flatnonzero(~chosen)), strict=False):
            parts.append((programs, body.results(frame.select(programs, body.captured))))
        if results:
            frame.put(results, merge_all(parts, frame.count))

    return run


class _Lanes:
    """Programs of a loop: those that still run, and the results of those that have left it."""

    def __init__(self, frame: Frame, captured: list[int]) -> None:
        self._captured, self._count = captured, frame.count
        self.frame = frame
        self.places = np.arange(frame.count)
        self._left: list[tuple[Array, Sequence[Any]]] = []

    def leave(self, going: Array, carried: Sequence[Any]) -> list[Any]:
        """Let the programs that do not go on leave with their values; return the values of the others."""
        out, on = np.flatnonzero(~going), np.flatnonzero(going)
        self._left.append((self.places[out], [select(value, out) for value in carried]))
        self.frame = self.frame.select(on, self._captured)
        self.places = self.places[on]
        return [select(value, on) for value in carried]

    def results(self, carried: Sequence[Any]) -> Sequence[Any]:
        """Return the values of all programs, the last of which leave now."""
        if not self._left:
            return carried
        return merge_all([*self._left, (self.places, carried)], self._count)


@step("scf.for")
def _for(operation: IrOperation, builder: FunctionBuilder) -> Step:
    low, high, stride, *initial = builder.slots(operation.operands)
    body = builder.region(operation.regions[0])
    results = builder.slots(operation.results)
    counter, *arguments = body.arguments

    def run(frame: Frame) -> None:
        bounds = frame.get((low, high, stride))
        carried = frame.get(initial)
        if not all(_same_everywhere(bound) for bound in bounds):
            frame.put(results, diverging(frame, bounds, carried))
            return
        dtype = bounds[0].dtype
        for i in _counted(*(int(bound[0]) for bound in bounds)):
            frame.values[counter] = np.array([i], dtype)
            frame.put(arguments, carried)
            carried = body.results(frame)
        frame.put(results, carried)

    def diverging(frame: Frame, bounds: list[Array], carried: list[Any]) -> Sequence[Any]:
        lanes = _Lanes(frame, body.captured)
        at, end, by = (np.broadcast_to(bound, (frame.count,)) for bound in bounds)
        while True:
            going = at < end
            if not going.any():
                return lanes.results(carried)
            if not going.all():
                carried = lanes.leave(going, carried)
                at, end, by = at[going], end[going], by[going]
            lanes.frame.values[counter] = at
            lanes.frame.put(arguments, carried)
            carried = body.results(lanes.frame)
            at = at + by

    return run


def _counted(low: int, high: int, stride: int) -> Iterator[int]:
    if stride <= 0:
        raise TritonProgramError(f"the step of a loop must be positive, got {stride}")
    yield from range(low, high, stride)


@step("scf.while")
def _while(operation: IrOperation, builder: FunctionBuilder) -> Step:
    initial, results = builder.slots(operation.operands), builder.slots(operation.results)
    before, after = (builder.region(region) for region in operation.regions)
    captured = sorted({*before.captured, *after.captured})

    def run(frame: Frame) -> None:
        lanes = _Lanes(frame, captured)
        carried = frame.get(initial)
        while True:
            lanes.frame.put(before.arguments, carried)
            goes_on, *carried = before.results(lanes.frame)
            if _same_everywhere(goes_on):
                if not bool(goes_on[0]):
                    break
            else:
                carried = lanes.leave(goes_on, carried)
            lanes.frame.put(after.arguments, carried)
            carried = after.results(lanes.frame)
        frame.put(results, lanes.results(carried))

    return run


def run_function(function: IrFunction, frame: Frame, arguments: Sequence[Any]) -> list[Any]:
    """Run a function in a frame of its own; return what it returns."""
    own = Frame([None] * function.slots, frame.programs, frame.grid, frame.memory)
    own.put(function.blocks[0].arguments, arguments)
    return _from_block(function, function.blocks[0], own)


def _from_block(function: IrFunction, body: Body, frame: Frame) -> list[Any]:
    while True:
        values = body.results(frame)
        name = body.terminator.name
        if name == "tt.return":
            return values
        if name == "cf.cond_br" and not _same_everywhere(values[0]):
            return _parting(function, body, frame, values[0])
        which = 0 if name == "cf.br" or bool(values[0][0]) else 1
        body = _enter(function, body, which, frame)


def _enter(function: IrFunction, body: Body, which: int, frame: Frame) -> Body:
    """Give a successor its arguments, and return it."""
    label, _ = body.terminator.successors[which]
    target = function.blocks[function.labels[label]]
    frame.put(target.arguments, frame.get(body.successors[which]))
    return target


def _parting(function: IrFunction, body: Body, frame: Frame, condition: Array) -> list[Any]:
    """Run programs that part ways in two frames, each until the function returns."""
    parts = []
    known = [slot for slot, value in enumerate(frame.values) if value is not None]
    for which, programs in enumerate((np.flatnonzero(condition), np.flatnonzero(~condition))):
        part = frame.select(programs, known)
        parts.append((programs, _from_block(function, _enter(function, body, which, part), part)))
    return merge_all(parts, frame.count) if parts[0][1] else []


@step("tt.call")
def _call(operation: IrOperation, builder: FunctionBuilder) -> Step:
    function = builder.function(str(operation.attributes["callee"]))
    inputs, outputs = builder.slots(operation.operands), builder.slots(operation.results)

    def run(frame: Frame) -> None:
        frame.put(outputs, run_function(function, frame, frame.get(inputs)))

    return run

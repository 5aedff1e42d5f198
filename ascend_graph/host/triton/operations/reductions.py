"""Reductions and scans: with NumPy where it has the combination, otherwise by running it on parts of the tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ascend_graph.host.triton.body import Body, FunctionBuilder, Step, step
from ascend_graph.host.triton.elements import Array, to_element, unsigned
from ascend_graph.host.triton.frame import Frame
from ascend_graph.host.triton.ir import IrOperation
from ascend_graph.host.triton.operations.tensors import together

_KNOWN: dict[str, np.ufunc] = {
    "arith.addf": np.add, "arith.addi": np.add, "arith.mulf": np.multiply, "arith.muli": np.multiply,
    "arith.maximumf": np.maximum, "arith.minimumf": np.minimum, "arith.maxnumf": np.fmax, "arith.minnumf": np.fmin,
    "arith.maxsi": np.maximum, "arith.minsi": np.minimum, "arith.maxui": np.maximum, "arith.minui": np.minimum,
    "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor,
}  # fmt: skip


def _known(operation: IrOperation) -> str | None:
    """Return the operation that combines two elements, where that is all that the region does and NumPy has it."""
    block = operation.regions[0].blocks[0]
    if len(block.operations) != 2 or len(block.arguments) != 2:
        return None
    inner, terminator = block.operations
    if inner.name not in _KNOWN or terminator.operands != inner.results:
        return None
    return inner.name if sorted(inner.operands) == sorted(block.arguments) else None


def _with_ufunc(operation: IrOperation, name: str, method: str) -> Callable[[Array], Array]:
    """Return the reduction or scan of one tensor; floats of 16 bits are summed in float32."""
    ufunc, axis = _KNOWN[name], int(operation.attributes["axis"]) + 1
    element = operation.result_type.element

    def apply(a: Array) -> Array:
        if a.dtype == np.bool_ and ufunc in (np.add, np.multiply):
            a = a.astype(np.int8)
        seen = unsigned(a) if name in ("arith.maxui", "arith.minui") else a
        dtype = np.float32 if seen.dtype == np.float16 and ufunc in (np.add, np.multiply) else None
        arguments = {"dtype": dtype or seen.dtype} if ufunc in (np.add, np.multiply) else {}
        result: Array = getattr(ufunc, method)(seen, axis=axis, **arguments)
        if element == "i1" and result.dtype != np.bool_:
            return (result & 1).astype(np.bool_)
        return to_element(result.view(a.dtype) if result.dtype.kind == "u" else result, element)

    return apply


class _Combination:
    """Region that combines elements, run on many pairs of elements at once as if each were a program."""

    def __init__(self, body: Body) -> None:
        self._body = body

    def __call__(self, frame: Frame, left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
        programs, *shape = left[0].shape
        each = int(np.prod(shape))
        values: list[Any] = [None] * len(frame.values)
        for slot in self._body.captured:
            value = frame.values[slot]
            values[slot] = value if value.shape[0] == 1 else np.repeat(value, each)
        own = Frame(values, tuple(np.zeros(programs * each, np.int32) for _ in range(3)), frame.grid, frame.memory)
        own.put(self._body.arguments, [a.reshape(-1) for a in (*left, *right)])
        results = self._body.results(own)
        return [np.broadcast_to(r, (programs * each,)).reshape(programs, *shape) for r in results]


@step("tt.reduce")
def _reduce(operation: IrOperation, builder: FunctionBuilder) -> Step:
    inputs, outputs = builder.slots(operation.operands), builder.slots(operation.results)
    axis = int(operation.attributes["axis"]) + 1
    if (name := _known(operation)) is not None:
        apply = _with_ufunc(operation, name, "reduce")
        return lambda frame: frame.put(outputs, [apply(frame.values[inputs[0]])])
    combine = _Combination(builder.region(operation.regions[0]))

    def run(frame: Frame) -> None:
        """Combine neighbors until one is left, so that the order of elements is kept."""
        rows = [np.moveaxis(a, axis, 1) for a in together(*frame.get(inputs))]
        while (size := rows[0].shape[1]) > 1:
            even = size // 2 * 2
            combined = combine(frame, [a[:, 0:even:2] for a in rows], [a[:, 1:even:2] for a in rows])
            last = [a[:, even:] for a in rows]
            rows = [np.concatenate([a, b], axis=1) for a, b in zip(combined, last, strict=True)]
        frame.put(outputs, [a[:, 0] for a in rows])

    return run


@step("tt.scan")
def _scan(operation: IrOperation, builder: FunctionBuilder) -> Step:
    inputs, outputs = builder.slots(operation.operands), builder.slots(operation.results)
    axis, reverse = int(operation.attributes["axis"]) + 1, bool(operation.attributes["reverse"])
    name = _known(operation)
    if name is not None:
        apply = _with_ufunc(operation, name, "accumulate")

        def known(frame: Frame) -> None:
            a = frame.values[inputs[0]]
            scanned = np.flip(apply(np.flip(a, axis)), axis) if reverse else apply(a)
            frame.put(outputs, [scanned])

        return known
    combine = _Combination(builder.region(operation.regions[0]))

    def run(frame: Frame) -> None:
        arrays = together(*frame.get(inputs))
        rows = [np.moveaxis(np.flip(a, axis) if reverse else a, axis, 1) for a in arrays]
        done = [[a[:, 0] for a in rows]]
        for i in range(1, rows[0].shape[1]):
            done.append(combine(frame, done[-1], [a[:, i] for a in rows]))
        scanned = [np.moveaxis(np.stack(column, axis=1), 1, axis) for column in zip(*done, strict=True)]
        frame.put(outputs, [np.flip(a, axis) if reverse else a for a in scanned])

    return run

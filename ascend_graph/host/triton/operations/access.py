"""Operations that touch memory or ask for the grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ascend_graph.host.triton.body import FunctionBuilder, Step, step
from ascend_graph.host.triton.elements import Array, from_memory, memory_dtype, to_memory, unsigned
from ascend_graph.host.triton.frame import BlockPointer, Frame
from ascend_graph.host.triton.ir import IrOperation, TritonProgramError
from ascend_graph.host.triton.memory import AccessPlace, TritonKernelError


@step("tt.get_program_id", "tt.get_num_programs")
def _program(operation: IrOperation, builder: FunctionBuilder) -> Step:
    axis, result = int(operation.attributes["axis"]), builder.slot(operation.results[0])
    if operation.name == "tt.get_program_id":
        return lambda frame: frame.put((result,), (frame.programs[axis],))
    return lambda frame: frame.put((result,), (np.array([frame.grid[axis]], np.int32),))


def _place(operation: IrOperation, builder: FunctionBuilder, what: str, element: str) -> AccessPlace:
    root = builder.origins.of(builder.name, operation.operands[0])
    return AccessPlace(what, operation.location, element, root)


def _pointee(operation: IrOperation) -> str:
    """Return the element type that the first operand points to."""
    pointee = operation.operand_types[0].pointee
    if pointee is None:
        raise TritonProgramError(f"{operation.name}: expected a pointer, got {operation.operand_types[0].element}")
    return pointee.element


def _optional(operation: IrOperation, builder: FunctionBuilder, count: int) -> list[int | None]:
    """Return the slots of operands, some of which may be absent."""
    segments = operation.attributes.get("operandSegmentSizes")
    slots = builder.slots(operation.operands)
    if not isinstance(segments, tuple):
        return [*slots, *[None] * (count - len(slots))]
    given = iter(slots)
    return [next(given) if n else None for n in segments]


@step("tt.load")
def _load(operation: IrOperation, builder: FunctionBuilder) -> Step:
    pointer, *_ = builder.slots(operation.operands)
    _, mask, other = _optional(operation, builder, 3)
    result, element = builder.slot(operation.results[0]), _pointee(operation)
    place = _place(operation, builder, "load", element)
    checked = tuple(operation.attributes.get("boundaryCheck") or ())
    padding = operation.attributes.get("padding")
    shape = operation.result_type.shape

    def run(frame: Frame) -> None:
        values = frame.values
        target = values[pointer]
        guard = None if mask is None else values[mask]
        if isinstance(target, BlockPointer):
            filler = np.array([np.nan], np.float32) if padding == 2 else None
            values[result] = _load_block(frame, place, target, shape, checked, filler)
            return
        values[result] = frame.memory.load(place, target, guard, None if other is None else values[other])

    return run


def _load_block(
    frame: Frame,
    place: AccessPlace,
    target: BlockPointer,
    shape: tuple[int, ...],
    checked: Sequence[int],
    filler: Array | None,
) -> Array:
    pointers, inside = block_addresses(target, shape, checked, place.element)
    if inside is not None and filler is not None:
        filler = np.broadcast_to(from_memory(to_memory(filler, place.element), place.element), inside.shape)
    return frame.memory.load(place, pointers, inside, filler)


def block_addresses(
    pointer: BlockPointer, shape: tuple[int, ...], checked: Sequence[int], element: str
) -> tuple[Array, Array | None]:
    """Return the addresses of a block's elements, and which are inside in the dimensions to be checked."""
    size, n = np.dtype(memory_dtype(element)).itemsize, len(shape)
    addresses = pointer.base.reshape((-1,) + (1,) * n)
    inside: Array | None = None
    for axis, (extent, stride, offset) in enumerate(zip(pointer.sizes, pointer.strides, pointer.offsets, strict=True)):
        along = np.arange(shape[axis]).reshape(1, *(shape[axis] if i == axis else 1 for i in range(n)))
        at, by, end = (a.astype(np.int64).reshape((-1,) + (1,) * n) for a in (offset, stride, extent))
        index = at + along
        addresses = addresses + index * (by * size)
        if axis in checked:
            within = (index >= 0) & (index < end)
            inside = within if inside is None else inside & within
    return addresses, None if inside is None else np.broadcast_to(
        inside, np.broadcast_shapes(addresses.shape, inside.shape)
    )


@step("tt.store")
def _store(operation: IrOperation, builder: FunctionBuilder) -> Step:
    pointer, value, *_ = builder.slots(operation.operands)
    *_, mask = _optional(operation, builder, 3)
    place = _place(operation, builder, "store", _pointee(operation))
    checked = tuple(operation.attributes.get("boundaryCheck") or ())
    shape = operation.operand_types[1].shape

    def run(frame: Frame) -> None:
        target, stored = frame.values[pointer], frame.values[value]
        guard = None if mask is None else frame.values[mask]
        if isinstance(target, BlockPointer):
            target, guard = block_addresses(target, shape, checked, place.element)
        frame.memory.store(place, target, stored, guard, frame.count)

    return run


@step("tt.make_tensor_ptr", "tt.make_tensor_descriptor")
def _make_pointer(operation: IrOperation, builder: FunctionBuilder) -> Step:
    base, *rest = builder.slots(operation.operands)
    result = builder.slot(operation.results[0])
    has_offsets = operation.name == "tt.make_tensor_ptr"
    n = len(rest) // (3 if has_offsets else 2)

    def run(frame: Frame) -> None:
        parts = frame.get(rest)
        offsets = parts[2 * n :] if has_offsets else [np.zeros(1, np.int32)] * n
        frame.values[result] = BlockPointer(
            frame.values[base], tuple(parts[:n]), tuple(parts[n : 2 * n]), tuple(offsets)
        )

    return run


@step("tt.advance")
def _advance(operation: IrOperation, builder: FunctionBuilder) -> Step:
    pointer, *by = builder.slots(operation.operands)
    result = builder.slot(operation.results[0])

    def run(frame: Frame) -> None:
        target = frame.values[pointer]
        moved = tuple(a + b for a, b in zip(target.offsets, frame.get(by), strict=True))
        frame.values[result] = BlockPointer(target.base, target.sizes, target.strides, moved)

    return run


def _at(descriptor: BlockPointer, indices: Sequence[Array]) -> BlockPointer:
    return BlockPointer(descriptor.base, descriptor.sizes, descriptor.strides, tuple(indices))


@step("tt.descriptor_load")
def _descriptor_load(operation: IrOperation, builder: FunctionBuilder) -> Step:
    descriptor, *indices = builder.slots(operation.operands)
    result, type_ = builder.slot(operation.results[0]), operation.result_type
    place = _place(operation, builder, "load", type_.element)
    dims = range(len(indices))
    # A block may have fewer dimensions than the tensor: those of size 1 in front are left out.
    shape = (1,) * (len(indices) - len(type_.shape)) + type_.shape

    def run(frame: Frame) -> None:
        target = _at(frame.values[descriptor], frame.get(indices))
        values = _load_block(frame, place, target, shape, dims, None)
        frame.values[result] = values.reshape((values.shape[0], *type_.shape))

    return run


@step("tt.descriptor_store")
def _descriptor_store(operation: IrOperation, builder: FunctionBuilder) -> Step:
    descriptor, source, *indices = builder.slots(operation.operands)
    type_ = operation.operand_types[1]
    place = _place(operation, builder, "store", type_.element)
    shape = (1,) * (len(indices) - len(type_.shape)) + type_.shape

    def run(frame: Frame) -> None:
        target = _at(frame.values[descriptor], frame.get(indices))
        pointers, inside = block_addresses(target, shape, range(len(indices)), type_.element)
        stored = frame.values[source]
        frame.memory.store(place, pointers, stored.reshape((stored.shape[0], *shape)), inside, frame.count)

    return run


def _unsigned_choice(choose: Callable[..., Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: choose(unsigned(a), unsigned(b)).view(a.dtype)


#: Read-modify-write operations by their number: what they make of the old value and the operand.
_ATOMICS: dict[int, Callable[[Array, Array], Array]] = {
    1: np.bitwise_and, 2: np.bitwise_or, 3: np.bitwise_xor, 4: np.add, 5: np.add, 6: np.maximum, 7: np.minimum,
    8: _unsigned_choice(np.maximum), 9: _unsigned_choice(np.minimum), 10: lambda old, new: new,
}  # fmt: skip


@step("tt.atomic_rmw")
def _atomic_rmw(operation: IrOperation, builder: FunctionBuilder) -> Step:
    pointer, value, *masks = builder.slots(operation.operands)
    result, element = builder.slot(operation.results[0]), _pointee(operation)
    place = _place(operation, builder, "atomic", element)
    number = int(operation.attributes["atomic_rmw_op"])
    if number not in _ATOMICS:
        raise TritonProgramError(f"atomic operation {number}: must be one of {', '.join(map(str, _ATOMICS))}")
    combine = _ATOMICS[number]

    def run(frame: Frame) -> None:
        arrays = [frame.values[slot] for slot in (pointer, value, *masks)]
        arrays = [np.broadcast_to(a, (frame.count, *a.shape[1:])) for a in arrays]
        pointers, operands, *mask = np.broadcast_arrays(*arrays)

        def apply(memory: Array, index: Array, where: Array) -> Array:
            return _in_turns(memory, index, operands[where], combine, element)

        before = frame.memory.update(place, pointers, mask[0] if mask else None, apply)
        frame.values[result] = from_memory(before, element)

    return run


def _in_turns(
    memory: Array, index: Array, operands: Array, combine: Callable[[Array, Array], Array], element: str
) -> Array:
    """Apply an operation to each element in turn: those of one address one after another. Return the old values."""
    before = np.empty(index.shape, memory.dtype)
    for now in _rounds(index):
        at = index[now]
        old = memory[at]
        before[now] = old
        memory[at] = to_memory(combine(from_memory(old, element), operands[now]), element)
    return before


def _rounds(index: Array) -> list[Array]:
    """Return the places of ``index`` in rounds: the first of each value, then the second of each that has one, and so on."""
    order = np.argsort(index, kind="stable")
    begins = np.flatnonzero(np.diff(index[order], prepend=index[order[:1]] - 1))
    number = np.arange(index.size) - np.repeat(begins, np.diff(begins, append=index.size))
    by_number = np.argsort(number, kind="stable")
    return np.split(order[by_number], np.cumsum(np.bincount(number))[:-1])


@step("tt.atomic_cas")
def _atomic_cas(operation: IrOperation, builder: FunctionBuilder) -> Step:
    pointer, expected, value = builder.slots(operation.operands)
    result, element = builder.slot(operation.results[0]), _pointee(operation)
    place = _place(operation, builder, "atomic", element)

    def run(frame: Frame) -> None:
        arrays = (frame.values[slot] for slot in (pointer, expected, value))
        pointers, compared, new = np.broadcast_arrays(
            *(np.broadcast_to(a, (frame.count, *a.shape[1:])) for a in arrays)
        )

        def apply(memory: Array, index: Array, where: Array) -> Array:
            wanted, written = to_memory(compared[where], element), to_memory(new[where], element)
            before = np.empty(index.shape, memory.dtype)
            for i, at in enumerate(index):
                before[i] = memory[at]
                if before[i] == wanted[i]:
                    memory[at] = written[i]
            return before

        frame.values[result] = from_memory(frame.memory.update(place, pointers, None, apply), element)

    return run


@step("tt.print")
def _print(operation: IrOperation, builder: FunctionBuilder) -> Step:
    prefix, inputs = str(operation.attributes.get("prefix", "")).strip(), builder.slots(operation.operands)
    in_hexadecimal = bool(operation.attributes.get("hex"))

    def shown(value: Any) -> str:
        return np.array2string(value, formatter={"int": hex} if in_hexadecimal else None)

    def run(frame: Frame) -> None:
        for program in range(frame.count):
            at = tuple(int(axis[program]) for axis in frame.programs)
            values = " ".join(shown(value[program if value.shape[0] > 1 else 0]) for value in frame.get(inputs))
            print(f"{at} {prefix} {values}".rstrip(), flush=True)

    return run


@step("tt.assert")
def _assert(operation: IrOperation, builder: FunctionBuilder) -> Step:
    condition, message = builder.slot(operation.operands[0]), str(operation.attributes.get("message", ""))

    def run(frame: Frame) -> None:
        value = frame.values[condition]
        held = np.broadcast_to(value.reshape(value.shape[0], -1).all(axis=1), (frame.count,))
        if not held.all():
            failed = int(np.argmin(held))
            at = tuple(int(axis[failed]) for axis in frame.programs)
            raise TritonKernelError(f"device_assert at {operation.location}, program {at}: {message}")

    return run


@step("tt.index_select_simd")
def _index_select(operation: IrOperation, builder: FunctionBuilder) -> Step:
    pointer, index, *rest = builder.slots(operation.operands)
    result, type_ = builder.slot(operation.results[0]), operation.result_type
    dim, n = int(operation.attributes["dim"]), len(rest) // 2
    place = _place(operation, builder, "load", type_.element)
    size = np.dtype(memory_dtype(type_.element)).itemsize

    def run(frame: Frame) -> None:
        addresses, inside = frame.values[pointer].reshape((-1,) + (1,) * n), np.ones((1,) * (n + 1), np.bool_)
        stride = np.full((1,) * (n + 1), size, np.int64)
        sizes, offsets = frame.get(rest[:n]), frame.get(rest[n:])
        for axis in reversed(range(n)):
            along = [1] * (n + 1)
            along[axis + 1] = -1
            extent = sizes[axis].astype(np.int64).reshape((-1,) + (1,) * n)
            if axis == dim:
                chosen = frame.values[index].astype(np.int64)
                at = chosen.reshape(chosen.shape[0], *along[1:])
            else:
                at = offsets[axis].reshape((-1,) + (1,) * n) + np.arange(type_.shape[axis]).reshape(along)
                inside = inside & (at < extent)
            addresses = addresses + at * stride
            stride = stride * extent
        shape = np.broadcast_shapes(addresses.shape, inside.shape)
        frame.values[result] = frame.memory.load(
            place, np.broadcast_to(addresses, shape), np.broadcast_to(inside, shape), None
        )

    return run

"""Operations that rearrange tensors, and matmuls."""

from __future__ import annotations

from typing import Any

import numpy as np

from ascend_graph.host.triton.elements import Array, from_memory, kept_dtype, rounding, to_element
from ascend_graph.host.triton.ir import IrOperation, TritonProgramError
from ascend_graph.host.triton.operations.pure import Function, pure


def _shaped(a: Array, shape: tuple[int, ...]) -> Array:
    return a.reshape((a.shape[0], *shape))


def together(*arrays: Array) -> list[Array]:
    """Return the arrays with one number of programs."""
    programs = max(a.shape[0] for a in arrays)
    return [a if a.shape[0] == programs else np.broadcast_to(a, (programs, *a.shape[1:])) for a in arrays]


@pure("tt.make_range")
def _make_range(operation: IrOperation) -> Function:
    value = np.arange(operation.attributes["start"], operation.attributes["end"], dtype=np.int32)[None]
    return lambda: value


@pure("tt.splat", "tensor.splat")
def _splat(operation: IrOperation) -> Function:
    shape = operation.result_type.shape
    return lambda a: np.broadcast_to(a.reshape((a.shape[0],) + (1,) * len(shape)), (a.shape[0], *shape))


@pure("tt.broadcast")
def _broadcast(operation: IrOperation) -> Function:
    shape = operation.result_type.shape
    return lambda a: np.broadcast_to(a, (a.shape[0], *shape))


@pure("tt.expand_dims", "tt.reshape", "tensor.reshape", "tensor.expand_shape", "tensor.collapse_shape")
def _reshape(operation: IrOperation) -> Function:
    shape = operation.result_type.shape
    return lambda a: _shaped(a, shape)


@pure("tt.trans")
def _transpose(operation: IrOperation) -> Function:
    order = (0, *(int(axis) + 1 for axis in operation.attributes["order"]))
    return lambda a: a.transpose(order)


@pure("tt.cat")
def _concatenate(operation: IrOperation) -> Function:
    return lambda a, b: np.concatenate(together(a, b), axis=1)


@pure("tt.join")
def _join(operation: IrOperation) -> Function:
    return lambda a, b: np.stack(together(a, b), axis=-1)


@pure("tt.split")
def _split(operation: IrOperation) -> Function:
    return lambda a: (a[..., 0], a[..., 1])


@pure("tt.flip")
def _flip(operation: IrOperation) -> Function:
    dim = int(operation.attributes["dim"])
    return lambda a: np.flip(a, dim % (a.ndim - 1) + 1)


@pure("tt.sort")
def _sort(operation: IrOperation) -> Function:
    dim, descending = int(operation.attributes["dim"]), bool(operation.attributes["descending"])

    def sort(a: Array) -> Array:
        axis = dim % (a.ndim - 1) + 1
        ordered = np.sort(a, axis=axis, kind="stable")
        return np.flip(ordered, axis) if descending else ordered

    return sort


@pure("tt.gather")
def _gather(operation: IrOperation) -> Function:
    axis, size = int(operation.attributes["axis"]), operation.operand_types[0].shape[int(operation.attributes["axis"])]

    def gather(a: Array, index: Array) -> Array:
        if index.size and (index.min() < 0 or index.max() >= size):
            worst = index.max() if index.max() >= size else index.min()
            raise TritonProgramError(f"gather: index {worst} is out of range; expected 0 to {size - 1}")
        a, index = together(a, index)
        return np.take_along_axis(a, index.astype(np.int64), axis + 1)

    return gather


@pure("tt.histogram")
def _histogram(operation: IrOperation) -> Function:
    bins = operation.result_type.shape[0]

    def histogram(a: Array) -> Array:
        inside = a.astype(np.int64)
        # What is outside of the bins is counted nowhere.
        place = np.where((inside >= 0) & (inside < bins), inside, bins) + np.arange(a.shape[0])[:, None] * (bins + 1)
        counts = np.bincount(place.ravel(), minlength=a.shape[0] * (bins + 1))
        return counts.reshape(a.shape[0], bins + 1)[:, :bins].astype(kept_dtype(operation.result_type.element))

    return histogram


def _matmul(a: Array, b: Array, to: Any) -> Array:
    """Return the matmul in float32, of integers exactly."""
    if a.dtype.kind in "iu" or a.dtype == np.bool_:
        exact: Array = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(to)
        return exact
    wide = np.float64 if to == np.float64 else np.float32
    product: Array = np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False))
    return product


@pure("tt.dot")
def _dot(operation: IrOperation) -> Function:
    element = operation.result_type.element
    to = kept_dtype(element)
    wide = np.float32 if np.dtype(to).kind == "f" and to != np.float64 else to
    return lambda a, b, c: to_element(_matmul(a, b, to) + c.astype(wide, copy=False), element)


#: Element types of scaled matmuls by their number.
_SCALED = {0: "f8E4M3FN", 1: "f8E5M2", 5: "bf16", 6: "f16"}


def _scaled(operation: IrOperation, side: str, a: Array, scale: Array | None, axis: int) -> Array:
    """Return an operand of a scaled matmul: each scale is an exponent of 2 for its part of the summed dimension.

    The wheel's adapter makes the factor a number of the operand's type, and so does this.
    """
    number = operation.attributes.get(
        f"{side}_type", operation.attributes.get(f"{'a' if side == 'lhs' else 'b'}_elem_type")
    )
    element = _SCALED.get(int(number) if isinstance(number, int) else -1)
    if element is None:
        raise TritonProgramError(
            f"dot_scaled: operands of four and six bits are not supported, got number {number}; use float8"
        )
    values = from_memory(a.view(np.uint8), element) if a.dtype.kind == "i" and element.startswith("f8") else a
    if scale is None:
        return values.astype(np.float32)
    factors = to_element(np.exp2(scale.astype(np.float32)), element)
    if axis == -2:
        factors = np.swapaxes(factors, -1, -2)
    factors = np.repeat(factors, values.shape[axis] // factors.shape[axis], axis)
    return to_element(values * factors, element).astype(np.float32)


@pure("tt.dot_scaled")
def _dot_scaled(operation: IrOperation) -> Function:
    element = operation.result_type.element
    if rounding(element) is None and element not in ("f32", "f16"):
        raise TritonProgramError(f"dot_scaled: the result must be a float, got {element}")

    def dot(a: Array, b: Array, c: Array, a_scale: Array | None = None, b_scale: Array | None = None) -> Array:
        left = _scaled(operation, "lhs", a, a_scale, -1)
        right = _scaled(operation, "rhs", b, b_scale, -2)
        return to_element(np.matmul(left, right) + c, element)

    return dot


def _place(operation: IrOperation, sizes: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Return the constant offsets and strides of a slice; the marker of a dynamic offset stays in its place."""
    offsets = [int(i) for i in operation.attributes["static_offsets"]]
    strides = [int(i) for i in operation.attributes["static_strides"]]
    if any(size < 0 for size in sizes):
        raise TritonProgramError(f"{operation.name}: the sizes must be constant")
    return offsets, strides


_DYNAMIC = -(2**63)


def _slice_index(
    operation: IrOperation, sizes: tuple[int, ...], dynamic: list[Array], programs: int
) -> tuple[Array, ...]:
    """Return the indices of a slice in each program."""
    offsets, strides = _place(operation, sizes)
    rest = iter(dynamic)
    index: list[Array] = [np.arange(programs).reshape((-1,) + (1,) * len(sizes))]
    for axis, (offset, stride, size) in enumerate(zip(offsets, strides, sizes, strict=True)):
        begin = next(rest) if offset == _DYNAMIC else np.array([offset])
        step = next(rest) if stride == _DYNAMIC else np.array([stride])
        along = np.arange(size).reshape(1, *(size if i == axis else 1 for i in range(len(sizes))))
        shape = (-1,) + (1,) * len(sizes)
        index.append(begin.reshape(shape) + along * step.reshape(shape))
    return tuple(index)


def _check_slice(operation: IrOperation, index: tuple[Array, ...], shape: tuple[int, ...]) -> None:
    for axis, (places, size) in enumerate(zip(index[1:], shape, strict=True)):
        if places.size and (places.min() < 0 or places.max() >= size):
            raise TritonProgramError(
                f"{operation.name}: elements {places.min()} to {places.max()} of dimension {axis} are out of range; "
                f"expected 0 to {size - 1}"
            )


@pure("tensor.extract_slice")
def _extract_slice(operation: IrOperation) -> Function:
    sizes, shape = operation.result_type.shape, operation.operand_types[0].shape

    def extract(a: Array, *dynamic: Array) -> Array:
        programs = max(x.shape[0] for x in (a, *dynamic))
        index = _slice_index(operation, sizes, list(dynamic), programs)
        _check_slice(operation, index, shape)
        return np.asarray(np.broadcast_to(a, (programs, *a.shape[1:]))[index])

    return extract


@pure("tensor.insert_slice")
def _insert_slice(operation: IrOperation) -> Function:
    sizes, shape = operation.operand_types[0].shape, operation.result_type.shape

    def insert(part: Array, a: Array, *dynamic: Array) -> Array:
        programs = max(x.shape[0] for x in (part, a, *dynamic))
        index = _slice_index(operation, sizes, list(dynamic), programs)
        _check_slice(operation, index, shape)
        result = np.broadcast_to(a, (programs, *a.shape[1:])).copy()
        result[index] = part
        return result

    return insert


@pure("tensor.extract")
def _extract(operation: IrOperation) -> Function:
    shape = operation.operand_types[0].shape

    def extract(a: Array, *places: Array) -> Array:
        a, *indices = together(a, *places)
        _check_slice(operation, (np.arange(1), *indices), shape)
        return np.asarray(a[(np.arange(a.shape[0]), *(i.astype(np.int64) for i in indices))])

    return extract


@pure("tensor.from_elements")
def _from_elements(operation: IrOperation) -> Function:
    shape = operation.result_type.shape
    return lambda *elements: _shaped(np.stack(together(*elements), axis=1), shape)

"""Device memory as kernels see it: loads, stores and atomics, each inside the tensors that the launch was given."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ascend_graph.host.triton.elements import Array, from_memory, memory_dtype, to_memory
from ascend_graph.host.triton.ir import Location, TritonProgramError


class TritonKernelError(TritonProgramError):
    """Error of a kernel while it runs; a device reports one of the same code."""


class HostMemoryError(TritonProgramError, ValueError):
    """Error of an argument that is a tensor in host memory."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Memory of one argument: all of its tensor's storage."""

    name: str
    begin: int
    size: int

    @property
    def end(self) -> int:
        return self.begin + self.size


@lru_cache(maxsize=1024)
def _bytes(begin: int, size: int) -> Array:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(begin))


def _view(extent: Extent, dtype: Any) -> Array:
    """Return the memory as elements of a dtype."""
    size = np.dtype(dtype).itemsize
    return _bytes(extent.begin, extent.size // size * size).view(dtype)


class KernelMemory:
    """Memory that one launch may touch.

    Args:
        extents: Memory of each pointer argument, by its place in the kernel's parameters.
        allocation: Function that returns the live allocation at an address, for pointers of unknown origin.
        strict: Whether a race of stores ends the kernel; otherwise it is told once.

    ``before_access`` is called before each access: programs that wait for each other give their turn away.
    """

    def __init__(self, extents: dict[int, Extent], allocation: Any = None, strict: bool = False) -> None:
        self.extents = extents
        self._allocation, self._strict = allocation, strict
        self.before_access: Callable[[], None] = lambda: None

    def load(self, place: AccessPlace, pointers: Array, mask: Array | None, other: Array | None) -> Array:
        """Return what memory holds; where the mask is false, ``other``, or 0."""
        if mask is not None:
            pointers, mask = _together(pointers, mask)
        raw = np.zeros(pointers.shape, memory_dtype(place.element))
        for extent, chosen, index in self._pieces(place, pointers, mask):
            values = _view(extent, raw.dtype)[index]
            if chosen is None:
                raw = values
            else:
                np.copyto(raw, values, where=chosen)
        values = from_memory(raw, place.element)
        if mask is None or other is None:
            return values
        return np.where(mask, values, other)

    def store(self, place: AccessPlace, pointers: Array, values: Array, mask: Array | None, programs: int) -> None:
        """Write values to memory where the mask is true.

        Raises:
            TritonKernelError: what a load raises, or, in strict mode, two programs write different values to one address.
        """
        # A value that is the same in all programs, at addresses that are: one program's store stands for all.
        values = to_memory(values, place.element)
        arrays = [pointers, values] if mask is None else [pointers, values, mask]
        pointers, values, *masks = np.broadcast_arrays(*arrays)
        if programs > 1 and pointers.shape[0] > 1:
            race = _race(place, pointers, values, masks[0] if masks else None)
            if race is not None and self._strict:
                raise TritonKernelError(race)
            if race is not None and place not in _told:
                _told.add(place)
                print(f"ascend_graph: {race}", file=sys.stderr)
        for extent, chosen, index in self._pieces(place, pointers, masks[0] if masks else None):
            view = _view(extent, values.dtype)
            if chosen is None:
                view[index] = values
            else:
                view[index[chosen]] = values[chosen]

    def update(self, place: AccessPlace, pointers: Array, mask: Array | None, apply: Any) -> Array:
        """Let ``apply`` change what memory holds, element after element; return what was there before.

        ``apply`` takes the memory, the indices and the places that these have in ``pointers``.
        """
        before = np.zeros(pointers.shape, memory_dtype(place.element))
        for extent, chosen, index in self._pieces(place, pointers, mask):
            where = np.ones(pointers.shape, np.bool_) if chosen is None else chosen
            before[where] = apply(_view(extent, before.dtype), index[where], where)
        return before

    def _pieces(self, place: AccessPlace, pointers: Array, mask: Array | None) -> Iterator[_Piece]:
        """Yield the elements by the memory that they are in."""
        self.before_access()
        if mask is not None and not mask.any():
            return
        extent = self.extents.get(place.root) if place.root is not None else None
        if extent is not None:
            yield _piece(place, extent, pointers, mask)
            return
        size = np.dtype(memory_dtype(place.element)).itemsize
        left = np.ones(pointers.shape, np.bool_) if mask is None else mask
        while left.any():
            lowest = int(pointers[left].min())
            extent = self._extent_of(place, lowest)
            within = left & (pointers + size <= extent.end)
            yield _piece(place, extent, pointers, within if within.any() else left)
            left = left & ~within

    def _extent_of(self, place: AccessPlace, address: int) -> Extent:
        for extent in self.extents.values():
            if extent.begin <= address < extent.end:
                return extent
        found = self._allocation(address) if self._allocation is not None else None
        if found is None:
            raise TritonKernelError(f"{place}: address {address:#x} is not in device memory; pass a tensor of the NPU")
        return Extent("device memory", *found)


@dataclass(frozen=True, slots=True)
class AccessPlace:
    """Operation that touches memory: its name, source line, element type, and the argument that its pointers come from."""

    operation: str
    location: Location
    element: str
    root: int | None

    def __str__(self) -> str:
        return f"{self.operation} at {self.location}"


#: Memory, the elements that are in it (None for all of them), and their indices there.
_Piece = tuple[Extent, Array | None, Array]


def _piece(place: AccessPlace, extent: Extent, pointers: Array, chosen: Array | None) -> _Piece:
    """Return the elements in one memory.

    Raises:
        TritonKernelError: one of them is outside of it, or at an address that is not a multiple of its size.
    """
    size = np.dtype(memory_dtype(place.element)).itemsize
    offsets = pointers - extent.begin if chosen is None else np.where(chosen, pointers - extent.begin, 0)
    low, high = int(offsets.min()), int(offsets.max())
    if low < 0 or high + size > extent.size:
        outside = offsets[(offsets < 0) | (offsets + size > extent.size)]
        raise TritonKernelError(_out_of_bounds(place, extent, int(outside.min()) // size, int(outside.max()) // size))
    if size > 1 and np.any(offsets & (size - 1)):
        raise TritonKernelError(f"{place}: the address must be a multiple of the {size} bytes of {place.element}")
    return extent, chosen, offsets // size


def _out_of_bounds(place: AccessPlace, extent: Extent, first: int, last: int) -> str:
    size = np.dtype(memory_dtype(place.element)).itemsize
    verb = "reads" if place.operation == "load" else "writes"
    return (
        f"{place}: {verb} elements {first} to {last} of {extent.name}, which has {extent.size // size} of {place.element}; "
        "mask what is outside"
    )


def _together(*arrays: Array) -> Sequence[Array]:
    return np.broadcast_arrays(*arrays)


#: Stores whose race was told in this process.
_told: set[AccessPlace] = set()


def _race(place: AccessPlace, pointers: Array, values: Array, mask: Array | None) -> str | None:
    """Return a sentence if two programs write different values to one address; None if not."""
    programs = np.broadcast_to(np.arange(pointers.shape[0]).reshape((-1,) + (1,) * (pointers.ndim - 1)), pointers.shape)
    if mask is None:
        flat, written, writer = pointers.ravel(), values.ravel(), programs.ravel()
    else:
        flat, written, writer = pointers[mask], values[mask], programs[mask]
    if flat.size < 2 or bool(np.all(flat[1:] > flat[:-1])):
        return None
    order = np.argsort(flat, kind="stable")
    flat, written, writer = flat[order], written[order], writer[order]
    bits = written.view(f"u{written.dtype.itemsize}")  # a NaN is equal to itself
    same = (flat[1:] == flat[:-1]) & (writer[1:] != writer[:-1]) & (bits[1:] != bits[:-1])
    if not same.any():
        return None
    at = int(np.argmax(same))
    return (
        f"{place}: two programs write different values, {written[at]} and {written[at + 1]}, to one address; which of them stays "
        "is not defined: use tl.atomic_add or the like, or give each program addresses of its own"
    )

"""State of the programs of a grid that run together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ascend_graph.host.triton.elements import Array
from ascend_graph.host.triton.memory import KernelMemory


@dataclass(frozen=True, slots=True)
class BlockPointer:
    """Pointer to a block of a tensor: base address, and sizes, strides and offsets in each dimension."""

    base: Array
    sizes: tuple[Array, ...]
    strides: tuple[Array, ...]
    offsets: tuple[Array, ...]

    def parts(self) -> list[Array]:
        return [self.base, *self.sizes, *self.strides, *self.offsets]

    def with_parts(self, parts: Sequence[Array]) -> BlockPointer:
        n = len(self.sizes)
        rest = tuple(parts[1:])
        return BlockPointer(parts[0], rest[:n], rest[n : 2 * n], rest[2 * n :])


class Frame:
    """Values of a function's names in some programs that run together, each value in a slot."""

    __slots__ = ("count", "grid", "memory", "programs", "values")

    def __init__(
        self, values: list[Any], programs: tuple[Array, ...], grid: tuple[int, ...], memory: KernelMemory
    ) -> None:
        self.values, self.programs, self.grid, self.memory = values, programs, grid, memory
        self.count = programs[0].shape[0]

    def select(self, chosen: Array, slots: Iterable[int]) -> Frame:
        """Return a frame of some programs, with the values that the slots name."""
        values: list[Any] = [None] * len(self.values)
        for slot in slots:
            values[slot] = select(self.values[slot], chosen)
        return Frame(values, tuple(axis[chosen] for axis in self.programs), self.grid, self.memory)

    def get(self, slots: Iterable[int]) -> list[Any]:
        return [self.values[slot] for slot in slots]

    def put(self, slots: Iterable[int], values: Iterable[Any]) -> None:
        for slot, value in zip(slots, values, strict=True):
            self.values[slot] = value


def select(value: Any, chosen: Array) -> Any:
    """Return a value in some of the programs."""
    if isinstance(value, BlockPointer):
        return value.with_parts([select(part, chosen) for part in value.parts()])
    return value if value is None or value.shape[0] == 1 else value[chosen]


def merge(parts: Sequence[tuple[Array, Any]], count: int) -> Any:
    """Return a value of ``count`` programs from its parts: each for the programs at the indices next to it."""
    first = parts[0][1]
    if isinstance(first, BlockPointer):
        columns = zip(*(value.parts() for _, value in parts), strict=True)
        places = [chosen for chosen, _ in parts]
        return first.with_parts([merge(list(zip(places, column, strict=True)), count) for column in columns])
    merged = np.empty((count, *first.shape[1:]), first.dtype)
    for chosen, value in parts:
        merged[chosen] = value
    return merged


def merge_all(parts: Sequence[tuple[Array, Sequence[Any]]], count: int) -> list[Any]:
    """Return the values of ``count`` programs, each merged from its parts."""
    columns = zip(*(values for _, values in parts), strict=True)
    places = [chosen for chosen, _ in parts]
    return [merge(list(zip(places, column, strict=True)), count) for column in columns]

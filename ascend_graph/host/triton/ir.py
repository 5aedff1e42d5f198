"""Triton's IR as MLIR prints it in its generic form (``--mlir-print-op-generic``): operations, types and locations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ascend_graph.errors import AscendGraphError


class TritonProgramError(AscendGraphError):
    """Error of a Triton kernel that the host cannot run."""


@dataclass(frozen=True, slots=True)
class Type:
    """Type of a value: a shape, empty for a scalar, and an element type.

    ``element`` is MLIR's name (``f32``, ``i1``), or ``ptr`` with the type that it points to.
    """

    shape: tuple[int, ...]
    element: str
    pointee: Type | None = None

    @property
    def is_pointer(self) -> bool:
        return self.pointee is not None


@dataclass(frozen=True, slots=True)
class Location:
    """Source line of an operation."""

    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "an unknown line"


@dataclass(frozen=True, slots=True)
class Dense:
    """Constant of a tensor, as it is written: one number, or nested lists of them."""

    text: str
    type: Type


@dataclass(frozen=True, slots=True)
class Bits:
    """Float whose bits are given, such as an infinity."""

    value: int


@dataclass(slots=True)
class Block:
    """Basic block: arguments, and operations up to the terminator."""

    arguments: list[str] = field(default_factory=list)
    operations: list[IrOperation] = field(default_factory=list)


@dataclass(slots=True)
class IrRegion:
    """Blocks of an operation, in their order, and their places by label."""

    blocks: list[Block] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


@dataclass
class IrOperation:
    """Operation: its values are names, unique in a function."""

    name: str
    operands: list[str]
    results: list[str]
    operand_types: tuple[Type, ...] = ()
    result_types: tuple[Type, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    regions: list[IrRegion] = field(default_factory=list)
    successors: list[tuple[str, list[str]]] = field(default_factory=list)
    location_text: str = ""
    module: Module | None = None

    @cached_property
    def location(self) -> Location:
        """The line in the author's source, not in Triton's own library."""
        table = self.module.locations if self.module is not None else {}
        frames = _frames(self.location_text, table)
        own = [frame for frame in frames if not _OF_TRITON.search(frame.file)]
        return (own or frames or [Location()])[0]

    @property
    def result_type(self) -> Type:
        return self.result_types[0]


@dataclass
class Module:
    """Functions of a module by name, and its table of locations."""

    functions: dict[str, IrOperation] = field(default_factory=dict)
    locations: dict[str, str] = field(default_factory=dict)

    @property
    def kernel(self) -> IrOperation:
        """The function that is launched."""
        for function in self.functions.values():
            if function.attributes.get("sym_visibility", "public") == "public":
                return function
        raise TritonProgramError(
            f"the module must have a public function; its functions: {', '.join(self.functions) or 'none'}"
        )


_OF_TRITON = re.compile(r"[/\\]triton[/\\](language|runtime|triton_patch)[/\\]")
_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):\d+')


def _frames(text: str, table: Mapping[str, str], depth: int = 0) -> list[Location]:
    """Return the lines that a location names: the innermost call first."""
    if depth > 64:
        return []
    frames: list[Location] = []
    for match in re.finditer(r'"(?:[^"\\]|\\.)*":\d+:\d+|#loc\d*', text):
        piece = match.group()
        if piece.startswith("#"):
            frames += _frames(table.get(piece, ""), table, depth + 1)
        elif (found := _FILE.match(piece)) and not found.group(1).endswith(".mlir"):
            frames.append(Location(found.group(1), int(found.group(2))))
    return frames

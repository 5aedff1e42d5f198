"""Model of a kernel launch as its template reads it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ascend_graph.codegen.kernels.source import ELEMENT_TYPES, KernelFunction, KernelParameter, TilingStruct

from ascend_graph.prototypes import DataType, Parameter


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """Argument of one parameter of a kernel."""

    parameter: KernelParameter
    #: Member of the launch, or address, in C++.
    name: str
    #: One of operand, scratch, data (tiling in global memory), struct (tiling by value), number, null.
    role: str
    #: Name of the operand in the prototype.
    operand: str = ""
    #: Structure of tiling data, if its fields are known.
    struct: TilingStruct | None = None

    @property
    def is_address(self) -> bool:
        """True if the launch passes an address for it."""
        return self.role in ("operand", "scratch", "data")

    @property
    def member_type(self) -> str | None:
        """Type of the member that the launch function fills in, or None."""
        if self.role == "number":
            number: str | None = self.parameter.number
            return number
        if self.role in ("data", "struct"):
            return self.struct.name if self.struct else "Bytes"
        return "Scratch" if self.role == "scratch" else None


@dataclass(frozen=True, slots=True)
class Instance:
    """Instance of a kernel template: the condition on dtypes that selects it, or none, and its arguments."""

    condition: str
    arguments: str


@dataclass(frozen=True, slots=True)
class LaunchOperand:
    """Operand of an operator, a tensor or an attr, as launch functions see it."""

    name: str
    type: str
    #: Expressions for it from the operator's argument, and from a graph node's argument.
    eager: str
    graph: str
    #: Name of the input, attr or output in the prototype, and the position of an output.
    source: str
    output: int | None = None
    #: Argument of the operator in C++.
    argument: str = ""
    optional: bool = False
    in_place: bool = False
    #: Dtypes that the prototype allows, as at::ScalarType; empty for any.
    dtypes: tuple[str, ...] = ()
    parameter: Parameter | None = None


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """Launch of a kernel by an operator."""

    kernel: KernelFunction
    #: Source file, relative to ``kernels``.
    source: Path
    arguments: tuple[KernelArgument, ...]
    operands: tuple[LaunchOperand, ...]
    instances: tuple[Instance, ...]
    #: Statements of the proposed launch function, and the names that it cannot propose a value for.
    proposal: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def tensors(self) -> tuple[LaunchOperand, ...]:
        """Operands that are tensors."""
        return tuple(o for o in self.operands if o.parameter is not None)

    @property
    def addresses(self) -> tuple[KernelArgument, ...]:
        """Parameters of the kernel that get an address."""
        return tuple(a for a in self.arguments if a.is_address)

    @property
    def members(self) -> tuple[KernelArgument, ...]:
        """Values that the launch function sets besides the number of blocks."""
        return tuple(a for a in self.arguments if a.member_type)

    @property
    def structs(self) -> tuple[TilingStruct, ...]:
        """Tiling structures that are mirrored for the launch function."""
        return tuple({a.struct.name: a.struct for a in self.arguments if a.struct}.values())

    @property
    def parameters(self) -> str:
        """Parameters of the launching function."""
        return "".join(f", void* {a.name}" for a in self.addresses)

    def element_of(self, parameter: Parameter) -> DataType | None:
        """Return the dtype as which the kernel reads an operand, if its source shows one, or None."""
        elements = (
            self.kernel.elements.get(a.parameter.name, "") for a in self.arguments if a.operand == parameter.name
        )
        return next((ELEMENT_TYPES[e] for e in elements if e in ELEMENT_TYPES), None)

    def operand(self, argument: KernelArgument) -> str:
        """Return the member that an operand's address belongs to."""
        return next(o.name for o in self.tensors if o.source == argument.operand)

    def cast(self, argument: KernelArgument) -> str:
        """Return the value of a parameter in ``kernel<<<…>>>(…)``."""
        if argument.is_address:
            return f"static_cast<{argument.parameter.type}>({argument.name})"
        if argument.role == "struct":
            return f"ascend_graph::launch::as<::{argument.parameter.type}>(launch.{argument.name})"
        return "nullptr" if argument.role == "null" else f"launch.{argument.name}"

    def address(self, argument: KernelArgument) -> str:
        """Return the value of a parameter in ``ACLRT_LAUNCH_KERNEL(kernel)(…)``, which takes structures by address."""
        if argument.role == "struct":
            return f"Address{{{argument.name}_bytes.data()}}"
        return f"Address{{{argument.name}}}" if argument.is_address else self.cast(argument)

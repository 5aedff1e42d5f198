"""Plans of eager kernels: the source of each parameter of an aclnn function."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from ascend_graph.binding import AclnnCall
from ascend_graph.binding.generated_schema import OperatorSchema
from ascend_graph.dispatch.definition import SchemaDefinition, forget_kernels
from ascend_graph.dispatch.fake import register_meta
from ascend_graph.dispatch.meta import MetaFunction
from ascend_graph.dispatch.transaction import Change, HandleChange
from ascend_graph.eager.library import kernels
from ascend_graph.eager.shape_code import ShapeCode
from ascend_graph.prototypes import AttrValue


@dataclass(frozen=True, slots=True)
class ParameterPlan:
    """Source of one parameter of the aclnn function; read by csrc/eager/kernel.cpp."""

    kind: int
    #: Position of the schema argument, or of the output; -1 for a constant.
    source: int
    #: Value that the argument ``None`` stands for, or the constant.
    default: AttrValue = None
    #: Range of the C type, for integers; the bytes and the element kind, for host memory.
    low: int = -(2**63)
    high: int = 2**63 - 1
    #: Function that computes the value from all arguments of a call, by name; None for other parameters.
    compute: Callable[[dict[str, Any]], Any] | None = None


@dataclass(frozen=True, slots=True)
class UnusedPlan:
    """Argument without a parameter of the function; read by csrc/eager/kernel.cpp."""

    position: int
    kind: int
    #: Only allowed value besides None.
    default: AttrValue


@dataclass(frozen=True, slots=True)
class TensorPlan:
    """Schema argument that is a tensor or a list of tensors; read by csrc/eager/kernel.cpp."""

    position: int
    #: Dtypes that the prototype allows, as bits and in words.
    dtypes: int
    listed: str


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """Call of an aclnn function for a call of its operator; read by csrc/eager/kernel.cpp."""

    function: str
    #: In the order of the aclnn function.
    parameters: tuple[ParameterPlan, ...]
    unused: tuple[UnusedPlan, ...]
    tensors: tuple[TensorPlan, ...]
    #: Number of outputs that the kernel allocates and returns.
    outputs: int
    #: True if a relation or a meta function checks the inputs, even if there is nothing to allocate.
    checked: bool
    shapes: ShapeCode | None
    #: Place of the function's declaration.
    declared: str = ""
    #: Check of a function without a header, called with its library before the first call. It raises if the order of
    #: the parameters is not the planned one.
    confirm: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class PlannedOperator:
    """Operator with all its parts, checked; nothing is registered yet."""

    namespace: str
    schema: OperatorSchema
    torch_schema: torch.FunctionSchema
    meta: MetaFunction
    plan: KernelPlan
    #: Call of the function, and the reason for it.
    call: AclnnCall
    #: Other functions for the same operator, and the function that chooses for a call: 0 is ``plan``, 1 the first of these.
    others: tuple[PlannedOperator, ...] = ()
    choose: Callable[[dict[str, Any]], int] | None = None

    @property
    def name(self) -> str:
        """Name of the operator, ``namespace::name``."""
        return f"{self.namespace}::{self.schema.name}"

    def without_program(self) -> PlannedOperator:
        """Return the operator with kernels that call its meta function for the shapes of outputs."""
        others = tuple(other.without_program() for other in self.others)
        return replace(self, plan=replace(self.plan, shapes=None), others=others)

    def definition(self) -> SchemaDefinition:
        """Return the change that defines the operator."""
        return SchemaDefinition(self.namespace, str(self.schema))

    def kernels(self, definition: SchemaDefinition) -> tuple[Change, ...]:
        """Return the changes that register its meta function, its kernel, and the version bumps of its arguments."""
        namespace, name = self.namespace, self.schema.name
        plans = [self.plan, *(other.plan for other in self.others)]
        changes = [
            HandleChange(lambda: register_meta(definition.overload, self.meta, override=True, own=True)),
            HandleChange(
                lambda: KernelHandle(definition, kernels().register_kernel, namespace, name, plans, self.choose)
            ),
        ]
        if self.schema.prototype.in_place:
            changes.append(
                HandleChange(lambda: KernelHandle(definition, kernels().register_bump_versions, namespace, name))
            )
        return tuple(changes)

    def no_gradient(self, definition: SchemaDefinition) -> Change:
        """Return the change by which differentiating the operator without a registered gradient is an error."""
        register = kernels().register_no_gradient
        return HandleChange(lambda: KernelHandle(definition, register, self.namespace, self.schema.name), stacks=False)


class KernelHandle:
    """Handle of an operator's kernel that csrc/eager registers."""

    def __init__(self, definition: SchemaDefinition, register: Callable[..., Any], *arguments: Any) -> None:
        self._overload = definition.overload
        with warnings.catch_warnings():
            # One may be there still, which is then removed under this one.
            warnings.filterwarnings("ignore", message=".*Overriding a previously registered kernel.*")
            self._registration = register(*arguments)

    def remove(self) -> None:
        self._registration.close()
        forget_kernels(self._overload)

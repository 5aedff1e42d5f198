"""Registered operators, and the registry of the current ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import torch

from ascend_graph.binding import AclnnCall
from ascend_graph.binding.bound import Binding
from ascend_graph.binding.op_schema import single_overload, unwrapped
from ascend_graph.dispatch.calls import ChangeLock
from ascend_graph.dispatch.definition import forget_kernels
from ascend_graph.dispatch.torchair import ConverterFunction, ConverterHandle
from ascend_graph.dispatch.transaction import swap_changes
from ascend_graph.prototypes import OpPrototype
from ascend_graph.registration.cost import Cost, CostModel
from ascend_graph.registration.dimensions.independent_dims import IndependentDims
from ascend_graph.registration.plan import RegistrationPlan
from ascend_graph.registration.request import RegistrationError
from ascend_graph.shapes import Relation


class RegisteredOp:
    """Registered operator: its decisions with their evidence, and its unregistration."""

    def __init__(self, planned: RegistrationPlan) -> None:
        self._plan = planned
        #: Overload of the torch operator.
        self.overload: Any = planned.overload

    @property
    def op_type(self) -> str:
        """GE op type, or the aclnn function or the operator's name if no GE operator is known."""
        return self._plan.request.op_type

    @property
    def prototype(self) -> OpPrototype | None:
        """Prototype that it is bound to; None if no GE operator is known."""
        return self._plan.request.prototype if self._plan.request.in_graphs else None

    @property
    def binding(self) -> Binding:
        """Binding of schema arguments to prototype inputs and attrs."""
        return self._plan.binding

    @property
    def call(self) -> AclnnCall | None:
        """Call plan of the aclnn function; None if the operator has its own kernel."""
        return self._plan.call

    @property
    def called(self) -> OpPrototype:
        """Inputs, attrs and outputs of the aclnn call: those of the prototype, or of the schema."""
        return self._plan.request.called

    @property
    def relation(self) -> Relation | None:
        """Shape relation, or None."""
        return self._plan.relation

    @property
    def independent_dims(self) -> IndependentDims | None:
        """Dimensions declared independent or reduced, or None."""
        return self._plan.independent_dims

    @property
    def loops(self) -> IndependentDims | None:
        """Former name of :attr:`independent_dims`."""
        warnings.warn("RegisteredOp.loops is deprecated: write independent_dims", DeprecationWarning, stacklevel=2)
        return self.independent_dims

    @property
    def evidence(self) -> Mapping[str, str]:
        """Origins of the meta function, the converter and the gradient, in words."""
        changed = self._plan.changes.converter
        handle = None if changed is None else changed.handle
        other = handle.replaced_by if isinstance(handle, ConverterHandle) and self.registered else None
        if other is None:
            return self._plan.evidence
        since = f"replaced since by {other.__module__}.{other.__qualname__}, which graphs call"
        return {**self._plan.evidence, "converter": f"{since}; before: {self._plan.evidence['converter']}"}

    @cached_property
    def cost_model(self) -> CostModel | None:
        """Cost model of a call, from shapes, dtypes and attrs; None without a relation."""
        return self._plan.cost_model()

    def cost(self, /, *args: Any, **kwargs: Any) -> Cost:
        """Return the least cost of a call with these arguments, without running it.

        The tensors may be on any device, ``meta`` included.

        Returns:
            ``flops``, by the formula ``flops=`` (None without one), and ``bytes``: those of every tensor read and every
            tensor written, each once.

        Raises:
            RegistrationError: The operator has no shape relation.
            ShapeError: The call does not fit the relation.
        """
        if self.cost_model is None:
            raise RegistrationError(
                f"{self.op_type}: the cost of a call follows from a shape relation, which is missing: pass shape="
            )
        return self.cost_model.cost(*self.cost_model.facts(args, kwargs))

    @property
    def converter(self) -> ConverterFunction | None:
        """Registered converter; None if an existing one was kept."""
        return self._plan.converter

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the operator."""
        return self.overload(*args, **kwargs)

    @property
    def registered(self) -> bool:
        """True while the registration is in force."""
        return registry.get(self._plan.request.operator) is self

    def unregister(self) -> None:
        """Unregister everything that the registration added. A second call does nothing.

        Graphs compiled before keep their compiled code.
        """
        with registry_lock:
            if self.registered:
                swap_changes(tuple(self._plan.changes), ())
                forget_kernels(self.overload)
                del registry[self._plan.request.operator]

    def __repr__(self) -> str:
        return f"RegisteredOp({self.op_type!r}, {self.overload}{'' if self.registered else ', unregistered'})"


registry_lock = ChangeLock()


#: Registered operators by name. Read without the lock, in one step: its holder may wait for the reading thread.
registry: dict[str, RegisteredOp] = {}


def registered_ops() -> tuple[RegisteredOp, ...]:
    """Return the operators registered now, in the order of registration."""
    return tuple(registry.values())


def registered_by(load: Callable[[], Any]) -> tuple[Any, tuple[RegisteredOp, ...]]:
    """Return what a function returns, and the operators that it registers; all there are if it registers none.

    Entry points of other wheels have registered theirs with the import of torch.
    """
    before = {id(op) for op in registered_ops()}
    loaded = load()
    return loaded, tuple(op for op in registered_ops() if id(op) not in before) or registered_ops()


def find_registered(operator: Any) -> RegisteredOp | None:
    """Find the registration of a torch operator, of a name such as ``npu::npu_swiglu``, or of an op type, or None."""
    operator = unwrapped(operator)
    if isinstance(operator, torch._ops.OpOverloadPacket):
        operator = single_overload(operator)
    name = operator.name() if isinstance(operator, torch._ops.OpOverload) else operator
    return next(iter(find_named(name)), None)


def find_named(name: str) -> list[RegisteredOp]:
    """Return the registrations of a torch operator's name, or of an op type."""
    return [op for key, op in tuple(registry.items()) if name in (key, op.op_type)]

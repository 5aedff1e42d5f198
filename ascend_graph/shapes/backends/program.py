"""Compiled relation: closures over one list of values.

The list, the environment, holds the whole state of a run: attr values, the inputs as given, then one slot per
dimension, group and definition. An input is anything with a ``shape`` and a ``dtype``, so tensors need no conversion.
The compiler turned names into slots, and conditions on presence into constants. So a run is a few closures over list
indices; no code is generated as text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ascend_graph.shapes.arithmetic import Check, Decide
from ascend_graph.shapes.dtypes import DtypeSystem
from ascend_graph.shapes.form import AttrKind

T = TypeVar("T")
Env = list[Any]
Value = Callable[[Env], Any]
Action = Callable[[Env], None]
#: Function that takes the sizes of an input.
Binder = Callable[[Env, Sequence[Any]], None]

#: Result of a run for one output: shape and dtype, a list of them, a number, or ``None``.
OutputSpec = tuple[tuple[Any, ...], T] | list[tuple[tuple[Any, ...], T]] | Any | None


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Shape and dtype of an input; a tensor serves as well."""

    shape: Any
    dtype: Any


def shape_of(value: Any) -> Any:
    """Return the shape of an input, or those of a list of inputs."""
    if isinstance(value, list | tuple):
        return [None if item is None else item.shape for item in value]
    return value.shape


def dtype_of(value: Any) -> Any:
    """Return the dtype of an input, or of the first of a list; ``None`` if that is empty or None."""
    if isinstance(value, list | tuple):
        return value[0].dtype if value and value[0] is not None else None
    return value.dtype


def each_dtype(value: Any) -> Any:
    """Return the dtype of an input, or those of a list of inputs."""
    if isinstance(value, list | tuple):
        return [None if item is None else item.dtype for item in value]
    return value.dtype


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of an output that is more than a shape: the strides of an input, or the input itself."""

    #: The input, or the tensor of a list of tensors.
    source: Value
    itself: bool


@dataclass(frozen=True, slots=True)
class PlannedLeaf:
    """One alternative of an output: functions for its shape and dtype, and its origin."""

    sizes: Value
    dtype: Value
    #: The origin; ``None`` for a fresh contiguous tensor.
    origin: Origin | None = None
    #: The value of an output that is a number; shape and dtype are then meaningless.
    number: Value | None = None


@dataclass(frozen=True, slots=True)
class OutputPlan:
    """Plan of one output: the alternatives left after compiling; the last has no condition."""

    branches: tuple[tuple[Value | None, PlannedLeaf | None], ...]
    #: The length of a list of tensors; ``index`` is the slot of its index.
    count: Value | None = None
    index: int = -1

    def leaf(self, env: Env) -> PlannedLeaf | None:
        """Return the first alternative whose condition holds."""
        for condition, leaf in self.branches:
            if condition is None or condition(env):
                return leaf
        raise AssertionError("the last alternative has no condition")

    def spec(self, env: Env) -> OutputSpec[Any]:
        """Return shape and dtype; see :data:`OutputSpec`."""
        leaf = self.leaf(env)
        if leaf is None:
            return None
        if leaf.number is not None:
            return leaf.number(env)
        if self.count is None:
            sizes, dtype = leaf.sizes(env), leaf.dtype(env)
            return list(zip(sizes, dtype, strict=True)) if isinstance(dtype, list) else (sizes, dtype)
        found = []
        for number in range(self.count(env)):
            env[self.index] = number
            found.append((leaf.sizes(env), leaf.dtype(env)))
        return found


class RelationProgram(Generic[T]):
    """A compiled relation. :meth:`run` takes the inputs in the relation's order, and attrs in theirs."""

    __slots__ = ("outputs", "steps", "template")

    def __init__(self, steps: Sequence[Action], outputs: Sequence[OutputPlan], template: Sequence[Any]) -> None:
        #: Actions that match the inputs and check all demands of the relation, in order.
        self.steps = tuple(steps)
        #: Plans that compute the outputs from the environment after that.
        self.outputs = tuple(outputs)
        #: The end of a new environment, after attrs and inputs.
        self.template = tuple(template)

    def run(self, inputs: Sequence[Any], attrs: Sequence[Any]) -> tuple[OutputSpec[T], ...]:
        """Return shape and dtype of every output; see :meth:`Relation.infer`."""
        env = [*attrs, *inputs, *self.template]
        for step in self.steps:
            step(env)
        return tuple([output.spec(env) for output in self.outputs])


@dataclass(frozen=True, slots=True)
class Target(Generic[T]):
    """Target of a compilation: the call that a relation is compiled for."""

    #: The present inputs.
    present: frozenset[str]
    #: The operator's attrs and their kinds, in the order of their values in a run.
    attrs: tuple[tuple[str, AttrKind], ...]
    system: DtypeSystem[T]
    #: Function called with every condition that must hold and a function that gives the message.
    check: Check
    #: Function called if the result depends on a condition over sizes.
    decide: Decide


# ------------------------------------------------------------------------------------------------------ simple closures


def always(value: Any) -> Value:
    def always(env: Env) -> Any:
        return value

    always.constant = value  # type: ignore[attr-defined]
    return always


def known_condition(value: Value | None) -> bool | None:
    """Return True or False for a condition known at compile time, otherwise None.

    No condition counts as True.
    """
    if value is None:
        return True
    constant = getattr(value, "constant", None)
    return constant if isinstance(constant, bool) else None


def slot_value(slot: int) -> Value:
    def slot_value(env: Env) -> Any:
        return env[slot]

    slot_value.slot = slot  # type: ignore[attr-defined]
    return slot_value


def slot_dtype(slot: int) -> Value:
    """Return a closure for the dtype of the input in a slot."""

    def slot_dtype(env: Env) -> Any:
        return env[slot].dtype

    slot_dtype.of = slot  # type: ignore[attr-defined]
    return slot_dtype


def dtype_slot_of(value: Value) -> int | None:
    """Return the slot of the input whose dtype a value is, or ``None``."""
    return getattr(value, "of", None)


def constant_of(value: Value) -> Any:
    """Return the constant of a value that never changes, or ``None``."""
    return getattr(value, "constant", None)


def slot_of(value: Value) -> int | None:
    """Return the slot that a value reads and nothing else, or ``None``."""
    return getattr(value, "slot", None)

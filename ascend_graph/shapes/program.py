"""A compiled relation: closures over one list of values.

The list, the environment, holds everything a run knows: attr values, dtypes and shapes as given, then one slot per
dimension, group and definition. Names became slots when the relation was compiled, and conditions on presence became
constants, so that a run is a few closures over list indices; nothing is generated as text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ascend_graph.shapes.arithmetic import Check, Decide
from ascend_graph.shapes.dtypes import DtypeSystem

T = TypeVar("T")
Env = list[Any]
Value = Callable[[Env], Any]
Step = Callable[[Env], None]
Match = Callable[[Env, Sequence[Any]], None]

#: What a run gives per output: shape and dtype, a list of them, a number, or ``None``.
OutputSpec = tuple[tuple[Any, ...], T] | list[tuple[tuple[Any, ...], T]] | Any | None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an output comes from that is more than a shape: the strides of an input, or the input itself."""

    input: str
    itself: bool
    #: Which tensor of a list of tensors.
    element: int | None = None


@dataclass(frozen=True, slots=True)
class Leaf:
    """One alternative of an output: how to compute its shape and dtype, and where it comes from."""

    sizes: Value
    dtype: Value
    #: ``None`` for a fresh contiguous tensor.
    origin: Origin | None = None
    #: An output that is a number; shape and dtype mean nothing then.
    number: Value | None = None


@dataclass(frozen=True, slots=True)
class OutputPlan:
    """How to compute one output: the alternatives left after compiling; the last has no condition."""

    branches: tuple[tuple[Value | None, Leaf | None], ...]
    #: For a list of tensors, its length and the slot of its index.
    count: Value | None = None
    index: int = -1

    def leaf(self, env: Env) -> Leaf | None:
        """The alternative that holds."""
        for condition, leaf in self.branches:
            if condition is None or condition(env):
                return leaf
        raise AssertionError("the last alternative has no condition")

    def spec(self, env: Env) -> OutputSpec[Any]:
        """Shape and dtype; see :data:`OutputSpec`."""
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


class Program(Generic[T]):
    """A compiled relation. :meth:`run` takes shapes and dtypes in the order of the inputs, and attrs in theirs."""

    __slots__ = ("outputs", "steps", "template")

    def __init__(self, steps: Sequence[Step], outputs: Sequence[OutputPlan], template: Sequence[Any]) -> None:
        #: What matches the inputs and checks all that the relation demands, to be run in order on an environment.
        self.steps = tuple(steps)
        #: What computes the outputs from the environment after that.
        self.outputs = tuple(outputs)
        #: The end of a new environment, after attrs, dtypes and shapes.
        self.template = tuple(template)

    def run(self, shapes: Sequence[Any], dtypes: Sequence[Any], attrs: Sequence[Any]) -> tuple[OutputSpec[T], ...]:
        """Shape and dtype of every output; see :meth:`Relation.infer`."""
        env = [*attrs, *dtypes, *shapes, *self.template]
        for step in self.steps:
            step(env)
        return tuple([output.spec(env) for output in self.outputs])


@dataclass(frozen=True, slots=True)
class Target(Generic[T]):
    """What a relation is compiled for."""

    #: The inputs that are there.
    present: frozenset[str]
    #: The operator's attrs, in the order in which a run gets their values.
    attrs: tuple[str, ...]
    system: DtypeSystem[T]
    #: Called with every condition that must hold and a function that gives the message.
    check: Check
    #: Called where the result depends on a condition over sizes.
    decide: Decide


# ------------------------------------------------------------------------------------------------------ simple closures


def always(value: Any) -> Value:
    def always(env: Env) -> Any:
        return value

    always.constant = value  # type: ignore[attr-defined]
    return always


def known_condition(value: Value | None) -> bool | None:
    """True or False where a condition is known when the relation is compiled; no condition at all holds."""
    if value is None:
        return True
    constant = getattr(value, "constant", None)
    return constant if isinstance(constant, bool) else None


def slot_value(slot: int) -> Value:
    return lambda env: env[slot]

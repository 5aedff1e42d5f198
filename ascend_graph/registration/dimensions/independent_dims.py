"""Independent dimensions, whose indices an operator computes separately: their declaration and position in a call.

A declaration ``batch=("b", "s")`` names dimensions, groups or ``...`` of the shape relation. ``reduce=("k",)`` names
those over which the results of parts are added. Outputs with a reduced dimension are joined along it, as the gradient
of a norm's input next to that of its weight. :mod:`ascend_graph.registration.dimensions.independence_checks` checks the
declaration. :func:`torch.vmap` (:mod:`ascend_graph.registration.dimensions.batching`) and DTensor
(:mod:`ascend_graph.registration.dimensions.sharding`) use it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ascend_graph.errors import AscendGraphError
from ascend_graph.shapes import Relation
from ascend_graph.shapes.axis_layout import ELLIPSIS, AxisLayout, locate, parts_of_groups
from ascend_graph.shapes.syntax import DimensionGroup, Dims, Ellipsis_, Name, Size

#: Functions that combine the results of parts.
REDUCTIONS: Mapping[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "sum": torch.add,
    "max": torch.maximum,
    "min": torch.minimum,
}


class BatchError(AscendGraphError):
    """Error of a dimension that is not as declared, or cannot be checked; the message has the call that shows it."""


@dataclass(frozen=True, slots=True)
class IndependentDims:
    """Independent dimensions of an operator, and its reduced ones with the way of combining parts."""

    relation: Relation
    batch: tuple[str, ...]
    reduce: Mapping[str, str]
    #: Axis layouts by ranks and attrs.
    known: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)
    names: list[str] = field(default_factory=list, compare=False, repr=False)

    def attrs(self, schema: torch.FunctionSchema) -> list[str]:
        """Return the names of the schema's arguments other than tensors."""
        if not self.names:
            self.names.extend(a.name for a in schema.arguments if "Tensor" not in str(a.type))
        return self.names

    @property
    def written(self) -> str:
        """Declaration as text."""
        return ", ".join([*self.batch, *(f"{name}: {how}" for name, how in self.reduce.items())]) or "none"


def read_independent_dims(
    operator: str, relation: Relation, batch: Sequence[str], reduce: Mapping[str, str]
) -> IndependentDims:
    """Read the declaration and check its names.

    Raises:
        BatchError: A name is not a dimension of the inputs, or not a way to combine.
    """
    if isinstance(batch, str):
        raise BatchError(f'{operator}: batch={batch!r} is a text; write batch=("{batch}",)')
    known = input_dimensions(relation)
    for what, names in (("batch", batch), ("reduce", reduce)):
        for name in tuple(names):
            if name.removeprefix("*") not in known:
                raise BatchError(
                    f"{operator}: {what}={name!r} is not a dimension of the inputs of {relation}; those are {', '.join(known)}"
                )
    for name, how in reduce.items():
        if how not in REDUCTIONS:
            raise BatchError(f"{operator}: reduce={{{name!r}: {how!r}}}: parts are combined by {', '.join(REDUCTIONS)}")
    parts = parts_of_groups(relation)
    if parts and (batch or reduce):
        raise BatchError(
            f"{operator}: {relation} takes the part {parts[0]}, which one more dimension would move; leave batch= and reduce= out"
        )
    both = sorted({n.removeprefix("*") for n in batch} & {n.removeprefix("*") for n in reduce})
    if both:
        raise BatchError(f"{operator}: {', '.join(both)} must not be in batch= and in reduce=")
    return IndependentDims(
        relation,
        tuple(n.removeprefix("*") for n in batch),
        {name.removeprefix("*"): how for name, how in reduce.items()},
    )


def input_dimensions(relation: Relation) -> list[str]:
    """Return the names of the inputs' dimensions, groups and ``...`` included."""
    found: dict[str, None] = {}
    for tensor in relation.input_tensors:
        for alternative in tensor.alternatives:
            for item in alternative.shape.items if isinstance(alternative.shape, Dims) else ():
                if isinstance(item, Ellipsis_):
                    found[ELLIPSIS] = None
                elif isinstance(item, DimensionGroup | Size) and isinstance(item.value, Name):
                    found[item.value.id] = None
    return list(found)


def combine(how: str, parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Combine the results of parts by sum, max or min.

    >>> combine("max", [torch.tensor([1, 5]), torch.tensor([2, 3])])
    tensor([2, 5])
    """
    return functools.reduce(REDUCTIONS[how], parts)


class Arguments:
    """Arguments of one call by name, and the axes of the relation's dimensions in them."""

    def __init__(
        self,
        independent: IndependentDims,
        schema: torch.FunctionSchema,
        values: Mapping[str, Any],
        ranks: Mapping[str, int | None],
    ) -> None:
        self.schema, self.values = schema, dict(values)
        attrs = {a.name: values[a.name] for a in schema.arguments if "Tensor" not in str(a.type)}
        inputs, outputs = locate(independent.relation, ranks, attrs)
        self.inputs: dict[str, AxisLayout | None] = inputs
        self.outputs: list[AxisLayout | None] = [outputs[name] for name in independent.relation.outputs]

    def axis(self, name: str, label: str) -> int | None:
        """Return the axis of an input that is this dimension, or None."""
        places = self.inputs.get(name)
        return places.axes.index(label) if places is not None and label in places.axes else None

    def twice(self, label: str) -> bool:
        """Return whether a tensor has the dimension more than once."""
        return any(p is not None and p.axes.count(label) > 1 for p in (*self.inputs.values(), *self.outputs))


def outputs_of(function: Callable[..., Any], schema: torch.FunctionSchema, values: Mapping[str, Any]) -> list[Any]:
    """Call a function with arguments by name, and return its outputs as a list."""
    args = [values[a.name] for a in schema.arguments if not a.kwarg_only]
    result = function(*args, **{a.name: values[a.name] for a in schema.arguments if a.kwarg_only})
    return [result] if len(schema.returns) == 1 else list(result or ())


def ranks_of(values: Mapping[str, Any]) -> dict[str, int | None]:
    """Return the rank of each argument, None for other values than tensors."""
    return {name: value.dim() if isinstance(value, torch.Tensor) else None for name, value in values.items()}

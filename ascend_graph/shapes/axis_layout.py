"""Layout of a relation's dimensions on the axes of tensors for one call. Pure logic.

This module decides which axis is which dimension and ignores sizes. A tensor has no places if its pattern leaves them
open (lists, computed sizes, conditions on sizes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ascend_graph.shapes.arithmetic import whole
from ascend_graph.shapes.relation import Relation
from ascend_graph.shapes.syntax import (
    Absent,
    Binary,
    Dim,
    DimensionGroup,
    Dims,
    Ellipsis_,
    Expr,
    FunctionCall,
    GroupPart,
    Itself,
    Like,
    Literal,
    Name,
    Size,
    Tensor,
    Unary,
    expressions,
    walk,
)

#: The name of the dimensions that broadcast.
ELLIPSIS = "..."


@dataclass(frozen=True, slots=True)
class AxisLayout:
    """Axis labels of one tensor: ``b`` (a dimension), ``s[0]`` (first of a group), ``...[-1]`` (last broadcast one)."""

    axes: tuple[str | None, ...]
    #: The axis at which each group begins, or would begin if it is empty.
    starts: Mapping[str, int] = field(default_factory=dict)
    #: The attrs that name axes of the tensor.
    axis_attrs: frozenset[str] = frozenset()


#: Axis layout of an output that the relation makes absent in a call.
ABSENT = AxisLayout(())


class UnknownPlaceError(Exception):
    """Undetermined dimensions: the relation does not fix their axes in a tensor."""


def locate(
    relation: Relation, ranks: Mapping[str, int | None], attrs: Mapping[str, Any]
) -> tuple[dict[str, AxisLayout | None], dict[str, AxisLayout | None]]:
    """Return the places of all inputs and outputs: None if unknown, or for an absent input; ``ABSENT`` for an absent output.

    >>> from ascend_graph.shapes import parse_relation
    >>> inputs, outputs = locate(parse_relation("x[*s, n] -> y[n, *s]"), {"x": 3}, {})
    >>> inputs["x"].axes, outputs["y"].axes, outputs["y"].starts
    (('s[0]', 's[1]', 'n'), ('n', 's[0]', 's[1]'), {'s': 1})
    """
    if parts_of_groups(relation):  # one more dimension in a group would move what its parts hold
        return {t.name: None for t in relation.input_tensors}, {t.name: None for t in relation.output_tensors}
    lengths: dict[str, int] = {}
    inputs: dict[str, AxisLayout | None] = {}
    waiting = [t for t in relation.input_tensors if ranks.get(t.name) is not None]
    inputs |= {t.name: None for t in relation.input_tensors if t not in waiting}
    call = _Call(relation, ranks, attrs, lengths)
    for _ in range(len(waiting) + 1):
        left = []
        for tensor in waiting:
            try:
                inputs[tensor.name] = call.input(tensor)
            except UnknownPlaceError:
                left.append(tensor)
        if len(left) == len(waiting):
            break
        waiting = left
    inputs |= {t.name: None for t in waiting}
    outputs: dict[str, AxisLayout | None] = {}
    for tensor in relation.output_tensors:
        try:
            outputs[tensor.name] = call.output(tensor, inputs)
        except UnknownPlaceError:
            outputs[tensor.name] = None
    return inputs, outputs


def parts_of_groups(relation: Relation) -> list[str]:
    """Return the parts of groups and lists that a relation takes, such as ``s[1:]``."""
    tensors = (*relation.input_tensors, *relation.output_tensors)
    return [str(node) for t in tensors for e in expressions(t) for node in walk(e) if isinstance(node, GroupPart)]


@dataclass(frozen=True, slots=True)
class _Call:
    relation: Relation
    ranks: Mapping[str, int | None]
    attrs: Mapping[str, Any]
    lengths: dict[str, int]

    def input(self, tensor: Tensor) -> AxisLayout:
        shape, rank = self.chosen(tensor), self.ranks[tensor.name]
        if isinstance(shape, Itself):
            return AxisLayout((None,) * (rank or 0))
        if not isinstance(shape, Dims) or rank is None:
            raise UnknownPlaceError
        open_ = [i for i in shape.items if self.length(i) is None]
        known = sum(self.length(i) or 0 for i in shape.items)
        if len(open_) > 1 or known > rank or (not open_ and known != rank):
            raise UnknownPlaceError
        found = self.placed(shape.items, rank, dict.fromkeys(map(id, open_), rank - known))
        for item in open_:
            if isinstance(item, DimensionGroup) and isinstance(item.value, Name):
                self.lengths[item.value.id] = rank - known
            elif isinstance(item, Ellipsis_):
                self.lengths[ELLIPSIS] = max(rank - known, self.lengths.get(ELLIPSIS, 0))
        return found

    def output(self, tensor: Tensor, inputs: Mapping[str, AxisLayout | None]) -> AxisLayout:
        shape = self.chosen(tensor)
        if isinstance(shape, Absent):
            return ABSENT
        source = tensor.name if isinstance(shape, Itself) else str(shape.input) if isinstance(shape, Like) else ""
        if source:
            found = inputs.get(source)
            if found is None:
                raise UnknownPlaceError
            return found
        if not isinstance(shape, Dims):
            raise UnknownPlaceError
        lengths: dict[int, int] = {}
        for item in shape.items:
            length = self.lengths.get(ELLIPSIS) if isinstance(item, Ellipsis_) else self.length(item)
            if length is None:
                raise UnknownPlaceError
            lengths[id(item)] = length
        return self.placed(shape.items, sum(lengths.values()), lengths)

    def chosen(self, tensor: Tensor) -> object:
        if tensor.index is not None:
            raise UnknownPlaceError
        for alternative in tensor.alternatives:
            if alternative.condition is None or self.holds(alternative.condition):
                return alternative.shape
        raise UnknownPlaceError

    def holds(self, node: Expr) -> bool:
        match node:
            case Name(name) if name in self.attrs:
                return bool(self.attrs[name])
            case Name(name) if name in self.relation.inputs:
                return self.ranks.get(name) is not None
            case Unary("not", operand):
                return not self.holds(operand)
            case Binary("and", left, right):
                return self.holds(left) and self.holds(right)
            case Binary("or", left, right):
                return self.holds(left) or self.holds(right)
            case Binary(("is" | "is not") as operator, Name(name), Literal(None)) if name in self.attrs:
                return (self.attrs[name] is None) == (operator == "is")
            case Binary(("==" | "!=") as operator, Name(name), Literal(value)) if name in self.attrs:
                return bool(self.attrs[name] == value) == (operator == "==")
        raise UnknownPlaceError

    def length(self, item: Dim) -> int | None:
        """Return the number of dimensions of an item, or None while it is unknown."""
        if isinstance(item, Size):
            return 1
        if isinstance(item, Ellipsis_):
            return None
        if item.axis is not None:
            axes = self.axis(item.axis)
            if isinstance(axes, list | tuple):
                return len(axes)
        value = item.value
        if isinstance(value, FunctionCall) and value.function == "ones":
            (value,) = value.arguments
        if isinstance(value, Name):
            listed = self.attrs.get(value.id)
            return len(listed) if isinstance(listed, list | tuple) else self.lengths.get(value.id)
        return None

    def axis(self, node: Expr) -> Any:
        match node:
            case Literal(value):
                return value
            case Name(name) if name in self.attrs:
                return self.attrs[name]
            case Unary("-", operand):
                return -self.axis(operand)
        raise UnknownPlaceError

    def placed(self, items: Sequence[Dim], rank: int, lengths: Mapping[int, int]) -> AxisLayout:
        axes: list[str | None] = [""] * rank
        attrs: set[str] = set()
        for item in items:
            if isinstance(item, Ellipsis_) or item.axis is None:
                continue
            where = self.axis(item.axis)
            if where is None:
                where = range(rank)
            if isinstance(item.axis, Name) and item.axis.id in self.attrs:
                attrs.add(item.axis.id)
            labels = self.labels(item, lengths.get(id(item), self.length(item) or 0))
            for axis, label in zip(where if isinstance(where, list | tuple | range) else [where], labels, strict=False):
                at_axis = whole(axis)
                if at_axis is None or not -rank <= at_axis < rank:
                    raise UnknownPlaceError
                axes[at_axis] = label
        free = [n for n, label in enumerate(axes) if label == ""]
        starts: dict[str, int] = {}
        at = 0
        for item in items:
            if not isinstance(item, Ellipsis_) and item.axis is not None:
                continue
            length = lengths.get(id(item), self.length(item) or 0)
            name = (
                ELLIPSIS if isinstance(item, Ellipsis_) else str(item.value) if isinstance(item, DimensionGroup) else ""
            )
            if name:
                starts[name] = free[at] if at < len(free) else rank
            for label in self.labels(item, length):
                if at >= len(free):
                    raise UnknownPlaceError
                axes[free[at]] = label
                at += 1
        if at != len(free):
            raise UnknownPlaceError
        return AxisLayout(tuple(axes), starts, frozenset(attrs))

    def labels(self, item: Dim, length: int) -> list[str | None]:
        if isinstance(item, Ellipsis_):
            return [f"{ELLIPSIS}[{n - length}]" for n in range(length)]
        if isinstance(item, Size):
            named = isinstance(item.value, Name) and item.value.id not in self.attrs
            return [str(item.value) if named else None]
        named = isinstance(item.value, Name) and item.value.id not in self.attrs
        return [f"{item.value}[{n}]" if named else None for n in range(length)]

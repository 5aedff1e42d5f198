"""Plans for output shapes and dtypes, computed from the values that the inputs bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from ascend_graph.shapes.arithmetic import axes_of, item_of, show, whole
from ascend_graph.shapes.backends.program import (
    Env,
    Origin,
    OutputPlan,
    PlannedLeaf,
    T,
    Value,
    always,
    each_dtype,
    known_condition,
    slot_value,
)
from ascend_graph.shapes.backends.python import Scope
from ascend_graph.shapes.errors import ShapeError
from ascend_graph.shapes.form import ExpressionKind, ExpressionNode, Leaf, Op, OutputForm, ShapeItem

#: Maximum length of a list output.
MAX_LIST = 65536

#: Operations whose result is at least 0 if all their operands are.
_GROWING = frozenset(
    {Op.ADD, Op.MULTIPLY, Op.FLOOR_DIVIDE, Op.MODULO, Op.CEIL_DIVIDE, Op.MINIMUM, Op.MAXIMUM}
)  # the divisions: in Python's rounding, and 0 is refused
_COUNTS = frozenset({Op.RANK, Op.ELEMENTS, Op.LENGTH})


class Outputs(Scope[T]):
    """Output part of the compiler; :meth:`output` is its interface."""

    def output(self, output: OutputForm) -> OutputPlan:
        count, index = (None, -1) if output.index is None else self.counted(output, output.index)
        branches: list[tuple[Value | None, PlannedLeaf | None]] = []
        for leaf in output.leaves:
            condition = None if leaf.condition is None else self.condition(leaf.condition)
            known = known_condition(condition)
            if known is False:
                continue
            branches.append((None if known else condition, self.leaf(output, leaf)))
            if known:
                break
        return OutputPlan(tuple(branches), count, index)

    def counted(self, output: OutputForm, index: str) -> tuple[Value, int]:
        """Return the length of a list output, and the slot of its index."""
        if output.count is not None:
            count = self.number(output.count)
        elif index in self.counts:
            count = slot_value(self.counts[index])
        else:
            count = self.refusal(
                f"nothing says how many tensors {output.name} has: every list with its index is absent"
            )

        def checked(env: Env) -> int:
            # As torch.split, a graph is made for one number of tensors.
            total = whole(count(env))
            if total is None or not 0 <= total <= MAX_LIST:
                raise ShapeError(f"{output.name} would have {show(count(env))} tensors; expected 0 to {MAX_LIST}")
            return total

        return checked, self.index(index)

    def leaf(self, output: OutputForm, leaf: Leaf) -> PlannedLeaf | None:
        if leaf.what == "absent":
            return None
        if leaf.what == "number":
            number = self.value(leaf.pieces[0].node)
            return PlannedLeaf(number, number, number=number)
        if leaf.what in ("like", "itself"):
            return self.like(output, leaf)
        assert leaf.dtype is not None
        return PlannedLeaf(self.shape(output.name, leaf), self.dtype(leaf.dtype))

    def like(self, output: OutputForm, leaf: Leaf) -> PlannedLeaf:
        """Return the plan of an output with the shape of an input (and more, see :class:`Origin`)."""
        name, itself = leaf.input, leaf.what == "itself"
        if name not in self.present:
            absent = self.refusal(f"output {output.name} is like {name}, which is absent")
            return PlannedLeaf(absent, absent, Origin(absent, itself))
        slot, index = self.input_slot[name], self.index_of[name]
        own = leaf.dtype is None or leaf.dtype == ExpressionNode(Op.DTYPE_OF, ExpressionKind.DTYPE, (), (name,))
        given = None if own or leaf.dtype is None else self.dtype(leaf.dtype)
        if leaf.element is not None:
            at = always(leaf.element)
        elif index is None or (output.index is None and itself):
            whole = slot_value(slot)
            return PlannedLeaf(self.shape_of(name), given or (lambda env: each_dtype(env[slot])), Origin(whole, itself))
        else:
            at = slot_value(self.index(index))

        def pick(env: Env) -> Any:
            return item_of(env[slot], at(env), name)

        return PlannedLeaf(lambda env: pick(env).shape, given or (lambda env: pick(env).dtype), Origin(pick, itself))

    # ----------------------------------------------------------------------------------------------------------- shapes

    def shape(self, subject: str, leaf: Leaf) -> Callable[[Env], tuple[Any, ...]]:
        """Return a function that gives an output's shape."""
        slots = [self.known_slot(piece) for piece in leaf.pieces]
        if None not in slots:
            return _pick([slot for slot in slots if slot is not None])
        parts = [
            (self.group(p.node), True, self.axes(p))
            if p.node.kind is ExpressionKind.SIZES
            else (self.size(p.node, subject), False, self.axes(p))
            for p in leaf.pieces
        ]
        if all(axes is None for _, _, axes in parts):
            return _concatenate([(part, many) for part, many, _ in parts])
        shown = leaf.shown

        def place(env: Env) -> tuple[Any, ...]:
            values = [
                (part(env) if many else (part(env),), many, None if axes is None else axes(env))
                for part, many, axes in parts
            ]
            rank = sum(len(value) for value, _, _ in values)
            result: list[Any] = [_FREE] * rank
            for value, many, axes in values:
                if axes is None:
                    continue
                places = axes_of(axes, many, rank, shown)
                if len(places) != len(value):
                    raise ShapeError(
                        f"{shown}: {len(value)} dimension(s) for {len(places)} axes; expected as many: {list(axes)}"
                    )
                for a, size in zip(places, value, strict=True):
                    if result[a] is not _FREE:
                        raise ShapeError(f"{shown}: axis {a} is named twice; name each once")
                    result[a] = size
            others = iter([size for value, _, axes in values if axes is None for size in value])
            return tuple([next(others) if size is _FREE else size for size in result])

        return place

    def axes(self, piece: ShapeItem) -> Value | None:
        return None if piece.axes is None else self.value(piece.axes)

    def known_slot(self, piece: ShapeItem) -> int | None:
        """Return the slot of a plain dimension that every run binds: it can be read without a check."""
        plain = piece.axes is None and piece.node.op is Op.DIMENSION and self.is_size(piece.node)
        return self.slots[str(piece.node.value)] if plain else None

    def is_size(self, node: ExpressionNode) -> bool:
        """Return whether a node is always an integer, or a list of integers, of at least 0."""
        match node.op:
            case Op.INTEGER:
                return isinstance(node.value, int) and node.value >= 0
            case Op.DIMENSION | Op.GROUP:
                slot = self.slots.get(str(node.value))
                return slot in self.bound and slot in self.sizes_of_inputs
            case Op.ELLIPSIS | Op.ONES | Op.RESHAPE:
                return True
            case Op.PART:
                return self.is_size(node.args[0])
            case Op.CHOICE:
                return all(map(self.is_size, node.args[1:]))
        return node.op in _COUNTS or (node.op in _GROWING and all(map(self.is_size, node.args)))

    def size(self, node: ExpressionNode, subject: str) -> Value:
        value = self.number(node)
        if self.is_size(node):
            return value

        def size(env: Env) -> Any:
            result = value(env)
            if result.__class__ is int and result < 0:
                raise ShapeError(f"output {subject} would have a dimension {node} = {result}; expected 0 or more")
            return result

        return size

    def group(self, node: ExpressionNode) -> Value:
        value = self.value(node)
        if self.is_size(node):
            return value

        def group(env: Env) -> Any:
            sizes = value(env)
            for size in sizes:
                if size.__class__ is int and size < 0:
                    raise ShapeError(f"*{node}: {list(sizes)} holds {size}; expected sizes of 0 or more")
            return tuple(sizes)

        return group


# ---------------------------------------------------------------------------------------------------- building closures

_FREE = object()


def _pick(slots: Sequence[int]) -> Callable[[Env], tuple[Any, ...]]:
    if not slots:
        return always(())
    if len(slots) == 1:
        only = slots[0]
        return lambda env: (env[only],)
    return itemgetter(*slots)


def _concatenate(parts: Sequence[tuple[Value, bool]]) -> Callable[[Env], tuple[Any, ...]]:
    if len(parts) == 1 and parts[0][1]:
        only = parts[0][0]
        return lambda env: tuple(only(env))

    def concatenate(env: Env) -> tuple[Any, ...]:
        result: list[Any] = []
        for part, many in parts:
            if many:
                result += part(env)
            else:
                result.append(part(env))
        return tuple(result)

    return concatenate

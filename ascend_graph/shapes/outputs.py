"""Output shapes and dtypes → plans that compute them from what the inputs bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from ascend_graph.shapes.arithmetic import axes_of, reshape, show
from ascend_graph.shapes.errors import ShapeError
from ascend_graph.shapes.expressions import Scope
from ascend_graph.shapes.program import (
    Env,
    Leaf,
    Origin,
    OutputPlan,
    T,
    Value,
    always,
    dtype_of,
    each_dtype,
    known_condition,
    slot_value,
)
from ascend_graph.shapes.syntax import (
    Absent,
    Call,
    Dims,
    Ellipsis_,
    Expr,
    Group,
    Index,
    Itself,
    Like,
    Literal,
    Name,
    Size,
    Tensor,
)
from ascend_graph.shapes.syntax import Value as Assigned

#: How many tensors a list output may have.
MAX_LIST = 65536


class Outputs(Scope[T]):
    """The part of the compiler that writes outputs; :meth:`output` is its face."""

    def output(self, tensor: Tensor) -> OutputPlan:
        default = next((a.dtype for a in reversed(tensor.alternatives) if a.dtype is not None), None)
        if tensor.index is not None:
            return self.list_output(tensor, default)
        branches: list[tuple[Value | None, Leaf | None]] = []
        for alternative in tensor.alternatives:
            condition = None if alternative.condition is None else self.condition(alternative.condition)
            known = known_condition(condition)
            if known is False:
                continue
            # The dtype at the end holds for all shapes in brackets; `like x` brings that of x.
            shared = default if isinstance(alternative.shape, Dims) else None
            leaf = self.leaf(tensor, alternative.shape, alternative.dtype or shared)
            branches.append((None if known else condition, leaf))
            if known:
                break
        return OutputPlan(tuple(branches))

    def leaf(self, tensor: Tensor, shape: Any, dtype: Expr | None) -> Leaf | None:
        if isinstance(shape, Absent):
            return None
        if isinstance(shape, Assigned):
            node = shape.value
            base = node.name if isinstance(node, Index) else node
            if not (isinstance(base, Name) and base.id in self.inputs):
                number = self.value(node)
                return Leaf(number, number, number=number)
            return self.like(tensor, dtype, node, itself=True)
        if isinstance(shape, Like | Itself):
            node = Name(tensor.name) if isinstance(shape, Itself) else shape.input
            return self.like(tensor, dtype, node, itself=isinstance(shape, Itself))
        return Leaf(self.sizes(tensor.name, shape), self.default_dtype(tensor) if dtype is None else self.dtype(dtype))

    def like(self, tensor: Tensor, dtype: Expr | None, node: Expr, *, itself: bool) -> Leaf:
        """An output with the shape of an input (and more, see :class:`Origin`)."""
        base = node.name if isinstance(node, Index) else node
        assert isinstance(base, Name)
        name = base.id
        if name not in self.present:
            absent = self.refusal(f"output {tensor.name} is like {name}, which is absent")
            return Leaf(absent, absent, Origin(absent, itself))
        source = self.input_slot[name]
        of = None if dtype is None else self.dtype(dtype)
        given = next(t for t in self.relation.input_tensors if t.name == name)
        if isinstance(node, Index):
            element = node.index.value if isinstance(node.index, Literal) else None
            if isinstance(element, bool) or not isinstance(element, int) or given.index is None:
                raise self.fault(f"{node}: {name}[0] is a tensor of a list; say which by an integer")

            def pick(env: Env) -> Any:
                tensors = env[source]
                if not -len(tensors) <= element < len(tensors):
                    raise ShapeError(f"{node}: {name} has {len(tensors)} tensor(s)")
                return tensors[element]

            return Leaf(lambda env: pick(env).shape, of or (lambda env: pick(env).dtype), Origin(pick, itself))
        whole = slot_value(source)
        if given.index is None or (tensor.index is None and itself):
            return Leaf(self.shape_of(name), of or (lambda env: each_dtype(env[source])), Origin(whole, itself))
        if given.index != tensor.index:
            raise self.fault(
                f"{name} is a list; an output like its tensors is {tensor.name}[{given.index}] like {name}"
            )
        index = self.slots[given.index]
        return Leaf(
            lambda env: env[source][env[index]].shape,
            of or (lambda env: env[source][env[index]].dtype),
            Origin(lambda env: env[source][env[index]], itself),
        )

    def list_output(self, tensor: Tensor, dtype: Expr | None) -> OutputPlan:
        index = tensor.index
        assert index is not None
        if len(tensor.alternatives) > 1:
            raise self.fault(f"a list of tensors such as {tensor.name} has one shape, not alternatives")
        if tensor.count is not None:
            count = self.value(tensor.count)
        elif f"len {index}" in self.slots:
            count = slot_value(self.slots[f"len {index}"])
        else:
            raise self.fault(
                f"nothing says how many tensors {tensor.name} has: no input list that is present has index {index}; "
                f"write {tensor.name}[{index} < count]"
            )
        if index not in self.slots:
            self.bound.add(self.new_slot(index))

        def checked(env: Env) -> Any:
            total = count(env)
            if not isinstance(total, int) or not 0 <= total <= MAX_LIST:
                raise ShapeError(f"{tensor.name} would have {show(total)} tensors")
            return total

        leaf = self.leaf(tensor, tensor.alternatives[0].shape, dtype)
        return OutputPlan(((None, leaf),), checked, self.slots[index])

    def default_dtype(self, tensor: Tensor) -> Value:
        for given in self.relation.input_tensors:
            if given.name in self.present:
                if given.index is not None and given.index == tensor.index:
                    slot, index = self.input_slot[given.name], self.slots[given.index]
                    return lambda env: dtype_of(env[slot][env[index]])
                return self.dtype_of(given.name)
        message = (
            f"output {tensor.name} has no dtype and no input gives one; "
            f"write {tensor.name}{tensor.alternatives[0].shape}: float32"
        )
        if not self.inputs:
            raise self.fault(message)
        return self.refusal(message)

    def sizes(self, subject: str, shape: Dims) -> Callable[[Env], tuple[Any, ...]]:
        """A function that gives an output's shape."""
        slots = [self.known_slot(item) for item in shape.items]
        if None not in slots:
            names = [slot for slot in slots if slot is not None]
            return _pick(names)
        parts: list[tuple[Value, bool, Value | None]] = []
        for item in shape.items:
            axis = None if isinstance(item, Ellipsis_) or item.axis is None else self.value(item.axis)
            if isinstance(item, Ellipsis_):
                parts.append((self.ellipsis_value(subject), True, None))
            elif isinstance(item, Group):
                parts.append((self.group(item.value), True, axis))
            else:
                assert item.value is not None
                parts.append((self.size(item.value, subject), False, axis))
        if all(axis is None for _, _, axis in parts):
            return _concatenate([(part, many) for part, many, _ in parts])
        shown = f"{subject}{shape}"

        def place(env: Env) -> tuple[Any, ...]:
            values = [(part(env) if many else (part(env),), many, axis and axis(env)) for part, many, axis in parts]
            rank = sum(len(value) for value, _, _ in values)
            result: list[Any] = [_FREE] * rank
            for (value, many, axis), (_, _, placed) in zip(values, parts, strict=True):
                if placed is None or axis is None:
                    continue
                axes = axes_of(axis, many, rank, shown)
                if len(axes) != len(value):
                    raise ShapeError(f"{shown}: {len(value)} dimension(s) for {len(axes)} axes {list(axes)}")
                for a, size in zip(axes, value, strict=True):
                    if result[a] is not _FREE:
                        raise ShapeError(f"{shown}: axis {a} is named twice")
                    result[a] = size
            others = iter(
                [
                    s
                    for (value, _, axis), p in zip(values, parts, strict=True)
                    if p[2] is None or axis is None
                    for s in value
                ]
            )
            return tuple([next(others) if size is _FREE else size for size in result])

        return place

    def known_slot(self, item: Any) -> int | None:
        """The slot of a plain dimension that every run binds: needs no look before it is used."""
        if isinstance(item, Size) and item.axis is None and isinstance(item.value, Name):
            return self.slots[item.value.id] if self.is_dimension(item.value.id) else None
        return None

    def size(self, expression: Expr, subject: str) -> Value:
        value = self.value(expression)
        if self.is_size(expression):
            return value

        def size(env: Env) -> Any:
            result = value(env)
            if result.__class__ is int:
                if result < 0:
                    raise ShapeError(f"output {subject} would have a dimension {expression} = {result}")
            elif result is None or isinstance(result, bool | str | float | list | tuple):
                raise ShapeError(f"output {subject}: {expression} is {show(result)}, not an integer")
            return result

        return size

    def group(self, expression: Expr) -> Value:
        if isinstance(expression, Call):
            argument = expression.arguments[0]
            if expression.function == "ones":
                inner = self.group(argument)
                return lambda env: (1,) * len(inner(env))
            source, wanted = self.group(argument), self.value(expression.arguments[1])
            return lambda env: reshape(source(env), wanted(env), str(expression), self.check)
        value = self.value(expression)
        if isinstance(expression, Name) and self.is_group(expression.id):
            return value

        def group(env: Env) -> Any:
            sizes = value(env)
            if sizes is None or isinstance(sizes, bool | int | str | float):
                raise ShapeError(f"*{expression}: {expression} is {show(sizes)}, not a list of sizes")
            for size in sizes:
                if size.__class__ is int and size < 0:
                    raise ShapeError(f"*{expression}: {list(sizes)} holds {size}, which is not a size")
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

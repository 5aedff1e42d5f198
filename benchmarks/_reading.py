"""Interpreter of shape relations that follows docs/shapes.md, from their syntax alone: the reference for all back ends.

It shares only the parser with :mod:`ascend_graph.shapes`: no kinds, no lowering, no typed form. It evaluates every expression
directly with the call's own values. It thus finds faults of the lowering, which all back ends share. It supports known
sizes, and no lists of tensors.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from ascend_graph.shapes import Relation, syntax
from ascend_graph.shapes.syntax import (
    Binary,
    Conditional,
    Expr,
    FunctionCall,
    GroupPart,
    Index,
    Literal,
    Name,
    Tuple,
    Unary,
)

Sizes = tuple[int, ...]
Spec = tuple[Sizes, str] | None

#: Largest number: 63 bits and a sign.
LARGEST = 2**63 - 1
_COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
}


class RelationRefused(Exception):  # noqa: N818
    """Call for which the relation does not hold, or that lacks a value that it needs."""


def read(
    relation: Relation,
    shapes: Mapping[str, Sizes | None],
    dtypes: Mapping[str, str],
    attrs: Mapping[str, Any],
    dtype_attrs: Iterable[str] = (),
) -> tuple[Spec, ...] | None:
    """Return the outputs' shapes and dtypes, or ``None`` if the relation refuses the call.

    Args:
        relation: The relation.
        shapes: The inputs' sizes; ``None`` for an absent input.
        dtypes: The inputs' dtypes by torch's names.
        attrs: The attrs' values; for ``dtype_attrs`` torch's names of dtypes.
    """
    values = {name: getattr(torch, value) if name in dtype_attrs else value for name, value in attrs.items()}
    tensors = {name: getattr(torch, dtypes[name]) for name, shape in shapes.items() if shape is not None}
    try:
        return _Call(relation, shapes, tensors, values).outputs()
    except RelationRefused:
        return None


def number(value: Any) -> int:
    """Return an integer of 63 bits and a sign, 0 or 1 for a bool; refuse any other value."""
    if not isinstance(value, int) or abs(value) > LARGEST:
        raise RelationRefused
    return int(value)


def size(value: Any) -> int:
    """Return an integer that is not a bool; refuse any other value."""
    if isinstance(value, bool):
        raise RelationRefused
    return number(value)


def _many(alternative: syntax.Alternative) -> list[syntax.Dim]:
    """Return the items of a pattern that match any number of dimensions."""
    items = alternative.shape.items if isinstance(alternative.shape, syntax.Dims) else ()
    return [item for item in items if not isinstance(item, syntax.Size)]


class _Call:
    def __init__(
        self,
        relation: Relation,
        shapes: Mapping[str, Sizes | None],
        dtypes: Mapping[str, torch.dtype],
        attrs: Mapping[str, Any],
    ) -> None:
        self.relation, self.shapes, self.dtypes, self.attrs = relation, shapes, dtypes, attrs
        self.names: dict[str, Any] = {}
        #: Groups of known length: attrs that are lists, and groups that a matched input may have bound.
        self.groups = {name for name, value in attrs.items() if isinstance(value, list | tuple)}
        self.broadcast: list[Sizes] = []
        self.later: list[tuple[int, Expr]] = []
        self.symbols: dict[str, torch.dtype] = {}

    def outputs(self) -> tuple[Spec, ...]:
        waiting = list(self.relation.input_tensors)
        while waiting:  # one with several items of any length waits for those that say how long all but one of them are
            tensor = next(t for t in waiting if all(len(self.open_items(a)) < 2 for a in t.alternatives))
            waiting.remove(tensor)
            if self.shapes[tensor.name] is not None:
                self.match(tensor)
            self.groups |= {
                str(item.value)
                for a in tensor.alternatives
                for item in _many(a)
                if not isinstance(item, syntax.Ellipsis_)
            }
        if self.broadcast:
            self.ellipsis()
        for clause in self.relation.clauses:
            if isinstance(clause, syntax.WhereDefinition):
                self.names[clause.name] = self.value(clause.value)
            elif not self.holds(clause):
                raise RelationRefused
        for found, wanted in self.later:
            if found != number(self.value(wanted)):
                raise RelationRefused
        return tuple(self.output(tensor) for tensor in self.relation.output_tensors)

    # ---------------------------------------------------------------------------------------------------------- inputs

    def open_items(self, alternative: syntax.Alternative) -> list[syntax.Dim]:
        """Return the items of any length whose length nothing else determines."""
        return [item for item in _many(alternative) if self.is_open(item)]

    def is_open(self, item: syntax.Dim) -> bool:
        return isinstance(item, syntax.Ellipsis_) or (item.axis is None and str(item.value) not in self.groups)

    def chosen(self, tensor: syntax.Tensor) -> syntax.Alternative:
        return next(a for a in tensor.alternatives if a.condition is None or self.holds(a.condition))

    def match(self, tensor: syntax.Tensor) -> None:
        shape = self.chosen(tensor).shape
        if isinstance(shape, syntax.Dims):
            self.pattern(shape.items, self.shapes[tensor.name] or ())
        dtype = next((a.dtype for a in reversed(tensor.alternatives) if a.dtype is not None), None)
        mine = self.dtypes[tensor.name]
        match dtype:
            case None:
                return
            case Name(symbol) if symbol not in self.attrs and symbol not in self.shapes and not _named_dtype(symbol):
                allowed: Sequence[torch.dtype] = [self.symbols.setdefault(symbol, mine)]
            case Tuple(items):
                allowed = [self.dtype(item) for item in items]
            case _:
                allowed = [self.dtype(dtype)]
        if mine not in allowed:
            raise RelationRefused

    def pattern(self, items: Sequence[syntax.Dim], shape: Sizes) -> None:
        """Assign each item its part of the shape: items with axes first, the item of any length gets the rest."""
        free = list(range(len(shape)))
        placed: list[tuple[syntax.Dim, Sizes]] = []
        for item in items:
            if isinstance(item, syntax.Ellipsis_) or item.axis is None:
                continue
            axes = self.axes(item.axis, len(shape))
            if isinstance(item, syntax.Size) and len(axes) != 1:
                raise RelationRefused
            for axis in axes:
                if axis not in free:
                    raise RelationRefused
                free.remove(axis)
            placed.append((item, tuple(shape[axis] for axis in axes)))
        rest = [item for item in items if isinstance(item, syntax.Ellipsis_) or item.axis is None]
        wide = [n for n, item in enumerate(rest) if not isinstance(item, syntax.Size)]
        unknown = next((n for n in wide if self.is_open(rest[n])), wide[-1] if wide else None)
        lengths = [
            1 if n not in wide else 0 if n == unknown else len(self.value(rest[n].value)) for n in range(len(rest))
        ]
        if len(free) < sum(lengths) or (len(free) > sum(lengths) and unknown is None):
            raise RelationRefused
        if unknown is not None:
            lengths[unknown] = len(free) - sum(lengths)
        for item, length in zip(rest, lengths, strict=True):
            taken, free = free[:length], free[length:]
            placed.append((item, tuple(shape[axis] for axis in taken)))
        for item, part in sorted(placed, key=lambda pair: items.index(pair[0])):
            self.bind(item, part)

    def bind(self, item: syntax.Dim, part: Sizes) -> None:
        if isinstance(item, syntax.Ellipsis_):
            self.broadcast.append(part)
            return
        value = item.value
        one = isinstance(item, syntax.Size)
        if value is None:
            return
        if isinstance(value, Name) and value.id not in self.attrs:
            found: Any = part[0] if one else part
            if self.names.setdefault(value.id, found) != found:
                raise RelationRefused
        elif not one:
            if part != tuple(map(size, self.value(value))):
                raise RelationRefused
        elif isinstance(value, Name | Literal):
            if part[0] != number(self.value(value)):
                raise RelationRefused
        else:
            self.later.append((part[0], value))

    def ellipsis(self) -> None:
        rank = max(map(len, self.broadcast))
        aligned = [(1,) * (rank - len(part)) + part for part in self.broadcast]
        found = []
        for column in zip(*aligned, strict=True):
            others = {n for n in column if n != 1}
            if len(others) > 1:
                raise RelationRefused
            found.append(others.pop() if others else 1)
        self.names["..."] = tuple(found)

    def axes(self, axis: Expr, rank: int) -> list[int]:
        value = self.value(axis)
        found = [number(a) for a in (value if isinstance(value, list | tuple) else [value])]
        if any(not -rank <= a < rank for a in found):
            raise RelationRefused
        return [a % rank for a in found]

    # --------------------------------------------------------------------------------------------------------- outputs

    def output(self, tensor: syntax.Tensor) -> Spec:
        chosen = self.chosen(tensor)
        last = next((a.dtype for a in reversed(tensor.alternatives) if a.dtype is not None), None)
        match chosen.shape:
            case syntax.Absent():
                return None
            case syntax.Itself():
                return self.like(tensor.name, chosen.dtype)
            case syntax.Like(Name(name)):
                return self.like(name, chosen.dtype)
            case syntax.Dims(items):
                dtype = chosen.dtype or last
                found = next(iter(self.dtypes.values()), None) if dtype is None else self.dtype(dtype)
                if found is None:
                    raise RelationRefused
                return self.fresh(items), _text(found)
        raise NotImplementedError(str(chosen.shape))

    def like(self, name: str, dtype: Expr | None) -> Spec:
        shape = self.shapes[name]
        if shape is None:
            raise RelationRefused
        return tuple(shape), _text(self.dtypes[name] if dtype is None else self.dtype(dtype))

    def fresh(self, items: Sequence[syntax.Dim]) -> Sizes:
        pieces: list[tuple[Sizes, Expr | None]] = []
        for item in items:
            if isinstance(item, syntax.Ellipsis_):
                pieces.append((self.sizes(Name("...")), None))
                continue
            assert item.value is not None
            group = isinstance(item, syntax.DimensionGroup)
            pieces.append((self.sizes(item.value) if group else (size(self.value(item.value)),), item.axis))
        rank = sum(len(part) for part, _ in pieces)
        shape: dict[int, int] = {}
        for part, axis in pieces:
            if axis is None:
                continue
            axes = self.axes(axis, rank)
            if len(axes) != len(part):
                raise RelationRefused
            for place, n in zip(axes, part, strict=True):
                if place in shape:
                    raise RelationRefused
                shape[place] = n
        others = iter([n for part, axis in pieces if axis is None for n in part])
        found = tuple(shape[place] if place in shape else next(others) for place in range(rank))
        if any(n < 0 for n in found):
            raise RelationRefused
        return found

    # ----------------------------------------------------------------------------------------------------- expressions

    def holds(self, test: Expr) -> bool:
        return bool(self.value(test))

    def value(self, node: Expr) -> Any:
        """Return the value of an expression; for an input's name, whether the input is present."""
        match node:
            case Literal(value):
                return value
            case Name(name):
                return self.named(name)
            case Index(name, index):
                items, place = self.value(name), number(self.value(index))
                if not -len(items) <= place < len(items):
                    raise RelationRefused
                return items[place]
            case Unary("not", operand):
                return not self.holds(operand)
            case Unary(_, operand):
                return number(-number(self.value(operand)))
            case Binary("and", left, right):
                first = self.value(left)
                return self.value(right) if first else first
            case Binary("or", left, right):
                first = self.value(left)
                return first if first else self.value(right)
            case Binary(("is" | "is not") as test, left, _):
                return (self.value(left) in (None, False) and self.absent(left)) == (test == "is")
            case Binary(test, left, right) if test in _COMPARISONS:
                sides = [_plain(self.value(side)) for side in (left, right)]
                return _COMPARISONS[test](*sides)
            case Binary(sign, left, right):
                return self.arithmetic(sign, number(self.value(left)), number(self.value(right)))
            case Conditional(then, condition, otherwise):
                return self.value(then if self.holds(condition) else otherwise)
            case Tuple(items):
                return tuple(self.value(item) for item in items)
            case FunctionCall(function, arguments):
                return self.call(function, arguments)
            case GroupPart(name, start, stop):
                return self.part(self.sizes(name), start, stop)
        raise NotImplementedError(str(node))

    def part(self, items: Sizes, start: Expr | None, stop: Expr | None) -> Sizes:
        bounds = [
            0 if start is None else number(self.value(start)),
            len(items) if stop is None else number(self.value(stop)),
        ]
        if any(abs(bound) > len(items) for bound in bounds):
            raise RelationRefused
        first, last = (bound % (len(items) + 1) if bound >= 0 else bound + len(items) for bound in bounds)
        if first > last:
            raise RelationRefused
        return items[first:last]

    def absent(self, node: Expr) -> bool:
        """Return whether the input or attr of a name is absent."""
        assert isinstance(node, Name)
        return self.attrs[node.id] is None if node.id in self.attrs else self.shapes[node.id] is None

    def named(self, name: str) -> Any:
        if name in self.attrs:
            return self.attrs[name]
        if name in self.names:
            return self.names[name]
        if name in self.shapes:
            return self.shapes[name] is not None
        found = _named_dtype(name)
        if found is None:
            raise RelationRefused
        return found

    def arithmetic(self, sign: str, a: int, b: int) -> int:
        if sign in ("//", "%") and b == 0:
            raise RelationRefused
        functions = {
            "+": operator.add,
            "-": operator.sub,
            "*": operator.mul,
            "//": operator.floordiv,
            "%": operator.mod,
        }
        return number(functions[sign](a, b))

    def sizes(self, node: Expr) -> Sizes:
        return tuple(size(n) for n in self.value(node))

    def call(self, function: str, arguments: Sequence[Expr]) -> Any:
        if function in ("promote", "floating", "integral_sum", "real"):
            return self.dtype(FunctionCall(function, tuple(arguments)))
        if function in ("rank", "numel", "dtype"):
            (tensor,) = arguments
            assert isinstance(tensor, Name)
            shape = self.shapes[tensor.id]
            if shape is None:
                raise RelationRefused
            if function == "dtype":
                return self.dtypes[tensor.id]
            return len(shape) if function == "rank" else self.folded("*", 1, shape)
        values = [self.sizes(a) if isinstance(a, Tuple) else self.value(a) for a in arguments]
        match function, values:
            case "len", [items]:
                return len(items)
            case "sum", [items]:
                return self.folded("+", 0, items)
            case "prod", [items]:
                return self.folded("*", 1, items)
            case (("min" | "max"), [list() | tuple() as items]):
                if not items:
                    raise RelationRefused
                return (min if function == "min" else max)(map(number, items))
            case (("min" | "max"), _):
                return (min if function == "min" else max)(map(number, values))
            case "ceildiv", [a, b]:
                if number(b) == 0:
                    raise RelationRefused
                return number(-(-number(a) // number(b)))
            case "index", [items, wanted]:
                if wanted not in items:
                    raise RelationRefused
                return list(items).index(wanted)
            case "ones", [items]:
                return (1,) * len(items)
            case "reshape", [items, wanted]:
                return self.reshape(items, tuple(map(size, wanted)))
        raise NotImplementedError(function)

    def folded(self, sign: str, start: int, items: Iterable[Any]) -> int:
        for item in items:
            start = self.arithmetic(sign, start, number(item))
        return start

    def reshape(self, items: Sizes, wanted: Sizes) -> Sizes:
        elements = self.folded("*", 1, items)
        if wanted.count(-1) > 1 or any(n < -1 for n in wanted):
            raise RelationRefused
        known = self.folded("*", 1, [n for n in wanted if n != -1])
        if -1 not in wanted:
            if known != elements:
                raise RelationRefused
            return wanted
        if known == 0 or elements % known:
            raise RelationRefused
        return tuple(elements // known if n == -1 else n for n in wanted)

    # ---------------------------------------------------------------------------------------------------------- dtypes

    def dtype(self, node: Expr) -> torch.dtype:
        match node:
            case Conditional(then, condition, otherwise):
                return self.dtype(then if self.holds(condition) else otherwise)
            case Name(name) if name in self.shapes and name not in self.attrs:
                return self.dtype(FunctionCall("dtype", (node,)))
            case Name(name) if name in self.symbols:
                return self.symbols[name]
            case FunctionCall("promote", arguments):
                return self.promoted([self.operand(a) for a in arguments])
            case FunctionCall("floating", (inner,)):
                found = self.dtype(inner)
                return found if found.is_floating_point or found.is_complex else torch.get_default_dtype()
            case FunctionCall("integral_sum", (inner,)):
                found = self.dtype(inner)
                return found if found.is_floating_point or found.is_complex else torch.int64
            case FunctionCall("real", (inner,)):
                return self.dtype(inner).to_real()
        found = self.value(node)
        if not isinstance(found, torch.dtype):
            raise RelationRefused
        return found

    def operand(self, node: Expr) -> Any:
        """Return the operand for ``torch.result_type``: a tensor of its rank, or a number."""
        if isinstance(node, Name) and node.id in self.shapes and node.id not in self.attrs:
            shape = self.shapes[node.id]
            return torch.empty((1,) * len(shape or ()), dtype=self.dtype(node), device="meta")
        if isinstance(node, Name) and node.id in self.attrs and isinstance(self.attrs[node.id], int | float):
            return self.attrs[node.id]
        return torch.empty(1, dtype=self.dtype(node), device="meta")

    def promoted(self, operands: Sequence[Any]) -> torch.dtype:
        assert len(operands) == 2, "result_type is of two"
        try:
            return torch.result_type(*operands)
        except RuntimeError:
            raise RelationRefused from None


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _named_dtype(name: str) -> torch.dtype | None:
    """Return the dtype that prints as this name: ``float32``, but not ``float`` or ``int``, which may be dimensions."""
    found = getattr(torch, name, None)
    return found if isinstance(found, torch.dtype) and _text(found) == name else None


def _text(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")

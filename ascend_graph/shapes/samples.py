"""Sample inputs that fit a relation: random shapes, dtypes and presence, for tests and comparisons.

The choice is random and then tried: choices that the relation refuses are discarded. So conditions after ``where`` and
patterns that depend on attrs need no solving.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ascend_graph.shapes.dtypes import CATEGORY
from ascend_graph.shapes.errors import RelationError, ShapeError
from ascend_graph.shapes.relation import Relation
from ascend_graph.shapes.syntax import (
    Binary,
    DimensionGroup,
    Dims,
    Ellipsis_,
    Expr,
    FunctionCall,
    GroupPart,
    Index,
    Literal,
    Name,
    Size,
    Tensor,
    Tuple,
    Unary,
    WhereDefinition,
    children,
)


class RelationSampleError(RelationError):
    """Failed search for inputs that a relation accepts."""


@dataclass(frozen=True, slots=True)
class RelationSample:
    """Shapes and dtypes of each input, as :meth:`Relation.infer` takes them."""

    shapes: Mapping[str, Any]
    dtypes: Mapping[str, Any]


def sample(
    relation: Relation,
    attrs: Mapping[str, object],
    rng: random.Random,
    *,
    optional: Sequence[str] = (),
    absent: Sequence[str] = (),
    dtypes: Sequence[str] = ("float16", "float32", "bfloat16"),
    sizes: Sequence[int] = (2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64),
    structure: int | None = None,
    tries: int = 2000,
) -> RelationSample:
    """Return random inputs that ``relation`` accepts together with ``attrs``.

    Args:
        relation: The relation.
        attrs: All attrs of the operator.
        rng: The source of randomness; the same seed gives the same sample.
        optional: Inputs that may be absent; each is, half of the time.
        absent: Inputs that are absent.
        dtypes: Dtypes to choose from for the inputs without annotation; one for all of them.
        sizes: Sizes to choose dimensions from, distinct for distinct names while they last.
        structure: Samples with the same number differ only in sizes, not in ranks, lengths, presence or dtypes.
        tries: Maximum number of choices to try.

    Raises:
        RelationSampleError: None of them was accepted; the message has the last reason.

    >>> from ascend_graph.shapes import parse_relation
    >>> relation = parse_relation("x[m, k], w[k, n] -> y[m, n]")
    >>> shapes = sample(relation, {}, random.Random(0)).shapes
    >>> shapes["x"][1] == shapes["w"][0]
    True
    """
    reason: Exception | None = None
    for number in range(tries):
        found = None
        try:
            found = _Choice(relation, attrs, rng, sizes=sizes, dtypes=dtypes, structure=structure).sample(
                optional, absent
            )
            relation.infer(found.shapes, found.dtypes, attrs)
            _demand_sizes(found.shapes)
            return found
        except ShapeError as error:
            reason = error
            if (
                number == 0
                and structure is not None
                and found is not None
                and not _has_fitting_ranks(relation, found, attrs)
            ):
                break
        except RelationError as error:
            if not optional:
                raise
            reason = error  # an absent input may be what an output needs
    raise RelationSampleError(
        f"found no inputs for {relation} with attrs {dict(attrs)} in {number + 1} tries: {reason}. Give samples="
    )


def _has_fitting_ranks(relation: Relation, found: RelationSample, attrs: Mapping[str, object]) -> bool:
    """Return whether a sample meets the conditions that hold for all samples of its structure or for none."""
    try:
        _conditions_of_structure(relation, frozenset(attrs)).infer(found.shapes, found.dtypes, attrs)
    except ShapeError:
        return False
    except RelationError:
        return True  # nothing is known of them
    return True


@lru_cache(maxsize=1024)
def _conditions_of_structure(relation: Relation, attrs: frozenset[str]) -> Relation:
    """Return a relation of the same inputs with the conditions on ranks and attrs alone."""

    def is_fixed(node: Expr) -> bool:
        match node:
            case FunctionCall("rank"):
                return True
            case Name(name):
                return name in attrs
        return all(map(is_fixed, children(node)))

    clauses = tuple(c for c in relation.clauses if not isinstance(c, WhereDefinition) and is_fixed(c))
    return replace(relation, output_tensors=(), clauses=clauses)


def _demand_sizes(shapes: Mapping[str, Any]) -> None:
    """Raise ``ShapeError`` for a negative size, which may follow from attrs."""
    for name, shape in shapes.items():
        for one in shape if isinstance(shape, list) else [shape or ()]:
            if any(size < 0 for size in one):
                raise ShapeError(f"{name} would have a negative size: {one}; expected 0 or more")


class _Choice:
    def __init__(
        self,
        relation: Relation,
        attrs: Mapping[str, object],
        rng: random.Random,
        *,
        sizes: Sequence[int],
        dtypes: Sequence[str],
        structure: int | None,
    ) -> None:
        self.relation, self.attrs, self.values = relation, attrs, rng
        rng = self.rng = rng if structure is None else random.Random(structure)
        self.pool = list(sizes)
        self.sizes = list(sizes)
        self.dims: dict[str, int] = {}
        self.groups: dict[str, tuple[int, ...]] = {}
        self.lists: dict[tuple[str, int], Any] = {}
        self.lengths: dict[str, int] = {}
        self.list_lengths: dict[str, int] = {}
        self.batch = self.some(rng.choice((0, 1, 2)))
        self.dtype = rng.choice(list(dtypes))
        self.symbols: dict[str, str] = {}

    def size(self) -> int:
        pool = self.pool
        if not pool:
            return self.values.choice(self.sizes)
        at = int(self.values.random() * len(pool))
        pool[at], pool[-1] = pool[-1], pool[at]
        return pool.pop()

    def some(self, rank: int) -> tuple[int, ...]:
        return tuple(self.size() for _ in range(rank))

    def sample(self, optional: Sequence[str], absent: Sequence[str]) -> RelationSample:
        shapes: dict[str, Any] = {}
        dtypes: dict[str, Any] = {}
        # Lists first: a size of another input may be a sum over one.
        for tensor in sorted(self.relation.input_tensors, key=lambda one: one.index is None):
            if tensor.name in absent or (tensor.name in optional and self.rng.random() < 0.5):
                shapes[tensor.name] = dtypes[tensor.name] = None
                continue
            dtype = self.input_dtype(tensor, dtypes)
            if tensor.index is None:
                shapes[tensor.name], dtypes[tensor.name] = self.shape(tensor, -1), dtype
                continue
            length = self.lengths.setdefault(tensor.index, self.rng.choice((1, 2, 3)))
            self.list_lengths[tensor.name] = length
            shapes[tensor.name] = [self.shape(tensor, n) for n in range(length)]
            dtypes[tensor.name] = [dtype] * length
        ordered = self.relation.inputs
        return RelationSample({n: shapes[n] for n in ordered}, {n: dtypes[n] for n in ordered})

    def shape(self, tensor: Tensor, element: int) -> tuple[int, ...]:
        pattern = self.rng.choice(tensor.alternatives).shape
        if not isinstance(pattern, Dims):
            return self.some(self.rng.choice((1, 2, 3)))
        placed: list[tuple[Sequence[Any], tuple[int, ...]]] = []
        ordered: list[int] = []
        for item in pattern.items:
            if isinstance(item, Ellipsis_):
                ordered += [1 if self.rng.random() < 0.2 else size for size in self.batch[self.rng.choice((0, 0, 1)) :]]
            elif item.axis is None:
                ordered += self.group(item, element) if isinstance(item, DimensionGroup) else [self.item(item, element)]
            else:
                axis = self.number(item.axis)
                if isinstance(item, DimensionGroup):
                    chosen = axis if isinstance(axis, list | tuple) else () if axis is None else (axis,)
                    placed.append((chosen, self.fixed(item, len(chosen))))
                else:
                    placed.append(((axis,), (self.item(item, element),)))
        rank = len(ordered) + sum(len(sizes) for _, sizes in placed)
        result: list[int | None] = [None] * rank
        for axes, sizes in placed:
            for axis, size in zip(axes, sizes, strict=True):
                if not isinstance(axis, int) or not -rank <= axis < rank or result[axis] is not None:
                    raise ShapeError(
                        f"axis {axis} is not there, or named twice; expected each of {rank} dimensions once"
                    )
                result[axis] = size
        rest = iter(ordered)
        return tuple(next(rest) if size is None else size for size in result)

    def fixed(self, item: DimensionGroup, rank: int) -> tuple[int, ...]:
        assert isinstance(item.value, Name)
        return self.groups.setdefault(item.value.id, self.some(rank))

    def group(self, item: DimensionGroup, element: int) -> tuple[int, ...]:
        if isinstance(item.value, Index):
            key = (item.value.name.id, element)
            if key not in self.lists:
                self.lists[key] = self.some(self.rng.choice((1, 2)))
            return self.lists[key]  # type: ignore[no-any-return]
        if isinstance(item.value, GroupPart):
            whole = self.attrs.get(item.value.name.id) or self.group(DimensionGroup(item.value.name), element)
            start, stop = (None if b is None else self.number(b) for b in (item.value.start, item.value.stop))
            return tuple(whole)[start:stop]  # type: ignore[arg-type]
        assert isinstance(item.value, Name)
        name = item.value.id
        if name not in self.groups:
            self.groups[name] = self.some(self.rng.choice((0, 1, 1, 2, 2, 3)))
        return self.groups[name]

    def item(self, item: Size, element: int) -> int:
        value = item.value
        if value is None:
            return self.size()
        if isinstance(value, Index) and value.name.id not in self.attrs:
            key = (value.name.id, element)
            return self.lists.setdefault(key, self.size())  # type: ignore[no-any-return]
        found = self.number(value)
        return found if isinstance(found, int) else self.size()

    def number(self, node: Expr) -> Any:
        match node:
            case Literal(value):
                return value
            case Name(name) if name in self.attrs:
                return self.attrs[name]
            case Name(name):
                if name not in self.dims:
                    self.dims[name] = self.size()
                return self.dims[name]
            case Index(Name(name), index) if isinstance(self.attrs.get(name), list | tuple):
                return self.attrs[name][self.number(index)]  # type: ignore[index]
            case Unary("-", operand):
                return -self.number(operand)
            case Binary(("+" | "-" | "*" | "//" | "%") as operator, left, right):
                a, b = self.number(left), self.number(right)
                if operator in ("//", "%") and b == 0:
                    raise ShapeError(f"{node} divides by 0; expected another divisor")
                return {
                    "+": lambda: a + b,
                    "-": lambda: a - b,
                    "*": lambda: a * b,
                    "//": lambda: a // b,
                    "%": lambda: a % b,
                }[operator]()
            case FunctionCall("ceildiv", (left, right)):
                a, b = self.number(left), self.number(right)
                if b <= 0:
                    raise ShapeError(f"{node} divides by {b}; expected a divisor above 0")
                return -(-a // b)
            case FunctionCall("len", (Name(name),)) if name in self.list_lengths:
                return self.list_lengths[name]
            case FunctionCall(("sum" | "max" | "min") as function, (Name(name),)):
                found = self.attrs.get(name, [size for (owner, _), size in self.lists.items() if owner == name])
                if isinstance(found, list | tuple) and found and all(isinstance(size, int) for size in found):
                    return sum(found) if function == "sum" else max(found) if function == "max" else min(found)
        raise ShapeError(f"cannot choose a size for {node}; give samples=")

    def input_dtype(self, tensor: Tensor, before: Mapping[str, Any]) -> str:
        dtype = next((a.dtype for a in reversed(tensor.alternatives) if a.dtype is not None), None)
        if isinstance(dtype, Tuple):
            dtype = self.rng.choice(dtype.items)
        if isinstance(dtype, Name):
            if dtype.id in CATEGORY:
                return dtype.id
            if dtype.id in before:
                return before[dtype.id]  # type: ignore[no-any-return]
            return self.symbols.setdefault(dtype.id, self.dtype)
        return self.dtype

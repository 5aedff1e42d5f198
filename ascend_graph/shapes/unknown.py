"""Advice on names that a relation does not give a meaning."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ascend_graph.shapes.dtypes import other_name
from ascend_graph.shapes.statement import Statement
from ascend_graph.shapes.syntax import (
    Binary,
    DimensionGroup,
    Dims,
    Expr,
    Literal,
    Name,
    Size,
    Tensor,
    WhereDefinition,
    bound_names,
    walk,
)

_ATTR = "; or make the size an attr of the operator (docs/shapes.md, Sizes that depend on data)"


def advice(relation: Statement, unknown: Collection[str], known: Collection[str] = ()) -> str:
    """Return advice on unknown names: known ones like them, dtypes of CANN or C++, sizes that may depend on data; or "".

    With a bound, ``where k <= n``, the advice is the relation to write.

    >>> from ascend_graph.shapes import parse_relation
    >>> advice(parse_relation("x[n] -> y[n]: fp16"), ["fp16"])
    '. Write float16 for fp16'
    >>> advice(parse_relation("x[n] -> y[n, group]"), ["group"], ["n", "groups"])
    '. Did you mean groups?'
    >>> advice(parse_relation("x[2 * n] -> y[n]"), ["n"])
    '. The size 2 * n of x is compared and gives n no value. Write a for it, and a // 2 for n, where a % 2 == 0'
    >>> advice(parse_relation("x[n] -> index[k]"), ["k"]).startswith(". If k is a number that only the values of a tensor tell")
    True
    >>> advice(parse_relation("x[n] -> index[k]: int32 where k <= n"), ["k"])
    '. k is a number that only ... Write x[n] -> index[n]: int32, count[1]: int32; or make ...'
    """
    if dtypes := [f"{meant} for {name}" for name in sorted(unknown) if (meant := other_name(name))]:
        return f". Write {', '.join(dtypes)}"
    near = [difflib.get_close_matches(name, known, 1, 0.8) for name in sorted(unknown)]
    if near and all(near):
        return f". Did you mean {', '.join(name for found in near for name in found)}?"
    if computed := _computed(relation, set(unknown)):
        return computed
    counts = dict(_counts(relation))
    sizes = {name for tensor in relation.output_tensors for name in size_names(tensor)}
    missing = set(unknown)
    names = sorted(name for name in sizes if name in missing or counts.get(name) in missing)
    if not names:
        return ""
    bounds = dict(bounds_of(relation, names))
    if bounds.keys() >= set(names):
        return (
            f". {', '.join(names)} is a number that only the values of a tensor tell: every mode allocates the "
            "largest size, and the number is an output of its own, by which the caller cuts the result. "
            f"Write {_largest(relation, bounds, counts)}{_ATTR}"
        )
    return (
        f". If {', '.join(names)} is a number that only the values of a tensor tell, no relation says it: write the largest size that "
        f"there can be, with the number as an output of its own, index[n], count[1]: int32{_ATTR}"
    )


#: Solution of a size for a name, by the operator between the name and the other operand.
_SOLVED = {"*": "{} // {}", "+": "{} - {}", "-": "{} + {}"}


def _computed(relation: Statement, unknown: Set[str]) -> str:
    """Return advice on a name in arithmetic of an input's size, which is a demand and not a definition; or ""."""
    taken = {*relation.free_names, *(name for tensor in relation.input_tensors for name in bound_names(tensor))}
    whole = next(letter for letter in "abcdefghijklm" if letter not in taken)
    for tensor, value in _sizes(relation.input_tensors):
        mentioned = {node.id for node in walk(value) if isinstance(node, Name)}
        for name in sorted(unknown & mentioned):
            said = f". The size {value} of {tensor} is compared and gives {name} no value. Write {whole} for it, and"
            other = _beside(value, name)
            if other is None or len(unknown & mentioned) > 1:
                return f"{said} make {name} an attr of the operator or a dimension of another input"
            assert isinstance(value, Binary)
            demand = f", where {whole} % {other} == 0" if value.operator == "*" else ""
            return f"{said} {_SOLVED[value.operator].format(whole, other)} for {name}{demand}"
    return ""


def _sizes(tensors: Iterable[Tensor]) -> Iterator[tuple[str, Expr]]:
    """Yield the sizes that patterns of inputs compute, with the input's name."""
    for tensor in tensors:
        for alternative in tensor.alternatives:
            for item in alternative.shape.items if isinstance(alternative.shape, Dims) else ():
                if isinstance(item, Size) and isinstance(item.value, Binary):
                    yield tensor.name, item.value


def _beside(value: Expr, name: str) -> Expr | None:
    """Return the other operand of a size that can be solved for a name, or None."""
    if isinstance(value, Binary) and value.operator in _SOLVED:
        if value.left == Name(name):
            return value.right
        if value.right == Name(name) and value.operator != "-":
            return value.left
    return None


def size_names(tensor: Tensor) -> Iterator[str]:
    """Yield the names in the sizes of an output."""
    for alternative in tensor.alternatives:
        for item in alternative.shape.items if isinstance(alternative.shape, Dims) else ():
            if isinstance(item, Size | DimensionGroup) and item.value is not None:
                yield from (node.id for node in walk(item.value) if isinstance(node, Name))


def _counts(relation: Statement) -> Iterator[tuple[str, str]]:
    """Yield the sizes that the relation takes from the value of an output: ``where k = count``."""
    for clause in relation.clauses:
        left, right = (
            (Name(clause.name), clause.value)
            if isinstance(clause, WhereDefinition)
            else (clause.left, clause.right)
            if isinstance(clause, Binary) and clause.operator == "=="
            else (None, None)
        )
        if isinstance(left, Name) and isinstance(right, Name) and right.id in {*relation.outputs} - {*relation.inputs}:
            yield left.id, right.id


def bounds_of(relation: Statement, names: Iterable[str]) -> Iterator[tuple[str, Expr]]:
    """Yield the largest value of each name that a clause bounds: ``where k <= n``."""
    wanted = set(names)
    for clause in relation.clauses:
        if isinstance(clause, Binary) and clause.operator in ("<=", ">="):
            name, bound = (clause.left, clause.right) if clause.operator == "<=" else (clause.right, clause.left)
            mentioned = {node.id for node in walk(bound) if isinstance(node, Name)}
            if isinstance(name, Name) and name.id in wanted and not mentioned & (wanted | {*relation.outputs}):
                yield name.id, bound


def _largest(relation: Statement, bounds: dict[str, Expr], counts: dict[str, str]) -> str:
    """Return the relation with the largest size of each name, and an output for the number if it has none."""
    head, where, tail = str(largest_sizes(relation, bounds, {*counts.values()})).partition(" where ")
    has_number = bool(counts) or any(map(_is_number, relation.output_tensors))
    return f"{head}{'' if has_number else ', count[1]: int32'}{where}{tail}"


def largest_sizes(relation: Statement, bounds: Mapping[str, Expr], also: Collection[str] = ()) -> Statement:
    """Return the relation with each name replaced by its bound, without the clauses about it or about ``also``."""
    outputs = tuple(_substituted(tensor, bounds) for tensor in relation.output_tensors)
    dropped = {*bounds, *also}
    clauses = tuple(
        clause
        for clause in relation.clauses
        if not dropped & {*_mentioned(clause), *([clause.name] if isinstance(clause, WhereDefinition) else [])}
    )
    return Statement(relation.input_tensors, outputs, clauses)


def _mentioned(clause: WhereDefinition | Expr) -> Iterator[str]:
    value = clause.value if isinstance(clause, WhereDefinition) else clause
    return (node.id for node in walk(value) if isinstance(node, Name))


def _is_number(tensor: Tensor) -> bool:
    """Return whether an output has one element."""
    shapes = [alternative.shape for alternative in tensor.alternatives]
    return all(
        isinstance(shape, Dims) and all(isinstance(item, Size) and item.value == Literal(1) for item in shape.items)
        for shape in shapes
    )


def _substituted(node: Any, values: Mapping[str, Expr]) -> Any:
    """Return a node with names replaced by expressions."""
    if isinstance(node, Name):
        return values.get(node.id, node)
    if isinstance(node, tuple):
        return tuple(_substituted(part, values) for part in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    return replace(node, **{f.name: _substituted(getattr(node, f.name), values) for f in fields(node) if f.init})

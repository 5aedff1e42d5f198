"""Relations found for each value of flags, texts and ranks apart, and joined: transposed operands, layouts of data."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ascend_graph.inference.domains import Domain, OperatorSignature
from ascend_graph.inference.results import InferenceError, Inferred
from ascend_graph.inference.structures import DIMS, GROUPS
from ascend_graph.shapes import Relation, parse_relation
from ascend_graph.shapes.errors import RelationError
from ascend_graph.shapes.syntax import (
    DimensionGroup,
    Dims,
    Ellipsis_,
    Expr,
    Name,
    Tensor,
    WhereDefinition,
    bound_names,
)

#: Attrs of which all values are searched apart, and searches.
MOST_ATTRS, MOST_SEARCHES = 2, 8

#: Values of the attrs of one branch, in order.
Values = tuple[Any, ...]


def infer_branches(
    signature: OperatorSignature,
    attrs: Mapping[str, Sequence[Any]],
    search: Callable[[OperatorSignature, Mapping[str, Any]], Inferred],
) -> Inferred:
    """Find a relation for all values of some attrs, and join them.

    Args:
        signature: The operator's signature.
        attrs: The attrs, flags or texts, with their values.
        search: Search with a signature without these attrs, which have the given values.

    Raises:
        InferenceError: A search found none, or what was found does not join.
    """
    if not 0 < len(attrs) <= MOST_ATTRS or len(list(itertools.product(*attrs.values()))) > MOST_SEARCHES:
        raise InferenceError(f"{signature.name}: {len(attrs)} attrs decide what the inputs look like; write shape=")
    rest = replace(signature, attrs=tuple(a for a in signature.attrs if a.name not in attrs))
    found: dict[Values, Inferred] = {}
    defaults = {(a.default,) for a in signature.attrs if a.name in attrs and a.has_default}
    unsaid: list[str] = []
    for values in itertools.product(*attrs.values()):
        try:
            found[values] = search(rest, dict(zip(attrs, values, strict=True)))
        except InferenceError:
            # A text may give a dtype that no tensor has, and so on: the relation refuses it.
            if len(values) > 1 or values in defaults or not isinstance(values[0], str):
                raise
            unsaid.append(f'the relation does not take {next(iter(attrs))}="{values[0]}"')
            continue
        # A flag or a layout puts the dimensions in another order; what refuses other shapes was found by chance.
        narrow = any(one.narrow for one in found.values())
        if narrow and _kinds(found[values].relation) != _kinds(next(iter(found.values())).relation):
            raise InferenceError(
                f"{signature.name}: {found[values].relation} has other dimensions than the other branches; write shape="
            )
    if unsaid and len(found) < len(unsaid):
        raise InferenceError(f"{signature.name}: most texts follow no relation; write shape=")
    relations = {values: one.relation for values, one in found.items()}
    taken = {name: tuple(dict.fromkeys(values[n] for values in found)) for n, name in enumerate(attrs)}
    notes = tuple(dict.fromkeys(note for one in found.values() for note in one.notes))
    try:
        relation = joined(tuple(attrs), relations, [_allowed(name, some) for name, some in taken.items()])
    except RelationError as error:
        raise InferenceError(
            f"{signature.name}: the relations of its branches do not join: {error}; write shape="
        ) from None
    return Inferred(relation, sum(one.runs for one in found.values()), notes=notes, limits=tuple(unsaid))


def infer_products(
    signature: OperatorSignature,
    flags: Mapping[str, Sequence[Any]],
    search: Callable[[OperatorSignature, Mapping[str, Any], Sequence[Domain]], Inferred],
) -> Inferred:
    """Find the relation of a product of matrices, both in batches that broadcast, the first, or none, that flags turn.

    Functions of products take vectors too, of which a search among all patterns finds other relations first.

    Args:
        signature: The operator's signature.
        flags: The flags, with their values.
        search: Search with a signature without the flags, which have the given values, among some domains.

    Raises:
        InferenceError: The operator is no such product.
    """
    first, second, *others = signature.required
    if len(others) > len(GROUPS):
        raise InferenceError(f"{signature.name}: {len(others)} inputs are more than the two of a product need")
    rest = replace(signature, attrs=tuple(a for a in signature.attrs if a.name not in flags))
    more = "".join(f", {t.name}[*{group}]" for t, group in zip(others, GROUPS, strict=False))
    for batch, other in (("..., ", "..., "), ("*b, ", ""), ("", "")):
        orders = itertools.product((f"{batch}m, k", f"{batch}k, m"), (f"{other}k, n", f"{other}n, k"))
        domains = [Domain(f"{first.name}[{left}], {second.name}[{right}]{more}") for left, right in orders]
        found: dict[Values, Inferred] = {}
        try:
            for values in itertools.product(*flags.values()):
                found[values] = _for_all_sizes(search(rest, dict(zip(flags, values, strict=True)), domains))
            relation = joined(tuple(flags), {values: one.relation for values, one in found.items()})
        except (InferenceError, RelationError):
            continue
        outputs = {str(item) for t in relation.output_tensors for item in getattr(t.alternatives[0].shape, "items", ())}
        if {"m", "n"} <= outputs:
            # What an optional input allows is looked at later; vectors that are refused are the same with all flags.
            narrower = [one.narrower for one in found.values() if one.narrower and " is None" not in one.narrower][:1]
            notes = tuple(dict.fromkeys(note for one in found.values() for note in one.notes))
            return Inferred(relation, sum(one.runs for one in found.values()), notes=notes, limits=tuple(narrower))
    raise InferenceError(f"{signature.name}: it is not a product of two matrices")


def _for_all_sizes(found: Inferred) -> Inferred:
    """Return what was found.

    Raises:
        InferenceError: It has a condition on sizes, so that the operands are in another order, or none.
    """
    sizes = frozenset[str]().union(*map(bound_names, found.relation.input_tensors))
    if any(sizes & {*re.findall(r"\w+", str(clause))} for clause in found.relation.clauses):
        raise InferenceError(f"{found.relation} holds for some sizes alone; expected all. Write shape=")
    return found


def _kinds(relation: Relation) -> list[list[str]]:
    """Return the kinds of a relation's items by input, sorted: a dimension, a group, ``...`` or a number."""
    return [
        sorted(
            type(item).__name__ if isinstance(item, Ellipsis_ | DimensionGroup) else type(item.value).__name__
            for item in alternative.shape.items
        )
        for tensor in relation.input_tensors
        for alternative in tensor.alternatives
        if isinstance(alternative.shape, Dims)
    ]


def _allowed(name: str, values: Sequence[Any]) -> str:
    """Return the condition that a text is one of those that the function takes; empty for a flag."""
    texts = ", ".join(f'"{value}"' for value in values if isinstance(value, str))
    return f"{name} in ({texts})" if texts else ""


def joined(attrs: tuple[str, ...], relations: Mapping[Values, Relation], conditions: Sequence[str] = ()) -> Relation:
    """Return one relation for those of all values of some attrs, or of ranks: ``rank(x)`` may stand for an attr.

    >>> plain, turned = parse_relation("x[n, k], w[k, m] -> y[n, m]"), parse_relation("x[n, m], w[n, k] -> y[m, k]")
    >>> print(joined(("transpose",), {(False,): plain, (True,): turned}))
    x[k, n] if transpose else [n, k], w[k, m] -> y[n, m]

    Raises:
        RelationError: The language does not say what they say together.
    """
    first = _names(next(iter(relations.values())))
    alike = {values: _renamed(relation, first) for values, relation in relations.items()}
    inputs, outputs = [], []
    for number in range(len(next(iter(alike.values())).input_tensors)):
        inputs.append(_tensor(attrs, {values: r.input_tensors[number] for values, r in alike.items()}))
    for number in range(len(next(iter(alike.values())).output_tensors)):
        outputs.append(_tensor(attrs, {values: r.output_tensors[number] for values, r in alike.items()}))
    clauses = [*_clauses(attrs, alike), *filter(None, conditions)]
    return parse_relation(
        f"{', '.join(inputs)} -> {', '.join(outputs)}" + (f" where {', '.join(clauses)}" if clauses else "")
    )


def _names(relation: Relation) -> list[str]:
    """Return the dimensions and groups that the inputs bind, those of outputs first, each kind in order."""
    bound = frozenset[str]().union(*map(bound_names, relation.input_tensors))
    found: dict[str, None] = {}
    for tensor in (*relation.output_tensors, *relation.input_tensors):
        for alternative in tensor.alternatives:
            for item in alternative.shape.items if isinstance(alternative.shape, Dims) else ():
                value: Expr | None = None if isinstance(item, Ellipsis_) else item.value
                if isinstance(value, Name) and value.id in bound:
                    found[f"*{value.id}" if isinstance(item, DimensionGroup) else value.id] = None
    found |= dict.fromkeys(name for name in sorted(bound) if name not in found and f"*{name}" not in found)
    return list(found)


def _renamed(relation: Relation, wanted: Sequence[str]) -> Relation:
    """Return a relation whose dimensions and groups have the names of another's, in their order."""
    own, taken = _names(relation), {name.strip("*") for name in wanted}
    names: dict[str, str] = {}
    for grouped, fresh in ((False, DIMS), (True, GROUPS)):
        unused = (name for name in fresh if name not in taken)
        given = itertools.chain((n.strip("*") for n in wanted if n.startswith("*") == grouped), unused)
        mine = [name.strip("*") for name in own if name.startswith("*") == grouped]
        names |= dict(zip(mine, given, strict=False))
    # In two steps, for a new name may be an old one of another dimension.
    return relation.renamed({old: f"{old}__" for old in names}).renamed({f"{old}__": new for old, new in names.items()})


def _tensor(attrs: tuple[str, ...], tensors: Mapping[Values, Tensor]) -> str:
    """Return a tensor in all branches, with conditions on the attrs that matter to it."""
    texts = {values: str(tensor) for values, tensor in tensors.items()}
    matter = [n for n in range(len(attrs)) if _matters(n, texts)]
    if not matter:
        return next(iter(texts.values()))
    first = next(iter(tensors.values()))
    if any(len(t.alternatives) > 1 or t.index is not None for t in tensors.values()):
        raise RelationError(f"{first.name} has conditions of its own, or is a list; write shape=")
    shapes = {tuple(values[n] for n in matter): str(t.alternatives[0]) for values, t in tensors.items()}
    chain = [(_condition([attrs[n] for n in matter], values), shape) for values, shape in shapes.items()]
    # The positive side of a flag reads better as the first.
    chain.sort(key=lambda one: one[0].startswith("not "))
    pieces = [f"{shape} if {condition}" for condition, shape in chain[:-1]]
    return f"{first.name}{' else '.join([*pieces, chain[-1][1]])}"


def _matters(number: int, texts: Mapping[Values, str]) -> bool:
    """Return whether a text differs between branches that differ in one attr."""
    others: dict[Values, set[str]] = {}
    for values, text in texts.items():
        others.setdefault((*values[:number], *values[number + 1 :]), set()).add(text)
    return any(len(some) > 1 for some in others.values())


def _condition(attrs: Sequence[str], values: Values) -> str:
    """Return the condition that attrs have values: ``transpose and layout == "NCHW"``."""

    def one(name: str, value: Any) -> str:
        if isinstance(value, bool):
            return name if value else f"not {name}"
        return f'{name} == "{value}"' if isinstance(value, str) else f"{name} == {value}"

    return " and ".join(map(one, attrs, values))


def _clauses(attrs: tuple[str, ...], relations: Mapping[Values, Relation]) -> list[str]:
    """Return the clauses of all branches: those of one hold there."""
    holders: dict[str, list[Values]] = {}
    for values, relation in relations.items():
        for clause in relation.clauses:
            if isinstance(clause, WhereDefinition):
                raise RelationError(f"{clause} is defined in one branch; write shape=")
            holders.setdefault(str(clause), []).append(values)
    return [
        text if len(held) == len(relations) else f"not ({_condition(attrs, values)}) or ({text})"
        for text, held in holders.items()
        for values in (held if len(held) < len(relations) else held[:1])
    ]

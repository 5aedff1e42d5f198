"""Rewritten relations: dtypes without what an alternative's condition decides, lists whose tensors have one dtype."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ascend_graph.shapes import Relation, parse_relation
from ascend_graph.shapes.syntax import Conditional, Name, Tensor


def folded(relation: Relation) -> Relation:
    """Return the relation with dtypes that do not ask again what an alternative's condition has answered.

    >>> print(folded(parse_relation("x[*s] -> y[*s]: (x if n is None else int64) if n is None else []: x if n is None else int64")))
    x[*s] -> y[*s]: x if n is None else []: int64
    """
    outputs = tuple(_tensor(tensor) for tensor in relation.output_tensors)
    return (
        relation
        if outputs == relation.output_tensors
        else parse_relation(str(replace(relation, output_tensors=outputs)))
    )


def with_one_dtype(relation: Relation, lists: frozenset[str]) -> Relation:
    """Return the relation with the demand that the tensors of each of some lists have one dtype.

    >>> print(with_one_dtype(parse_relation("xs[i][n], y[n] -> out[n]"), frozenset({"xs"})))
    xs[i][n]: T, y[n] -> out[n]
    """
    if not lists:
        return relation
    names = (f"T{n or ''}" for n in itertools.count())
    inputs = tuple(
        replace(t, alternatives=tuple(replace(a, dtype=Name(next(names))) for a in t.alternatives))
        if t.name in lists
        else t
        for t in relation.input_tensors
    )
    return parse_relation(str(replace(relation, input_tensors=inputs)))


def _tensor(tensor: Tensor) -> Tensor:
    known: dict[str, bool] = {}
    alternatives = []
    for one in tensor.alternatives:
        own = known if one.condition is None else {**known, str(one.condition): True}
        alternatives.append(replace(one, dtype=_under(one.dtype, own)))
        if one.condition is not None:
            known[str(one.condition)] = False
    return replace(tensor, alternatives=tuple(alternatives))


def _under(node: Any, known: Mapping[str, bool]) -> Any:
    """Return an expression where conditions have known values."""
    if isinstance(node, tuple):
        return tuple(_under(part, known) for part in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    if isinstance(node, Conditional) and (answer := known.get(str(node.condition))) is not None:
        return _under(node.then if answer else node.otherwise, known)
    return replace(node, **{f.name: _under(getattr(node, f.name), known) for f in fields(node) if f.init})

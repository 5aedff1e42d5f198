"""The dtypes of outputs: the simplest rule that explains all runs."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from ascend_graph.dispatch.meta import TORCH
from ascend_graph.inference.observed import dtypes_of, shapes_of
from ascend_graph.inference.running import Returned
from ascend_graph.shapes import Relation, RelationError, ShapeError, parse_relation
from ascend_graph.shapes.domains import Signature
from ascend_graph.shapes.templates import dtype_candidates

#: Arguments of a call and what it returned.
Call = tuple[Mapping[str, Any], tuple[Any, ...]]


def dtype_rules(signature: Signature, runs: Sequence[Call]) -> list[str] | None:
    """The simplest dtype rule of every output that explains the runs."""
    rules = []
    for number in range(len(signature.outputs)):
        rule = next((c for c in dtype_candidates(signature) if dtype_holds(signature, c, number, runs)), None)
        rule = rule or _by_attr(signature, number, runs)
        if rule is None:
            return None
        rules.append(rule)
    return rules


def dtype_holds(signature: Signature, rule: str, number: int, runs: Sequence[Call]) -> bool:
    names = [t.name for t in signature.tensors]
    relation = _try_parse(f"{', '.join(names)} -> y[]: {rule}")
    if relation is None:
        return False
    for values, outputs in runs:
        wanted = outputs[number]
        wanted = wanted[0] if isinstance(wanted, list) and wanted else wanted
        if not isinstance(wanted, Returned):
            continue
        shapes = {n: shapes_of(values[n]) for n in names if values[n] is not None}
        dtypes = {n: dtypes_of(values[n]) for n in names if values[n] is not None}
        attrs = {a.name: values[a.name] for a in signature.attrs}
        try:
            (result,) = relation.infer(shapes, dtypes, attrs, system=TORCH)
        except (ShapeError, RelationError, KeyError):
            return False
        assert isinstance(result, tuple)
        if result[1] != wanted.dtype:
            return False
    return True


def _by_attr(signature: Signature, number: int, runs: Sequence[Call]) -> str | None:
    """A dtype that a dtype attr decides, with another rule where the attr is absent."""
    for attr in signature.attrs:
        if attr.kind != "dtype":
            continue
        if dtype_holds(signature, attr.name, number, runs):
            return attr.name
        absent = [run for run in runs if run[0][attr.name] is None]
        for candidate in dtype_candidates(signature) if absent else ():
            rule = f"{candidate} if {attr.name} is None else {attr.name}"
            if dtype_holds(signature, candidate, number, absent) and dtype_holds(signature, rule, number, runs):
                return rule
    return None


def _try_parse(text: str) -> Relation | None:
    with contextlib.suppress(RelationError):
        return parse_relation(text)
    return None

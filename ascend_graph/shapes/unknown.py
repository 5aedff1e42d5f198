"""Advice on names that a relation does not give a meaning."""

from __future__ import annotations

from collections.abc import Iterable

from ascend_graph.shapes.statement import Statement
from ascend_graph.shapes.syntax import DimensionGroup, Dims, Name, Size, walk


def of_data(relation: Statement, unknown: Iterable[str]) -> str:
    """Return advice on unknown names that are output sizes and may depend on data; empty for other names.

    >>> from ascend_graph.shapes import parse_relation
    >>> of_data(parse_relation("x[n] -> index[k]"), ["k"]).startswith(". If k is a number that only the values of a tensor tell")
    True
    """
    sizes = {
        node.id
        for tensor in relation.output_tensors
        for alternative in tensor.alternatives
        if isinstance(alternative.shape, Dims)
        for item in alternative.shape.items
        if isinstance(item, Size | DimensionGroup) and item.value is not None
        for node in walk(item.value)
        if isinstance(node, Name)
    }
    names = sorted(set(unknown) & sizes)
    if not names:
        return ""
    return (
        f". If {', '.join(names)} is a number that only the values of a tensor tell, no relation says it: write the largest size that "
        "there can be, with the number as an output of its own, index[n], count[1]: int32; or make the size an attr of the operator "
        "(docs/shapes.md, Sizes that depend on data)"
    )

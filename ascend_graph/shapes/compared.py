"""Constants of a relation: those that it compares its names with, and the elements of lists that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ascend_graph.shapes.statement import Statement
from ascend_graph.shapes.syntax import (
    Binary,
    Expr,
    Index,
    Literal,
    Name,
    Tuple,
    WhereDefinition,
    expressions,
    walk,
)


def compared_values(relation: Statement) -> Mapping[str, list[int | str | bool]]:
    """Return the constants that each name is compared with; a limit adds the integers on both sides.

    >>> from ascend_graph.shapes import parse_relation
    >>> compared_values(parse_relation('x[n] -> y[n] if mode == "sum" else [1] where level in (1, 2)'))
    {'mode': ['sum'], 'level': [1, 2]}
    """
    found: dict[str, list[int | str | bool]] = {}
    for node in _nodes(relation):
        if not isinstance(node, Binary) or node.operator not in ("==", "!=", "in", "not in", "<", "<=", ">", ">="):
            continue
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(one, Name):
                items = other.items if isinstance(other, Tuple) else (other,)
                values = [item.value for item in items if isinstance(item, Literal) and item.value is not None]
                if node.operator[0] in "<>":
                    values += [v + d for v in values if isinstance(v, int) for d in (-1, 1)]
                known = found.setdefault(one.id, [])
                known += [value for value in values if value not in known]
    return {name: values for name, values in found.items() if values}


def list_lengths(relation: Statement) -> Mapping[str, int]:
    """Return the least length of each list that a relation reads elements of.

    >>> from ascend_graph.shapes import parse_relation
    >>> list_lengths(parse_relation("x[n, d] -> y[n + k[2], d + p[-1]]"))
    {'k': 3, 'p': 1}
    """
    found: dict[str, int] = {}
    for node in _nodes(relation):
        match node:
            case Index(Name(name), Literal(int(index))):
                found[name] = max(found.get(name, 0), index + 1 if index >= 0 else -index)
    return found


def _nodes(relation: Statement) -> Iterator[Expr]:
    tensors = (*relation.input_tensors, *relation.output_tensors)
    trees: list[Expr] = [e for tensor in tensors for e in expressions(tensor)]
    trees += [clause.value if isinstance(clause, WhereDefinition) else clause for clause in relation.clauses]
    return (node for tree in trees for node in walk(tree))

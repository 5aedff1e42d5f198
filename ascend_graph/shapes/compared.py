"""Constants that a relation compares its names with: the attr values on which it branches."""

from __future__ import annotations

from collections.abc import Mapping

from ascend_graph.shapes.statement import Statement
from ascend_graph.shapes.syntax import Binary, Expr, Literal, Name, Tuple, WhereDefinition, expressions, walk


def compared_values(relation: Statement) -> Mapping[str, list[int | str | bool]]:
    """Return the constants that each name is compared with; a limit adds the integers on both sides.

    >>> from ascend_graph.shapes import parse_relation
    >>> compared_values(parse_relation('x[n] -> y[n] if mode == "sum" else [1] where level in (1, 2)'))
    {'mode': ['sum'], 'level': [1, 2]}
    """
    tensors = (*relation.input_tensors, *relation.output_tensors)
    trees: list[Expr] = [e for tensor in tensors for e in expressions(tensor)]
    trees += [clause.value if isinstance(clause, WhereDefinition) else clause for clause in relation.clauses]
    found: dict[str, list[int | str | bool]] = {}
    for node in (node for tree in trees for node in walk(tree)):
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

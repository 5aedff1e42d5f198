"""Output sizes that only the values of a tensor tell, in relations that bound them: ``x[n] -> y[k] where k <= n``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ascend_graph.shapes.errors import RelationError
from ascend_graph.shapes.relation import Relation, parse_relation
from ascend_graph.shapes.syntax import Dims, Name, Size, walk
from ascend_graph.shapes.unknown import bounds_of, largest_sizes, size_names


@dataclass(frozen=True, slots=True)
class DataSizes:
    """Sizes from data of a relation's outputs."""

    #: The relation with the bound in place of each such size.
    largest: Relation
    #: By output, the name of the size at each dimension that has one; dimensions count from the end.
    dims: Mapping[str, Mapping[int, str]]


def data_sizes(relation: Relation, arguments: Collection[str]) -> DataSizes | None:
    """Return the sizes from data of a relation; None if it has none, or one without a bound.

    Args:
        relation: The relation.
        arguments: The names that are arguments or attrs of the operator, and so are not from data.

    Raises:
        RelationError: Such a size is more than a dimension of its own.

    >>> found = data_sizes(parse_relation("x[b, n] -> y[k, b], z[n] where k <= n"), ["x"])
    >>> print(found.largest, found.dims)
    x[b, n] -> y[n, b], z[n] {'y': {-2: 'k'}}
    """
    sizes = {name for tensor in relation.output_tensors for name in size_names(tensor)}
    names = (sizes & relation.free_names) - {*arguments}
    bounds = dict(bounds_of(relation, names))
    if not names or bounds.keys() != names:
        return None
    dims: dict[str, dict[int, str]] = {}
    for tensor in relation.output_tensors:
        found: dict[int, str] = {}
        for alternative in tensor.alternatives:
            items = alternative.shape.items if isinstance(alternative.shape, Dims) else ()
            for n, item in enumerate(items):
                if not (isinstance(item, Size) and isinstance(item.value, Name) and item.value.id in names):
                    continue
                after = items[n + 1 :]
                if len(tensor.alternatives) == 1 and item.axis is None and all(isinstance(one, Size) for one in after):
                    found[-1 - len(after)] = item.value.id
        if found:
            dims[tensor.name] = found
    placed = sum(len(found) for found in dims.values())
    mentioned = [
        node.id for e in relation.expressions() for node in walk(e) if isinstance(node, Name) and node.id in names
    ]
    if len(mentioned) != placed + len(bounds):
        raise RelationError(
            f"{', '.join(sorted(names))} is a number that only the values of a tensor tell, and the relation computes with it; "
            "expected it as a dimension of its own, y[k], with one bound, where k <= n",
            relation.source,
        )
    return DataSizes(parse_relation(str(largest_sizes(relation, bounds))), dims)

"""Relations of calls with and without an optional input, joined: the gradient of a scale that may be absent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ascend_graph.inference.results import InferenceError
from ascend_graph.shapes import Relation, RelationError, parse_relation
from ascend_graph.shapes.syntax import DimensionGroup, Dims, Name, Size, Tensor


def with_absence(relation: Relation, names: Iterable[str], search: Callable[[str], Relation]) -> Relation:
    """Return the relation of calls with all of some inputs, joined with those of calls without one of them.

    Args:
        relation: The relation of calls with all of them.
        names: The inputs.
        search: Returns the relation of calls without an input and with all others.

    Raises:
        InferenceError: A search found none, or what was found does not join.
    """
    joined = relation
    for name in names:
        joined = with_and_without(name, relation, search(name), into=joined)
    return joined


def with_and_without(name: str, given: Relation, absent: Relation, *, into: Relation | None = None) -> Relation:
    """Return the relation of calls with and without an input.

    Args:
        name: The input.
        given: The relation of calls with it.
        absent: The relation of calls without it.
        into: ``given``, possibly with conditions on other inputs.

    >>> given = parse_relation("dy[n, m], scale[k] -> dx[n, m], dscale[k]: scale")
    >>> print(with_and_without("scale", given, parse_relation("dy[c, d] -> dx[c, d], dscale[0]")))
    dy[n, m], scale[k] -> dx[n, m], dscale[k]: scale if scale else [0]: dy

    Raises:
        InferenceError: They say other things of the inputs that they share.
    """
    into = into or given
    try:
        absent = absent.renamed(_same_names(name, given, absent))
        outputs = [
            _output(name, given.inputs[0], *tensors)
            for tensors in zip(given.output_tensors, absent.output_tensors, into.output_tensors, strict=True)
        ]
        clauses, without = [str(clause) for clause in into.clauses], [str(clause) for clause in absent.clauses]
        every = [
            *(c if c in without else f"not {name} or ({c})" for c in clauses),
            *(f"{name} or ({c})" for c in without if c not in clauses),
        ]
        inputs = ", ".join(map(str, into.input_tensors))
        where = f" where {', '.join(every)}" if every else ""
        return parse_relation(f"{inputs} -> {', '.join(outputs)}{where}")
    except (RelationError, ValueError) as error:
        raise InferenceError(f"{given} and, without {name}, {absent} do not join: {error}; write shape=") from None


def _same_names(name: str, given: Relation, absent: Relation) -> dict[str, str]:
    """Return the names in ``given`` of the dimensions and groups of ``absent``, item by item of the inputs."""
    found: dict[str, str] = {}
    others = {tensor.name: tensor for tensor in given.input_tensors}
    for tensor in absent.input_tensors:
        own_items, items = _items(tensor), _items(others[tensor.name])
        if len(own_items) != len(items):
            raise ValueError(f"{tensor.name} has other sizes; expected the same on both sides")
        for own, other in zip(own_items, items, strict=True):
            if isinstance(own.value, Name) and isinstance(other.value, Name) and type(own) is type(other):
                if found.setdefault(own.value.id, other.value.id) != other.value.id:
                    raise ValueError(f"{tensor.name} has other sizes; expected the same on both sides")
            elif str(own) != str(other):
                raise ValueError(f"{tensor.name} has other sizes; expected the same on both sides")
    if len(set(found.values())) < len(found) or {t.name for t in absent.input_tensors} | {name} != others.keys():
        raise ValueError("they have other inputs")
    return found


def _items(tensor: Tensor) -> list[Size | DimensionGroup]:
    shape = tensor.alternatives[-1].shape
    if len(tensor.alternatives) > 1 or tensor.index is not None:
        raise ValueError(f"{tensor.name} has conditions of its own, or is a list; expected one shape")
    items = shape.items if isinstance(shape, Dims) else ()
    return [item for item in items if isinstance(item, Size | DimensionGroup)]


def _output(name: str, first: str, given: Tensor, absent: Tensor, into: Tensor) -> str:
    """Return an output as text: as it is if the input does not change it, else with a condition.

    Where only one side has a dtype, the other has that of the first input, as it has alone.
    """
    if str(given) == str(absent):
        return str(into)
    if str(given) != str(into) or any(len(t.alternatives) > 1 or t.index is not None for t in (given, absent)):
        raise ValueError(f"{given.name} has conditions of its own, or is a list; expected one shape")
    with_it, without = (t.alternatives[0] for t in (given, absent))
    if (with_it.dtype is None) != (without.dtype is None):
        with_it, without = (replace(a, dtype=a.dtype or Name(first)) for a in (with_it, without))
    return f"{given.name}{with_it} if {name} else {without}"

"""Dtype combinations that an operator's kernels are compiled for: a prototype's lists, joined by its relation."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ascend_graph.codegen.infer_shape_names import GE_DTYPES
from ascend_graph.codegen.rendering import GenerationError

from ascend_graph.prototypes import Attr, AttrType, DataType, OpPrototype, ParameterKind
from ascend_graph.shapes import NAMES, Relation, ShapeError
from ascend_graph.shapes.compared import compared_values
from ascend_graph.shapes.errors import RelationError
from ascend_graph.shapes.samples import RelationSample, RelationSampleError, sample
from ascend_graph.shapes.syntax import Name, walk

#: Highest number of attr settings, and number of tries for the inputs of each.
_MOST_SETTINGS, _TRIES = 64, 50
_NAMES = {dtype: name for name, dtype in GE_DTYPES.items()}
#: Dtype system in which an integer attr may be GE's number of a dtype.
_SYSTEM = replace(NAMES, from_attr=lambda value: _NAMES.get(DataType(value)) if value in set(DataType) else None)
_VALUES: Mapping[AttrType, Any] = {
    AttrType.INT: 1, AttrType.FLOAT: 1.0, AttrType.BOOL: False, AttrType.STRING: "", AttrType.LIST_INT: (1,),
    AttrType.LIST_FLOAT: (1.0,), AttrType.LIST_BOOL: (False,), AttrType.LIST_LIST_INT: ((1,),),
}  # fmt: skip

Row = tuple[DataType, ...]


def dtype_combinations(prototype: OpPrototype, relation: Relation) -> tuple[Row, ...]:
    """Return the dtypes of inputs, then outputs, of each kernel.

    Inputs with the same list vary together, and different lists are multiplied. Outputs have the dtypes that the
    relation gives them, with each value of an attr on which it branches, and with each optional input present and
    absent.

    Raises:
        GenerationError: The prototype does not say the dtypes of a parameter.
    """
    situations = list(_situations(prototype, relation))
    inputs = len(prototype.inputs)
    rows: dict[Row, None] = {}
    for row in listed_combinations(prototype):
        found = _outputs(prototype, relation, row[:inputs], situations)
        if found is None:  # what the relation says of no inputs that were found: the lists alone say it
            rows[row] = None
            continue
        rows.update(dict.fromkeys((*row[:inputs], *outputs) for outputs in found))
    return tuple(rows)


def listed_combinations(prototype: OpPrototype) -> list[Row]:
    """Return the dtypes of all parameters by their lists: equal lists vary together, different ones are multiplied.

    Raises:
        GenerationError: The prototype does not say the dtypes of a parameter.
    """
    for parameter in (*prototype.inputs, *prototype.outputs):
        if not parameter.dtypes:
            said = ", ".join(parameter.unknown_types) or "nothing"
            raise GenerationError(
                f"{prototype.op_type}: the dtypes of {parameter.name} must be dtypes of GE; the prototype says {said}"
            )
    lists: dict[Any, list[DataType]] = {}
    keys = []
    for parameter in (*prototype.inputs, *prototype.outputs):
        dtypes = list(dict.fromkeys(parameter.dtypes))
        keys.append(parameter.symbol or tuple(dtypes))
        lists[keys[-1]] = dtypes
    rows = [dict(zip(lists, row, strict=True)) for row in itertools.product(*lists.values())]
    return [tuple(row[key] for key in keys) for row in rows]


def _situations(prototype: OpPrototype, relation: Relation) -> Iterator[tuple[dict[str, Any], RelationSample]]:
    """Yield values of all attrs, and shapes that the relation takes with them."""
    optional = [p.name for p in prototype.inputs if p.kind is ParameterKind.OPTIONAL and p.name in relation.inputs]
    presences = [[], *([name] for name in optional), *([optional] if len(optional) > 1 else [])]
    for attrs in _settings(prototype, relation):
        for seed in range(2):
            try:
                found = sample(relation, attrs, random.Random(seed), tries=_TRIES)
            except (RelationSampleError, ShapeError, RelationError):
                continue
            for gone in presences:
                shapes = {name: None if name in gone else shape for name, shape in found.shapes.items()}
                yield attrs, RelationSample(shapes, {})


def _settings(prototype: OpPrototype, relation: Relation) -> Iterator[dict[str, Any]]:
    """Yield values of all attrs: the defaults first, then each with the values on which the relation branches."""
    compared = compared_values(relation)
    numbers = [int(dtype) for p in prototype.outputs for dtype in p.dtypes]
    choices = []
    for attr in prototype.attrs:
        usual = _VALUES[attr.type] if attr.required or attr.default is None else attr.default
        others = list(compared.get(attr.name, ())) if attr.name in relation.attr_names else []
        if attr.type is AttrType.BOOL and attr.name in relation.attr_names:
            others.append(not usual)
        if attr.name in _dtype_names(relation):
            others += numbers
        choices.append([usual, *(v for v in dict.fromkeys(others) if _is_of(attr, v) and v != usual)])
    names = [attr.name for attr in prototype.attrs]
    for values in itertools.islice(itertools.product(*choices), _MOST_SETTINGS):
        yield dict(zip(names, values, strict=True))


def _is_of(attr: Attr, value: object) -> bool:
    return type(value) is type(_VALUES[attr.type])


def _dtype_names(relation: Relation) -> set[str]:
    """Return the names that occur in the dtypes of outputs."""
    dtypes = [a.dtype for tensor in relation.output_tensors for a in tensor.alternatives if a.dtype is not None]
    return {node.id for dtype in dtypes for node in walk(dtype) if isinstance(node, Name)}


def _outputs(
    prototype: OpPrototype,
    relation: Relation,
    given: Sequence[DataType],
    situations: Sequence[tuple[dict[str, Any], RelationSample]],
) -> list[Row] | None:
    """Return the dtypes of outputs that the relation gives for these inputs; None without situations.

    An output that is absent in a call has its dtype of another call.
    """
    dtypes = {p.name: _NAMES.get(dtype) for p, dtype in zip(prototype.inputs, given, strict=True)}
    found: dict[tuple[DataType | None, ...], None] = {}
    for attrs, one in situations:
        fed = {name: dtypes[name] for name, shape in one.shapes.items() if shape is not None and name in dtypes}
        try:
            results = relation.infer(one.shapes, fed, attrs, system=_SYSTEM)
        except (RelationError, ShapeError, TypeError):
            continue
        by_name = dict(zip(relation.outputs, results, strict=True))
        row = []
        for n, parameter in enumerate(prototype.outputs):
            result = by_name.get(parameter.name, results[n] if n < len(results) else None)
            dtype = None if result is None or isinstance(result, list) else GE_DTYPES.get(result[1])
            if result is not None and dtype not in parameter.dtypes:
                break
            row.append(dtype)
        else:
            found[tuple(row)] = None
    if not situations:
        return None
    known = [
        next((dtype for row in found if (dtype := row[n]) is not None), p.dtypes[0])
        for n, p in enumerate(prototype.outputs)
    ]
    return [tuple(known[n] if dtype is None else dtype for n, dtype in enumerate(row)) for row in found]

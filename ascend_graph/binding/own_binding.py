"""Binding of a schema to itself, for an operator with neither a prototype nor an aclnn function. No torch.

The schema becomes the equivalent of a prototype: tensors are inputs, values are attrs, returns and written arguments
are outputs. Later steps do not see a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ascend_graph.binding.bound import Binding, Evidence, Mutation, ReturnSource, ValueSource
from ascend_graph.binding.calls.from_schema import GIVEN, given_tensor
from ascend_graph.binding.dtype_ints import Numbers
from ascend_graph.binding.op_schema import ArgumentKind, OpSchema, SchemaArgument
from ascend_graph.prototypes import Attr, AttrType, OpPrototype, Parameter, ParameterKind
from ascend_graph.shapes import Relation

#: Attr type of each type of value. Devices, layouts and generators are not attrs.
_ATTRS: Mapping[tuple[ArgumentKind, int], AttrType] = MappingProxyType(
    {
        **{given: type_ for given, (_, type_) in GIVEN.items()},
        (ArgumentKind.STR, 1): AttrType.LIST_STRING,
        (ArgumentKind.DTYPE, 1): AttrType.LIST_TYPE,
        (ArgumentKind.INT, 2): AttrType.LIST_LIST_INT,
        (ArgumentKind.FLOAT, 2): AttrType.LIST_LIST_FLOAT,
    }
)


def own_binding(schema: OpSchema, relation: Relation | None = None) -> Binding:
    """Return the binding of a schema to its equivalent prototype.

    Args:
        schema: The operator's schema.
        relation: The shape relation, which may name the outputs.

    >>> import torch
    >>> from ascend_graph.binding.op_schema import read_schema
    >>> binding = own_binding(read_schema(torch.ops.aten.logcumsumexp.default._schema))
    >>> binding.argument_names(), [output.name for output in binding.prototype.outputs]
    ({'self': 'self', 'dim': 'dim'}, ['out0'])
    """
    positions = {argument.name: n for n, argument in enumerate(schema.arguments)}
    # Tensors in lists of lists are no inputs: neither relations nor graphs have them.
    inputs = {n: given_tensor(a) for n, a in enumerate(schema.arguments) if a.is_tensor and a.list_depth <= 1}
    attrs = {n: _attr(a, _ATTRS[a.kind, a.list_depth]) for n, a in enumerate(schema.arguments) if _is_attr(a)}
    written = [n for n in inputs if schema.arguments[n].mutated]
    fresh = [n for n, r in enumerate(schema.returns) if r.alias_of is None and r.kind is ArgumentKind.TENSOR]
    names = _output_names(schema, relation, {p.name for p in inputs.values()})
    outputs = [
        Parameter(names[n], ParameterKind.DYNAMIC if schema.returns[n].list_depth else ParameterKind.REQUIRED)
        for n in fresh
    ]
    place = {n: len(outputs) + k for k, n in enumerate(written)}
    returns = []
    for n, returned in enumerate(schema.returns):
        if returned.alias_of is not None:
            owner = positions[returned.alias_of]
            returns.append(ReturnSource(place.get(owner), Evidence.IN_PLACE, owner))
        else:
            returns.append(ReturnSource(fresh.index(n) if n in fresh else None, Evidence.SAME_NAME))
    prototype = OpPrototype(
        schema.qualified_name,
        tuple(inputs.values()),
        tuple(attrs.values()),
        (*outputs, *(inputs[n] for n in written)),
    )
    return Binding(
        schema,
        prototype,
        tuple(ValueSource(n, Evidence.SAME_NAME) for n in inputs),
        tuple(ValueSource(n, Evidence.SAME_NAME, numbers=_numbers(schema.arguments[n])) for n in attrs),
        tuple(returns),
        tuple(Mutation(n, place[n], in_place=True) for n in written),
    ).with_relation(relation)


def _is_attr(argument: SchemaArgument) -> bool:
    return (argument.kind, argument.list_depth) in _ATTRS


def _attr(argument: SchemaArgument, type_: AttrType) -> Attr:
    required = not (argument.has_default or argument.optional)
    # None is a value of its own: it does not stand for the schema's default.
    return Attr(argument.name, type_, required, argument.default, default_known=not argument.optional)


def _numbers(argument: SchemaArgument) -> Numbers | None:
    return Numbers.TORCH if argument.kind is ArgumentKind.DTYPE else None


def _output_names(schema: OpSchema, relation: Relation | None, taken: set[str]) -> list[str]:
    """Return a name for each return: the relation's, the schema's, or one made from its position."""
    given = [] if relation is None else list(relation.outputs)
    if len(given) != len(schema.returns):
        given = [returned.name for returned in schema.returns]
    names: list[str] = []
    for n, (name, returned) in enumerate(zip(given, schema.returns, strict=True)):
        unique = name or f"out{n}"
        while returned.alias_of is None and unique in taken | {*names}:
            unique += "_out"
        names.append(unique)
    return names

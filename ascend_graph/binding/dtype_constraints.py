"""Dtype constraints: inputs of a node that share a dtype, with the evidence; a converter may cast these.

A tensor is cast only with evidence that the operator itself does so: the relation's ``promote(…)``, or a symbol that
the prototype's types share. An output with the dtype of one input (``-> y[*s]: x``) does not promote anything: an index
next to the data keeps its dtype and its values.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ascend_graph.prototypes import OpPrototype, ParameterKind
from ascend_graph.shapes import Relation
from ascend_graph.shapes.syntax import Expr, FunctionCall, Index, Name, Tensor, walk


class ConstraintKind(enum.Enum):
    """Evidence that inputs share a dtype; the value is the text for messages."""

    #: The prototype requires it.
    SYMBOL = "one DATATYPE symbol"
    PROMOTE_SYMBOL = "the prototype promotes them"
    RELATION = "the relation promotes them"
    #: One set of dtypes for all inputs and the only output: only a similarity.
    ALIKE = "one set of dtypes"


@dataclass(frozen=True, slots=True)
class DtypeConstraint:
    """Inputs that share a dtype, by position, and the output that has it."""

    kind: ConstraintKind
    inputs: tuple[int, ...]
    #: None if no output has it.
    output: int | None
    #: True if the relation gives the output's dtype, and does not promote it from these inputs.
    contradicted: bool = False


def find_dtype_constraints(
    prototype: OpPrototype, relation: Relation | None = None, names: Mapping[str, int] | None = None
) -> tuple[DtypeConstraint, ...]:
    """Return the dtype constraints of a prototype's inputs.

    Args:
        prototype: The operator.
        relation: The shape relation, if any. If it gives an output's dtype, nothing else is guessed for that output.
        names: The position of the input that each name of the relation means; the prototype's names by default.
    """
    plain = [n for n, p in enumerate(prototype.inputs) if p.kind is not ParameterKind.DYNAMIC]
    inputs = {prototype.inputs[n].name: n for n in plain} if names is None else names
    said = {} if relation is None else _said(prototype, relation)
    promoted = [
        DtypeConstraint(ConstraintKind.RELATION, constrained, output)
        for output, expressions in said.items()
        if len(constrained := tuple(sorted({inputs[name] for name in _promoted(expressions) if name in inputs}))) > 1
    ]
    found = [
        replace(
            constraint,
            contradicted=constraint.output in said and not any({*constraint.inputs} <= {*p.inputs} for p in promoted),
        )
        for constraint in _by_symbol(prototype, plain)
    ]
    found += promoted
    found += [constraint for constraint in _by_promote(prototype, plain) if constraint.output not in said]
    everything = [*prototype.inputs, *prototype.outputs]
    if (
        not found
        and not said
        and len(prototype.outputs) == 1
        and len(plain) == len(prototype.inputs) > 1
        and len({parameter.dtypes for parameter in everything}) == 1
        and len(prototype.inputs[0].dtypes) > 1
    ):
        found.append(DtypeConstraint(ConstraintKind.ALIKE, tuple(plain), 0))
    return tuple(found)


def _by_symbol(prototype: OpPrototype, plain: Sequence[int]) -> Iterator[DtypeConstraint]:
    members: dict[str, list[int]] = {}
    for n in plain:
        symbol = prototype.inputs[n].symbol
        if symbol and not prototype.inputs[n].list_type:
            members.setdefault(symbol, []).append(n)
    for symbol, constrained in members.items():
        if len(constrained) > 1:
            output = next((n for n, o in enumerate(prototype.outputs) if o.symbol == symbol), None)
            yield DtypeConstraint(ConstraintKind.SYMBOL, tuple(constrained), output)


def _by_promote(prototype: OpPrototype, plain: Sequence[int]) -> Iterator[DtypeConstraint]:
    for n, output in enumerate(prototype.outputs):
        constrained = tuple(m for m in plain if prototype.inputs[m].symbol in output.promote)
        if len(constrained) > 1:
            yield DtypeConstraint(ConstraintKind.PROMOTE_SYMBOL, constrained, n)


def _said(prototype: OpPrototype, relation: Relation) -> dict[int, list[Expr]]:
    """Return the dtype expressions that the relation gives for each output."""
    fresh = [o.name for o in prototype.outputs]
    by_name = {tensor.name: tensor for tensor in relation.output_tensors}
    if not by_name.keys() <= {*fresh} and len(relation.output_tensors) == len(fresh):
        by_name = dict(zip(fresh, relation.output_tensors, strict=True))
    expressions = {n: _dtypes(by_name[name]) for n, name in enumerate(fresh) if name in by_name}
    return {n: found for n, found in expressions.items() if found}


def _dtypes(tensor: Tensor) -> list[Expr]:
    return [a.dtype for a in tensor.alternatives if a.dtype is not None]


def _promoted(expressions: Sequence[Expr]) -> set[str]:
    """Return the names that are promoted together."""
    calls = [node for e in expressions for node in walk(e) if isinstance(node, FunctionCall)]
    operands = [a for call in calls if call.function in ("promote", "floating") for a in call.arguments]
    return {a.id if isinstance(a, Name) else a.name.id for a in operands if isinstance(a, Name | Index)}

"""Decisions on bound functions with the gradients that autograd functions of the repository compute."""

from __future__ import annotations

import re
from dataclasses import replace

from ascend_graph.adoption.bound.definitions import BoundOperator
from ascend_graph.adoption.bound.gradients import GradientPair, backward_function
from ascend_graph.adoption.decision import Decision
from ascend_graph.adoption.known import Known
from ascend_graph.binding.own_binding import own_binding
from ascend_graph.shapes import parse_relation


def with_gradients(found: list[tuple[BoundOperator, Decision]], known: Known) -> list[Decision]:
    """Return decisions with the gradients that the repository's autograd functions compute with one operator."""
    computed = {one.bound.name: decision for one, decision in found if decision.registers}
    written = {one.bound.name: _written_to(one) for one, _ in found}
    made = []
    for one, decision in found:
        pair = known.extensions.gradients.get(one.bound.name)
        gradient = computed.get(pair.plan.backward) if pair is not None and pair.plan is not None else None
        if pair is None or pair.plan is None or gradient is None or one.definition is None or not decision.registers:
            made.append(decision)
            continue
        schema = one.definition.schema
        relation = parse_relation(decision.relation) if decision.relation else None
        outputs = [output.name for output in own_binding(schema, relation).prototype.outputs]
        name = "_" + re.sub(r"\W+", "_", decision.name.partition("::")[2]) + "_backward"
        lines: list[str] = []
        if not any(argument.mutated for argument in schema.arguments):
            arguments = [argument.name for argument in schema.arguments]
            writes = written[pair.plan.backward]
            lines = backward_function(pair.plan, name, arguments, outputs, gradient.eager, writes)
        if lines:
            decision = replace(decision, backward=tuple(lines), evidence=_stated(decision.evidence, pair))  # noqa: PLW2901
        made.append(decision)
    return made


def _written_to(one: BoundOperator) -> set[int | str]:
    """Return the arguments that an operator writes to, by position and name."""
    arguments = one.definition.schema.arguments if one.definition is not None else ()
    return {key for n, argument in enumerate(arguments) if argument.mutated for key in (n, argument.name)}


def _stated(evidence: tuple[str, ...], pair: GradientPair) -> tuple[str, ...]:
    """Return the evidence with the sentence on an autograd function whose gradient is written."""
    written = f"gradient: {pair.name}, {pair.place}"
    return tuple(written if f" by {pair.name} with " in one else one for one in evidence)

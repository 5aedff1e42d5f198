"""Arguments that a kernel writes and its operator's schema does not mark, and the schema that marks them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ascend_graph.adoption.bound.definitions import mentions
from ascend_graph.adoption.bound.writes import Writes, writes_of
from ascend_graph.adoption.cpp.functions import CppFunction, split
from ascend_graph.adoption.interpreter.evaluation import Outcome
from ascend_graph.adoption.interpreter.values import Input, Several
from ascend_graph.adoption.known import Known
from ascend_graph.adoption.model import Definition, Findings, Implementation
from ascend_graph.binding.op_schema import OpSchema
from ascend_graph.binding.schema_text import parse_schema

#: Added to the namespace of an operator for the one that stands for it.
SUFFIX = "_writes"
_MARK = ": write (a!) at what it writes, and uncomment"


@dataclass(frozen=True, slots=True)
class UnstatedWrites:
    """Writes of an operator that its schema does not state."""

    #: Schema of an operator that stands for it; None if its own says what is written, or nothing is certain.
    schema: OpSchema | None = None
    #: Reason why that is not certain; empty if it is.
    reason: str = ""
    evidence: str = ""


def unstated_writes(
    definition: Definition, kernel: Implementation | None, computed: Outcome, findings: Findings, known: Known
) -> UnstatedWrites:
    """Return what an operator writes beyond its schema, from its C++ kernel; nothing for one made from a function."""
    schema = definition.schema
    silent = not schema.returns and not any(one.mutated for one in schema.arguments)
    function = None if kernel is None else kernel.function
    if definition.computed_by:
        return UnstatedWrites()
    if not isinstance(function, CppFunction) or len(function.parameters) != len(schema.arguments):
        if not silent or (definition.inferred and function is not None):
            return UnstatedWrites()
        return UnstatedWrites(
            _marked(schema, {}, {}),
            f"its schema says that nothing is written, and its C++ kernel is not found here{_MARK}",
        )
    writes = writes_of(function, findings, known)
    found = {n: f"a{n}" for n in sorted(writes.written) if schema.arguments[n].is_tensor}
    more = [schema.arguments[n].name for n in found if not schema.arguments[n].mutated]
    problem = next(iter(writes.problems), "")
    if not more:
        if silent and problem:
            return UnstatedWrites(
                _marked(schema, {}, {}), f"its schema says that nothing is written, and {problem}{_MARK}"
            )
        evidence = "it writes no tensor; its calls stay in graphs" if silent else ""
        return UnstatedWrites(evidence=evidence)
    names = ", ".join(more)
    try:
        marked = _marked(schema, found, _aliases(schema, computed, found, writes))
    except ValueError as error:
        problem = problem or str(error)
        marked = _marked(schema, found, {})
    if problem:
        return UnstatedWrites(marked, f"it writes {names}, which its schema does not say, and {problem}{_MARK}")
    how = f" by {', '.join(sorted(writes.called))}" if writes.called else ""
    return UnstatedWrites(marked, "", f"written{how}, which the schema does not say: {names}")


def _aliases(schema: OpSchema, computed: Outcome, letters: dict[int, str], writes: Writes) -> dict[int, str]:
    """Return the letter of each return that is a written argument.

    Raises:
        ValueError: A return is one in some calls.
    """
    if not writes.returned & {*letters}:
        return {}
    positions = {one.name: n for n, one in enumerate(schema.arguments)}
    returned = computed.returned
    items = returned.items if isinstance(returned, Several) else (returned,)
    if len(items) != len(schema.returns):
        raise ValueError("it may return it")
    found = {}
    for number, value in enumerate(items):
        if isinstance(value, Input) and positions.get(value.name) in letters:
            found[number] = letters[positions[value.name]]
        elif mentions(value):
            raise ValueError("it returns an argument, or a view of one, in some calls")
    return found


def _marked(schema: OpSchema, letters: dict[int, str], aliases: dict[int, str]) -> OpSchema:
    """Return the schema of an operator of another namespace, with marks at arguments and returns by position."""
    namespace, _, name = schema.name.partition("::")
    head, _, returns = schema.text[schema.text.index("(") :].rpartition("->")
    for n, letter in letters.items():
        head = re.sub(rf"\bTensor(?=[\[\]?\d]*\s+{re.escape(schema.arguments[n].name)}\b)", f"Tensor({letter}!)", head)
    text = returns.strip()
    if aliases:
        parts = split(text[1:-1] if text.startswith("(") else text)
        parts = [
            p.strip().replace("Tensor", f"Tensor({aliases[n]}!)", 1) if n in aliases else p for n, p in enumerate(parts)
        ]
        text = f"({', '.join(parts)})" if text.startswith("(") else parts[0]
    overload = f"_{schema.overload}" if schema.overload else ""
    return parse_schema(f"{namespace}{SUFFIX}::{name}{overload}{head.strip()} -> {text}")

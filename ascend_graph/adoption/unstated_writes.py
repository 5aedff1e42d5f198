"""Arguments that a kernel writes and its operator's schema does not mark, and the schema that marks them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ascend_graph.adoption.bound.definitions import mentions
from ascend_graph.adoption.bound.memory import union
from ascend_graph.adoption.bound.writes import Writes, writes_of
from ascend_graph.adoption.cpp.functions import CppFunction, split
from ascend_graph.adoption.interpreter.evaluation import Outcome
from ascend_graph.adoption.interpreter.values import Input, Several
from ascend_graph.adoption.known import Known
from ascend_graph.adoption.model import Definition, Findings, Implementation, PythonFunction
from ascend_graph.adoption.outputs.input_patterns import UncertainError
from ascend_graph.adoption.python.writes import python_writes
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
    """Return what an operator writes beyond its schema, from its kernel; nothing for one made from a function."""
    schema = definition.schema
    silent = not schema.returns and not any(one.mutated for one in schema.arguments)
    function = None if kernel is None else kernel.function
    if definition.computed_by:
        return UnstatedWrites()
    writes = _writes(function, schema, findings, known)
    if writes is None or not (isinstance(function, CppFunction) or writes.written or writes.problems):
        if not silent or (definition.inferred and function is not None):
            return UnstatedWrites()
        return UnstatedWrites(
            _marked(schema, [], {}),
            f"its schema says that nothing is written, and its C++ kernel is not found here{_MARK}",
        )
    more = [n for n, one in enumerate(schema.arguments) if n in writes.written and one.is_tensor and not one.mutated]
    problem = next(iter(writes.problems), "")
    try:
        aliases = _aliases(schema, computed, writes, more)
    except UncertainError as error:
        aliases, problem = {}, problem or str(error)
    names = ", ".join(schema.arguments[n].name for n in more)
    itself = _returned_itself(schema, computed, writes)
    if problem and (more or silent or itself):
        said = (
            f"it writes {names}, which its schema does not say"
            if more
            else "its schema says that nothing is written"
            if silent
            else f"it returns {itself}, which its schema does not say"
        )
        return UnstatedWrites(_marked(schema, more, aliases), f"{said}, and {problem}{_MARK}")
    if not more and not aliases:
        return UnstatedWrites(evidence="it writes no tensor; its calls stay in graphs" if silent else "")
    how = f" by {', '.join(sorted(writes.called))}" if writes.called and more else ""
    stated = {f"written{how}": names, "returned": ", ".join(schema.arguments[n].name for n in aliases.values())}
    evidence = "; ".join(f"{what}, which the schema does not say: {which}" for what, which in stated.items() if which)
    return UnstatedWrites(_marked(schema, more, aliases), "", evidence)


def _writes(
    function: CppFunction | PythonFunction | None, schema: OpSchema, findings: Findings, known: Known
) -> Writes | None:
    """Return what a kernel writes of its operator's arguments; None if it is not found, or has other parameters."""
    if isinstance(function, PythonFunction):
        lists = {n for n, one in enumerate(schema.arguments) if one.list_depth}
        writes = python_writes(function, lists, findings, known)
        return writes if writes.count == len(schema.arguments) else None
    if function is None or len(function.parameters) != len(schema.arguments):
        return None
    return writes_of(function, findings, known)


def _aliases(schema: OpSchema, computed: Outcome, writes: Writes, more: list[int]) -> dict[int, int]:
    """Return the written argument that a return is, and that the schema does not say, by position.

    Raises:
        UncertainError: A return is one in some calls.
    """
    positions = {one.name: n for n, one in enumerate(schema.arguments)}
    written = {*more} | {n for n, one in enumerate(schema.arguments) if one.mutated}
    returned = computed.returned
    items = returned.items if isinstance(returned, Several) else (returned,)
    known = len(items) == len(schema.returns) and not any(one.alias_of for one in schema.returns)
    found: dict[int, int] = {}
    for number, value in enumerate(items if known else ()):
        if isinstance(value, Input) and positions.get(value.name) in written:
            found[number] = positions[value.name]
        elif mentions(value) and writes.returned & {*more}:
            raise UncertainError("it returns an argument, or a view of one, in some calls")
    if not known and writes.returned & {*more}:
        raise UncertainError("it may return it")
    return found


def _returned_itself(schema: OpSchema, computed: Outcome, writes: Writes) -> str:
    """Return the first argument that is a return, which the schema does not say, and that may be written; or nothing."""
    positions = {one.name: n for n, one in enumerate(schema.arguments)}
    open_ones = union(writes.problems.values()) if all(writes.problems.values()) else {*positions.values()}
    returned = computed.returned
    items = returned.items if isinstance(returned, Several) else (returned,)
    for value, stated in zip(items, schema.returns, strict=False):
        number = positions.get(value.name) if isinstance(value, Input) else None
        if stated.alias_of is None and number in open_ones and not schema.arguments[number].mutated:
            return schema.arguments[number].name
    return ""


def _marked(schema: OpSchema, more: list[int], aliases: dict[int, int]) -> OpSchema:
    """Return the schema of an operator of another namespace, with marks at written and returned arguments by position."""
    namespace, _, name = schema.name.partition("::")
    head, _, returns = schema.text[schema.text.index("(") :].rpartition("->")
    prefix = "w" if re.search(r"\(a\d", schema.text) else "a"
    for n in sorted({*more, *aliases.values()}):
        declared = rf"\bTensor(?:\([^()]*\)|!)?(?=[\[\]?\d]*\s+{re.escape(schema.arguments[n].name)}\b)"
        head = re.sub(declared, f"Tensor({prefix}{n}!)", head)
    text = returns.strip()
    if aliases:
        parts = split(text[1:-1] if text.startswith("(") else text)
        for number, n in aliases.items():
            parts[number] = parts[number].strip().replace("Tensor", f"Tensor({prefix}{n}!)", 1)
        text = f"({', '.join(parts)})" if text.startswith("(") else parts[0]
    overload = f"_{schema.overload}" if schema.overload else ""
    return parse_schema(f"{namespace}{SUFFIX}::{name}{overload}{head.strip()} -> {text}")

"""Operators made from bound functions: their schemas with what is written, and the Python function that computes them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ascend_graph.adoption.bound.signatures import UNSTATED, BoundSignature, SignatureError, read_signature
from ascend_graph.adoption.bound.writes import Writes, writes_of
from ascend_graph.adoption.cpp.functions import CppFunction
from ascend_graph.adoption.evidence import outcome_of
from ascend_graph.adoption.interpreter.evaluation import Outcome
from ascend_graph.adoption.interpreter.values import Choice, Constant, Input, NewTensor, Several, Sizes
from ascend_graph.adoption.known import Known
from ascend_graph.adoption.model import BoundFunction, Definition, Findings, Implementation
from ascend_graph.binding.op_schema import OpSchema
from ascend_graph.binding.schema_text import SchemaTextError, parse_schema
from ascend_graph.sources import Severity

#: The tensor class of a framework other than PyTorch: ms::Tensor.
_FOREIGN_TENSOR = re.compile(r"\b(?!(?:at|torch|c10)::)[A-Za-z_]\w*::(?:\w+::)*Tensor\b")


@dataclass(frozen=True, slots=True)
class BoundOperator:
    """An operator made from a bound function."""

    name: str
    bound: BoundFunction
    #: The definition; None if the function has no schema.
    definition: Definition | None = None
    implementation: Implementation | None = None
    #: Reason why it stays undecided; empty if nothing is open.
    reason: str = ""
    #: One sentence for each decision on its schema.
    evidence: tuple[str, ...] = ()


def bound_operators(findings: Findings, known: Known) -> Iterator[BoundOperator]:
    """Yield the operators of a repository's bound functions.

    Left out are those without any tensor, with tensors of another framework, and those that are the kernel of an
    operator with a schema, or that it calls.
    """
    by_module: dict[tuple[str, str], list[BoundFunction]] = {}
    defined = {one.schema.qualified_name for one in findings.definitions if not one.inferred}
    kernels = [one.function for one in findings.implementations if one.name in defined and not one.is_meta]
    called = {name for function in kernels for name in findings.bound_by(function)}
    implementing = [
        one.function for one in findings.implementations if one.name in defined or one.place.file.endswith(".py")
    ]
    for one in findings.bound_functions:
        if one.name.rpartition(".")[2] in called or (one.function is not None and one.function in implementing):
            continue
        key = ("", one.module) if one.module != "TORCH_EXTENSION_NAME" else (one.place.file, one.module)
        by_module.setdefault(key, []).append(one)
    taken: dict[str, int] = {one.schema.name: 1 for one in findings.definitions}
    binding: dict[str, dict[str, CppFunction | None]] = {}
    is_alone = sum(1 for file, _ in by_module if file) <= 1
    for functions in by_module.values():
        for one in functions:
            target = known.extensions.target(one, functions, is_alone=is_alone)
            binding.setdefault(target, {})[one.opened] = one.function
    for functions in by_module.values():
        chosen = {one.name for one in functions if one.conditions} & {
            name for name, count in Counter(one.name for one in functions).items() if count > 1
        }
        for one in functions:
            target = known.extensions.target(one, functions, is_alone=is_alone)
            name = f"{_namespace(target, known.extensions.root.name, findings)}::{one.name.replace('.', '_')}"
            taken[name] = taken.get(name, 0) + 1
            made = _operator(one, name, taken[name], target, findings, known)
            if made is not None and one.name in chosen and not made.reason:
                made = replace(made, reason=f"it is bound in several ways, this one only {_when(one)}")
            files = sorted(binding[target]) if target else []
            if made is not None and len(files) > 1 and len({*binding[target].values()}) > 1:
                shown = f"{files[0]}, {files[1]} and {len(files) - 2} more" if len(files) > 2 else " and ".join(files)
                made = replace(made, reason=f"{shown} bind {target}, and one of them is installed; adopt one directory")
            if made is not None:
                yield made


def _when(one: BoundFunction) -> str:
    return f"with {' and '.join(one.conditions)}" if one.conditions else "without a condition"


def _namespace(target: str, root: str, findings: Findings) -> str:
    """Return the namespace of a module's operators: its package, or another name if the repository defines that one."""
    first = re.sub(r"\W", "_", target.partition(":")[0].partition(".")[0] or root).strip("_").lower()
    first = first if first[:1].isalpha() else f"extension_{first}".rstrip("_")
    defined = {one.schema.name.partition("::")[0] for one in findings.definitions} | findings.libraries
    return f"{first}_functions" if first in defined else first


def _operator(
    one: BoundFunction, name: str, count: int, target: str, findings: Findings, known: Known
) -> BoundOperator | None:
    function = one.function
    overload = "" if count == 1 else f".overload_{count}"
    full = f"{name}{overload}"
    try:
        signature = read_signature(one, findings)
    except SignatureError as unreadable:
        if _is_left_out(one, name, findings):
            return None
        return BoundOperator(full, one, reason=f"it is bound without a schema, and {unreadable}")
    assert function is not None
    if not signature.has_tensors:
        return None
    unstated = signature.returns == (UNSTATED,)
    plain = (replace(signature, returns=()) if unstated else signature).text(full, {}, {})
    try:
        schema = parse_schema(plain)
    except SchemaTextError as error:
        return BoundOperator(full, one, reason=str(error))
    outcome = outcome_of(function, schema, findings)
    items = _items(outcome)
    if unstated:
        if items is None and outcome.returned != Constant(None):
            return BoundOperator(full, one, reason="it is bound without a schema, and does not state what it returns")
        if not all(isinstance(item, Input | NewTensor | Choice) for item in items or ()):
            return BoundOperator(
                full, one, reason="it is bound without a schema, and not all that it returns are tensors"
            )
        signature = replace(signature, returns=("Tensor",) * len(items or ()))
    if signature.returns == ("Tensor[]",) and isinstance(outcome.returned, Several | Sizes) and items is not None:
        # A vector whose length the function states is so many returns.
        signature = replace(signature, returns=("Tensor",) * len(items))
    written = writes_of(function, findings, known)
    letters = {n: f"a{n}" for n in sorted(written.written)}
    aliases, reason = _aliases(items, signature, schema, written)
    text = signature.text(full, letters, {n: letters[p] for n, p in aliases.items() if p in letters})
    problem = next(iter(written.problems), reason)
    if not problem and not written.written and not signature.returns:
        problem = "it returns nothing, and nothing here tells what it writes"
    if not target and not problem:
        problem = "nothing here tells which Python module has it: write module:function for …"
    definition = Definition(name, parse_schema(text), one.place, one.conditions, True, 0, target or f"…:{one.name}")
    evidence: tuple[str, ...] = (
        f"bound without a schema: {one.place}",
        f"schema: the declaration of the function, {function.place}",
    )
    for argument, default in signature.required:
        evidence += (f"{argument} has to be given: a schema cannot state its default {default[:40]}",)
    if written.written:
        names = ", ".join(schema.arguments[n].name for n in sorted(written.written))
        how = f" by {', '.join(sorted(written.called))}" if written.called else ""
        evidence += (f"written{how}: {names}",)
    evidence += _gradient(one, known)
    implementation = Implementation(name, "PrivateUse1", function, one.written, one.place)
    return BoundOperator(name, one, definition, implementation, problem, evidence)


def _is_left_out(one: BoundFunction, name: str, findings: Findings) -> bool:
    """Return whether a bound function without a schema is no operator of PyTorch, and report why if it looks like one."""
    function, message = one.function, ""
    if function is None:
        if re.split(r"::|&", one.written)[-1].strip() not in findings.functions:
            message = f"{one.name} is bound to {one.written[:80]}, which no source here defines: it is not counted"
    else:
        types = " ".join([function.returns, *(parameter.type for parameter in function.parameters)])
        if "Tensor" not in types:
            return True
        if foreign := _FOREIGN_TENSOR.search(types):
            message = f"{one.name} takes or returns {foreign[0]}, which is not PyTorch's: it is not counted"
    if message:
        findings.report(one.place, message, name, Severity.WARNING)
    return bool(message)


def _gradient(one: BoundFunction, known: Known) -> tuple[str, ...]:
    """Return sentences on the autograd functions that the operator does not reach."""
    found = []
    pair = known.extensions.gradients.get(one.name)
    if pair is not None and pair.is_none:
        found.append(f"not differentiable: the backward function of {pair.name}, {pair.place}, returns None")
    elif pair is not None:
        how = f" with {', '.join(pair.backward)}" if pair.backward else ""
        found.append(
            f"differentiated in Python by {pair.name}{how}, {pair.place}: pass backward= for a gradient of the operator"
        )
    inner = re.search(r"\b(\w+)\s*::\s*apply\s*\(", one.function.body if one.function is not None else "")
    if inner is not None:
        found.append(
            f"differentiated in C++ by {inner[1]}, which the operator does not reach: pass backward= for a gradient"
        )
    return tuple(found)


def _items(outcome: Outcome) -> tuple[Any, ...] | None:
    """Return the values that a function returns one by one, or None if it is not certain how many."""
    returned = outcome.returned
    if isinstance(returned, Several):
        return returned.items
    if isinstance(returned, Sizes) and all(one == Constant(None) for one in returned.items):
        return returned.items
    return (returned,) if isinstance(returned, Input | NewTensor | Choice) else None


def _aliases(
    items: tuple[Any, ...] | None, signature: BoundSignature, schema: OpSchema, written: Writes
) -> tuple[dict[int, int], str]:
    """Return the argument that each return is, by position, and a reason why that is not certain."""
    if not written.returned:
        return {}, ""
    positions = {argument.name: number for number, argument in enumerate(schema.arguments)}
    found: dict[int, int] = {}
    for number, value in enumerate(items or ()):
        if isinstance(value, Input) and value.name in positions:
            found[number] = positions[value.name]
        elif mentions(value):
            return {}, "it returns an argument in some calls"
    if len(signature.returns) != len(items or ()):
        return {}, ""
    loose = [schema.arguments[n].name for n in found.values() if n not in written.written]
    return found, f"it returns {loose[0]} itself, and does not write it" if loose else ""


def mentions(value: Any) -> bool:
    """Return whether a value is an argument, or a view of one, in some calls."""
    if isinstance(value, NewTensor) and value.view is not None:
        return isinstance(value.view[0], Input) or mentions(value.view[0])
    if isinstance(value, Choice):
        return any(isinstance(one, Input) or mentions(one) for one in (value.then, value.otherwise))
    return False

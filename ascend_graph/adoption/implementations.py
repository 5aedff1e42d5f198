"""Implementations of one operator that stand for each other: those of one dispatch key, of which one is built."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ascend_graph.adoption.cpp.functions import CppFunction
from ascend_graph.adoption.model import KERNEL_KEYS, Definition, Findings, Implementation, PythonFunction
from ascend_graph.binding.op_schema import OpSchema
from ascend_graph.prototypes import OpPrototype
from ascend_graph.sources import Severity


def kernel_order(implementation: Implementation) -> int:
    """Return the rank of an implementation's dispatch key among those that compute."""
    return KERNEL_KEYS.index(implementation.key) if implementation.key in KERNEL_KEYS else len(KERNEL_KEYS)


def place_of(implementation: Implementation) -> str:
    """Return the place of an implementation's function, or of its registration."""
    function = implementation.function
    if isinstance(function, CppFunction):
        return function.place
    return str(function.place if isinstance(function, PythonFunction) else implementation.place)


def first_of(
    implementations: Sequence[Implementation], facts: Callable[[Implementation], Any]
) -> tuple[Implementation | None, str]:
    """Return the first implementation that is found, and the places of those of its key whose facts differ, if any do."""
    found = [one for one in implementations if one.function is not None]
    if not found:
        return None, ""
    first = found[0]
    others = [one for one in found[1:] if one.key == first.key and not _is_copy(one, first)]
    known = facts(first) if others else None
    differ = [one for one in others if facts(one) != known]
    return first, " and ".join(map(place_of, [first, *differ])) if differ else ""


def _is_copy(one: Implementation, other: Implementation) -> bool:
    a, b = one.function, other.function
    if isinstance(a, CppFunction) and isinstance(b, CppFunction):
        return (a.parameters, "".join(a.body.split())) == (b.parameters, "".join(b.body.split()))
    return isinstance(a, PythonFunction) and isinstance(b, PythonFunction) and ast.dump(a.node) == ast.dump(b.node)


def miscounted(kernel: Implementation | None, schema: OpSchema) -> str:
    """Return how the parameters of a C++ kernel contradict the schema; PyTorch does not load such a library."""
    function = kernel.function if kernel is not None else None
    if not isinstance(function, CppFunction) or any("Stack" in p.type or "..." in p.type for p in function.parameters):
        return ""
    taken, given = len(function.parameters), len(schema.arguments)
    text = f"its kernel at {function.place} has {taken} parameters where its schema has {given}; correct one of both"
    return text if taken != given else ""


def report_crossed(
    arguments: Mapping[str, Any], definition: Definition, prototype: OpPrototype, findings: Findings
) -> tuple[str, ...]:
    """Report and return which arguments a call passes as something of another argument's name: mostly in a wrong order."""
    own = {a.name for a in definition.schema.arguments}
    ge = {p.name for p in prototype.inputs} | {a.name for a in prototype.attrs}
    crossed = [f"{a} as {b}" for a, b in arguments.items() if isinstance(b, str) and a != b and a in ge and b in own]
    if not crossed:
        return ()
    text = f"the call passes {' and '.join(crossed)}, against the names; correct its order, if they are right"
    findings.report(definition.place, f"{definition.name}: {text}", definition.name, Severity.WARNING)
    return (text,)


def report_foreign(implementations: Mapping[str, Sequence[Implementation]], findings: Findings) -> None:
    """Report operators that are implemented and not defined, in one remark for each file and namespace."""
    known = {one.schema.qualified_name for one in findings.definitions}
    foreign: dict[tuple[str, str], list[Implementation]] = {}
    for name, some in sorted(implementations.items()):
        if name not in known:
            foreign.setdefault((some[0].place.file, name.partition("::")[0]), []).append(some[0])
    for first, *more in foreign.values():
        findings.report(
            first.place,
            f"{first.name} and {len(more)} more are implemented, and no source here defines them: they are another "
            "library's operators"
            if more
            else f"{first.name} is implemented, and no source here defines it: it is another library's operator",
            first.name,
            Severity.WARNING,
        )

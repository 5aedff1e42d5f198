"""Outcomes of kernels and meta functions: the returned tensors, and the calls that compute them."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import Any

from ascend_graph.adoption.cpp.expressions import expression
from ascend_graph.adoption.cpp.functions import CppFunction
from ascend_graph.adoption.cpp.statements import statements
from ascend_graph.adoption.interpreter.evaluation import DISPATCHED, METHOD, RAISED, Callee, FileScope, Lookup, Outcome
from ascend_graph.adoption.interpreter.statements import Interpreter, never_holds
from ascend_graph.adoption.interpreter.values import ArgumentValue, Input
from ascend_graph.adoption.model import Findings, PythonFunction
from ascend_graph.binding.op_schema import OpSchema

_FUNCTION = re.compile(r"\Aaclnn[A-Z0-9]\w*\Z")
_FIRST_PHASE = re.compile(r"\A(aclnn[A-Z0-9]\w*)GetWorkspaceSize\Z")


def argument_values(schema: OpSchema) -> list[Any]:
    """Return the values of a schema's arguments, in order."""
    return [Input(a.name) if a.is_tensor else ArgumentValue(a.name) for a in schema.arguments]


def outcome_of(function: CppFunction | PythonFunction, schema: OpSchema, findings: Findings) -> Outcome:
    """Return what a function certainly does with the arguments of a schema."""
    if isinstance(function, PythonFunction):
        lookup = _python_lookup(function, findings)
        interpreter = Interpreter(lookup, watched_function, _python_constants(function))
        return interpreter.run(python_callee(function), argument_values(schema))
    if len(function.parameters) != len(schema.arguments) or (function.is_conditional and not function.variants):
        return Outcome()
    outcomes = [_run(one, function, schema, findings) for one in function.variants or (function.body,)]
    # A choice of the preprocessor for which the function always raises is not one that is built.
    outcomes = [one for one in outcomes if one.returned is not RAISED] or outcomes
    first = outcomes[0]
    facts = [(one.returned, one.calls, one.ranks, one.read) for one in outcomes]
    return first if all(one == facts[0] for one in facts) else Outcome()


def _run(body: str, function: CppFunction, schema: OpSchema, findings: Findings) -> Outcome:
    constants = findings.constants_of(function.file)
    interpreter = Interpreter(_lookup(findings, function.file), watched_function, constants)
    return interpreter.run(callee(replace(function, body=body)), argument_values(schema))


def callee(function: CppFunction) -> Callee:
    """Return a C++ function as the interpreter runs it."""
    parameters = tuple((p.name, expression(p.default) if p.default else None) for p in function.parameters)
    written = frozenset(
        number
        for number, one in enumerate(function.parameters)
        if re.search(r"[&*]", one.type)
        and not re.match(r"const\b", one.type)
        and _may_assign(function.body, one.name, one.type)
    )
    return Callee(parameters, statements(function.body), True, written)


#: Methods of containers that change them.
_WRITING = "push_back|emplace_back|pop_back|resize|assign|insert|emplace|erase|clear|append|swap|fill"
_TENSOR = re.compile(r"\A(?:at::|torch::)?Tensor\s*&\Z")
#: What takes a tensor and does not give its variable another: macros, methods, functions of ATen.
_KEEPS = r"(?:\b[A-Z][A-Z0-9_]+|(?:\.|->)\s*\w+|\b(?:at|torch|std|c10)::[\w:]+)\s*\((?:[^();]|\([^();]*\))*\)"


def _may_assign(body: str, name: str, kind: str) -> bool:
    """Return whether a body may assign a parameter, or pass it on to what may."""
    name = re.escape(name)
    if _TENSOR.match(kind.strip()):
        body = re.sub(_KEEPS, "()", body)
    part = r"(?:(?:\.|->)\s*\w+\s*(?:\([^()]*\)\s*)?|\[[^\[\]]*\]\s*)*"
    return re.search(
        rf"(?<![\w.>]){name}\s*(?:{part}[-+*/]?=(?!=)|\+\+|--|\.\s*(?:{_WRITING})\b)", body
    ) is not None or (re.search(rf"(?:\+\+|--|&)\s*{name}\b|[(,]\s*{name}\s*[,)]", body) is not None)


def _lookup(findings: Findings, file: str) -> Lookup:
    known: dict[tuple[str, int], Callee | None] = {}

    def find(name: str, count: int) -> Callee | None:
        if (name, count) not in known:
            function = called_function(name, file, count, findings)
            made = None if function is None or len(function.body) > 20000 else _built(function)
            if function is None and not name.startswith(DISPATCHED) and _read_alone(findings, name, count):
                made = Callee(tuple((f"_{n}", None) for n in range(count)), [], True, is_opaque=True)
            if made is not None and function is not None and function.file != file:
                made.scope = FileScope(_lookup(findings, function.file), findings.constants_of(function.file))
            known[name, count] = made
        return known[name, count]

    return find


def _read_alone(findings: Findings, name: str, count: int) -> bool:
    """Return whether no function that a call can mean assigns what it is given; False if there is none."""
    last = name.replace(".", "::").rpartition("::")[2]
    found = [one for one in findings.functions.get(last, ()) if one.takes(count) and len(one.parameters) == count]
    return bool(found) and not any(callee(one).written for one in found)


def _built(function: CppFunction) -> Callee | None:
    """Return a helper function; one that the preprocessor chooses if only one of its choices does not always raise."""
    if not function.is_conditional:
        return callee(function)
    found = [callee(replace(function, body=one)) for one in function.variants]
    found = [one for one in found if not any(map(never_holds, one.statements))]
    return found[0] if len(found) == 1 else None


def called_function(name: str, file: str, count: int, findings: Findings) -> CppFunction | None:
    """Return the function of the repository that a call means, or None.

    ``X::apply`` of an autograd function is its ``forward`` without the context.
    """
    if name.startswith(DISPATCHED):
        kernel = findings.dispatched(name.removeprefix(DISPATCHED))
        return kernel if kernel is not None and len(kernel.parameters) == count else None
    written = name.replace(".", "::")
    if not written.endswith("::apply"):
        return findings.function(written, file, count)
    found = findings.function(written.removesuffix("apply") + "forward", file, count + 1)
    return None if found is None or not found.parameters else replace(found, parameters=found.parameters[1:])


def watched_function(name: str, node: ast.Call) -> str | None:
    """Return the aclnn function that a call runs; its arguments then begin with that function's name."""
    phase = _FIRST_PHASE.match(name.rpartition("::")[2])
    if phase is not None:
        if len(node.args) >= 2 and not _is_marked(node):
            # The two last parameters are the workspace's and the executor's.
            node.args = [ast.Name(phase[1]), *node.args[:-2]]
        return phase[1]
    return node.args[0].id if _is_marked(node) else None  # type: ignore[attr-defined]


def _is_marked(node: ast.Call) -> bool:
    first = node.args[0] if node.args else None
    return isinstance(first, ast.Name) and bool(_FUNCTION.match(first.id))


def python_callee(function: PythonFunction) -> Callee:
    """Return a Python function as the interpreter runs it."""
    node = function.node
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    parameters = list(zip([a.arg for a in positional], defaults, strict=True))
    parameters += list(zip([a.arg for a in arguments.kwonlyargs], arguments.kw_defaults, strict=True))
    body: list[ast.stmt] = [ast.Return(node.body)] if isinstance(node, ast.Lambda) else node.body
    return Callee(tuple(parameters), body, False)


def _python_constants(function: PythonFunction) -> dict[str, Any]:
    return {name: node for name, node in function.module.items() if isinstance(node, ast.Constant)}


def _python_lookup(function: PythonFunction, findings: Findings) -> Lookup:
    loaded = findings.bound_by(function)

    def find(name: str, _: int) -> Callee | None:
        bound = findings.bound(name[1:]) if name.startswith(METHOD) and name[1:] in loaded else None
        if bound is not None:
            made = callee(bound)
            made.scope = FileScope(_lookup(findings, bound.file), findings.constants_of(bound.file))
            return made
        node = function.module.get(name)
        if not isinstance(node, ast.FunctionDef) or node.decorator_list:
            return None
        return python_callee(PythonFunction(name, node, function.place, function.module))

    return find

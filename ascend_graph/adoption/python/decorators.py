"""Decorators of a repository's own that make operators, or register their meta functions."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ascend_graph.adoption.annotations import last_name
from ascend_graph.adoption.model import PythonFunction

#: Functions that make an operator of a Python function.
MAKERS = frozenset({"custom_op", "triton_op"})
#: Functions and methods that register a meta function.
FAKES = frozenset({"register_fake", "impl_abstract"})


def is_maker(node: ast.FunctionDef) -> bool:
    """Return whether a function makes an operator whose name is a parameter of it."""
    names = _parameters(node)
    return any(
        isinstance(one, ast.Call)
        and last_name(one.func) in MAKERS
        and bool(one.args)
        and isinstance(one.args[0], ast.Name)
        and one.args[0].id in names
        for one in ast.walk(node)
    )


def maker_call(function: PythonFunction | None, call: ast.Call) -> ast.Call | None:
    """Return the call of ``custom_op`` that a decorator of the repository's own makes, with the given values.

    Args:
        function: The decorator's function, whose parameter is the operator's name.
        call: The decorator.

    Returns:
        None if the function makes no operator, or several.
    """
    node = None if function is None else function.node
    if not isinstance(node, ast.FunctionDef) or not is_maker(node):
        return None
    inner = [one for one in ast.walk(node) if isinstance(one, ast.Call) and last_name(one.func) in MAKERS and one.args]
    given = _given(node.args, call)
    if len(inner) != 1 or not isinstance(inner[0].args[0], ast.Name) or inner[0].args[0].id not in given:
        return None
    made = _Given(given).visit(copy.deepcopy(inner[0]))
    return ast.copy_location(ast.Call(made.func, made.args[:1], made.keywords), call)


def makes_fake(function: PythonFunction | None) -> bool:
    """Return whether a decorator of the repository's own registers a meta function of each operator that it makes."""
    return function is not None and any(
        isinstance(one, ast.Call) and last_name(one.func) in FAKES for one in ast.walk(function.node)
    )


def _given(arguments: ast.arguments, call: ast.Call) -> dict[str, ast.expr]:
    """Return what a call gives to each parameter, by name; defaults where it gives nothing."""
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    given: dict[str, ast.expr] = dict(zip(reversed(names), reversed(arguments.defaults), strict=False))
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    given |= {one.arg: value for one, value in keywords if value is not None}
    return given | dict(zip(names, call.args, strict=False)) | {one.arg: one.value for one in call.keywords if one.arg}


@dataclass(frozen=True, slots=True)
class FakeWrapper:
    """A function that registers a meta function, and the operator's name in terms of its parameters."""

    arguments: ast.arguments
    name: ast.expr
    #: The meta function is the decorated one; else the wrapper makes one of its own.
    decorates: bool

    def named(self, call: ast.Call, module: Mapping[str, ast.AST]) -> ast.expr:
        """Return the operator's name for one call, with the constants of the function's module."""
        constants = {name: one for name, one in module.items() if isinstance(one, ast.Constant)}
        name = _Given(constants).visit(copy.deepcopy(self.name))
        return _Given(_given(self.arguments, call)).visit(name)  # type: ignore[no-any-return]


def fake_wrappers(tree: ast.Module) -> dict[str, FakeWrapper]:
    """Return the functions of a module that register a meta function of an operator that a parameter names.

    A wrapper may call another one. A name with definitions that name different operators is left out.
    """
    nodes = list(ast.walk(tree))
    taken = [one for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names]
    direct = FAKES | {one.asname for one in taken if one.asname and one.name in FAKES}
    functions = [one for one in nodes if isinstance(one, ast.FunctionDef)]
    found: dict[str, FakeWrapper] = {}
    unclear: set[str] = set()
    for _ in functions:
        before = len(found)
        for function in functions:
            for one in _fakes_of(function, direct, found):
                held = found.setdefault(function.name, one)
                if (ast.unparse(held.name), held.decorates) != (ast.unparse(one.name), one.decorates):
                    unclear.add(function.name)
        if len(found) == before:
            break
    return {name: one for name, one in found.items() if name not in unclear}


def _fakes_of(
    function: ast.FunctionDef, direct: frozenset[str], found: Mapping[str, FakeWrapper]
) -> Iterator[FakeWrapper]:
    """Yield what a function registers meta functions of, where its parameters name the operator."""
    parameters = _parameters(function)
    nodes = list(ast.walk(function))
    inner = {
        name for one in nodes if isinstance(one, ast.FunctionDef) and one is not function for name in _parameters(one)
    }
    returned = {id(one.value) for one in nodes if isinstance(one, ast.Return)}
    given = {id(one.func): one.args for one in nodes if isinstance(one, ast.Call)}
    for one in nodes:
        if not isinstance(one, ast.Call) or not one.args:
            continue
        called = last_name(one.func)
        if called not in direct and called not in found:
            continue
        name, decorates = (
            (one.args[0], True) if called in direct else (found[called].named(one, {}), found[called].decorates)
        )
        to = [*one.args[1:2], *given.get(id(one), [])]
        own = id(one) in returned or (bool(to) and isinstance(to[0], ast.Name) and to[0].id in inner)
        if any(isinstance(part, ast.Name) and part.id in parameters for part in ast.walk(name)):
            yield FakeWrapper(function.args, name, decorates and own)


def _parameters(function: ast.FunctionDef) -> set[str]:
    return {one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}


class _Given(ast.NodeTransformer):
    """Replacement of parameters by what a call gives."""

    def __init__(self, given: Mapping[str, ast.expr]) -> None:
        self.given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.given.get(node.id, node)

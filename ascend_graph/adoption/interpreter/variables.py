"""Variables of a function: which of them a statement or a call may assign, and are unknown after it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ascend_graph.adoption.cpp.expressions import ARRAY, FORGET, SET_ITEM, unread_text
from ascend_graph.adoption.interpreter.tensors import is_tensor
from ascend_graph.adoption.interpreter.values import (
    UNKNOWN,
    ArgumentValue,
    Closure,
    Element,
    Input,
    NewTensor,
    Record,
    Unknown,
    allocations,
)

_INNER = frozenset({"begin", "end", "rbegin", "rend", "data", "back", "front", "at"})


#: Methods of containers that change them.
_CHANGING = frozenset(
    {
        "push_back",
        "emplace_back",
        "pop_back",
        "resize",
        "assign",
        "insert",
        "emplace",
        "erase",
        "clear",
        "append",
        "swap",
    }
)


_CHANGING_LISTS = _CHANGING | {"extend", "remove", "reverse", "sort", "pop"}


def changed_names(parameters: Iterable[str], statements: Iterable[ast.stmt]) -> frozenset[str]:
    """Return the variables of a function that get another value after their first.

    >>> sorted(changed_names(["n"], ast.parse("m = n; v = []; v.append(m); k = 1; k = 2").body))
    ['k', 'v']
    """
    stored, found = Counter(parameters), set()
    for statement in statements:
        for one in ast.walk(statement):
            if isinstance(one, ast.Starred) and isinstance(one.ctx, ast.Store):
                found |= {inner.id for inner in ast.walk(one) if isinstance(inner, ast.Name)}
            elif isinstance(one, ast.Name) and isinstance(getattr(one, "ctx", None), ast.Store):
                stored[one.id] += 1
            elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _CHANGING:
                found |= {inner.id for inner in [one.func.value] if isinstance(inner, ast.Name)}
            elif isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in (FORGET, SET_ITEM):
                given = one.args if one.func.id == FORGET else one.args[:1]
                found |= {inner.id for inner in given if isinstance(inner, ast.Name)}
    return frozenset(found | {name for name, count in stored.items() if count > 1})


def written_names(nodes: Iterable[ast.stmt]) -> set[str]:
    """Return the variables that statements assign, or change by a method.

    >>> sorted(written_names(ast.parse("m = n; v.append(m); n.size(0)").body))
    ['m', 'v']
    """
    found = set()
    for one in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(one, ast.Name) and isinstance(getattr(one, "ctx", None), ast.Store):
            found.add(one.id)
        elif isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and isinstance(one.value, ast.Name):
            found.add(one.value.id)
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in (FORGET, SET_ITEM):
            given = one.args if one.func.id == FORGET else one.args[:1]
            found |= {inner.id for inner in given if isinstance(inner, ast.Name)}
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _CHANGING:
            found |= {inner.id for inner in [one.func.value] if isinstance(inner, ast.Name)}
    return found


def mutated_names(statements: Iterable[ast.stmt]) -> frozenset[str]:
    """Return the variables of a Python function whose lists it changes in place.

    >>> sorted(mutated_names(ast.parse("a.append(1); b[0] = 2; c += [3]; del d[0]; e = f").body))
    ['a', 'b', 'c', 'd']
    """
    found: set[str] = set()
    for one in (inner for statement in statements for inner in ast.walk(statement)):
        owner: ast.expr | None = None
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store | ast.Del):
            owner = one.value
        elif isinstance(one, ast.AugAssign):
            owner = one.target
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _CHANGING_LISTS:
            owner = one.func.value
        if isinstance(owner, ast.Name):
            found.add(owner.id)
    return frozenset(found)


def decayed_names(statements: Iterable[ast.stmt]) -> frozenset[str]:
    """Return the arrays of a C++ function that have another name, as pointers, or stand in what is not understood.

    An array that is an argument of a call is not one of them: what the call makes of it is known, or forgotten.
    """
    nodes = [one for statement in statements for one in ast.walk(statement)]
    made = [one for one in nodes if isinstance(one, ast.Assign) and is_array(one.value)]
    arrays = {target.id for one in made for target in one.targets if isinstance(target, ast.Name)}
    if not arrays:
        return frozenset()
    kept = [one.value for one in nodes if isinstance(one, ast.Subscript)]
    kept += [inner for one in nodes if isinstance(one, ast.Call) for inner in one.args]
    kept += [target for one in made for target in one.targets]
    places = {id(one) for one in kept}
    found = {one.id for one in nodes if isinstance(one, ast.Name) and one.id in arrays and id(one) not in places}
    text = " ".join(filter(None, map(unread_text, nodes)))
    return frozenset(found | {one for one in arrays if re.search(rf"\b{re.escape(one)}\b", text)})


def is_array(node: ast.AST) -> bool:
    """Return whether an expression makes an array of C++."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == ARRAY


def forget_names(names: Iterable[ast.Name], scope: dict[str, Any]) -> None:
    """Make variables unknown."""
    for one in names:
        scope[one.id] = UNKNOWN


def forget_memory(held: Any, scope: dict[str, Any], unknown: Unknown) -> None:
    """Make the variables unknown that may be the same tensor."""
    same = {*allocations(held)}
    for name, value in scope.items():
        if same & {*allocations(value)} or (isinstance(held, Input) and value == held):
            scope[name] = unknown


def forget_assigned(statement: ast.stmt, scope: dict[str, Any]) -> None:
    """Make the variables that a statement may assign unknown."""
    for one in ast.walk(statement):
        if isinstance(one, ast.Name) and isinstance(getattr(one, "ctx", None), ast.Store):
            scope[one.id] = Unknown(f"{one.id}, which a loop assigns")
        elif isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
            if isinstance(one.value, ast.Name) and isinstance(scope.get(one.value.id), Record):
                scope[one.value.id] = Unknown(f"{one.value.id}, which a loop assigns")
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
            held = [scope.get(a.id) if isinstance(a, ast.Name) else None for a in one.args]
            forget_written(one.args, [n for n, a in enumerate(held) if not isinstance(a, Input | NewTensor)], scope)
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
            # Methods may write: v.push_back(n), y.fill_(0).
            root = one.func.value
            if isinstance(root, ast.Name) and not isinstance(scope.get(root.id), Input | ArgumentValue | NewTensor):
                scope[root.id] = UNKNOWN


def forget_numbers(arguments: list[ast.expr], values: list[Any], scope: dict[str, Any]) -> None:
    """Make what an unknown function may take by reference unknown; kernels do not resize their tensors."""
    forget_names([ast.Name(name) for one in values if isinstance(one, Closure) for name in one.writes], scope)
    tensors = Input | Element | NewTensor
    forget_written(arguments, [n for n, one in enumerate(values) if not isinstance(one, tensors)], scope)


def forget_written(arguments: list[ast.expr], positions: Iterable[int], scope: dict[str, Any]) -> None:
    """Make the variables that a call may assign unknown."""
    for position in positions:
        one = arguments[position] if position < len(arguments) else None
        # f(n), f(v[0]) and f(v.begin(), v.end()) may write.
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _INNER:
            one = one.func.value
        while isinstance(one, ast.Subscript):
            one = one.value
        if isinstance(one, ast.Name) and not is_tensor(held := scope.get(one.id, UNKNOWN)):
            scope[one.id] = held if isinstance(held, Unknown) else UNKNOWN

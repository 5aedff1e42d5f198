"""Converters to GE that Python functions are: the operator that one adds, and the pairs that it states."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from ascend_graph.adoption.annotations import last_name
from ascend_graph.adoption.model import HandWrittenConverter, SourcePlace, operator_key


def converter_of(
    name: str, node: ast.FunctionDef, place: SourcePlace, text: Callable[[ast.expr], str | None]
) -> HandWrittenConverter:
    """Return the converter of an operator that a function is.

    Args:
        name: The operator.
        node: The function.
        place: Its place.
        text: Returns the value of an expression that is a string, or None.
    """
    op_type = ""
    pairs: dict[str, str] = {}
    constants: dict[str, object] = {}
    added = [
        one for one in ast.walk(node) if isinstance(one, ast.Call) and last_name(one.func) == "custom_op" and one.args
    ]
    if len(added) == 1:
        op_type = text(added[0].args[0]) or ""
        arguments = {a.arg for a in (*node.args.args, *node.args.kwonlyargs)}
        for name_in_ge, value in _pairs(added[0]):
            if isinstance(value, ast.Name) and value.id in arguments:
                pairs[name_in_ge] = value.id
            elif isinstance(value, ast.Constant):
                constants[name_in_ge] = value.value
    return HandWrittenConverter(name, op_type, pairs, place, constants)


def operator_name(node: ast.expr) -> str | None:
    """Return ``ns::name`` of ``torch.ops.ns.name``, ``ns::name.overload`` of ``torch.ops.ns.name.overload``, or None.

    >>> operator_name(ast.parse("torch.ops.mine.add.default", mode="eval").body)
    'mine::add'
    """
    match = re.fullmatch(r"torch\.ops\.(\w+)\.(\w+)((?:\.\w+)?)", ast.unparse(node))
    return operator_key(f"{match[1]}::{match[2]}{match[3]}") if match else None


def _pairs(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Yield GE names with the values that ``ge.custom_op`` is given for them."""
    for keyword in call.keywords:
        if keyword.arg in ("inputs", "attrs") and isinstance(keyword.value, ast.Dict):
            for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                # An attr's value is wrapped in its type.
                inner = value.args[0] if isinstance(value, ast.Call) and len(value.args) == 1 else value
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, inner

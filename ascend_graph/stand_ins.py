"""Stand-ins for public functions and classes of modules that cannot be imported, with documentation and a late error.

Without CANN ``import torch`` fails with torch_npu. ``help(ascend_graph.opcheck)`` still works: documentation and
signature are read from the source, and nothing is imported.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from ascend_graph.errors import AscendGraphError

_ROOT = Path(__file__).parent
_Definition = ast.FunctionDef | ast.ClassDef


class _Text:
    """Default value as the source writes it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def stand_in(module: str, name: str, reason: str) -> Any | None:
    """Return a documented stand-in for a function or a class of a module that cannot be imported; None for other names.

    Args:
        module: The module, of this package.
        name: The name in it; it may be imported there from another one.
        reason: The message of the error that a call raises.
    """
    found = _definition(module, name)
    if found is None:
        return None
    node, holder = found

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AscendGraphError(reason)

    if isinstance(node, ast.FunctionDef):
        refuse.__signature__ = _signature(node)  # type: ignore[attr-defined]
        made: Any = refuse
    else:
        bases = (
            (AscendGraphError,) if any(isinstance(b, ast.Name) and b.id.endswith("Error") for b in node.bases) else ()
        )
        made = type(name, bases, {} if bases else {"__new__": refuse})
    made.__name__, made.__qualname__, made.__module__, made.__doc__ = name, name, holder, ast.get_docstring(node)
    return made


def _definition(module: str, name: str) -> tuple[_Definition, str] | None:
    """Return a function's or a class's syntax tree and its module, following imports from other modules."""
    path = _ROOT.joinpath(*module.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not file.is_file():
        return None
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, _Definition) and node.name == name:
            return node, module
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("ascend_graph."):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _definition(node.module, alias.name)
    return None


def _signature(node: ast.FunctionDef) -> inspect.Signature:
    returned = inspect.Signature.empty if node.returns is None else ast.unparse(node.returns)
    return inspect.Signature(list(_parameters(node.args)), return_annotation=returned)


def _parameters(arguments: ast.arguments) -> Iterator[inspect.Parameter]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    for number, (one, default) in enumerate(zip(positional, defaults, strict=True)):
        only = number < len(arguments.posonlyargs)
        kind = inspect.Parameter.POSITIONAL_ONLY if only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        yield _parameter(one, kind, default)
    if arguments.vararg is not None:
        yield _parameter(arguments.vararg, inspect.Parameter.VAR_POSITIONAL, None)
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(one, inspect.Parameter.KEYWORD_ONLY, default)
    if arguments.kwarg is not None:
        yield _parameter(arguments.kwarg, inspect.Parameter.VAR_KEYWORD, None)


def _parameter(one: ast.arg, kind: Any, default: ast.expr | None) -> inspect.Parameter:
    empty = inspect.Parameter.empty
    annotation = empty if one.annotation is None else ast.unparse(one.annotation)
    return inspect.Parameter(
        one.arg, kind, default=empty if default is None else _Text(ast.unparse(default)), annotation=annotation
    )

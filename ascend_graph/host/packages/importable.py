"""Check of the file of a Python kernel: a package imports it to find the kernel, which must not build the package again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from ascend_graph.host.packages.format import OperatorPackageError

_BUILD = "build_operator_package"


def check_importable(op_type: str, file: Path) -> None:
    """Refuse a file that builds a package whenever it is imported.

    Raises:
        OperatorPackageError: A statement outside functions, and not behind ``if __name__ == "__main__"``, calls
            ``build_operator_package`` or a function of the file that does.
    """
    try:
        body = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError, RecursionError):
        return  # what imports it says so
    imported = (alias for s in body if isinstance(s, ast.ImportFrom) for alias in s.names)
    builders, before = {_BUILD, *(alias.asname for alias in imported if alias.name == _BUILD and alias.asname)}, 0
    functions = [s for s in body if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)]
    while before != len(builders):
        before = len(builders)
        builders |= {f.name for f in functions if any(name in builders for name, _ in _calls(f))}
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or _asks_for_name(statement):
            continue
        for name, line in _calls(statement):
            if name in builders:
                raise OperatorPackageError(
                    f"kernel of {op_type}: {file}:{line} builds a package when the file is imported, and a package imports it to "
                    "find the kernel; expected a file that defines kernels alone. Write if __name__ == '__main__': before "
                    "that line, or the kernel into a file of its own"
                )


def _calls(statement: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the last name of what each call calls, and its line."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            yield name, node.lineno


def _asks_for_name(statement: ast.stmt) -> bool:
    """Return whether a statement is an ``if`` that asks for ``__name__``."""
    return isinstance(statement, ast.If) and any(
        isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(statement.test)
    )

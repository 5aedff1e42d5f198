"""Operators that a repository registers with ascend_graph itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ascend_graph.adoption.model import Findings, SourcePlace, operator_key, relative
from ascend_graph.sources import Severity

_USEFUL = re.compile(rb"\bregister_(?:op|kernel)\s*\(")
#: The first line of a module that ``ascend-graph adopt`` wrote.
_WRITTEN = b"# adopt: (head)"
_OPERATOR = re.compile(r"torch\.ops\.(\w+)\.(\w+(?:\.\w+)?)\Z")


def leave_out_registered(files: Iterable[Path], root: Path, findings: Findings) -> None:
    """Leave out operators with a registration of their author, next to which another one would be refused."""
    defined = {one.schema.qualified_name for one in findings.definitions}
    found = {name: place for path in files if path.suffix == ".py" for name, place in _registrations(path, root)}
    found = {name: place for name, place in found.items() if name in defined}
    findings.definitions[:] = [one for one in findings.definitions if one.schema.qualified_name not in found]
    findings.implementations[:] = [one for one in findings.implementations if one.name not in found]
    for name, place in sorted(found.items()):
        findings.report(
            place,
            f"{name} is registered here already, and left out; remove the call to have it written",
            name,
            Severity.WARNING,
        )


def _registrations(path: Path, root: Path) -> Iterator[tuple[str, SourcePlace]]:
    """Yield the operators that calls of a file register, with the lines of these."""
    try:
        data = path.read_bytes()
        if not _USEFUL.search(data) or data.startswith(_WRITTEN):
            return
        tree = ast.parse(data)
    except (OSError, ValueError, SyntaxError, RecursionError):
        return  # reported where definitions are read
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not re.search(r"\bregister_(?:op|kernel)\Z", ast.unparse(node.func)):
            continue
        for keyword in node.keywords:
            if keyword.arg == "eager" and (operator := _OPERATOR.match(ast.unparse(keyword.value))) is not None:
                yield operator_key(f"{operator[1]}::{operator[2]}"), SourcePlace(relative(path, root), node.lineno)

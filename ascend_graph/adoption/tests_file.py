"""The written test file: opcheck of each adopted operator, with the references that the repository's tests have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from ascend_graph.adoption.decision import Decision
from ascend_graph.adoption.model import relative

_REFERENCE = re.compile(
    r"(?:^|_)(?:ref|reference|golden|naive|expected|torch|native|cpu|baseline)(?:_|$)", re.IGNORECASE
)
_OPERATOR = re.compile(r"\btorch\.ops\.(\w+\.\w+)")


def find_references(files: Iterable[Path], root: Path, decisions: Iterable[Decision]) -> dict[str, str]:
    """Return the functions of tests that an operator is compared with, as ``file:line name``.

    A function counts if a test file calls one operator of the repository, and has one function whose name says that it is a
    reference.
    """
    operators = {one.eager.removeprefix("torch.ops."): one.name for one in decisions if one.eager}
    found: dict[str, str] = {}
    for path in files:
        if path.suffix != ".py":
            continue
        try:
            text = path.read_text(encoding="utf-8")
            called = {name for name in _OPERATOR.findall(text) if name in operators}
            if len(called) != 1:
                continue
            tree = ast.parse(text)
        except (OSError, ValueError, SyntaxError, RecursionError):
            continue
        references = [
            node for node in tree.body if isinstance(node, ast.FunctionDef) and _REFERENCE.search(node.name)
            and not node.name.startswith("test")
        ]  # fmt: skip
        if len(references) == 1:
            name = operators[called.pop()]
            found.setdefault(name, f"{relative(path, root)}:{references[0].lineno} {references[0].name}")
    return found


def tests_of(module: str, decisions: Iterable[Decision], references: dict[str, str]) -> str:
    """Return the text of the test file of a module."""
    lines = [
        f'"""Checks of the operators that {module} registers. Written by ``ascend-graph adopt``."""',
        "",
        "import pytest",
        "",
        f"import {module}  # noqa: F401  registers the operators",
        "import ascend_graph",
        "",
        "#: The reference of an operator in plain PyTorch: complete it, and opcheck compares values.",
        "REFERENCES = {",
    ]
    for name, place in sorted(references.items()):
        lines.append(f"    # {name!r}: the function at {place},")
    lines += [
        "}",
        "#: Calls of an operator whose relation does not say every input's shape: ascend_graph.Sample((x, …), {…}).",
        "SAMPLES = {",
        "}",
        "",
        "",
        '@pytest.mark.parametrize("op", ascend_graph.registered_ops(), ids=lambda op: op.overload.name())',
        "def test_operator_passes_opcheck(op: ascend_graph.RegisteredOp) -> None:",
        "    name = op.overload.name()",
        "    ascend_graph.opcheck(op, SAMPLES.get(name), reference=REFERENCES.get(name))",
    ]
    return "\n".join(lines)

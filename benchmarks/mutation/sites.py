"""Faults of Python sources: an expression, and what stands in its place when the fault is switched on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

#: What a planted file calls to ask whether its fault is on.
ASK = "_planted_fault_"

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True, order=True, slots=True)
class Site:
    """A stretch of a file's characters, the text for it while the fault is off, and that while it is on."""

    start: int
    end: int
    right: str
    wrong: str
    kind: str
    line: int

    def planted(self, number: int) -> str:
        """Return the text that asks which of the two holds."""
        return f"({self.wrong} if {ASK}({number}) else {self.right})"


class _Finder(ast.NodeVisitor):
    """Collects the faults of a module's functions; what runs at import, and what only words errors, has none."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = [0]
        for line in text.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.found: list[Site] = []
        self.depth = 0

    def place(self, line: int, column: int) -> int:
        """Return the character of a line and of a column, which ast counts in bytes."""
        start = self.lines[line - 1]
        row = self.text[start : self.lines[line]]
        return start + len(row.encode()[:column].decode())

    def add(self, node: ast.expr, wrong: ast.expr, kind: str) -> None:
        if not self.depth or any(isinstance(part, ast.NamedExpr | ast.Await) for part in ast.walk(node)):
            return
        start = self.place(node.lineno, node.col_offset)
        end = self.place(node.end_lineno or 0, node.end_col_offset or 0)
        right = self.text[start:end]
        if "#" in right:  # a comment would end the line
            right = ast.unparse(node)
        wrong_text = ast.unparse(ast.fix_missing_locations(wrong))
        self.found.append(Site(start, end, f"({right})", f"({wrong_text})", kind, node.lineno))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.depth += 1
        for statement in node.body:
            self.visit(statement)
        self.depth -= 1

    def visit_Raise(self, node: ast.Raise) -> None: ...

    def visit_Assert(self, node: ast.Assert) -> None: ...

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None: ...

    def visit_Match(self, node: ast.Match) -> None:
        for case in node.cases:  # patterns are no expressions
            for statement in case.body:
                self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        self.add(node.test, ast.UnaryOp(ast.Not(), node.test), "condition")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.add(node.test, ast.UnaryOp(ast.Not(), node.test), "condition")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        other = COMPARISONS.get(type(node.ops[0]))
        if len(node.ops) == 1 and other:
            self.add(node, ast.Compare(node.left, [other()], node.comparators), "comparison")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self.add(node, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values), "and-or")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = OPERATIONS.get(type(node.op))
        texts = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
        if other and not any(
            isinstance(side, texts) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
            for side in (node.left, node.right)
        ):
            self.add(node, ast.BinOp(node.left, other(), node.right), "arithmetic")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if type(node.value) is int:
            self.add(node, ast.Constant(node.value + 1), "number")

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.add(node.value, ast.Constant(None), "call")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
            self.add(node.value, ast.Constant(not node.value.value), "return")
        self.generic_visit(node)


def sites(text: str) -> list[Site]:
    """Return the faults that a module's text can have.

    Example:
        >>> [(site.right, site.wrong) for site in sites("def f(a):\\n    return a < 3\\n")]
        [('(a < 3)', '(a <= 3)'), ('(3)', '(4)')]
    """
    finder = _Finder(text)
    finder.visit(ast.parse(text))
    return sorted(finder.found)


def apart(found: list[Site]) -> Iterator[Site]:
    """Give those of the faults, in their order, that overlap no earlier one."""
    taken: list[tuple[int, int]] = []
    for site in found:
        if all(site.end <= start or end <= site.start for start, end in taken):
            taken.append((site.start, site.end))
            yield site


def planted(text: str, chosen: dict[int, Site], header: str) -> str:
    """Return the text with the numbered faults, and the header's line behind what must come first."""
    for number, site in sorted(chosen.items(), key=lambda item: -item[1].start):
        text = text[: site.start] + site.planted(number) + text[site.end :]
    body = ast.parse(text).body
    line = 0
    for statement in body:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            line = statement.end_lineno or 0
        elif not (line == 0 and statement is body[0] and isinstance(statement, ast.Expr)):
            break
        else:
            line = statement.end_lineno or 0
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:line], header, *lines[line:]])

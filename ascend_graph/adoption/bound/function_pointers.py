"""Variables of a C++ function that name functions: ``LaunchFn launch = half ? add_do_fp16 : add_do_fp32; launch(x)``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from ascend_graph.adoption.bound.signatures import bound_type
from ascend_graph.adoption.cpp.expressions import DEFAULT
from ascend_graph.adoption.cpp.functions import CppFunction
from ascend_graph.adoption.cpp.statements import statements
from ascend_graph.adoption.interpreter.calls import called_name
from ascend_graph.adoption.model import Findings

#: Functions that a value may be: names as written, each with the file that it is written in.
Functions = frozenset[tuple[str, str]]
#: Functions that variables may be, by name.
Pointers = Mapping[str, Functions]
#: Maximum nesting of functions that return one.
_MAX_DEPTH = 3


class FunctionPointers:
    """Functions that the variables of a function may be, whatever the order of its statements; null pointers are not called.

    Args:
        function: The function whose variables they are.
        nodes: Its statements, and all that is in them.
        given: The functions that the caller passes, by parameter.
        findings: The repository's functions.
    """

    def __init__(
        self, function: CppFunction, nodes: Iterable[ast.AST], given: Pointers, findings: Findings, depth: int = 0
    ) -> None:
        self.file, self.findings, self.depth = function.file, findings, depth
        nodes = list(nodes)
        assigned = [(name, one.value) for one in nodes if isinstance(one, ast.Assign) for name in _assigned(one)]
        self.variables = {one.name for one in function.parameters} | {name for name, _ in assigned}
        self.known: dict[str, Functions] = dict(given)
        for _ in range(2):  # a variable may be given another's value
            for name, value in assigned:
                self.known[name] = self.known.get(name, frozenset()) | (self.of(value) or frozenset())
        unknown = {name for name, value in assigned if self.of(value) is None} | self._passed_on(nodes)
        self.known = {name: found for name, found in self.known.items() if found and name not in unknown}

    def called(self, call: ast.Call) -> Functions:
        """Return the functions that a call may mean; none if it calls a variable that is not followed."""
        written = called_name(call)
        table = call.func.value if isinstance(call.func, ast.Subscript) else None
        variable = table.id if isinstance(table, ast.Name) else written
        named = frozenset() if variable in self.variables else frozenset({(written, self.file)})
        return self.known.get(variable, named)

    def of(self, value: ast.expr) -> Functions | None:
        """Return the functions that a value may be, none for a null pointer; None if it may be something else."""
        if isinstance(value, ast.Name) and value.id in self.variables:
            return self.known.get(value.id)
        if isinstance(value, ast.Name):
            defined = self.findings.functions.get(value.id.rpartition("::")[2])
            return frozenset({(value.id, self.file)}) if defined else None
        if isinstance(value, ast.Constant) and value.value is None:
            return frozenset()
        if isinstance(value, ast.IfExp):
            return self._several((value.body, value.orelse))
        if isinstance(value, ast.List):
            return self._several(value.elts)
        if isinstance(value, ast.Subscript):
            return self.of(value.value)
        return self._made(value) if isinstance(value, ast.Call) else None

    def _several(self, values: Iterable[ast.expr]) -> Functions | None:
        found = [self.of(one) for one in values]
        return None if None in found else frozenset().union(*(one for one in found if one))

    def _made(self, call: ast.Call) -> Functions | None:
        """Return what a call makes: a variable without a value, one in braces, or what a function returns."""
        if called_name(call) == DEFAULT:
            return frozenset()
        if len(call.args) == 1 and isinstance(call.args[0], ast.List):
            return self.of(call.args[0])
        function = self.findings.function(called_name(call).replace(".", "::"), self.file, len(call.args))
        if function is None or self.depth == _MAX_DEPTH or bound_type(function.returns) or "void" in function.returns:
            return None
        nodes = [one for outer in statements(function.body) for one in ast.walk(outer)]
        returned = [one.value for one in nodes if isinstance(one, ast.Return) and one.value is not None]
        inner = FunctionPointers(function, nodes, {}, self.findings, self.depth + 1)
        return inner._several(returned) if returned else None

    def _passed_on(self, nodes: Iterable[ast.AST]) -> set[str]:
        """Return the names that are passed to what may assign them: by reference or pointer, or to what is not known."""
        found = set()
        for node in nodes:
            names = {n: one.id for n, one in enumerate(getattr(node, "args", ())) if isinstance(one, ast.Name)}
            if not names or not isinstance(node, ast.Call):
                continue
            called = self.findings.function(called_name(node).replace(".", "::"), self.file, len(node.args))
            parameters = called.parameters if called else ()
            for number, name in names.items():
                if number >= len(parameters) or re.search(r"[&*]", parameters[number].type):
                    found.add(name)
        return found


def _assigned(one: ast.Assign) -> set[str]:
    return {name.id for target in one.targets for name in ast.walk(target) if isinstance(name, ast.Name)}

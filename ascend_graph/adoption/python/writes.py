"""Arguments that a Python function certainly writes, and those whose memory it may return.

Statements are followed in order: a name that is assigned holds the new value alone. Branches and loops add up. A call of
what is not in the repository is taken to read, unless its name says otherwise.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ascend_graph.adoption.annotations import last_name
from ascend_graph.adoption.bound.memory import union
from ascend_graph.adoption.bound.tensor_functions import FRESH_METHODS, RESHAPING, VIEWS
from ascend_graph.adoption.bound.writes import Writes, writes_of
from ascend_graph.adoption.known import Known
from ascend_graph.adoption.model import Findings, PythonFunction
from ascend_graph.adoption.python.converters import operator_name

#: Names with the parameters whose memory their values may be.
_Held: TypeAlias = dict[str, set[int]]
#: Maximum nesting of functions that are followed.
_MAX_DEPTH = 6
#: Attributes of a tensor that are views of it.
_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "data", "real", "imag"})
#: Collective functions of torch.distributed whose first argument they write.
_COLLECTIVES = frozenset(
    {
        "all_reduce", "broadcast", "reduce", "recv", "irecv", "all_gather", "all_gather_into_tensor", "reduce_scatter",
        "reduce_scatter_tensor", "all_to_all", "all_to_all_single", "scatter",
    }
)  # fmt: skip
#: Methods with the name of one that writes, which change no values.
_MARKS = RESHAPING | {"requires_grad_", "share_memory_", "retain_grad_"}
#: Stores of Triton, whose first argument is a pointer or a descriptor.
_STORES = frozenset({"store", "store_tensor_descriptor"})
#: Names of their parameter that is written.
_STORED = frozenset({"pointer", "desc"})


def python_writes(function: PythonFunction, lists: set[int], findings: Findings, known: Known) -> Writes:
    """Return what a Python function writes of its parameters, by position; ``lists`` are those that are lists."""
    context = _Context(findings, known, function, findings.bound_by(function))
    return _Walker(_parameters(function.node), context, lists).run(function.node)


@dataclass(slots=True)
class _Context:
    """Surroundings of a function: what the repository has, and the function itself."""

    findings: Findings
    known: Known
    function: PythonFunction
    #: Names of bound C++ functions that it calls.
    loaded: set[str]
    depth: int = 1
    triton: bool = False
    results: dict[tuple[int, bool], Writes] = field(default_factory=dict)


class _Walker:
    def __init__(self, parameters: list[str], context: _Context, lists: set[int]) -> None:
        self.context, self.lists = context, lists
        self.held: _Held = {name: {number} for number, name in enumerate(parameters)}
        #: Names of lists, whose items are replaced and not written.
        self.containers = {name for number, name in enumerate(parameters) if number in lists}
        self.local: dict[str, ast.FunctionDef] = {}
        self.result = Writes(len(parameters))

    def run(self, node: ast.FunctionDef | ast.Lambda) -> Writes:
        if isinstance(node, ast.Lambda):
            self.value(node.body)
            self.result.returned |= self.memory(node.body)
        else:
            self.block(node.body)
        return self.result

    # ------------------------------------------------------------------------------------------------------ statements

    def block(self, statements: list[ast.stmt]) -> None:
        for one in statements:
            self.statement(one)

    def either(self, *blocks: list[ast.stmt]) -> None:
        """Follow blocks of which any may run, and none."""
        before, after = self.held, [self.held]
        for one in blocks:
            self.held = {name: set(held) for name, held in before.items()}
            self.block(one)
            after.append(self.held)
        names = {name for held in after for name in held}
        self.held = {name: union(held.get(name, set()) for held in after) for name in names}

    def statement(self, one: ast.stmt) -> None:
        for value in ast.iter_child_nodes(one):
            if isinstance(value, ast.expr):
                self.value(value)
        match one:
            case ast.FunctionDef():
                self.local[one.name] = one
            case ast.Assign():
                for target in one.targets:
                    self.assign(target, one.value)
            case ast.AnnAssign() if one.value is not None:
                self.assign(one.target, one.value)
            case ast.AugAssign() if not (isinstance(one.target, ast.Name) and one.target.id in self.containers):
                self.write(one.target)
            case ast.Return() if one.value is not None:
                self.result.returned |= self.memory(one.value)
            case ast.If():
                # One of the two runs: what both assign holds nothing of before.
                self.either_of(one.body, one.orelse)
            case ast.For():
                for _ in range(2):
                    self.assign(one.target, one.iter)
                    self.either(one.body)
                self.block(one.orelse)
            case ast.While():
                for _ in range(2):
                    self.either(one.body)
                self.block(one.orelse)
            case ast.With():
                self.block(one.body)
            case ast.Try():
                self.either(one.body, *(handler.body for handler in one.handlers))
                self.block([*one.orelse, *one.finalbody])

    def either_of(self, first: list[ast.stmt], second: list[ast.stmt]) -> None:
        """Follow two blocks of which one runs; one that leaves the function adds nothing to what follows."""
        before, after = self.held, []
        for one in (first, second):
            self.held = {name: set(held) for name, held in before.items()}
            self.block(one)
            if not (one and isinstance(one[-1], ast.Return | ast.Raise)):
                after.append(self.held)
        names = {name for held in after for name in held}
        self.held = {name: union(held.get(name, set()) for held in after) for name in names}

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if (
            isinstance(target, ast.Tuple | ast.List)
            and isinstance(value, ast.Tuple | ast.List)
            and len(target.elts) == len(value.elts)
        ):
            taken = [self.memory(one) for one in value.elts]
            for one, held in zip(target.elts, taken, strict=True):
                self.give(one, held)
            return
        self.give(target, self.memory(value))
        if isinstance(target, ast.Name):
            made = isinstance(value, ast.List | ast.ListComp | ast.Dict | ast.DictComp) or (
                isinstance(value, ast.Call) and last_name(value.func) in {"list", "dict"}
            )
            (self.containers.add if made else self.containers.discard)(target.id)

    def give(self, target: ast.expr, held: set[int]) -> None:
        """Let a target hold memory: a name alone, an item or a view is written."""
        if isinstance(target, ast.Name):
            self.held[target.id] = set(held)
        elif isinstance(target, ast.Tuple | ast.List):
            for one in target.elts:
                self.give(one, held)
        elif isinstance(target, ast.Starred):
            self.give(target.value, held)
        elif isinstance(target, ast.Subscript):
            root = target.value
            if isinstance(root, ast.Name) and root.id in self.containers:
                self.held[root.id] = self.held.get(root.id, set()) | held
            else:
                self.write(root)

    # ------------------------------------------------------------------------------------------------------ expressions

    def write(self, node: ast.expr) -> None:
        self.result.written |= self.memory(node)

    def value(self, node: ast.expr) -> None:
        """Note what the calls of an expression write."""
        for one in ast.walk(node):
            if isinstance(one, ast.NamedExpr):
                self.give(one.target, self.memory(one.value))
            elif isinstance(one, ast.comprehension):
                self.give(one.target, self.memory(one.iter))
        for one in ast.walk(node):
            if isinstance(one, ast.Call):
                self.call(one)

    def call(self, node: ast.Call) -> None:
        last = last_name(node.func)
        for keyword in node.keywords:
            if keyword.arg == "out":
                self.write(keyword.value)
        if (found := self.called(node)) is not None:
            writes, given = found
            self.result.called |= writes.called
            for number, one in given.items():
                if number in writes.written:
                    self.write(one)
            for text, about in writes.problems.items():
                held = union(self.memory(one) for n, one in given.items() if not about or n in about)
                if held:
                    self.result.problems.setdefault(text, set()).update(held)
        elif self.context.triton and (last in _STORES or last.startswith("atomic_")):
            stored = [*node.args, *(one.value for one in node.keywords if one.arg in _STORED)]
            if isinstance(node.func, ast.Attribute) and self.memory(node.func.value):
                stored.insert(0, node.func.value)
            for one in stored[:1]:
                self.write(one)
        elif isinstance(node.func, ast.Attribute) and _writes(last):
            self.result.written |= self.owner(node, node.func)
        elif last in _COLLECTIVES and ast.unparse(node.func).startswith(("dist.", "torch.distributed.")):
            self.result.written |= union(map(self.memory, node.args[:1]))
        elif last in {"append", "extend", "insert"} and isinstance(node.func, ast.Attribute):
            root = node.func.value
            if isinstance(root, ast.Name):
                self.held[root.id] = self.held.get(root.id, set()) | union(map(self.memory, node.args))

    def owner(self, node: ast.Call, function: ast.Attribute) -> set[int]:
        """Return the memory of what a method is called of; a module's function has it as its first argument."""
        root: ast.expr = function.value
        while isinstance(root, ast.Attribute):
            root = root.value
        is_module = isinstance(root, ast.Name) and root.id not in self.held and root.id != "self"
        return union(map(self.memory, node.args[:1])) if is_module else self.memory(function.value)

    def called(self, node: ast.Call) -> tuple[Writes, dict[int, ast.expr]] | None:
        """Return what the operator or function that a call means does, and its arguments by position; None if unknown."""
        context, name = self.context, operator_name(node.func)
        if name is not None:
            schemas = [one.schema for one in context.findings.definitions if one.name == name.removesuffix(".default")]
            if len(schemas) != 1:
                return None
            names = [one.name for one in schemas[0].arguments]
            written = {n for n, one in enumerate(schemas[0].arguments) if one.mutated}
            return Writes(len(names), written=written), _given(node, names)
        if isinstance(node.func, ast.Attribute):
            bound = context.findings.bound(node.func.attr) if node.func.attr in context.loaded else None
            if bound is not None:
                writes = writes_of(bound, context.findings, context.known)
                return writes, _given(node, [p.name for p in bound.parameters])
        return self.inner(node)

    def inner(self, node: ast.Call) -> tuple[Writes, dict[int, ast.expr]] | None:
        """Return what a function of the repository that a call means does, as :meth:`called` returns it."""
        context, target = self.context, node.func
        launched = isinstance(target, ast.Subscript)
        target = target.value if isinstance(target, ast.Subscript) else target
        if context.depth > _MAX_DEPTH:
            return None
        held = None
        if isinstance(target, ast.Name):
            held = self.local.get(target.id) or context.function.module.get(target.id)
        if isinstance(held, ast.FunctionDef):
            found: PythonFunction | None = replace(context.function, node=held)
        else:
            found = context.findings.python_function(target, context.function.place.file)
        if found is None or not isinstance(found.node, ast.FunctionDef):
            return None
        jit = any("jit" in ast.unparse(one).split("(")[0] for one in found.node.decorator_list)
        if found.node.decorator_list and not jit:
            return None
        writes = self.function_writes(found, launched or (jit and context.triton))
        return writes, _given(node, _parameters(found.node))

    def function_writes(self, function: PythonFunction, triton: bool) -> Writes:
        key = id(function.node), triton
        results = self.context.results
        if key not in results:
            results[key] = Writes()
            findings, known = self.context.findings, self.context.known
            loaded = findings.bound_by(function)
            inner = _Context(findings, known, function, loaded, self.context.depth + 1, triton, results)
            assert isinstance(function.node, ast.FunctionDef)
            results[key] = _Walker(_parameters(function.node), inner, set()).run(function.node)
        return results[key]

    def memory(self, node: ast.expr) -> set[int]:
        """Return the parameters whose memory a value may be."""
        match node:
            case ast.Name():
                return self.held.get(node.id, set())
            case ast.NamedExpr() | ast.Starred() | ast.Subscript() | ast.Await():
                return self.memory(node.value)
            case ast.Attribute():
                return self.memory(node.value) if node.attr in _ATTRIBUTES else set()
            case ast.IfExp():
                return self.memory(node.body) | self.memory(node.orelse)
            case ast.List() | ast.Tuple():
                return union(map(self.memory, node.elts))
            case ast.ListComp() | ast.GeneratorExp():
                return self.memory(node.elt)
            case ast.BinOp() if self.context.triton:
                return self.memory(node.left) | self.memory(node.right)
            case ast.Call():
                return self.result_memory(node)
        return set()

    def result_memory(self, node: ast.Call) -> set[int]:
        last = last_name(node.func)
        taken = [*node.args, *(one.value for one in node.keywords)]
        if (found := self.called(node)) is not None:
            writes, given = found
            return union(self.memory(one) for n, one in given.items() if n in writes.returned)
        if last in {"zip", "enumerate", "list", "tuple", "reversed", "iter", "next"}:
            return union(map(self.memory, taken))
        if self.context.triton:
            return set() if last in {"load", "dot", "arange", "zeros", "full"} else union(map(self.memory, taken))
        is_view = last not in FRESH_METHODS and (last in VIEWS or last.endswith("_"))
        return self.owner(node, node.func) if is_view and isinstance(node.func, ast.Attribute) else set()


def _writes(name: str) -> bool:
    """Return whether a method or function writes, by the name: ``copy_``."""
    return name.endswith("_") and not name.endswith("__") and name not in _MARKS


def _parameters(node: ast.FunctionDef | ast.Lambda) -> list[str]:
    arguments = node.args
    return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _given(node: ast.Call, names: list[str]) -> dict[int, ast.expr]:
    """Return the arguments of a call by the position of their parameter."""
    given: dict[int, ast.expr] = {}
    for number, one in enumerate(node.args):
        if isinstance(one, ast.Starred):
            break
        given[number] = one
    return given | {names.index(one.arg): one.value for one in node.keywords if one.arg in names}

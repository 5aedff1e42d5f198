"""Calls in functions: those that are watched, methods, known functions, lambdas and helper functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from ascend_graph.adoption.cpp.expressions import DEFAULT, FORGET, LAMBDA, REFERENCE, STRUCTURE, unknown
from ascend_graph.adoption.cpp.functions import lambda_of
from ascend_graph.adoption.cpp.statements import declared_names, statements
from ascend_graph.adoption.interpreter.evaluation import DISPATCHED, MAX_CALLS, METHOD, RAISED, Callee, Evaluation
from ascend_graph.adoption.interpreter.known_calls import FILLING, MAKERS, known_call, made_tensor
from ascend_graph.adoption.interpreter.members import method_result
from ascend_graph.adoption.interpreter.names import OF_DATA, text_of
from ascend_graph.adoption.interpreter.sizes import item_of
from ascend_graph.adoption.interpreter.tensors import is_tensor
from ascend_graph.adoption.interpreter.values import (
    UNKNOWN,
    Closure,
    Constant,
    Input,
    NewTensor,
    Record,
    Sizes,
    TorchOperator,
    Unknown,
    allocations,
)
from ascend_graph.adoption.interpreter.variables import (
    forget_memory,
    forget_names,
    forget_numbers,
    forget_written,
    written_names,
)
from ascend_graph.adoption.interpreter.views import VIEW_METHODS

#: Functions that give their first argument another shape or other memory.
_RESHAPING = frozenset({"resize_output", "resize_", "resize_as_", "set_", "resize_impl_cpu_", "resize_bytes_cpu"})

#: Functions that leave the numbers that they are given: macros, methods, functions of libraries and conversions.
_READS_NUMBERS = re.compile(r"[A-Z][A-Z0-9_]*\Z|.*\.|(?:at|torch|std|c10)::|static_cast\b|[a-z]+\d*_t\Z")

#: Methods with a final underscore that leave the values of their tensor.
_KEEPS_VALUES = frozenset({"requires_grad_", "detach_", "share_memory_", "retain_grad_"})

#: Functions of the standard library that read what they are given.
_READS = re.compile(
    r"std::(?:to_string|f?abs|sqrt|ceil|floor|l?l?round|log2?|log10|exp2?|pow|isnan|isinf|isfinite|find|count|distance|equal|"
    r"all_of|any_of|none_of)|(?:c10|at|torch)::str"
)


def called_name(node: ast.Call) -> str:
    """Return the dotted name of the function that a call names."""
    function = node.func
    parts = []
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    function = function.value if isinstance(function, ast.Subscript) else function
    parts.append(function.id if isinstance(function, ast.Name) else "")
    return ".".join(reversed(parts))


def viewed_name(node: ast.expr) -> str:
    """Return the variable that an expression is a view of: ``y`` of ``y.select(0, 1)[2]``; empty if it makes a tensor."""
    while isinstance(node, ast.Call | ast.Subscript):
        function = node.func if isinstance(node, ast.Call) else node
        if isinstance(function, ast.Attribute) and function.attr not in (VIEW_METHODS | {"index"}) - {"clone"}:
            return ""
        node = function.value if isinstance(function, ast.Attribute | ast.Subscript) else function
        if isinstance(function, ast.Name):
            return ""
    return node.id if isinstance(node, ast.Name) else ""


class CallEvaluator(Evaluation):
    """Evaluator of calls."""

    def called(self, node: ast.Call, scope: dict[str, Any]) -> Any:
        name = called_name(node)
        watched = self.watched(name, node)
        if watched is not None:
            self.watch(watched, [self.value(one, scope) for one in node.args[1:]])
            return UNKNOWN
        if any(isinstance(one, ast.Starred) for one in node.args) and name.rpartition(".")[2] not in MAKERS:
            return UNKNOWN
        last = name.rpartition("::")[2]
        keywords = {one.arg: self.value(one.value, scope) for one in node.keywords if one.arg}
        if isinstance(node.func, ast.Attribute):
            owner_node = node.func.value
            is_module = (
                isinstance(owner_node, ast.Name) and owner_node.id not in scope and owner_node.id not in self.constants
            )
            if not is_module:
                owner = self.value(owner_node, scope)
                made = self.method(owner, node, scope, keywords)
                if self.is_cpp and isinstance(owner, Unknown) and isinstance(made, Unknown):
                    forget_numbers(node.args, [self.value(one, scope) for one in node.args], scope)
                return made
            last = node.func.attr
        if isinstance(node.func, ast.Subscript) and isinstance(node.func.value, ast.Name):
            return self.templated(name, node, node.func, scope)
        return self.function(name, last, node, scope, keywords)

    def templated(self, name: str, node: ast.Call, function: ast.Subscript, scope: dict[str, Any]) -> Any:
        """Return the result of a function with template arguments: ``std::get<1>(value)``, ``RUN<NAME>(…)``."""
        index = function.slice
        if isinstance(index, ast.Constant) and isinstance(self.constants.get(str(index.value)), ast.expr):
            named = self.value(self.constants[str(index.value)], {})
            watched = self.watched(name, ast.Call(function, [ast.Name(str(getattr(named, "value", "")))], []))
            if watched is not None:
                self.watch(watched, [self.value(one, scope) for one in node.args])
                return UNKNOWN
        if isinstance(index, ast.Constant) and str(index.value).isdigit() and len(node.args) == 1:
            return item_of(self.value(node.args[0], scope), Constant(int(str(index.value))))
        return UNKNOWN

    def method(self, owner: Any, node: ast.Call, scope: dict[str, Any], keywords: Mapping[str, Any]) -> Any:
        assert isinstance(node.func, ast.Attribute)
        name = node.func.attr
        if name in MAKERS:
            return self.holding(name, self.made(node.args, scope, keywords, owner))
        arguments = [self.value(one, scope) for one in node.args]
        if name in OF_DATA and not arguments:
            return Unknown(text_of(node))
        names = [one.value for one in arguments if isinstance(one, Constant) and isinstance(one.value, str)]
        if name == "findSchemaOrThrow" and len(names) == len(arguments) == 2:
            return TorchOperator(".".join(filter(None, names)))
        if isinstance(owner, TorchOperator):
            called = name == "call" and not keywords
            return self.helper(f"{DISPATCHED}{owner.name}", node, scope, arguments, {}) if called else owner
        if isinstance(owner, Record) and isinstance(node.func.value, ast.Name):
            scope[node.func.value.id] = UNKNOWN  # a method may assign any member
            return UNKNOWN
        if isinstance(owner, Unknown) and not self.is_cpp:
            return self.helper(f"{METHOD}{name}", node, scope, arguments, keywords)
        if name.endswith("_") and name not in _KEEPS_VALUES:
            self.change(owner)
            self.change(scope.get(viewed_name(node.func.value), owner))
        return self.viewed(owner, name, arguments)

    def viewed(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        """Return a view of a tensor; an order of all dimensions tells how many an argument has."""
        made = method_result(owner, name, arguments)
        if isinstance(made, NewTensor) and name in VIEW_METHODS - {"clone"} and made is not owner:
            self.memory[made.serial] = self.memory_of(owner)
        elif isinstance(made, NewTensor) and made is not owner:
            held = self.memory_of(owner)
            if any(isinstance(one, str) for one in held) or held & self.filled:
                self.filled.add(made.serial)  # A copy, a cast.
        if name == "permute" and isinstance(owner, Input) and isinstance(made, NewTensor) and not self.conditional:
            self.outcome.ranks.setdefault(owner.name, len(made.sizes.items))
        return made

    def made(self, nodes: list[ast.expr], scope: dict[str, Any], keywords: Mapping[str, Any], owner: Any) -> Any:
        """Return the tensor that ``empty``, ``zeros`` and the like make."""
        arguments: list[Any] = []
        for one in nodes:
            if isinstance(one, ast.Starred):
                inner = self.value(one.value, scope)
                if not isinstance(inner, Sizes):
                    return UNKNOWN
                arguments.append(inner)
            else:
                arguments.append(self.value(one, scope))
        return made_tensor(arguments, keywords, owner)

    def holding(self, maker: str, made: Any) -> Any:
        """Return a tensor that is made, and note that it holds values if ``maker`` is ``zeros`` or the like."""
        if "empty" not in maker:
            self.filled.update(allocations(made))
        return made

    def function(self, name: str, last: str, node: ast.Call, scope: dict[str, Any], keywords: Mapping[str, Any]) -> Any:
        if last in MAKERS:
            return self.holding(last, self.made(node.args, scope, keywords, None))
        arguments = [self.value(one, scope) for one in node.args]
        if name.startswith(("at::", "torch::", "torch.")) and last in VIEW_METHODS and arguments and not keywords:
            return self.viewed(arguments[0], last, arguments[1:])
        if last == REFERENCE:
            return self.reference(node, arguments[0], scope)
        structure = self.structure(last, arguments)
        known = known_call(last, arguments, keywords) if structure is None else structure
        if known is not None:
            return self.holding(last, known) if last in FILLING else known
        if last == LAMBDA:
            return Closure(str(node.args[0].value)) if isinstance(node.args[0], ast.Constant) else UNKNOWN
        if isinstance(held := scope.get(name), Closure):
            made = self.closure(held.text)
            if held.writes:
                forget_numbers([node.func, *node.args], [held, *arguments], scope)
            if held.writes or self.captures_others(held.text):
                return UNKNOWN
            if made is None or len(made.parameters) != len(arguments) or self.depth >= MAX_CALLS:
                return UNKNOWN
            return self.call(made, arguments, scope)
        if last in _RESHAPING or (last == "swap" and name != last):
            given = node.args[: 1 if last in _RESHAPING else 2]
            for one in (inner for outer in given for inner in ast.walk(outer) if isinstance(inner, ast.Name)):
                forget_memory(scope.get(one.id), scope, Unknown(text_of(node)))
                scope[one.id] = Unknown(text_of(node))
            return UNKNOWN
        if last == FORGET:
            forget_written(node.args, range(len(node.args)), scope)
            return UNKNOWN
        if name.startswith(("at::", "torch::")) and arguments and last.endswith(("_out", "_")):
            self.change(arguments[0])
        return self.helper(name, node, scope, arguments, keywords)

    def reference(self, node: ast.Call, held: Any, scope: dict[str, Any]) -> Any:
        """Return what a reference refers to; what may change through either of its names is unknown."""
        to, *names = node.args
        while isinstance(to, ast.Call | ast.Attribute | ast.Subscript):
            to = to.func if isinstance(to, ast.Call) else to.value
        both = {one.id for one in (to, *names) if isinstance(one, ast.Name)}
        if isinstance(to, ast.Name) and (isinstance(held, Record) or both & self.changed):
            scope[to.id] = UNKNOWN
            return UNKNOWN
        return held

    def structure(self, last: str, arguments: list[Any]) -> Any | None:
        """Return a structure that is declared, ``Shapes made;`` or ``Shapes made{}``; None if it is something else."""
        kind = last
        if last == DEFAULT and isinstance(arguments[0], Constant):
            kind = str(arguments[0].value).rpartition("::")[2]
        elif arguments not in ([], [Sizes(())]):
            return None
        members = self.constants.get(STRUCTURE + kind)
        if not isinstance(members, ast.Call):
            return None
        return Record(tuple(sorted((str(one.arg), self.value(one.value, {})) for one in members.keywords)))

    def helper(
        self, name: str, node: ast.Call, scope: dict[str, Any], arguments: list[Any], keywords: Mapping[str, Any]
    ) -> Any:
        """Return the result of a function that is looked up; one that is not found may change its arguments."""
        helper = self.lookup(name, len(arguments)) if self.depth < MAX_CALLS else None
        if helper is not None and helper.is_opaque:
            return UNKNOWN
        if helper is not None and len(helper.parameters) >= len(arguments) and not keywords:
            result = self.call(helper, arguments)
            ended = self.ended
            forget_written(node.args, helper.written, scope)
            for position in helper.written:
                one = node.args[position] if position < len(node.args) else None
                if isinstance(one, ast.Name) and one.id in scope:
                    # What the helper has made of it; a tensor, too: the helper may assign another.
                    scope[one.id] = UNKNOWN if ended is None else ended.get(helper.parameters[position][0], UNKNOWN)
            return UNKNOWN if result is RAISED else result
        if self.is_cpp and not _READS.fullmatch(name):
            forget_numbers(node.args, arguments, scope)
        return UNKNOWN

    def lambda_value(self, text: str, scope: dict[str, Any]) -> Any:
        """Return a lambda with references, after which what it may change outside of it is unknown."""
        function = lambda_of(text, "", 0)
        nodes: list[ast.stmt] = [ast.Expr(unknown(text))] if function is None else statements(function.body)
        own = declared_names(nodes) | ({p.name for p in function.parameters} if function is not None else set())
        calls = [one for part in nodes for one in ast.walk(part) if isinstance(one, ast.Call)]
        written = written_names(nodes)
        for call in calls:
            held = scope.get(called_name(call))
            written |= held.writes if isinstance(held, Closure) else set()
            if not _READS_NUMBERS.match(called_name(call)):
                passed = {one.id for one in call.args if isinstance(one, ast.Name) and one.id in scope}
                written |= {name for name in passed if not is_tensor(scope[name])}
        writes = frozenset(written - own) if "&" in text.partition("]")[0] else frozenset()
        forget_names(map(ast.Name, writes), scope)
        parameters = () if function is None else function.parameters
        by_reference = any(re.search(r"[&*]", p.type) and "const" not in p.type for p in parameters)
        return Closure(text, writes) if writes or (function is not None and not by_reference) else UNKNOWN

    def captures_others(self, text: str) -> bool:
        """Return whether a lambda may hold other values than the variables have where it is called."""
        captured, _, body = text.partition("]")
        if captured.strip() == "[&":
            return False  # It has the variables themselves.
        return re.search(r"\w\s*=", captured) is not None or any(
            re.search(rf"(?<![\w.>:]){re.escape(one)}\b", body) for one in self.changed
        )

    @staticmethod
    def closure(text: str) -> Callee | None:
        """Return a lambda as a function, or None."""
        function = lambda_of(text, "", 0)
        if function is None:
            return None
        parameters = tuple((p.name, None) for p in function.parameters)
        return Callee(parameters, statements(function.body), True)

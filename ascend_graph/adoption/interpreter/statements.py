"""Interpreter of kernels and meta functions, in C++ and Python, that follows sizes, dtypes and arguments alone.

It knows what a function certainly does: a name that is assigned in a loop, a function that it does not know, a value that
data decides are unknown, and so is everything that is made of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from ascend_graph.adoption.cpp.expressions import FORGET
from ascend_graph.adoption.interpreter.assignments import CHECKS, RAISES, AssignmentEvaluator
from ascend_graph.adoption.interpreter.calls import called_name
from ascend_graph.adoption.interpreter.conditions import choice, is_emptiness, negated, operation, truth
from ascend_graph.adoption.interpreter.evaluation import MAX_ROUNDS, NOTHING, RAISED, Callee, Outcome, TooManyStepsError
from ascend_graph.adoption.interpreter.sizes import range_of, whole_of
from ascend_graph.adoption.interpreter.values import (
    UNDEFINED,
    UNKNOWN,
    ArgumentValue,
    Constant,
    Operation,
    Property,
    Sizes,
    Unknown,
    cause_of,
)
from ascend_graph.adoption.interpreter.variables import forget_assigned

_CONTINUE = object()


def never_holds(statement: ast.stmt) -> bool:
    """Return whether a statement is ``TORCH_CHECK(false, …)``, ``AT_ERROR(…)`` or ``assert False``."""
    test: ast.expr | None = None
    if isinstance(statement, ast.Assert):
        test = statement.test
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and statement.value.args:
        call = statement.value
        if called_name(call) in RAISES:
            return True
        test = call.args[0] if isinstance(call.func, ast.Name) and call.func.id in CHECKS else None
    return isinstance(test, ast.Constant) and test.value is False


def _changed(nodes: list[ast.AST]) -> Iterator[ast.AST]:
    """Yield the names that nodes assign, or may change."""
    for one in nodes:
        if isinstance(one, ast.Name) and isinstance(getattr(one, "ctx", None), ast.Store):
            yield one
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == FORGET:
            yield from one.args


class Interpreter(AssignmentEvaluator):
    """Interpreter of one function."""

    def run(self, callee: Callee, arguments: list[Any]) -> Outcome:
        """Return the outcome of a call with these arguments; what exceeds the limits is unknown."""
        try:
            self.outcome.returned = self.call(callee, arguments)
        except (TooManyStepsError, RecursionError):
            self.outcome.returned = UNKNOWN
            self.outcome.calls.clear()
        return self.outcome

    def call(self, callee: Callee, arguments: list[Any], captured: Mapping[str, Any] | None = None) -> Any:
        scope: dict[str, Any] = dict(captured or {})
        for number, (name, default) in enumerate(callee.parameters):
            if number < len(arguments):
                scope[name] = arguments[number]
            else:
                scope[name] = UNKNOWN if default is None else self.value(default, {})
        before = self.is_cpp, self.lookup, self.constants, self.changed, self.mutated, self.decayed
        self.is_cpp, self.changed, self.mutated = callee.is_cpp, callee.changed, callee.mutated
        self.decayed = callee.decayed
        if callee.scope is not None:
            self.lookup, self.constants = callee.scope.lookup, dict(callee.scope.constants)
        self.depth += 1
        try:
            result = self.block(callee.statements, scope)
            self.ended = scope if result is NOTHING else None
        finally:
            self.depth -= 1
            self.is_cpp, self.lookup, self.constants, self.changed, self.mutated, self.decayed = before
        return Constant(None) if result is NOTHING else result

    def block(self, statements: list[ast.stmt], scope: dict[str, Any]) -> Any:
        """Return what the statements return; :data:`NOTHING` if they come to their end."""
        for number, one in enumerate(statements):
            self.step()
            if isinstance(one, ast.Return):
                return Constant(None) if one.value is None else self.value(one.value, scope)
            if isinstance(one, ast.Raise) or never_holds(one):
                return RAISED
            if isinstance(one, ast.If):
                result = self.branch(one, statements[number + 1 :], scope)
                if result is not _CONTINUE:
                    return result
            elif isinstance(one, ast.For) and (rounds := self.rounds(one, scope)) is not None:
                result = self.repeated(one, rounds, scope)
                if result is not NOTHING:
                    return result
            elif isinstance(one, ast.For) and (self.multiplied(one, scope) or self.settled(one, scope)):
                continue
            elif isinstance(one, ast.While | ast.For | ast.Try | ast.With):
                if any(isinstance(inner, ast.Return) for inner in ast.walk(one)):
                    forget_assigned(one, scope)
                    return UNKNOWN
                self.watch_inside(one, scope)
                forget_assigned(one, scope)
            else:
                self.simple(one, scope)
        return NOTHING

    def rounds(self, loop: ast.For, scope: dict[str, Any], most: int = MAX_ROUNDS) -> range | None:
        """Return the numbers that a loop counts, if they are known and few, and nothing leaves it."""
        call = loop.iter
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "range":
            return None
        bounds = [self.with_rank(self.value(one, scope)) for one in call.args]
        numbers = [one.value for one in bounds if isinstance(one, Constant) and type(one.value) is int]
        inner = [one for part in loop.body for one in ast.walk(part)]
        leaves = any(isinstance(one, ast.Break | ast.Continue) for one in inner)
        # A body that changes the number counts otherwise.
        leaves |= any(isinstance(one, ast.Name) and one.id == getattr(loop.target, "id", "") for one in _changed(inner))
        if len(numbers) != len(bounds) or not 1 <= len(numbers) <= 2 or loop.orelse or leaves:
            return None
        counted = range(*numbers)
        return counted if len(counted) <= most and isinstance(loop.target, ast.Name) else None

    def with_rank(self, value: Any) -> Any:
        """Return a number of dimensions that every call has as that number."""
        rank = self.outcome.ranks.get(value.tensor) if isinstance(value, Property) and value.what == "rank" else None
        return value if rank is None else Constant(rank)

    def multiplied(self, loop: ast.For, scope: dict[str, Any]) -> bool:
        """Run a loop that multiplies a number by items of an argument or a shape; return whether it is one."""
        step = loop.body[0] if len(loop.body) == 1 else None
        if (
            not isinstance(step, ast.Assign)
            or not isinstance(step.value, ast.BinOp)
            or not isinstance(step.value.op, ast.Mult)
        ):
            return False
        target, item = step.targets[0], step.value.right
        target = target.value if isinstance(target, ast.Starred) else target
        same = (
            isinstance(target, ast.Name) and isinstance(step.value.left, ast.Name) and target.id == step.value.left.id
        )
        if not same or not isinstance(item, ast.Subscript) or not isinstance(loop.iter, ast.Call):
            return False
        assert isinstance(target, ast.Name)
        owner = self.value(item.value, scope)
        bounds = [self.value(one, scope) for one in loop.iter.args]
        indexed = (
            isinstance(item.slice, ast.Name) and isinstance(loop.target, ast.Name) and item.slice.id == loop.target.id
        )
        factors: Any = None
        if isinstance(owner, ArgumentValue) and bounds == [Constant(0), Property(owner.name, "len")]:
            factors = owner
        elif len(bounds) == 2 and (whole := whole_of(owner)) is not None:
            items = range_of(whole, *bounds)
            factors = None if items is None else Sizes(items)
        if not indexed or factors is None:
            return False
        product, before = Operation("prod", (factors,)), scope.get(target.id)
        scope[target.id] = product if before == Constant(1) else operation("*", before, product)
        return True

    def repeated(self, loop: ast.For, rounds: range, scope: dict[str, Any]) -> Any:
        """Run a loop whose numbers are known; return what it returns."""
        assert isinstance(loop.target, ast.Name)
        runs, firsts = [self.outcome.runs], [len(self.outcome.calls)]
        for number in rounds:
            scope[loop.target.id] = Constant(number)
            result = self.block(loop.body, scope)
            if result is not NOTHING:
                return result
            firsts.append(len(self.outcome.calls))
            runs.append(self.outcome.runs)
        self.join_rounds(runs, firsts)
        return NOTHING

    def settled(self, loop: ast.For, scope: dict[str, Any]) -> bool:
        """Run a loop of many rounds, after each of which the variables are the same; return whether it is one."""
        if not self.rounds(loop, scope, most=2**31):
            return False
        assert isinstance(loop.target, ast.Name)
        inner, states = dict(scope), []
        runs, firsts = [self.outcome.runs], [len(self.outcome.calls)]
        for _ in range(2):
            inner[loop.target.id] = UNKNOWN
            result = self.block(loop.body, inner)
            firsts.append(len(self.outcome.calls))
            runs.append(self.outcome.runs)
            states.append(dict(inner))
        if result is not NOTHING or states[0] != states[1]:
            del self.outcome.calls[firsts[0] :]
            self.outcome.runs = runs[0]
            return False
        scope.update(inner)
        self.join_rounds(runs, firsts)
        return True

    def join_rounds(self, runs: list[tuple[int, int]], firsts: list[int]) -> None:
        """Count the calls of a loop's rounds as one if each round makes the tensors that it passes, but for arguments.

        Args:
            runs: Numbers of calls before the loop and after each round.
            firsts: Numbers of recorded calls before the loop and after each round.
        """
        rounds = [self.outcome.calls[start:stop] for start, stop in pairwise(firsts)]
        memory = [{one for _, values in calls for v in values for one in self.memory_of(v)} for calls in rounds]
        shared = any(isinstance(one, int) for a, b in pairwise(memory) for one in a & b)
        if len(rounds) > 1 and runs[1] != runs[0] and not shared and all(calls == rounds[0] for calls in rounds):
            del self.outcome.calls[firsts[0] : firsts[-2]]
            self.outcome.runs, self.outcome.repeats = runs[1], True

    def watch_inside(self, statement: ast.stmt, scope: dict[str, Any]) -> None:
        """Record watched calls in a loop, with what it assigns unknown."""
        inner = dict(scope)
        forget_assigned(statement, inner)
        for one in ast.walk(statement):
            if isinstance(one, ast.Call):
                name = self.watched(called_name(one), one)
                if name is not None:
                    least, _ = self.outcome.runs
                    self.watch(name, [self.value(a, inner) for a in one.args[1:]])
                    self.outcome.runs = least, self.outcome.runs[1] + 1  # any number of rounds

    def branch(self, one: ast.If, rest: list[ast.stmt], scope: dict[str, Any]) -> Any:
        condition = truth(self.value(one.test, scope))
        if isinstance(condition, Constant):
            result = self.block(one.body if condition.value else one.orelse, scope)
            return _CONTINUE if result is NOTHING else result
        then_scope, else_scope = dict(scope), dict(scope)
        self.conditional += 1
        before, runs = dict(self.outcome.read), self.outcome.runs
        then = self.block(one.body, then_scope)
        then_read, self.outcome.read = self.outcome.read, dict(before)
        then_runs, self.outcome.runs = self.outcome.runs, runs
        otherwise = self.block(one.orelse, else_scope)
        self.conditional -= 1
        self.merge_reads(then_read, then is RAISED, otherwise is RAISED, then_scope, else_scope)
        if then is RAISED or otherwise is RAISED:
            # What raises does not return: the other branch is the function.
            taken, result = (else_scope, otherwise) if then is RAISED else (then_scope, then)
            if then is RAISED and otherwise is RAISED:
                return RAISED
            scope.clear()
            scope.update(taken)
            if then is RAISED:
                self.learn(negated(condition))
            else:
                self.outcome.runs = then_runs
            return _CONTINUE if result is NOTHING else result
        if then is NOTHING and otherwise is NOTHING:
            for name in {*then_scope, *else_scope}:
                scope[name] = self.merged(condition, then_scope.get(name, UNKNOWN), else_scope.get(name, UNKNOWN))
            self.merge_runs(condition, then_runs, self.outcome.runs)
            return _CONTINUE
        self.conditional += 1
        before, else_runs = dict(self.outcome.read), self.outcome.runs
        if then is NOTHING:
            self.outcome.runs = then_runs
            then = self.block(rest, then_scope)
            then_runs = self.outcome.runs
        elif otherwise is NOTHING:
            otherwise = self.block(rest, else_scope)
            else_runs = self.outcome.runs
        self.conditional -= 1
        if then is not RAISED and otherwise is not RAISED:
            self.outcome.read = before
            self.merge_runs(condition, then_runs, else_runs)
        if then is RAISED:
            self.outcome.runs = else_runs
            return otherwise
        if otherwise is RAISED:
            self.outcome.runs = then_runs
            return then
        then = Constant(None) if then is NOTHING else then
        otherwise = Constant(None) if otherwise is NOTHING else otherwise
        return self.merged(condition, then, otherwise)

    def merge_runs(self, condition: Any, then: tuple[int, int], otherwise: tuple[int, int]) -> None:
        """Keep the numbers of calls of both branches; a branch for empty tensors has nothing to compute."""
        if is_emptiness(condition) and not then[1]:
            then = otherwise
        if is_emptiness(negated(condition)) and not otherwise[1]:
            otherwise = then
        self.outcome.runs = min(then[0], otherwise[0]), max(then[1], otherwise[1])

    def merged(self, condition: Any, then: Any, otherwise: Any) -> Any:
        """Return the value of a variable, or of a function, after a branch."""
        made = choice(condition, then, otherwise)
        if isinstance(made, Unknown) and not made.cause:
            return Unknown(cause_of(then) or cause_of(otherwise) or cause_of(condition))
        return made

    def merge_reads(
        self,
        then_read: dict[str, int],
        then_raises: bool,
        else_raises: bool,
        then_scope: dict[str, Any],
        else_scope: dict[str, Any],
    ) -> None:
        """Keep the reads of both branches; one that raises, or leaves a variable undefined, is not taken by valid calls."""
        names = {*then_scope} & {*else_scope}
        then_bad = then_raises or any(then_scope[n] == UNDEFINED and else_scope[n] != UNDEFINED for n in names)
        else_bad = else_raises or any(else_scope[n] == UNDEFINED and then_scope[n] != UNDEFINED for n in names)
        else_read = self.outcome.read
        if then_bad and not else_bad:
            return
        if else_bad and not then_bad:
            self.outcome.read = then_read
            return
        self.outcome.read = {
            tensor: min(then_read[tensor], else_read[tensor]) for tensor in then_read if tensor in else_read
        }

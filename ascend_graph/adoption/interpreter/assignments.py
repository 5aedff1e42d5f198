"""Statements without control flow: assignments, appends to vectors, and checks."""

from __future__ import annotations

import ast
from typing import Any

from ascend_graph.adoption.cpp.expressions import APPEND_RANGE, SET_ITEM
from ascend_graph.adoption.interpreter.calls import called_name
from ascend_graph.adoption.interpreter.conditions import operation
from ascend_graph.adoption.interpreter.evaluation import MAX_NODES, MAX_ROUNDS
from ascend_graph.adoption.interpreter.expressions import ExpressionEvaluator
from ascend_graph.adoption.interpreter.names import text_of
from ascend_graph.adoption.interpreter.sizes import from_end, length, range_of, unpacked, whole_of
from ascend_graph.adoption.interpreter.tensors import is_tensor
from ascend_graph.adoption.interpreter.values import (
    UNKNOWN,
    ArgumentValue,
    Assembled,
    Constant,
    Element,
    Input,
    NewTensor,
    Operation,
    Property,
    Record,
    Repeated,
    Several,
    SizeRun,
    Sizes,
    SizeValue,
    Slice,
    Unknown,
    is_known,
    node_count,
)
from ascend_graph.adoption.interpreter.variables import forget_memory, forget_names, forget_numbers, is_array

#: Functions that raise if their first argument is false.
CHECKS = frozenset(
    {
        "TORCH_CHECK", "TORCH_CHECK_EQ", "_check", "TORCH_INTERNAL_ASSERT", "CHECK", "ASSERT", "TORCH_CHECK_NOT_IMPLEMENTED",
        "TORCH_CHECK_VALUE", "TORCH_CHECK_TYPE", "TORCH_CHECK_INDEX", "TORCH_CHECK_LINALG", "AT_ASSERT", "AT_ASSERTM",
    }
)  # fmt: skip
#: Functions that raise whatever their arguments are.
RAISES = frozenset({"AT_ERROR", "C10_THROW_ERROR", "std::abort", "std::terminate", "std::rethrow_exception"})


def updated_name(statement: ast.Assign | ast.AugAssign) -> str:
    """Return the variable of ``y += n``, which C++ has as an assignment of ``y + n`` to what y refers to; or nothing."""
    if isinstance(statement, ast.AugAssign):
        return statement.target.id if isinstance(statement.target, ast.Name) else ""
    target, value = statement.targets[0], statement.value
    stored = target.value if isinstance(target, ast.Starred) else None
    left = value.left if isinstance(value, ast.BinOp) else None
    same = isinstance(stored, ast.Name) and isinstance(left, ast.Name) and stored.id == left.id
    return stored.id if same else ""  # type: ignore[union-attr]


class AssignmentEvaluator(ExpressionEvaluator):
    """Evaluator of statements without control flow."""

    def simple(self, one: ast.stmt, scope: dict[str, Any]) -> None:
        if isinstance(one, ast.Assign | ast.AugAssign) and (name := updated_name(one)) and is_tensor(scope.get(name)):
            self.change(scope[name])
        elif isinstance(one, ast.Assign):
            value = self.value(one.value, scope)
            if not self.is_cpp and isinstance(one.value, ast.Name) and isinstance(value, Sizes | Several | Assembled):
                value = self.other_name(one, value, scope)
            for target in one.targets:
                decays = is_array(one.value) and isinstance(target, ast.Name) and target.id in self.decayed
                self.assign(target, UNKNOWN if decays else value, scope)
        elif isinstance(one, ast.AnnAssign):
            if one.value is not None:
                self.assign(one.target, self.value(one.value, scope), scope)
        elif isinstance(one, ast.AugAssign):
            made = self.value(ast.BinOp(one.target, one.op, one.value), scope)
            self.assign(one.target, made, scope)
        elif isinstance(one, ast.Assert):
            self.learn(self.value(one.test, scope))
        elif isinstance(one, ast.Delete):
            forget_names([inner for inner in ast.walk(one) if isinstance(inner, ast.Name)], scope)
        elif isinstance(one, ast.FunctionDef):
            outer = [
                name for inner in ast.walk(one) if isinstance(inner, ast.Nonlocal | ast.Global) for name in inner.names
            ]
            forget_names([ast.Name(name) for name in outer], scope)
        elif isinstance(one, ast.Expr):
            self.expression_statement(one.value, scope)

    def other_name(self, one: ast.Assign, value: Any, scope: dict[str, Any]) -> Any:
        """Return the value of ``t = s``: unknown, as ``s`` is, if the list is changed in place under either name."""
        names = [
            inner for outer in (one.value, *one.targets) for inner in ast.walk(outer) if isinstance(inner, ast.Name)
        ]
        if not {inner.id for inner in names} & self.mutated:
            return value
        forget_names(names, scope)
        return UNKNOWN

    def expression_statement(self, value: ast.expr, scope: dict[str, Any]) -> None:
        if not isinstance(value, ast.Call):
            return
        name = called_name(value)
        if name == APPEND_RANGE:
            self.append_range(value, scope)
        elif name == SET_ITEM:
            self.set_item(value, scope)
        elif name.rpartition("::")[2] in CHECKS or name.endswith("_check"):
            if value.args:
                self.learn(self.value(value.args[0], scope))
        elif isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Name):
            self.method_statement(value, value.func, value.func.value.id, scope)
        else:
            self.value(value, scope)

    def method_statement(self, call: ast.Call, function: ast.Attribute, name: str, scope: dict[str, Any]) -> None:
        held = scope.get(name, UNKNOWN)
        arguments = [self.value(one, scope) for one in call.args]
        if function.attr in ("push_back", "emplace_back", "append") and len(arguments) == 1:
            scope[name] = self.with_item(held, arguments[0])
        elif function.attr in ("reserve", "clear") and isinstance(held, Sizes):
            scope[name] = Sizes(()) if function.attr == "clear" else held
        elif function.attr.endswith("_") or isinstance(held, Input | ArgumentValue | NewTensor | Element):
            self.value(call, scope)  # writes values, not sizes
            if function.attr in ("resize_", "set_", "unsqueeze_", "squeeze_", "transpose_", "t_", "swap", "swap_"):
                forget_memory(held, scope, Unknown(text_of(call)))
                scope[name] = Unknown(text_of(call))
        else:
            if name in scope:
                scope[name] = UNKNOWN
            if self.is_cpp:
                forget_numbers(call.args, arguments, scope)

    @staticmethod
    def with_item(held: Any, item: Any) -> Any:
        """Return a list with one more item."""
        if isinstance(held, Sizes) and not is_tensor(item):
            return Sizes((*held.items, item))
        return Several((*held.items, item)) if isinstance(held, Several) or held == Sizes(()) else UNKNOWN

    def set_item(self, call: ast.Call, scope: dict[str, Any]) -> None:
        target, index, value = call.args
        assert isinstance(target, ast.Name)
        held, position, made = scope.get(target.id), self.value(index, scope), self.value(value, scope)
        number = position.value if isinstance(position, Constant) else None
        if number is None and isinstance(held, Sizes) and len(held.items) == 1 and isinstance(held.items[0], Slice):
            number = from_end(position, held.items[0].tensor)  # v[x.dim() - 1]
        if isinstance(held, Input | NewTensor):
            self.change(held)
            return  # values of a tensor
        if number is None and is_known(position) and is_known(made) and isinstance(whole := whole_of(held), str):
            after = SizeRun(whole, operation("+", position, Constant(1)), None)
            scope[target.id] = Assembled((SizeRun(whole, Constant(0), position), made, after))
            return
        if not isinstance(held, Sizes) or not isinstance(number, int) or isinstance(made, Unknown):
            scope[target.id] = UNKNOWN
            return
        items = list(held.items)
        if not any(isinstance(one, Slice) for one in items) and -len(items) <= number < len(items):
            items[number] = made
        elif number == -1 and items and isinstance(items[-1], Slice) and (items[-1].stop or 0) <= 0:
            last = items[-1]
            items[-1:] = [Slice(last.tensor, last.start, (last.stop or 0) - 1), made]
        elif number == -1 and items and not isinstance(items[-1], Slice):
            items[-1] = made
        elif number >= 0 and (whole := whole_of(held)) is not None:
            items = [*(SizeValue(whole, n) for n in range(number)), made, Slice(whole, number + 1)]
            self.outcome.read[whole] = max(number + 1, self.outcome.read.get(whole, 0))
        else:
            scope[target.id] = UNKNOWN
            return
        scope[target.id] = Sizes(tuple(items))

    def append_range(self, call: ast.Call, scope: dict[str, Any]) -> None:
        variable, start, stop, *appended = call.args
        assert isinstance(variable, ast.Constant)
        first, last = self.value(start, scope), self.value(stop, scope)
        bounds = [one.value for one in (first, last) if isinstance(one, Constant) and type(one.value) is int]
        if len(bounds) == 2 and 0 < bounds[1] - bounds[0] <= MAX_ROUNDS:
            hidden = scope.get(str(variable.value))
            for number in range(*bounds):
                scope[str(variable.value)] = Constant(number)
                for one in appended:
                    assert isinstance(one, ast.Tuple)
                    assert isinstance(one.elts[0], ast.Name)
                    scope[one.elts[0].id] = self.with_item(
                        scope.get(one.elts[0].id, UNKNOWN), self.value(one.elts[1], scope)
                    )
            scope[str(variable.value)] = UNKNOWN if hidden is None else hidden
            return
        for one in appended:
            assert isinstance(one, ast.Tuple)
            target = one.elts[0]
            assert isinstance(target, ast.Name)
            held = scope.get(target.id, UNKNOWN)
            scope[target.id] = self.appended(held, one.elts[1], str(variable.value), (first, last), scope)

    def appended(
        self, held: Any, value: ast.expr, variable: str, bounds: tuple[Any, Any], scope: dict[str, Any]
    ) -> Any:
        """Return sizes to which a loop appends ``value`` for each number between the bounds."""
        first, last = bounds
        tensor = self.indexed_tensor(value, variable, scope)
        items = range_of(tensor, first, last) if tensor is not None else None
        if tensor is None:
            items = self.indexed_items(value, variable, first, last, scope)
        before = held.items if isinstance(held, Sizes) else held.parts if isinstance(held, Assembled) else None
        if before is None:
            return UNKNOWN
        if items is not None:
            return type(held)((*before, *items))
        if not is_known(first) or not is_known(last):
            return UNKNOWN
        if tensor is not None:
            return Assembled((*before, SizeRun(tensor, first, last)))
        if any(isinstance(one, ast.Name) and one.id == variable for one in ast.walk(value)):
            return UNKNOWN
        item = self.value(value, scope)
        return (
            Assembled((*before, Repeated(item, last if first == Constant(0) else operation("-", last, first))))
            if is_known(item)
            else UNKNOWN
        )

    def indexed_items(
        self, value: ast.expr, variable: str, first: Any, last: Any, scope: dict[str, Any]
    ) -> tuple[Any, ...] | None:
        """Return the items of ``sizes[i]`` for all ``i`` of a range, or None."""
        if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Name) or value.slice.id != variable:
            return None
        owner = self.value(value.value, scope)
        if not isinstance(owner, Sizes) or first != Constant(0) or last != length(owner):
            return None
        return owner.items

    def indexed_tensor(self, value: ast.expr, variable: str, scope: dict[str, Any]) -> str | None:
        """Return the argument of ``x.size(i)`` or ``x.sizes()[i]``, or None."""
        owner: ast.expr
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr in ("size", "sym_size")
        ):
            owner, index = value.func.value, value.args[0] if value.args else value
        elif isinstance(value, ast.Subscript):
            owner, index = value.value, value.slice
        else:
            return None
        if not isinstance(index, ast.Name) or index.id != variable:
            return None
        found = self.value(owner, scope)
        if (
            isinstance(found, Sizes)
            and len(found.items) == 1
            and found.items[0] == Slice(getattr(found.items[0], "tensor", ""))
        ):
            return str(found.items[0].tensor)
        return found.name if isinstance(found, Input) else None

    def assign(self, target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
        if isinstance(target, ast.Starred) and self.is_cpp:
            target = target.value  # a store through a name; see :meth:`reference` for what else it changes
        if isinstance(target, ast.Name):
            scope[target.id] = value if node_count(value) <= MAX_NODES else UNKNOWN
            if isinstance(value, SizeValue) and self.depth == 1 and not self.conditional:
                self.outcome.hints.setdefault(value, target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            items = unpacked(value, len(target.elts))
            for one, item in zip(target.elts, items, strict=True):
                self.assign(one, item, scope)
        elif isinstance(target, ast.Attribute) and isinstance(self.value(target.value, scope), Record):
            held = self.value(target.value, scope)
            self.assign(target.value, held.replaced(target.attr, value), scope)
        else:
            root = target
            while isinstance(root, ast.Attribute | ast.Subscript | ast.Starred):
                root = root.value
            if isinstance(root, ast.Name) and not isinstance(scope.get(root.id), Input | NewTensor):
                scope[root.id] = UNKNOWN

    def learn(self, condition: Any) -> None:
        """Take the ranks from a condition that holds in every call."""
        if self.conditional:
            return
        if isinstance(condition, Operation) and condition.operator == "and":
            for one in condition.operands:
                self.learn(one)
        elif isinstance(condition, Operation) and condition.operator == "==":
            for left, right in (condition.operands, condition.operands[::-1]):
                known = isinstance(right, Constant) and isinstance(right.value, int)
                if known and isinstance(left, Property) and left.what == "rank":
                    self.outcome.ranks.setdefault(left.tensor, right.value)

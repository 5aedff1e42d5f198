"""Values of expressions, in the scope of a function."""

from __future__ import annotations

import ast
from typing import Any

from ascend_graph.adoption.cpp.expressions import unread_text
from ascend_graph.adoption.interpreter.calls import CallEvaluator
from ascend_graph.adoption.interpreter.conditions import (
    choice,
    combined,
    compared,
    is_below_zero,
    is_condition,
    negated,
    operation,
    quotient,
    truth,
)
from ascend_graph.adoption.interpreter.evaluation import MAX_NODES
from ascend_graph.adoption.interpreter.mappings import MapEntry, found_value, map_compared, pairs_of
from ascend_graph.adoption.interpreter.members import member
from ascend_graph.adoption.interpreter.names import named_constant, text_of, torch_dtype
from ascend_graph.adoption.interpreter.sizes import SizesIterator, cut, item_of
from ascend_graph.adoption.interpreter.tensors import is_tensor
from ascend_graph.adoption.interpreter.values import (
    UNDEFINED,
    UNKNOWN,
    Choice,
    Constant,
    Input,
    NewTensor,
    Several,
    Sizes,
    SizeValue,
    Unknown,
    cause_of,
    node_count,
)

_COMPARISONS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "==", ast.IsNot: "!=",
}  # fmt: skip
_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Div: "/"}


class ExpressionEvaluator(CallEvaluator):
    """Evaluator of expressions."""

    def value(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        self.step()
        outer, self.cause = self.cause, ""
        made = self.evaluated(node, scope)
        if isinstance(made, Unknown):
            made = Unknown(made.cause or self.cause or text_of(node))
        # The innermost expression that is not understood is the one to name.
        self.cause = outer or cause_of(made)
        if isinstance(made, SizeValue) and isinstance(node, ast.Call | ast.Subscript):
            needed = made.axis + 1 if made.axis >= 0 else -made.axis
            self.outcome.read[made.tensor] = max(needed, self.outcome.read.get(made.tensor, 0))
        return made if node_count(made) <= MAX_NODES else UNKNOWN

    def evaluated(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        if (text := unread_text(node)).startswith("["):
            return self.lambda_value(text, scope)
        if isinstance(node, ast.Constant):
            return Constant(node.value) if isinstance(node.value, int | float | str | bool | None) else UNKNOWN
        if isinstance(node, ast.Name):
            return self.named(node.id, scope)
        if isinstance(node, ast.Attribute):
            return self.attribute(node, scope)
        if isinstance(node, ast.Call):
            return self.called(node, scope)
        if isinstance(node, ast.List | ast.Tuple):
            return self.listed(node, scope)
        if isinstance(node, ast.Subscript):
            return self.subscript(node, scope)
        if isinstance(node, ast.BinOp):
            return self.binary(node, scope)
        if isinstance(node, ast.UnaryOp):
            inner = self.value(node.operand, scope)
            if isinstance(node.op, ast.USub):
                if isinstance(inner, Constant) and isinstance(inner.value, int | float):
                    return Constant(-inner.value)
                return operation("-", Constant(0), inner)
            return negated(truth(inner)) if isinstance(node.op, ast.Not) else UNKNOWN
        if isinstance(node, ast.BoolOp):
            values = [self.value(node.values[0], scope), *(self.unsure(one, scope) for one in node.values[1:])]
            if not self.is_cpp and not all(map(is_condition, values)):
                return UNKNOWN  # n or 4 is a number
            parts = list(map(truth, values))
            return combined("and" if isinstance(node.op, ast.And) else "or", parts)
        if isinstance(node, ast.Compare):
            return self.compared(node, scope)
        if isinstance(node, ast.IfExp):
            condition = truth(self.value(node.test, scope))
            then, otherwise = self.unsure(node.body, scope), self.unsure(node.orelse, scope)
            return choice(condition, then, otherwise)
        return UNKNOWN

    def unsure(self, node: ast.expr, scope: dict[str, Any]) -> Any:
        """Return the value of an expression that is evaluated in some calls only."""
        before = dict(self.outcome.read)
        self.conditional += 1
        try:
            return self.value(node, scope)
        finally:
            self.conditional -= 1
            self.outcome.read = before

    def named(self, name: str, scope: dict[str, Any]) -> Any:
        if name in scope:
            return UNKNOWN if scope[name] == UNDEFINED else scope[name]
        known = named_constant(name)
        if known is not None:
            return known
        found = self.constants.get(name, self.constants.get(name.rpartition("::")[2], UNKNOWN))
        return self.value(found, {}) if isinstance(found, ast.expr) else found

    def attribute(self, node: ast.Attribute, scope: dict[str, Any]) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id == "torch" and "torch" not in scope:
            return torch_dtype(node.attr)
        owner = self.value(node.value, scope)
        if node.attr in ("first", "second") and isinstance(owner, Several):
            return item_of(owner, Constant(0 if node.attr == "first" else 1))
        return member(owner, node.attr)

    def listed(self, node: ast.List | ast.Tuple, scope: dict[str, Any]) -> Any:
        items: list[Any] = []
        for one in node.elts:
            if isinstance(one, ast.Starred):
                inner = self.value(one.value, scope)
                if not isinstance(inner, Sizes):
                    return UNKNOWN
                items += inner.items
            else:
                items.append(self.value(one, scope))
        if any(isinstance(one, NewTensor | Input) or (isinstance(one, Choice) and is_tensor(one)) for one in items):
            return Several(tuple(items))
        if self.is_cpp and len(items) == 1 and isinstance(items[0], Sizes):
            return items[0]  # {sizes} is a copy
        return Sizes(tuple(items))

    def subscript(self, node: ast.Subscript, scope: dict[str, Any]) -> Any:
        owner = self.value(node.value, scope)
        if isinstance(node.slice, ast.Slice):
            bounds = [None if one is None else self.value(one, scope) for one in (node.slice.lower, node.slice.upper)]
            if node.slice.step is not None or not isinstance(owner, Sizes):
                return UNKNOWN
            return cut(owner, bounds[0], bounds[1])
        index = self.value(node.slice, scope)
        pairs = pairs_of(owner) if self.is_cpp else None
        if pairs is not None and not isinstance(index, Constant | Unknown):
            return found_value(MapEntry(pairs, index))
        return item_of(owner, index)

    def binary(self, node: ast.BinOp, scope: dict[str, Any]) -> Any:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        operator = _ARITHMETIC.get(type(node.op))
        if operator == "+" and isinstance(left, Sizes) and isinstance(right, Sizes):
            return Sizes((*left.items, *right.items))
        if operator in ("+", "-") and isinstance(left, SizesIterator):
            # From the begin on, or back from the end.
            forward = left.offset == 0 and left.is_end == (operator == "-")
            return SizesIterator(left.sizes, right, left.is_end) if forward else UNKNOWN
        if operator in ("//", "%") and self.is_cpp and is_below_zero(left, right):
            return quotient(left, right) if operator == "//" else UNKNOWN
        if operator is None or (operator == "/"):
            return UNKNOWN
        return operation(operator, left, right)

    def compared(self, node: ast.Compare, scope: dict[str, Any]) -> Any:
        if len(node.ops) != 1:
            return UNKNOWN
        left, right = self.value(node.left, scope), self.value(node.comparators[0], scope)
        if isinstance(node.ops[0], ast.In | ast.NotIn):
            items = right.items if isinstance(right, Sizes | Several) else ()
            found = combined("or", [compared("==", left, one) for one in items]) if items else UNKNOWN
            return found if isinstance(node.ops[0], ast.In) else negated(found)
        operator = _COMPARISONS.get(type(node.ops[0]))
        if operator is None:
            return UNKNOWN
        held = map_compared(operator, left, right)
        return compared(operator, left, right) if held is None else held

"""Closures for the nodes of a form: the part of the compiler that inputs and outputs share."""

from __future__ import annotations

import operator as operators
from collections.abc import Callable
from typing import Any

from ascend_graph.shapes.arithmetic import (
    among,
    extreme,
    item_of,
    negated,
    part_of,
    position_of,
    product,
    reshape,
    show,
    total,
    within,
)
from ascend_graph.shapes.backends.program import (
    Env,
    T,
    Value,
    always,
    constant_of,
    known_condition,
    slot_of,
    slot_value,
)
from ascend_graph.shapes.backends.python_dtypes import DtypeScope
from ascend_graph.shapes.errors import RelationError, ShapeError
from ascend_graph.shapes.form import ExpressionKind, ExpressionNode, Op, below

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operators.eq,
    "!=": operators.ne,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
    "in": among,
    "is": operators.is_,
}
_ARITHMETIC: dict[Op, Callable[[Any, Any], Any]] = {
    Op.ADD: operators.add,
    Op.SUBTRACT: operators.sub,
    Op.MULTIPLY: operators.mul,
    Op.FLOOR_DIVIDE: operators.floordiv,
    Op.MODULO: operators.mod,
    Op.CEIL_DIVIDE: lambda a, b: -(-a // b),
}
_DIVISIONS = frozenset({Op.FLOOR_DIVIDE, Op.MODULO, Op.CEIL_DIVIDE})
#: Operations that check something when evaluated; a condition may guard them, so they must not run too early.
_DEMANDING = _DIVISIONS | {Op.RESHAPE}
_EXTREMES = {Op.MINIMUM: "min", Op.MAXIMUM: "max", Op.SMALLEST: "min", Op.LARGEST: "max"}


class Scope(DtypeScope[T]):
    """Scope of a run: the slots of a form's names, and closures that compute its nodes from them."""

    # ----------------------------------------------------------------------------------------------------------- nodes

    def value(self, node: ExpressionNode) -> Value:
        """Return a closure for a node: an integer, a list, a condition, a dtype or an attr's value, by its kind."""
        match node.op:
            case Op.CHOICE:
                return self.choice(node)
            case Op.REFUSED:
                return self.refused(node)
            case Op.INTEGER | Op.ALWAYS | Op.TEXT:
                return always(node.value)
            case Op.NOTHING | Op.OTHER_AXES:
                return always(None)
            case Op.DIMENSION | Op.GROUP:
                return self.named(str(node.value))
            case Op.ATTR:
                return slot_value(self.attrs[str(node.value)])
            case Op.INDEX:
                return slot_value(self.index(str(node.value)))
            case Op.ELLIPSIS:
                return self.leading()
        if node.kind is ExpressionKind.BOOL:
            return self.condition(node)
        if node.kind is ExpressionKind.DTYPE:
            return self.dtype(node)
        return self.sizes(node) if node.kind is ExpressionKind.SIZES else self.computed(node)

    def number(self, node: ExpressionNode) -> Value:
        """Return a closure for a node as an integer; a condition gives 1 or 0."""
        value = self.value(node)
        if node.kind is not ExpressionKind.BOOL:
            return value
        constant = constant_of(value)
        return (lambda env: int(bool(value(env)))) if constant is None else always(int(constant))

    def computed(self, node: ExpressionNode) -> Value:
        """Return a closure for a computed number."""
        if node.op in _ARITHMETIC:
            return self.arithmetic(node)
        match node.op:
            case Op.FROM_CONDITION:
                return self.number(node.args[0])
            case Op.RANK | Op.ELEMENTS:
                return self.measured(node)
            case Op.NEGATE:
                inner = self.number(node.args[0])
                return lambda env: within(-inner(env), node)
            case Op.MINIMUM | Op.MAXIMUM:
                function, numbers = _EXTREMES[node.op], [self.number(a) for a in node.args]
                return lambda env: extreme(function, [number(env) for number in numbers])
            case Op.ITEM:
                return self.item(node)
        items = self.value(node.args[0])
        match node.op:
            case Op.LENGTH:
                return lambda env: len(items(env))
            case Op.PRODUCT:
                return lambda env: product(items(env), node)
            case Op.SUM:
                return lambda env: total(items(env), node)
            case Op.SMALLEST | Op.LARGEST:
                return self.extreme(_EXTREMES[node.op], items, node)
            case Op.POSITION:
                wanted = self.number(node.args[1])
                return lambda env: position_of(items(env), wanted(env), node)
        raise AssertionError(node.op)

    def item(self, node: ExpressionNode) -> Value:
        items, at = self.value(node.args[0]), self.number(node.args[1])
        if node.args[0].kind is ExpressionKind.SIZES or node.kind is ExpressionKind.OTHER:
            return lambda env: item_of(items(env), at(env), node.args[0])

        def item(env: Env) -> Any:
            found = item_of(items(env), at(env), node.args[0])
            if found.__class__ is not int and not hasattr(found, "__sym_min__"):
                raise ShapeError(f"{node} is {show(found)}; expected an integer")
            return found

        return item

    def extreme(self, function: str, items: Value, node: ExpressionNode) -> Value:
        def found(env: Env) -> Any:
            values = items(env)
            if not values:
                raise ShapeError(f"{node}: the list is empty; expected at least one item")
            return extreme(function, values)

        return found

    def measured(self, node: ExpressionNode) -> Value:
        name = str(node.value)
        if name not in self.present:
            return self.refusal(f"{node} asks for {name}, which is absent")
        shape = self.shape_of(name)
        if node.op is Op.RANK:
            return lambda env: len(shape(env))
        return lambda env: product(shape(env), node)

    def arithmetic(self, node: ExpressionNode) -> Value:
        a, b = map(self.number, node.args)
        compute, constant, slot = _ARITHMETIC[node.op], constant_of(b), slot_of(a)
        if node.op in _DIVISIONS:
            if not constant:
                return self.division(node, a, b)
            if node.op is not Op.CEIL_DIVIDE:  # no quotient by an integer leaves the range
                return _applied(compute, a, constant, slot)
        if constant is None:
            return lambda env: within(compute(a(env), b(env)), node)
        if slot is None:
            return lambda env: within(compute(a(env), constant), node)
        return lambda env: within(compute(env[slot], constant), node)

    def division(self, node: ExpressionNode, a: Value, b: Value) -> Value:
        compute, check, right = _ARITHMETIC[node.op], self.check, node.args[1]

        def divide(env: Env) -> Any:
            dividend, divisor = a(env), b(env)
            if divisor.__class__ is not int or divisor == 0:
                check(divisor != 0, lambda: f"{node} divides by {right}, which is 0")
            return within(compute(dividend, divisor), node)

        return divide

    def sizes(self, node: ExpressionNode) -> Value:
        """Return a closure for a computed list of numbers."""
        match node.op:
            case Op.ITEMS:
                numbers = [self.number(a) for a in node.args]
                return lambda env: tuple([number(env) for number in numbers])
            case Op.ONES:
                like = self.value(node.args[0])
                return lambda env: (1,) * len(like(env))
            case Op.RANGE:
                first, as_many = self.number(node.args[0]), self.value(node.args[1])
                return lambda env: tuple(range(first(env), first(env) + len(as_many(env))))
            case Op.RESHAPE:
                source, wanted = map(self.value, node.args)
                return lambda env: reshape(source(env), wanted(env), str(node), self.check, self.decide)
            case Op.PART:
                items = self.value(node.args[0])
                start, stop = map(self.number, node.args[1:])
                return lambda env: part_of(items(env), start(env), stop(env), node)
            case Op.ELEMENT:
                lists, at = self.value(node.args[0]), self.number(node.args[1])
                return lambda env: item_of(lists(env), at(env), node.args[0])
        raise AssertionError(node.op)

    # ------------------------------------------------------------------------------------------------------ conditions

    def condition(self, node: ExpressionNode) -> Value:
        """Return a closure for a condition: True, False or a symbolic bool."""
        match node.op:
            case Op.CHOICE:
                return self.choice(node)
            case Op.REFUSED:
                return self.refused(node)
            case Op.ALWAYS:
                return always(node.value)
            case Op.PRESENT:
                return always(str(node.value) in self.present)
            case Op.TRUTH:
                return self.truth(node.args[0])
            case Op.FILLED:
                filled = self.value(node.args[0])
                return lambda env: len(filled(env)) > 0
            case Op.COMPARE:
                return self.comparison(node)
            case Op.NOT:
                inner = self.condition(node.args[0])
                known = known_condition(inner)
                return (lambda env: negated(inner(env))) if known is None else always(not known)
            case Op.AND | Op.OR:
                return self.connective(node)
            case Op.FROM_CONDITION:
                return self.condition(node.args[0])
            case Op.DIMENSION | Op.ATTR:
                return self.truth(node)
        raise AssertionError(node.op)

    def truth(self, node: ExpressionNode) -> Value:
        """Return a closure for whether a number is not 0, which may be symbolic."""
        value = self.value(node)
        if node.kind is ExpressionKind.BOOL:
            return value
        if node.kind is ExpressionKind.OTHER:
            return lambda env: bool(value(env))
        constant = constant_of(value)
        return (lambda env: value(env) != 0) if constant is None else always(constant != 0)

    def comparison(self, node: ExpressionNode) -> Value:
        a, b = map(self.value, node.args)
        compare = _COMPARE[str(node.value)]
        if all(arg.kind is ExpressionKind.SIZES for arg in node.args):

            def same(env: Env) -> Any:
                return compare(tuple(a(env)), tuple(b(env)))

            return same
        mixed = {arg.kind for arg in node.args} == {ExpressionKind.BOOL, ExpressionKind.NUMBER}

        def compared(env: Env) -> Any:
            x, y = a(env), b(env)
            if mixed:  # a symbolic size is not compared with a bool
                x, y = (int(v) if v.__class__ is bool else v for v in (x, y))
            try:
                return compare(x, y)
            except TypeError:
                raise ShapeError(
                    f"{node}: cannot compare {show(x)} with {show(y)}; expected two numbers, or two values of one type"
                ) from None

        return compared

    def connective(self, node: ExpressionNode) -> Value:
        left, right = node.args
        decisive = node.op is Op.OR
        a = self.condition(left)
        known = known_condition(a)
        if known is not None:
            return always(decisive) if known is decisive else self.condition(right)
        b = self.condition(right)
        demands = any(n.op in _DEMANDING for n in below(right))

        def connected(env: Env) -> Any:
            first = a(env)
            if demands or not hasattr(first, "__sym_not__"):
                return first if bool(first) is decisive else b(env)
            # A condition on symbolic sizes stays one, to be checked as a whole; unless the left side decides alone.
            try:
                second = b(env)
            except (ShapeError, RelationError):
                if bool(first) is decisive:
                    return first
                raise
            return first | second if decisive else first & second

        return connected


def _applied(compute: Callable[[Any, Any], Any], a: Value, constant: int, slot: int | None) -> Value:
    return (lambda env: compute(a(env), constant)) if slot is None else (lambda env: compute(env[slot], constant))

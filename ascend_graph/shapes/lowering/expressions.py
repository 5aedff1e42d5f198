"""Lowering of expressions to nodes of a form: the meaning of every name, and the kind of every expression."""

from __future__ import annotations

from dataclasses import replace

from ascend_graph.shapes.form import ExpressionKind, ExpressionNode, Op, below
from ascend_graph.shapes.lowering.expression_types import (
    ARITHMETIC_OPS,
    NUMERIC_KINDS,
    DtypeExpressions,
    always,
    choice,
    refused,
)
from ascend_graph.shapes.syntax import (
    Binary,
    Conditional,
    Expr,
    FunctionCall,
    GroupPart,
    Index,
    Literal,
    Name,
    Tuple,
    Unary,
    WhereDefinition,
)

_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_REDUCTIONS = {
    "len": Op.LENGTH,
    "prod": Op.PRODUCT,
    "sum": Op.SUM,
    "min": Op.SMALLEST,
    "max": Op.LARGEST,
}
#: Kinds of definitions that are read by name; others stand for their value.
_NAMED = (ExpressionKind.NUMBER, ExpressionKind.BOOL, ExpressionKind.SIZES)


def integer(value: int) -> ExpressionNode:
    """Return the node of an integer."""
    return ExpressionNode(Op.INTEGER, ExpressionKind.NUMBER, (), value)


class Expressions(DtypeExpressions):
    """Meaning of a relation's names for one operator, and the nodes of its expressions."""

    def definition(self, clause: WhereDefinition) -> ExpressionNode:
        kind = self.kind(clause.value)
        makers = {
            ExpressionKind.NUMBER: self.number,
            ExpressionKind.SIZES: self.sizes,
            ExpressionKind.BOOL: self.truth_value,
        }
        if kind in makers:
            return makers[kind](clause.value)
        if kind is None or not self.whole:
            raise self.beyond(f"{clause.name} = {clause.value} is neither a number, a list nor a condition")
        return self.spread(clause.value, self.anything)

    def truth_value(self, node: Expr) -> ExpressionNode:
        return ExpressionNode(Op.FROM_CONDITION, ExpressionKind.BOOL, (self.condition(node),))

    def anything(self, node: Expr) -> ExpressionNode:
        """Return the node of an expression of any kind, as Python evaluates it."""
        match node:
            case Literal(str() as text):
                return ExpressionNode(Op.TEXT, ExpressionKind.TEXT, (), text)
            case Literal(None):
                return ExpressionNode(Op.NOTHING, ExpressionKind.NONE)
            case Literal(bool() as value):
                return always(value)
            case Name(name) if name not in self.indices and self.is_attr(name):
                return ExpressionNode(Op.ATTR, self.attrs[name].kind, (), name)
            case Name(name) if name in self.defined and self.defined[name].kind not in _NAMED:
                return self.defined[name]
            case Index(name, index) if self.kind(node) is ExpressionKind.OTHER:
                return ExpressionNode(Op.ITEM, ExpressionKind.OTHER, (self.named_list(name.id), self.number(index)))
        kind = self.kind(node)
        if kind is ExpressionKind.SIZES:
            return self.sizes(node)
        if kind is ExpressionKind.DTYPE:
            return self.dtype(node)
        return self.condition(node) if kind is ExpressionKind.BOOL else self.number(node)

    def found(self, node: Expr) -> tuple[ExpressionNode, ...]:
        """Return the node of an expression that is an attr, as a tuple, for messages; empty for others."""
        plain = isinstance(node, Name) and node.id not in self.indices and self.is_attr(node.id)
        return (self.anything(node),) if plain else ()

    def number(self, node: Expr) -> ExpressionNode:
        """Return the node of an expression as an integer; a bool counts as 0 or 1."""
        return self.spread(node, self.plain_number)

    def size(self, node: Expr) -> ExpressionNode:
        """Return the node of an expression as a dimension of an output; a bool is refused."""

        def one(leaf: Expr) -> ExpressionNode:
            if self.kind(leaf) is ExpressionKind.BOOL and not (isinstance(leaf, Name) and leaf.id in self.inputs):
                return refused(ExpressionKind.NUMBER, leaf, "an integer, not a bool", *self.found(leaf))
            return self.plain_number(leaf)

        return self.spread(node, one)

    def plain_number(self, node: Expr) -> ExpressionNode:
        match node:
            case Literal(bool() | int() as value):
                return integer(int(value))
            case Name(name):
                return self.named_number(name)
            case Index(name, index):
                if self.kind(name) is ExpressionKind.SIZES or (
                    self.kind(name) is ExpressionKind.LIST and name.id not in self.many_groups
                ):
                    return ExpressionNode(
                        Op.ITEM, ExpressionKind.NUMBER, (self.named_list(name.id), self.number(index))
                    )
                return refused(ExpressionKind.NUMBER, name, "a list of integers", *self.found(name))
            case Unary("-", operand):
                return ExpressionNode(Op.NEGATE, ExpressionKind.NUMBER, (self.number(operand),))
            case Binary(operator, left, right) if operator in ARITHMETIC_OPS:
                return ExpressionNode(
                    ARITHMETIC_OPS[operator], ExpressionKind.NUMBER, (self.number(left), self.number(right))
                )
            case FunctionCall(function, arguments):
                return self.call(function, arguments, node)
            case Literal() | Tuple():
                return refused(ExpressionKind.NUMBER, node, "an integer")
            case GroupPart():
                raise self.fault(f"{node} is a list of sizes; write *{node} for its dimensions, or prod({node})")
        return ExpressionNode(Op.FROM_CONDITION, ExpressionKind.NUMBER, (self.condition(node),))

    def named_number(self, name: str) -> ExpressionNode:
        if name in self.indices:
            return ExpressionNode(Op.INDEX, ExpressionKind.NUMBER, (), name)
        if name in self.inputs:
            raise self.fault(
                f"{name} is a tensor; write rank({name}), numel({name}) or dtype({name}), or name a dimension"
            )
        kind = self.kind(Name(name))
        if kind is not ExpressionKind.NUMBER and kind is not ExpressionKind.BOOL:
            return refused(ExpressionKind.NUMBER, name, "an integer", *self.found(Name(name)))
        if self.is_attr(name):
            return ExpressionNode(Op.ATTR, kind, (), name)
        self.known(name)
        return ExpressionNode(Op.DIMENSION, kind, (), name)

    def named_list(self, name: str) -> ExpressionNode:
        if name == "...":
            if not self.ellipsis:
                raise self.fault("there is a '...' that no input has")
            return ExpressionNode(Op.ELLIPSIS, ExpressionKind.SIZES, shown=Name(name))
        if self.is_attr(name):
            return ExpressionNode(Op.ATTR, self.attrs[name].kind, (), name, Name(name))
        self.known(name)
        return ExpressionNode(
            Op.GROUP, ExpressionKind.LIST if name in self.many_groups else ExpressionKind.SIZES, (), name, Name(name)
        )

    def sizes(self, node: Expr) -> ExpressionNode:
        """Return the node of an expression as a list of numbers."""

        def one(leaf: Expr) -> ExpressionNode:
            match leaf:
                case Name(name) if self.kind(leaf) is ExpressionKind.SIZES:
                    return self.named_list(name)
                case Tuple(items):
                    return ExpressionNode(Op.ITEMS, ExpressionKind.SIZES, tuple([self.size(item) for item in items]))
                case FunctionCall("ones", (argument,)):
                    return ExpressionNode(Op.ONES, ExpressionKind.SIZES, (self.sizes(argument),))
                case FunctionCall("reshape", (source, wanted)):
                    return ExpressionNode(Op.RESHAPE, ExpressionKind.SIZES, (self.sizes(source), self.sizes(wanted)))
                case GroupPart(Name(name)) if name not in self.inputs or self.is_attr(name):
                    return self.part(leaf)
                case Index(Name(name), index) if name in self.many_groups:
                    return ExpressionNode(Op.ELEMENT, ExpressionKind.SIZES, (self.named_list(name), self.number(index)))
                case Name(name) if name in self.inputs:
                    raise self.fault(f"{name} is a tensor; expected a list of sizes")
            return refused(ExpressionKind.SIZES, leaf, "a list of sizes", *self.found(leaf))

        return self.spread(node, one)

    def part(self, node: GroupPart) -> ExpressionNode:
        name = node.name.id
        if name in self.dims and not self.is_attr(name):
            raise self.fault(
                f"{name} is one dimension, which has no parts; write *{name} in the input for a group of dimensions"
            )
        items = self.named_list(name)
        if items.kind is not ExpressionKind.SIZES:
            return refused(ExpressionKind.SIZES, node.name, "a list of integers", *self.found(node.name))
        start = integer(0) if node.start is None else self.number(node.start)
        stop = (
            ExpressionNode(Op.LENGTH, ExpressionKind.NUMBER, (items,)) if node.stop is None else self.number(node.stop)
        )
        return ExpressionNode(Op.PART, ExpressionKind.SIZES, (items, start, stop), shown=node)

    def call(self, function: str, arguments: tuple[Expr, ...], node: Expr) -> ExpressionNode:
        first = arguments[0]
        if function in ("rank", "numel"):
            if not isinstance(first, Name) or first.id not in self.inputs:
                raise self.fault(f"{function} takes an input, got {first}")
            return ExpressionNode(Op.RANK if function == "rank" else Op.ELEMENTS, ExpressionKind.NUMBER, (), first.id)
        if function == "len" and isinstance(first, Name):
            if first.id in self.inputs:
                return ExpressionNode(Op.RANK, ExpressionKind.NUMBER, (), first.id)
            if self.kind(first) is ExpressionKind.LIST:
                return ExpressionNode(Op.LENGTH, ExpressionKind.NUMBER, (self.named_list(first.id),))
        if function == "ceildiv":
            return ExpressionNode(Op.CEIL_DIVIDE, ExpressionKind.NUMBER, tuple(map(self.number, arguments)))
        if function in ("min", "max") and len(arguments) > 1:
            result = self.number(first)
            for argument in arguments[1:]:
                op = Op.MINIMUM if function == "min" else Op.MAXIMUM
                result = ExpressionNode(op, ExpressionKind.NUMBER, (result, self.number(argument)))
            return result
        if function == "index":
            wanted = arguments[1]
            if self.kind(wanted) not in (ExpressionKind.NUMBER, ExpressionKind.BOOL):
                return refused(ExpressionKind.NUMBER, f"{node}: {wanted}", "an integer", *self.found(wanted))
            return ExpressionNode(Op.POSITION, ExpressionKind.NUMBER, (self.sizes(first), self.number(wanted)))
        if function in _REDUCTIONS:
            return ExpressionNode(_REDUCTIONS[function], ExpressionKind.NUMBER, (self.sizes(first),))
        return refused(ExpressionKind.NUMBER, node, "an integer")

    # ------------------------------------------------------------------------------------------------------ conditions

    def condition(self, node: Expr) -> ExpressionNode:
        return self.showing(self.test(node), node)

    def test(self, node: Expr) -> ExpressionNode:
        settled = self.settled(node)
        if settled is not None:
            return always(settled)
        match node:
            case Literal(value):
                return always(bool(value))
            case Name(name) if name in self.inputs and name not in self.indices:
                return ExpressionNode(Op.PRESENT, ExpressionKind.BOOL, (), name)
            case Unary("not", operand):
                return ExpressionNode(Op.NOT, ExpressionKind.BOOL, (self.condition(operand),))
            case Binary(("and" | "or") as operator, left, right):
                op = Op.AND if operator == "and" else Op.OR
                return ExpressionNode(op, ExpressionKind.BOOL, (self.condition(left), self.condition(right)))
            case Conditional(then, condition, otherwise):
                return choice(self.condition(condition), self.condition(then), self.condition(otherwise))
            case Binary(("is" | "is not") as operator, left, right):
                return self.identity(operator, left, right)
            case Binary(("in" | "not in") as operator, left, right):
                among = self.among(left, right)
                return among if operator == "in" else ExpressionNode(Op.NOT, ExpressionKind.BOOL, (among,))
            case Binary(operator, left, right) if operator in _COMPARISONS:
                return self.comparison(operator, left, right, node)
            case Tuple(items):
                return always(bool(items))
        kind = self.kind(node)
        if isinstance(node, Name) and node.id in self.attrs and self.attrs[node.id].optional:
            given = ExpressionNode(Op.GIVEN, ExpressionKind.BOOL, (), node.id)
            return ExpressionNode(Op.AND, ExpressionKind.BOOL, (given, self.filled(node, kind)))
        return self.filled(node, kind)

    def filled(self, node: Expr, kind: ExpressionKind | None) -> ExpressionNode:
        if kind in (ExpressionKind.NUMBER, ExpressionKind.BOOL):
            return ExpressionNode(Op.TRUTH, ExpressionKind.BOOL, (self.number(node),))
        if kind is ExpressionKind.FLOAT and isinstance(node, Name):
            return ExpressionNode(Op.TRUTH, ExpressionKind.BOOL, (self.anything(node),))
        if kind is ExpressionKind.SIZES:
            return ExpressionNode(Op.FILLED, ExpressionKind.BOOL, (self.sizes(node),))
        if kind in (ExpressionKind.TEXT, ExpressionKind.LIST) and isinstance(node, Name):
            return ExpressionNode(Op.FILLED, ExpressionKind.BOOL, (self.anything(node),))
        if kind is ExpressionKind.OTHER and isinstance(node, Index) and self.whole:
            return ExpressionNode(Op.TRUTH, ExpressionKind.BOOL, (self.anything(node),))
        if kind is ExpressionKind.NONE:
            return always(False)
        if kind is not None and self.whole:
            return always(True)  # a dtype, or what no relation can read
        raise self.beyond(f"{node} as a condition")

    def identity(self, operator: str, left: Expr, right: Expr) -> ExpressionNode:
        if right == Literal(None) and isinstance(left, Name):
            given = always(True)
            if left.id in self.inputs:
                given = ExpressionNode(Op.PRESENT, ExpressionKind.BOOL, (), left.id)
            elif left.id in self.attrs and self.attrs[left.id].optional:
                given = ExpressionNode(Op.GIVEN, ExpressionKind.BOOL, (), left.id)
            return given if operator == "is not" else ExpressionNode(Op.NOT, ExpressionKind.BOOL, (given,))
        if self.whole:
            same = ExpressionNode(Op.COMPARE, ExpressionKind.BOOL, (self.anything(left), self.anything(right)), "is")
            return same if operator == "is" else ExpressionNode(Op.NOT, ExpressionKind.BOOL, (same,))
        raise self.beyond(f"{left} {operator} {right}: only 'is None' has one meaning everywhere")

    def among(self, left: Expr, right: Expr) -> ExpressionNode:
        if isinstance(right, Tuple):
            dtypes = self.names_dtype(left) or any(map(self.names_dtype, right.items))
            if not dtypes and _is_number(self.kind(left)) and all(_is_number(self.kind(item)) for item in right.items):
                # Python evaluates all items before it compares.
                items = ExpressionNode(
                    Op.ITEMS, ExpressionKind.SIZES, tuple(map(self.number, right.items)), shown=right
                )
                if not all(item.op in _NEVER_REFUSE for item in items.args):
                    return ExpressionNode(Op.COMPARE, ExpressionKind.BOOL, (self.number(left), items), "in")
            plain = all(isinstance(item, Literal | Name) and str(item) not in self.inputs for item in right.items)
            if not plain and not dtypes and not self.whole:
                raise self.beyond(f"{left} in {right}: an item may be refused")
            result = always(False)
            for item in reversed(right.items):
                test = self.comparison("==", left, item, Binary("==", left, item))
                result = test if result == always(False) else ExpressionNode(Op.OR, ExpressionKind.BOOL, (test, result))
            return result
        if self.kind(right) is ExpressionKind.SIZES and self.kind(left) in (ExpressionKind.NUMBER, ExpressionKind.BOOL):
            return ExpressionNode(Op.COMPARE, ExpressionKind.BOOL, (self.number(left), self.sizes(right)), "in")
        if self.whole:
            return ExpressionNode(Op.COMPARE, ExpressionKind.BOOL, (self.anything(left), self.anything(right)), "in")
        raise self.beyond(f"{left} in {right}")

    def comparison(self, operator: str, left: Expr, right: Expr, node: Expr) -> ExpressionNode:
        if self.names_dtype(left) or self.names_dtype(right):
            if operator in ("==", "!="):
                return self.compared_dtypes(operator, left, right)
            if self.whole:
                return refused(ExpressionKind.BOOL, node, "== or !=, as dtypes have no order")
            raise self.beyond(f"{left} {operator} {right} compares dtypes")

        def compare(a: Expr, b: Expr) -> ExpressionNode:
            return self.showing(self.compare(operator, a, b), node)

        return self.spread(left, lambda a: self.spread(right, lambda b: compare(a, b)))

    def compared_dtypes(self, operator: str, left: Expr, right: Expr) -> ExpressionNode:
        """Return the comparison of two dtypes; an attr that is None is equal to none."""
        sides = [side.id for side in (left, right) if isinstance(side, Name) and side.id in self.attrs]
        if any(map(self.is_none, sides)):
            return always(operator == "!=")
        same = ExpressionNode(Op.COMPARE, ExpressionKind.BOOL, (self.dtype(left), self.dtype(right)), "==")
        for name in sides:
            if self.attrs[name].optional:
                given = ExpressionNode(Op.GIVEN, ExpressionKind.BOOL, (), name)
                same = ExpressionNode(Op.AND, ExpressionKind.BOOL, (given, same))
        if same.op is Op.COMPARE:
            return replace(same, value=operator)
        return same if operator == "==" else ExpressionNode(Op.NOT, ExpressionKind.BOOL, (same,))

    def compare(self, operator: str, left: Expr, right: Expr) -> ExpressionNode:
        a, b = self.operand_of_comparison(left), self.operand_of_comparison(right)
        same = (
            (a.kind in NUMERIC_KINDS and b.kind in NUMERIC_KINDS)
            or (a.kind is ExpressionKind.TEXT and b.kind is ExpressionKind.TEXT)
            or (a.kind is ExpressionKind.SIZES and b.kind is ExpressionKind.SIZES and operator in ("==", "!="))
        )
        if not same and not self.whole:
            if not all(node.op in _NEVER_REFUSE for side in (a, b) for node in below(side)) or a.kind is b.kind:
                raise self.beyond(f"{left} {operator} {right}")
            if operator in ("==", "!="):
                return always(operator == "!=")
            return refused(ExpressionKind.BOOL, f"{left} {operator} {right}", "two values of one kind")
        return ExpressionNode(Op.COMPARE, ExpressionKind.BOOL, (a, b), operator)

    def operand_of_comparison(self, node: Expr) -> ExpressionNode:
        if not self.whole:
            if isinstance(node, Name) and node.id in self.attrs:
                if self.attrs[node.id].optional or self.kind(node) in (ExpressionKind.OTHER, ExpressionKind.DTYPE):
                    raise self.beyond(f"attr {node} in a comparison")
            elif isinstance(node, Name) and node.id in self.inputs:
                raise self.beyond(f"the presence of {node} in a comparison")
            elif self.kind(node) is ExpressionKind.DTYPE:
                raise self.beyond(f"{node} in a comparison")
        kind = self.kind(node)
        # A condition is compared as the number that it is.
        named = isinstance(node, Name) and node.id in self.attrs
        return self.number(node) if kind is ExpressionKind.BOOL and not named else self.anything(node)


#: Operations that never refuse.
_NEVER_REFUSE = frozenset(
    {Op.INTEGER, Op.ATTR, Op.TEXT, Op.NOTHING, Op.ALWAYS, Op.PRESENT, Op.COMPARE, Op.OR, Op.DTYPE}
)


def _is_number(kind: ExpressionKind | None) -> bool:
    return kind is ExpressionKind.NUMBER or kind is ExpressionKind.BOOL

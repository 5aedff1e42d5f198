"""Kinds of expressions, and nodes of dtype expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ascend_graph.shapes.dtypes import CATEGORY, other_name
from ascend_graph.shapes.errors import RelationError
from ascend_graph.shapes.form import AttrKind, ExpressionKind, ExpressionNode, Op
from ascend_graph.shapes.parsing.grammar import DTYPE_FUNCTIONS
from ascend_graph.shapes.statement import Statement, dtype_symbols
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
    bound_names,
)

#: Maximum number of nodes in a form: `or` between numbers needs its left side twice.
MAX_NODES = 20_000


ARITHMETIC_OPS = {
    "+": Op.ADD,
    "-": Op.SUBTRACT,
    "*": Op.MULTIPLY,
    "//": Op.FLOOR_DIVIDE,
    "%": Op.MODULO,
}


NUMERIC_KINDS = (ExpressionKind.NUMBER, ExpressionKind.BOOL, ExpressionKind.FLOAT)


class BeyondError(RelationError):
    """Construct that only Python evaluates, or a relation that exceeds a limit of all back ends."""


def always(value: bool) -> ExpressionNode:
    """Return the node of a known condition."""
    return ExpressionNode(Op.ALWAYS, ExpressionKind.BOOL, (), value)


def refused(kind: ExpressionKind, subject: object, expected: str, *found: ExpressionNode) -> ExpressionNode:
    """Return a node that refuses when evaluated: the subject, with the value of ``found``, should be ``expected``."""
    return ExpressionNode(Op.REFUSED, kind, found, (str(subject), expected))


class ExpressionTypes:
    """Kinds of expressions, and the errors of one relation."""

    def __init__(self, relation: Statement, attrs: Mapping[str, AttrKind], whole: bool) -> None:
        self.relation, self.attrs, self.whole = relation, attrs, whole
        self.inputs = relation.inputs
        #: The indices of inputs that are lists of tensors.
        self.lists = {t.name: t.index for t in relation.input_tensors if t.index is not None}
        self.indices = {t.index for t in (*relation.input_tensors, *relation.output_tensors)} - {None}
        self.symbols = {
            symbol: tuple(
                t.name for t in relation.input_tensors if any(a.dtype == Name(symbol) for a in t.alternatives)
            )
            for symbol in dtype_symbols(relation) - attrs.keys()
        }
        self.dims: set[str] = set()
        self.groups: set[str] = set()
        #: Groups that differ from tensor to tensor of a list.
        self.many_groups: set[str] = set()
        self.ellipsis = False
        self.defined: dict[str, ExpressionNode] = {}
        #: Sizes of inputs that are expressions, compared when everything is bound.
        self.later: list[tuple[Expr, str]] = []
        self.made = 0
        self.definitions = {c.name for c in relation.clauses if isinstance(c, WhereDefinition)}

    def fault(self, message: str) -> RelationError:
        return RelationError(f"{self.relation}: {message}")

    def beyond(self, message: str) -> BeyondError:
        return BeyondError(f"{self.relation}: {message}; this is not supported, write the relation without it")

    def is_attr(self, name: str) -> bool:
        """Return whether a name denotes an attr; an attr that is None gives way to a dimension or group of its name."""
        return name in self.attrs and not (
            self.attrs[name].kind is ExpressionKind.NONE and name in self.dims | self.groups | self.many_groups
        )

    def spread(self, node: Expr, leaf: Callable[[Expr], ExpressionNode]) -> ExpressionNode:
        """Apply ``leaf`` to an expression, or to each branch of a choice, ``or`` or ``and``."""
        match node:
            case Conditional(then, condition, otherwise):
                return choice(self.condition(condition), self.spread(then, leaf), self.spread(otherwise, leaf))
            case Binary(("or" | "and") as operator, Binary(inner, first, second), right) if inner == operator:
                # The left side stands twice below, so a chain is taken from its other end, which says the same.
                return self.spread(Binary(operator, first, Binary(operator, second, right)), leaf)
            case Binary("or", left, right) if self.kind(node) is not ExpressionKind.BOOL:
                return choice(self.condition(left), self.spread(left, leaf), self.spread(right, leaf))
            case Binary("and", left, right) if self.kind(node) is not ExpressionKind.BOOL:
                return choice(self.condition(left), self.spread(right, leaf), self.spread(left, leaf))
        result = self.showing(leaf(node), node)
        self.made += 1
        if self.made > MAX_NODES:
            raise BeyondError(f"{self.relation}: expected at most {MAX_NODES} operations")
        return result

    @staticmethod
    def showing(node: ExpressionNode, shown: Expr) -> ExpressionNode:
        return node if node.shown is not None else replace(node, shown=shown)

    def settled(self, test: Expr) -> bool | None:
        """Return a condition's value if it is the same in every call, as on an attr that is None; otherwise None."""
        match test:
            case Name(name) if self.is_none(name):
                return False
            case Unary("not", operand):
                inner = self.settled(operand)
                return None if inner is None else not inner
            case Binary(("is" | "is not") as operator, Name(name), Literal(None)) if name in self.attrs:
                none = self.attrs[name].kind is ExpressionKind.NONE
                return None if self.attrs[name].optional else none == (operator == "is")
            case Binary(("and" | "or") as operator, left, right):
                first, decisive = self.settled(left), operator == "or"
                return self.settled(right) if first is (not decisive) else first
        return None

    def is_none(self, name: str) -> bool:
        """Return whether a name denotes an attr that is None."""
        return name not in self.indices and self.is_attr(name) and self.attrs[name].kind is ExpressionKind.NONE

    def kind(self, node: Expr) -> ExpressionKind | None:
        """Return the kind of an expression; ``None`` if it differs from call to call."""
        match node:
            case Literal(bool()):
                return ExpressionKind.BOOL
            case Literal(int()):
                return ExpressionKind.NUMBER
            case Literal(str()):
                return ExpressionKind.TEXT
            case Literal():
                return ExpressionKind.NONE
            case Name("..."):
                return ExpressionKind.SIZES
            case Name(name):
                if name in self.indices:
                    return ExpressionKind.NUMBER
                if self.is_attr(name):
                    return self.attrs[name].kind
                if name in self.many_groups:
                    return ExpressionKind.LIST
                if name in self.defined:
                    return self.defined[name].kind
                return (
                    ExpressionKind.SIZES
                    if name in self.groups
                    else ExpressionKind.BOOL
                    if name in self.inputs
                    else ExpressionKind.NUMBER
                )
            case Conditional(then, condition, otherwise):
                settled = self.settled(condition)
                if settled is not None:
                    return self.kind(then if settled else otherwise)
                kind = self.kind(then)
                return kind if kind is self.kind(otherwise) else None
            case Binary(("and" | "or") as operator, left, right):
                settled = self.settled(left)
                if settled is not None:
                    return self.kind(left if settled is (operator == "or") else right)
                kind = self.kind(left)
                return kind if kind is self.kind(right) else None
            case GroupPart():
                return ExpressionKind.SIZES
            case Index(Name(name), _) if name in self.many_groups:
                return ExpressionKind.SIZES
            case Index(Name(name), _) if name in self.inputs:
                return ExpressionKind.DTYPE
            case Index(name, _) if self.kind(name) is ExpressionKind.LIST:
                return ExpressionKind.OTHER
            case Binary(operator, _, _):
                return ExpressionKind.NUMBER if operator in ARITHMETIC_OPS else ExpressionKind.BOOL
            case Unary(operator, _):
                return ExpressionKind.NUMBER if operator == "-" else ExpressionKind.BOOL
            case Tuple():
                return ExpressionKind.SIZES
            case FunctionCall(function, _) if function in DTYPE_FUNCTIONS:
                return ExpressionKind.DTYPE
            case FunctionCall(("ones" | "reshape"), _):
                return ExpressionKind.SIZES
        return ExpressionKind.NUMBER

    def known(self, name: str) -> None:
        """Raise an error for a name that gets its value only from a later input or clause."""
        if name not in self.dims | self.groups | self.many_groups | self.defined.keys():
            givers = [t.name for t in self.relation.input_tensors if name in bound_names(t)]
            raise self.fault(
                f"{name} is used before {' or '.join(givers)} gives it; write that input first"
                if givers
                else f"{name} means nothing here; expected a dimension of an input, or an attr"
            )

    def names_dtype(self, node: Expr) -> bool:
        """Return whether an expression can only be a dtype: a function that gives one, or the name of one."""
        match node:
            case FunctionCall(function, _):
                return function in DTYPE_FUNCTIONS
            case Name(name) if name in CATEGORY:
                taken = self.dims | self.groups | self.many_groups | self.defined.keys() | self.indices
                return name not in self.inputs and name not in self.attrs and name not in taken
            case Conditional(then, _, otherwise):
                return self.names_dtype(then) and self.names_dtype(otherwise)
        return False

    def condition(self, node: Expr) -> ExpressionNode:
        """Return the node of a condition."""
        raise NotImplementedError

    def number(self, node: Expr) -> ExpressionNode:
        """Return an expression as an integer; a bool counts as 0 or 1."""
        raise NotImplementedError


class DtypeExpressions(ExpressionTypes):
    """Nodes of dtype expressions."""

    def dtype(self, node: Expr) -> ExpressionNode:
        """Return the node of an expression as a dtype."""
        return self.showing(self.plain_dtype(node), node)

    def plain_dtype(self, node: Expr) -> ExpressionNode:
        match node:
            case Conditional(then, condition, otherwise):
                settled = self.settled(condition)
                if settled is not None:
                    return self.dtype(then if settled else otherwise)
                return choice(self.condition(condition), self.dtype(then), self.dtype(otherwise))
            case FunctionCall("dtype", (argument,)):
                return self.dtype(argument)
            case FunctionCall("promote", arguments):
                return self.promoted(arguments)
            case FunctionCall("floating", arguments):
                return ExpressionNode(
                    Op.FLOATING, ExpressionKind.DTYPE, (self.showing(self.promoted(arguments), node),)
                )
            case FunctionCall("integral_sum", (argument,)):
                return ExpressionNode(Op.INTEGRAL_SUM, ExpressionKind.DTYPE, (self.dtype(argument),))
            case FunctionCall("real", (argument,)):
                return ExpressionNode(Op.REAL, ExpressionKind.DTYPE, (self.dtype(argument),))
            case Name(name):
                return self.named_dtype(name)
            case Index(Name(name), index) if name in self.inputs:
                if not self.whole:
                    raise self.beyond(f"{node} is the dtype of an element of a list")
                if name not in self.lists:
                    raise self.fault(f"{node}: {name} is one tensor, not a list; write {name}")
                return ExpressionNode(Op.DTYPE_OF, ExpressionKind.DTYPE, (self.number(index),), (name,))
        raise self.fault(f"{node} is not a dtype; write the name of a dtype, an input, a dtype attr, or promote(…)")

    def dtype_of(self, *names: str) -> ExpressionNode:
        return ExpressionNode(Op.DTYPE_OF, ExpressionKind.DTYPE, (), names)

    def named_dtype(self, name: str) -> ExpressionNode:
        if name in self.inputs:
            return self.dtype_of(name)
        if name in self.attrs:
            attr = self.attrs[name]
            if attr.kind is ExpressionKind.DTYPE or attr.names_dtype or self.whole:
                return ExpressionNode(Op.DTYPE_ATTR, ExpressionKind.DTYPE, (), name)
            if attr.kind is ExpressionKind.TEXT or attr.kind is ExpressionKind.OTHER:
                raise self.beyond(f"attr {name} as a dtype")
            return refused(ExpressionKind.DTYPE, f"attr {name}", "a dtype")
        if name in self.symbols:
            return self.dtype_of(*self.symbols[name])
        if name in CATEGORY:
            return ExpressionNode(Op.DTYPE, ExpressionKind.DTYPE, (), name)
        meant = f"; write {known}" if (known := other_name(name)) else ""
        raise self.fault(
            f"{name} is not a dtype here; expected an input, an attr, or one of {', '.join(CATEGORY)}{meant}"
        )

    def promoted(self, arguments: tuple[Expr, ...]) -> ExpressionNode:
        return ExpressionNode(
            Op.PROMOTE, ExpressionKind.DTYPE, tuple([self.operand(argument) for argument in arguments])
        )

    def operand(self, node: Expr) -> ExpressionNode:
        if isinstance(node, Name) and node.id in self.inputs:
            return ExpressionNode(Op.TENSOR, ExpressionKind.DTYPE, (), node.id)
        if isinstance(node, Name) and node.id in self.attrs and node.id not in CATEGORY:
            attr = self.attrs[node.id]
            if (attr.kind in NUMERIC_KINDS and not attr.optional) or (attr.kind is ExpressionKind.OTHER and self.whole):
                return ExpressionNode(
                    Op.SCALAR, ExpressionKind.DTYPE, (ExpressionNode(Op.ATTR, attr.kind, (), node.id),)
                )
            if attr.kind is not ExpressionKind.DTYPE and not self.whole:
                raise self.beyond(f"attr {node} in a promotion")
        return self.dtype(node)


def choice(condition: ExpressionNode, then: ExpressionNode, otherwise: ExpressionNode) -> ExpressionNode:
    """Return a choice between two nodes, or the chosen node if the condition is known."""
    if condition.op is Op.ALWAYS:
        return then if condition.value else otherwise
    kind = then.kind if then.kind is otherwise.kind else ExpressionKind.NUMBER
    return ExpressionNode(Op.CHOICE, kind, (condition, then, otherwise))

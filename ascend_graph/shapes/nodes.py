"""Expressions of a relation → nodes of its form: what every name means, and what kind every expression is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ascend_graph.shapes.dtypes import CATEGORY
from ascend_graph.shapes.errors import RelationError
from ascend_graph.shapes.form import AttrKind, Kind, Node, Op, below
from ascend_graph.shapes.parser import DTYPE_FUNCTIONS
from ascend_graph.shapes.statement import Statement, dtype_symbols
from ascend_graph.shapes.syntax import (
    Binary,
    Call,
    Conditional,
    Definition,
    Expr,
    Index,
    Literal,
    Name,
    Tuple,
    Unary,
    bound_names,
)

#: A form has at most this many nodes: `or` between numbers needs its left side twice.
MAX_NODES = 20_000

_ARITHMETIC = {
    "+": Op.ADD,
    "-": Op.SUBTRACT,
    "*": Op.MULTIPLY,
    "//": Op.FLOOR_DIVIDE,
    "%": Op.MODULO,
}
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_REDUCTIONS = {
    "len": Op.LENGTH,
    "prod": Op.PRODUCT,
    "sum": Op.SUM,
    "min": Op.SMALLEST,
    "max": Op.LARGEST,
}
#: The kinds of definitions that are read by name; others stand for their value.
_NAMED = (Kind.NUMBER, Kind.BOOL, Kind.SIZES)
_NUMERIC = (Kind.NUMBER, Kind.BOOL, Kind.FLOAT)


class BeyondError(RelationError):
    """A relation says something that only Python evaluates, or more than anything evaluates."""


def integer(value: int) -> Node:
    """The node of an integer."""
    return Node(Op.INTEGER, Kind.NUMBER, (), value)


def always(value: bool) -> Node:
    """The node of a condition that is known."""
    return Node(Op.ALWAYS, Kind.BOOL, (), value)


def refused(kind: Kind, subject: object, what: str, *found: Node) -> Node:
    """A node that refuses when it is evaluated: the subject, of which ``found`` gives the value, is ``what``."""
    return Node(Op.REFUSED, kind, found, (str(subject), what))


class Expressions:
    """What the names of a relation mean for one operator, and the nodes of its expressions."""

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
        self.defined: dict[str, Node] = {}
        #: Sizes of inputs that are expressions, compared when everything is bound.
        self.later: list[tuple[Expr, str]] = []
        self.made = 0
        self.definitions = {c.name for c in relation.clauses if isinstance(c, Definition)}

    def fault(self, message: str) -> RelationError:
        return RelationError(f"{self.relation}: {message}")

    def beyond(self, message: str) -> BeyondError:
        return BeyondError(f"{self.relation}: {message}")

    def is_attr(self, name: str) -> bool:
        """Whether a name is that of an attr; one that is None is the dimension or group of its name."""
        return name in self.attrs and not (
            self.attrs[name].kind is Kind.NONE and name in self.dims | self.groups | self.many_groups
        )

    # ----------------------------------------------------------------------------------------------------- expressions

    def spread(self, node: Expr, leaf: Callable[[Expr], Node]) -> Node:
        """What ``leaf`` makes of an expression, or of each that a choice, ``or`` or ``and`` chooses from."""
        match node:
            case Conditional(then, condition, otherwise):
                return choice(self.condition(condition), self.spread(then, leaf), self.spread(otherwise, leaf))
            case Binary(("or" | "and") as operator, Binary(inner, first, second), right) if inner == operator:
                # The left side stands twice below, so a chain is taken from its other end, which says the same.
                return self.spread(Binary(operator, first, Binary(operator, second, right)), leaf)
            case Binary("or", left, right) if self.kind(node) is not Kind.BOOL:
                return choice(self.condition(left), self.spread(left, leaf), self.spread(right, leaf))
            case Binary("and", left, right) if self.kind(node) is not Kind.BOOL:
                return choice(self.condition(left), self.spread(right, leaf), self.spread(left, leaf))
        result = self.showing(leaf(node), node)
        self.made += 1
        if self.made > MAX_NODES:
            raise self.beyond(f"has more than {MAX_NODES} operations")
        return result

    @staticmethod
    def showing(node: Node, shown: Expr) -> Node:
        return node if node.shown is not None else replace(node, shown=shown)

    def settled(self, test: Expr) -> bool | None:
        """Whether a condition holds in every call, as one on an attr that is None does."""
        match test:
            case Name(name) if self.is_none(name):
                return False
            case Unary("not", operand):
                inner = self.settled(operand)
                return None if inner is None else not inner
            case Binary(("is" | "is not") as operator, Name(name), Literal(None)) if name in self.attrs:
                none = self.attrs[name].kind is Kind.NONE
                return None if self.attrs[name].optional else none == (operator == "is")
            case Binary(("and" | "or") as operator, left, right):
                first, decisive = self.settled(left), operator == "or"
                return self.settled(right) if first is (not decisive) else first
        return None

    def is_none(self, name: str) -> bool:
        """Whether a name is that of an attr that is None."""
        return name not in self.indices and self.is_attr(name) and self.attrs[name].kind is Kind.NONE

    def kind(self, node: Expr) -> Kind | None:
        """What kind an expression is; ``None`` where that differs from call to call."""
        match node:
            case Literal(bool()):
                return Kind.BOOL
            case Literal(int()):
                return Kind.NUMBER
            case Literal(str()):
                return Kind.TEXT
            case Literal():
                return Kind.NONE
            case Name("..."):
                return Kind.SIZES
            case Name(name):
                if name in self.indices:
                    return Kind.NUMBER
                if self.is_attr(name):
                    return self.attrs[name].kind
                if name in self.many_groups:
                    return Kind.LIST
                if name in self.defined:
                    return self.defined[name].kind
                return Kind.SIZES if name in self.groups else Kind.BOOL if name in self.inputs else Kind.NUMBER
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
            case Index(Name(name), _) if name in self.many_groups:
                return Kind.SIZES
            case Index(Name(name), _) if name in self.inputs:
                return Kind.DTYPE
            case Index(name, _) if self.kind(name) is Kind.LIST:
                return Kind.OTHER
            case Binary(operator, _, _):
                return Kind.NUMBER if operator in _ARITHMETIC else Kind.BOOL
            case Unary(operator, _):
                return Kind.NUMBER if operator == "-" else Kind.BOOL
            case Tuple():
                return Kind.SIZES
            case Call(function, _) if function in DTYPE_FUNCTIONS:
                return Kind.DTYPE
            case Call(("ones" | "reshape"), _):
                return Kind.SIZES
        return Kind.NUMBER

    def definition(self, clause: Definition) -> Node:
        kind = self.kind(clause.value)
        makers = {Kind.NUMBER: self.number, Kind.SIZES: self.sizes, Kind.BOOL: self.truth_value}
        if kind in makers:
            return makers[kind](clause.value)
        if kind is None or not self.whole:
            raise self.beyond(f"{clause.name} = {clause.value} is neither a number, a list nor a condition")
        return self.spread(clause.value, self.anything)

    def truth_value(self, node: Expr) -> Node:
        return Node(Op.FROM_CONDITION, Kind.BOOL, (self.condition(node),))

    def anything(self, node: Expr) -> Node:
        """An expression of any kind, as Python has it."""
        match node:
            case Literal(str() as text):
                return Node(Op.TEXT, Kind.TEXT, (), text)
            case Literal(None):
                return Node(Op.NOTHING, Kind.NONE)
            case Literal(bool() as value):
                return always(value)
            case Name(name) if name not in self.indices and self.is_attr(name):
                return Node(Op.ATTR, self.attrs[name].kind, (), name)
            case Name(name) if name in self.defined and self.defined[name].kind not in _NAMED:
                return self.defined[name]
            case Index(name, index) if self.kind(node) is Kind.OTHER:
                return Node(Op.ITEM, Kind.OTHER, (self.named_list(name.id), self.number(index)))
        kind = self.kind(node)
        if kind is Kind.SIZES:
            return self.sizes(node)
        if kind is Kind.DTYPE:
            return self.dtype(node)
        return self.condition(node) if kind is Kind.BOOL else self.number(node)

    def found(self, node: Expr) -> tuple[Node, ...]:
        """The value of an expression, if it is an attr's: for messages."""
        plain = isinstance(node, Name) and node.id not in self.indices and self.is_attr(node.id)
        return (self.anything(node),) if plain else ()

    def number(self, node: Expr) -> Node:
        """An expression as an integer; a bool counts as 0 or 1."""
        return self.spread(node, self.plain_number)

    def size(self, node: Expr) -> Node:
        """An expression as a dimension of an output; a bool is none."""

        def one(leaf: Expr) -> Node:
            if self.kind(leaf) is Kind.BOOL and not (isinstance(leaf, Name) and leaf.id in self.inputs):
                return refused(Kind.NUMBER, leaf, "a bool, not an integer", *self.found(leaf))
            return self.plain_number(leaf)

        return self.spread(node, one)

    def plain_number(self, node: Expr) -> Node:
        match node:
            case Literal(bool() | int() as value):
                return integer(int(value))
            case Name(name):
                return self.named_number(name)
            case Index(name, index):
                if self.kind(name) is Kind.SIZES or (self.kind(name) is Kind.LIST and name.id not in self.many_groups):
                    return Node(Op.ITEM, Kind.NUMBER, (self.named_list(name.id), self.number(index)))
                return refused(Kind.NUMBER, name, "not a list of integers", *self.found(name))
            case Unary("-", operand):
                return Node(Op.NEGATE, Kind.NUMBER, (self.number(operand),))
            case Binary(operator, left, right) if operator in _ARITHMETIC:
                return Node(_ARITHMETIC[operator], Kind.NUMBER, (self.number(left), self.number(right)))
            case Call(function, arguments):
                return self.call(function, arguments, node)
            case Literal() | Tuple():
                return refused(Kind.NUMBER, node, "not an integer")
        return Node(Op.FROM_CONDITION, Kind.NUMBER, (self.condition(node),))

    def named_number(self, name: str) -> Node:
        if name in self.indices:
            return Node(Op.INDEX, Kind.NUMBER, (), name)
        if name in self.inputs:
            raise self.fault(
                f"{name} is a tensor; write rank({name}), numel({name}) or dtype({name}), or name a dimension"
            )
        kind = self.kind(Name(name))
        if kind is not Kind.NUMBER and kind is not Kind.BOOL:
            return refused(Kind.NUMBER, name, "not an integer", *self.found(Name(name)))
        if self.is_attr(name):
            return Node(Op.ATTR, kind, (), name)
        self.known(name)
        return Node(Op.DIMENSION, kind, (), name)

    def known(self, name: str) -> None:
        """Refuse a name that only a later input or clause gives a value."""
        if name not in self.dims | self.groups | self.many_groups | self.defined.keys():
            givers = [t.name for t in self.relation.input_tensors if name in bound_names(t)]
            raise self.fault(
                f"{name} is used before {' or '.join(givers)} gives it" if givers else f"{name} means nothing here"
            )

    def named_list(self, name: str) -> Node:
        if name == "...":
            if not self.ellipsis:
                raise self.fault("there is a '...' that no input has")
            return Node(Op.ELLIPSIS, Kind.SIZES, shown=Name(name))
        if self.is_attr(name):
            return Node(Op.ATTR, self.attrs[name].kind, (), name, Name(name))
        self.known(name)
        return Node(Op.GROUP, Kind.LIST if name in self.many_groups else Kind.SIZES, (), name, Name(name))

    def sizes(self, node: Expr) -> Node:
        """An expression as a list of numbers."""

        def one(leaf: Expr) -> Node:
            match leaf:
                case Name(name) if self.kind(leaf) is Kind.SIZES:
                    return self.named_list(name)
                case Tuple(items):
                    return Node(Op.ITEMS, Kind.SIZES, tuple([self.size(item) for item in items]))
                case Call("ones", (argument,)):
                    return Node(Op.ONES, Kind.SIZES, (self.sizes(argument),))
                case Call("reshape", (source, wanted)):
                    return Node(Op.RESHAPE, Kind.SIZES, (self.sizes(source), self.sizes(wanted)))
                case Index(Name(name), index) if name in self.many_groups:
                    return Node(Op.ELEMENT, Kind.SIZES, (self.named_list(name), self.number(index)))
                case Name(name) if name in self.inputs:
                    raise self.fault(f"{name} is a tensor, not a list of sizes")
            return refused(Kind.SIZES, leaf, "not a list of sizes", *self.found(leaf))

        return self.spread(node, one)

    def call(self, function: str, arguments: tuple[Expr, ...], node: Expr) -> Node:
        first = arguments[0]
        if function in ("rank", "numel"):
            if not isinstance(first, Name) or first.id not in self.inputs:
                raise self.fault(f"{function} takes an input, got {first}")
            return Node(Op.RANK if function == "rank" else Op.ELEMENTS, Kind.NUMBER, (), first.id)
        if function == "len" and isinstance(first, Name):
            if first.id in self.inputs:
                return Node(Op.RANK, Kind.NUMBER, (), first.id)
            if self.kind(first) is Kind.LIST:
                return Node(Op.LENGTH, Kind.NUMBER, (self.named_list(first.id),))
        if function == "ceildiv":
            return Node(Op.CEIL_DIVIDE, Kind.NUMBER, tuple(map(self.number, arguments)))
        if function in ("min", "max") and len(arguments) > 1:
            result = self.number(first)
            for argument in arguments[1:]:
                op = Op.MINIMUM if function == "min" else Op.MAXIMUM
                result = Node(op, Kind.NUMBER, (result, self.number(argument)))
            return result
        if function == "index":
            wanted = arguments[1]
            if self.kind(wanted) not in (Kind.NUMBER, Kind.BOOL):
                return refused(Kind.NUMBER, f"{node}: {wanted}", "not an integer", *self.found(wanted))
            return Node(Op.POSITION, Kind.NUMBER, (self.sizes(first), self.number(wanted)))
        if function in _REDUCTIONS:
            return Node(_REDUCTIONS[function], Kind.NUMBER, (self.sizes(first),))
        return refused(Kind.NUMBER, node, "not an integer")

    # ------------------------------------------------------------------------------------------------------ conditions

    def condition(self, node: Expr) -> Node:
        return self.showing(self.test(node), node)

    def test(self, node: Expr) -> Node:
        settled = self.settled(node)
        if settled is not None:
            return always(settled)
        match node:
            case Literal(value):
                return always(bool(value))
            case Name(name) if name in self.inputs and name not in self.indices:
                return Node(Op.PRESENT, Kind.BOOL, (), name)
            case Unary("not", operand):
                return Node(Op.NOT, Kind.BOOL, (self.condition(operand),))
            case Binary(("and" | "or") as operator, left, right):
                op = Op.AND if operator == "and" else Op.OR
                return Node(op, Kind.BOOL, (self.condition(left), self.condition(right)))
            case Conditional(then, condition, otherwise):
                return choice(self.condition(condition), self.condition(then), self.condition(otherwise))
            case Binary(("is" | "is not") as operator, left, right):
                return self.identity(operator, left, right)
            case Binary(("in" | "not in") as operator, left, right):
                among = self.among(left, right)
                return among if operator == "in" else Node(Op.NOT, Kind.BOOL, (among,))
            case Binary(operator, left, right) if operator in _COMPARISONS:
                return self.comparison(operator, left, right, node)
            case Tuple(items):
                return always(bool(items))
        kind = self.kind(node)
        if isinstance(node, Name) and node.id in self.attrs and self.attrs[node.id].optional:
            given = Node(Op.GIVEN, Kind.BOOL, (), node.id)
            return Node(Op.AND, Kind.BOOL, (given, self.filled(node, kind)))
        return self.filled(node, kind)

    def filled(self, node: Expr, kind: Kind | None) -> Node:
        if kind in (Kind.NUMBER, Kind.BOOL):
            return Node(Op.TRUTH, Kind.BOOL, (self.number(node),))
        if kind is Kind.FLOAT and isinstance(node, Name):
            return Node(Op.TRUTH, Kind.BOOL, (self.anything(node),))
        if kind is Kind.SIZES:
            return Node(Op.FILLED, Kind.BOOL, (self.sizes(node),))
        if kind in (Kind.TEXT, Kind.LIST) and isinstance(node, Name):
            return Node(Op.FILLED, Kind.BOOL, (self.anything(node),))
        if kind is Kind.OTHER and isinstance(node, Index) and self.whole:
            return Node(Op.TRUTH, Kind.BOOL, (self.anything(node),))
        if kind is Kind.NONE:
            return always(False)
        if kind is not None and self.whole:
            return always(True)  # a dtype, or what no relation can read
        raise self.beyond(f"{node} as a condition")

    def identity(self, operator: str, left: Expr, right: Expr) -> Node:
        if right == Literal(None) and isinstance(left, Name):
            given = always(True)
            if left.id in self.inputs:
                given = Node(Op.PRESENT, Kind.BOOL, (), left.id)
            elif left.id in self.attrs and self.attrs[left.id].optional:
                given = Node(Op.GIVEN, Kind.BOOL, (), left.id)
            return given if operator == "is not" else Node(Op.NOT, Kind.BOOL, (given,))
        if self.whole:
            same = Node(Op.COMPARE, Kind.BOOL, (self.anything(left), self.anything(right)), "is")
            return same if operator == "is" else Node(Op.NOT, Kind.BOOL, (same,))
        raise self.beyond(f"{left} {operator} {right}: only 'is None' has one meaning everywhere")

    def among(self, left: Expr, right: Expr) -> Node:
        if isinstance(right, Tuple):
            if _is_number(self.kind(left)) and all(_is_number(self.kind(item)) for item in right.items):
                # Python evaluates all items before it compares.
                items = Node(Op.ITEMS, Kind.SIZES, tuple(map(self.number, right.items)), shown=right)
                if not all(item.op in _NEVER_REFUSE for item in items.args):
                    return Node(Op.COMPARE, Kind.BOOL, (self.number(left), items), "in")
            plain = all(isinstance(item, Literal | Name) and str(item) not in self.inputs for item in right.items)
            if not plain and not self.whole:
                raise self.beyond(f"{left} in {right}: an item may be refused")
            result = always(False)
            for item in reversed(right.items):
                test = self.comparison("==", left, item, Binary("==", left, item))
                result = test if result == always(False) else Node(Op.OR, Kind.BOOL, (test, result))
            return result
        if self.kind(right) is Kind.SIZES and self.kind(left) in (Kind.NUMBER, Kind.BOOL):
            return Node(Op.COMPARE, Kind.BOOL, (self.number(left), self.sizes(right)), "in")
        if self.whole:
            return Node(Op.COMPARE, Kind.BOOL, (self.anything(left), self.anything(right)), "in")
        raise self.beyond(f"{left} in {right}")

    def comparison(self, operator: str, left: Expr, right: Expr, node: Expr) -> Node:
        if _is_dtype(left) or _is_dtype(right):
            if operator in ("==", "!="):
                return Node(Op.COMPARE, Kind.BOOL, (self.dtype(left), self.dtype(right)), operator)
            if self.whole:
                return refused(Kind.BOOL, node, "no comparison that dtypes have")
            raise self.beyond(f"{left} {operator} {right} compares dtypes")

        def compare(a: Expr, b: Expr) -> Node:
            return self.showing(self.compare(operator, a, b), node)

        return self.spread(left, lambda a: self.spread(right, lambda b: compare(a, b)))

    def compare(self, operator: str, left: Expr, right: Expr) -> Node:
        a, b = self.operand_of_comparison(left), self.operand_of_comparison(right)
        same = (
            (a.kind in _NUMERIC and b.kind in _NUMERIC)
            or (a.kind is Kind.TEXT and b.kind is Kind.TEXT)
            or (a.kind is Kind.SIZES and b.kind is Kind.SIZES and operator in ("==", "!="))
        )
        if not same and not self.whole:
            if not all(node.op in _NEVER_REFUSE for side in (a, b) for node in below(side)) or a.kind is b.kind:
                raise self.beyond(f"{left} {operator} {right}")
            if operator in ("==", "!="):
                return always(operator == "!=")
            return refused(Kind.BOOL, f"{left} {operator} {right}", "no comparison of one kind")
        return Node(Op.COMPARE, Kind.BOOL, (a, b), operator)

    def operand_of_comparison(self, node: Expr) -> Node:
        if not self.whole:
            if isinstance(node, Name) and node.id in self.attrs:
                if self.attrs[node.id].optional or self.kind(node) in (Kind.OTHER, Kind.DTYPE):
                    raise self.beyond(f"attr {node} in a comparison")
            elif isinstance(node, Name) and node.id in self.inputs:
                raise self.beyond(f"the presence of {node} in a comparison")
            elif self.kind(node) is Kind.DTYPE:
                raise self.beyond(f"{node} in a comparison")
        kind = self.kind(node)
        # A condition is compared as the number that it is.
        named = isinstance(node, Name) and node.id in self.attrs
        return self.number(node) if kind is Kind.BOOL and not named else self.anything(node)

    # ---------------------------------------------------------------------------------------------------------- dtypes

    def dtype(self, node: Expr) -> Node:
        """An expression as a dtype."""
        return self.showing(self.plain_dtype(node), node)

    def plain_dtype(self, node: Expr) -> Node:
        match node:
            case Conditional(then, condition, otherwise):
                settled = self.settled(condition)
                if settled is not None:
                    return self.dtype(then if settled else otherwise)
                return choice(self.condition(condition), self.dtype(then), self.dtype(otherwise))
            case Call("dtype", (argument,)):
                return self.dtype(argument)
            case Call("promote", arguments):
                return self.promoted(arguments)
            case Call("floating", arguments):
                return Node(Op.FLOATING, Kind.DTYPE, (self.showing(self.promoted(arguments), node),))
            case Call("integral_sum", (argument,)):
                return Node(Op.INTEGRAL_SUM, Kind.DTYPE, (self.dtype(argument),))
            case Call("real", (argument,)):
                return Node(Op.REAL, Kind.DTYPE, (self.dtype(argument),))
            case Name(name):
                return self.named_dtype(name)
            case Index(Name(name), index) if name in self.inputs:
                if not self.whole:
                    raise self.beyond(f"{node} is the dtype of an element of a list")
                if name not in self.lists:
                    raise self.fault(f"{node}: {name} is one tensor, not a list")
                return Node(Op.DTYPE_OF, Kind.DTYPE, (self.number(index),), (name,))
        raise self.fault(f"{node} is no dtype; write the name of a dtype, an input, a dtype attr, or promote(…)")

    def dtype_of(self, *names: str) -> Node:
        return Node(Op.DTYPE_OF, Kind.DTYPE, (), names)

    def named_dtype(self, name: str) -> Node:
        if name in self.inputs:
            return self.dtype_of(name)
        if name in self.attrs:
            attr = self.attrs[name]
            if attr.kind is Kind.DTYPE or attr.names_dtype or self.whole:
                return Node(Op.DTYPE_ATTR, Kind.DTYPE, (), name)
            if attr.kind is Kind.TEXT or attr.kind is Kind.OTHER:
                raise self.beyond(f"attr {name} as a dtype")
            return refused(Kind.DTYPE, f"attr {name}", "no dtype")
        if name in self.symbols:
            return self.dtype_of(*self.symbols[name])
        if name in CATEGORY:
            return Node(Op.DTYPE, Kind.DTYPE, (), name)
        raise self.fault(f"{name} is no dtype here: neither an input, nor an attr, nor one of {', '.join(CATEGORY)}")

    def promoted(self, arguments: tuple[Expr, ...]) -> Node:
        return Node(Op.PROMOTE, Kind.DTYPE, tuple([self.operand(argument) for argument in arguments]))

    def operand(self, node: Expr) -> Node:
        if isinstance(node, Name) and node.id in self.inputs:
            return Node(Op.TENSOR, Kind.DTYPE, (), node.id)
        if isinstance(node, Name) and node.id in self.attrs and node.id not in CATEGORY:
            attr = self.attrs[node.id]
            if (attr.kind in _NUMERIC and not attr.optional) or (attr.kind is Kind.OTHER and self.whole):
                return Node(Op.SCALAR, Kind.DTYPE, (Node(Op.ATTR, attr.kind, (), node.id),))
            if attr.kind is not Kind.DTYPE and not self.whole:
                raise self.beyond(f"attr {node} in a promotion")
        return self.dtype(node)


#: What evaluates to something in every call.
_NEVER_REFUSE = frozenset(
    {Op.INTEGER, Op.ATTR, Op.TEXT, Op.NOTHING, Op.ALWAYS, Op.PRESENT, Op.COMPARE, Op.OR, Op.DTYPE}
)


def choice(condition: Node, then: Node, otherwise: Node) -> Node:
    """One of two nodes of one kind."""
    if condition.op is Op.ALWAYS:
        return then if condition.value else otherwise
    kind = then.kind if then.kind is otherwise.kind else Kind.NUMBER
    return Node(Op.CHOICE, kind, (condition, then, otherwise))


def _is_number(kind: Kind | None) -> bool:
    return kind is Kind.NUMBER or kind is Kind.BOOL


def _is_dtype(node: Expr) -> bool:
    return isinstance(node, Call) and node.function in DTYPE_FUNCTIONS

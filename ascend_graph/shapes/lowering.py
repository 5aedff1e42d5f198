"""Relation → :class:`Form`: what every name means, and what kind every expression is, settled for one operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ascend_graph.shapes.dtypes import CATEGORY
from ascend_graph.shapes.errors import RelationError
from ascend_graph.shapes.form import (
    Agree,
    Bind,
    CheckDtype,
    Define,
    Demand,
    Form,
    Kind,
    Leaf,
    Match,
    Node,
    Op,
    Output,
    Pattern,
    Piece,
    SameDtype,
    Step,
    below,
)
from ascend_graph.shapes.parser import DTYPE_FUNCTIONS
from ascend_graph.shapes.statement import Statement, dtype_symbols
from ascend_graph.shapes.syntax import (
    Absent,
    Binary,
    Call,
    Conditional,
    Definition,
    Dim,
    Dims,
    Ellipsis_,
    Expr,
    Group,
    Index,
    Itself,
    Like,
    Literal,
    Name,
    Shape,
    Tensor,
    Tuple,
    Unary,
    Value,
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
_NUMERIC = (Kind.NUMBER, Kind.BOOL, Kind.FLOAT)


class BeyondError(RelationError):
    """A relation says something that only Python evaluates."""


@dataclass(frozen=True, slots=True)
class AttrKind:
    """How an attr is read."""

    kind: Kind
    #: Whether it may be None.
    optional: bool = False
    #: Whether it may also name a dtype by its number.
    names_dtype: bool = False


def lower(relation: Statement, attrs: Mapping[str, AttrKind]) -> Form:
    """The form of ``relation`` for an operator with these attrs.

    Raises:
        BeyondError: It says something that only Python evaluates: lists of tensors, numbers as outputs, elements of lists.
        RelationError: It fits no call at all: a name means nothing, or a condition uses what is bound after it.
    """
    try:
        form = _Lowering(relation, attrs).form()
    except RecursionError:
        raise BeyondError(f"{relation}: nested too deep") from None
    if sum(1 for _ in form.nodes) > MAX_NODES:
        raise BeyondError(f"{relation}: has more than {MAX_NODES} operations")
    return form


def integer(value: int) -> Node:
    """The node of an integer."""
    return Node(Op.INTEGER, Kind.NUMBER, (), value)


def always(value: bool) -> Node:
    """The node of a condition that is known."""
    return Node(Op.ALWAYS, Kind.BOOL, (), value)


def refused(kind: Kind, reason: str) -> Node:
    """A node that refuses when it is evaluated."""
    return Node(Op.REFUSED, kind, (), reason)


class _Lowering:
    def __init__(self, relation: Statement, attrs: Mapping[str, AttrKind]) -> None:
        self.relation, self.attrs = relation, attrs
        self.inputs = relation.inputs
        self.symbols = {
            symbol: tuple(
                t.name for t in relation.input_tensors if any(a.dtype == Name(symbol) for a in t.alternatives)
            )
            for symbol in dtype_symbols(relation) - attrs.keys()
        }
        self.dims: set[str] = set()
        self.groups: set[str] = set()
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

    def form(self) -> Form:
        relation = self.relation
        unknown = relation.free_names - self.attrs.keys()
        if unknown:
            raise self.fault(f"{', '.join(sorted(unknown))} is neither a dimension nor an attr of the operator")
        for tensor in (*relation.input_tensors, *relation.output_tensors):
            if tensor.index is not None:
                raise self.beyond(f"{tensor.name} is a list of tensors")
        steps: list[Step] = []
        for tensor in relation.input_tensors:
            steps += self.input(tensor)
        for clause in relation.clauses:
            if isinstance(clause, Definition):
                self.defined[clause.name] = node = self.definition(clause)
                steps.append(Define(clause.name, node))
            else:
                steps.append(Demand(self.condition(clause), str(clause)))
        steps += [Agree(str(n), self.number(value), shown) for n, (value, shown) in enumerate(self.later)]
        return Form(self.inputs, tuple(steps), tuple([self.output(t) for t in relation.output_tensors]))

    # ---------------------------------------------------------------------------------------------------------- inputs

    def input(self, tensor: Tensor) -> list[Step]:
        before, patterns = (set(self.dims), set(self.groups)), []
        after = (set(self.dims), set(self.groups))
        for alternative in tensor.alternatives:
            self.dims, self.groups = set(before[0]), set(before[1])
            condition = None if alternative.condition is None else self.condition(alternative.condition)
            items = None
            if isinstance(alternative.shape, Dims):
                items = tuple([self.item(item) for item in alternative.shape.items])
                if condition is not None and any(item.what == "later" for item in items):
                    raise self.fault(f"{tensor.name}: a conditional pattern holds names and integers only")
            after = (after[0] | self.dims, after[1] | self.groups)
            patterns.append(Pattern(condition, items, f"{tensor.name}{alternative.shape}"))
        self.dims, self.groups = after
        steps: list[Step] = [Match(tensor.name, tuple(patterns))]
        dtype = next((a.dtype for a in reversed(tensor.alternatives) if a.dtype is not None), None)
        if dtype is None:
            return steps
        if isinstance(dtype, Name) and dtype.id in self.symbols:
            users = self.symbols[dtype.id]
            steps.append(SameDtype(users[: users.index(tensor.name) + 1], dtype.id))
        else:
            options = dtype.items if isinstance(dtype, Tuple) else (dtype,)
            steps.append(CheckDtype(tensor.name, tuple([self.dtype(option) for option in options])))
        return steps

    def item(self, item: Dim) -> Bind:
        shown = str(item)
        if isinstance(item, Ellipsis_):
            self.ellipsis = True
            return Bind("ellipsis", shown=shown)
        axes = None if item.axis is None else self.axes(item.axis)
        value = item.value
        if isinstance(item, Group):
            if not isinstance(value, Name):
                raise self.beyond(f"*{value} in an input")
            if value.id in self.attrs:
                return Bind("sizes", node=self.sizes(value), axes=axes, shown=shown)
            self.groups.add(value.id)
            return Bind("group", value.id, axes=axes, shown=shown)
        if value is None:
            return Bind("any", axes=axes, shown=shown)
        if isinstance(value, Literal):
            return Bind("size", node=self.number(value), axes=axes, shown=shown)
        if isinstance(value, Name) and value.id not in self.inputs and value.id not in self.definitions:
            if value.id not in self.attrs:
                self.dims.add(value.id)
                return Bind("dimension", value.id, axes=axes, shown=shown)
            if self.attrs[value.id].kind is Kind.FLOAT:
                raise self.beyond(f"attr {value.id} is a float, used as a dimension")
            return Bind("size", node=self.number(value), axes=axes, shown=shown)
        # It may use what a later input binds.
        self.later.append((value, shown))
        return Bind("later", f"{len(self.later) - 1}", axes=axes, shown=shown)

    # --------------------------------------------------------------------------------------------------------- outputs

    def output(self, tensor: Tensor) -> Output:
        shared = next((a.dtype for a in reversed(tensor.alternatives) if a.dtype is not None), None)
        leaves = []
        for alternative in tensor.alternatives:
            condition = None if alternative.condition is None else self.condition(alternative.condition)
            leaves.append(self.leaf(tensor, alternative.shape, alternative.dtype, shared, condition))
        return Output(tensor.name, tuple(leaves))

    def leaf(self, tensor: Tensor, shape: Shape, own: Expr | None, shared: Expr | None, condition: Node | None) -> Leaf:
        shown = f"{tensor.name}{shape}"
        dtype = None if own is None else self.dtype(own)
        match shape:
            case Absent():
                return Leaf(condition, "absent", shown=shown)
            case Value(Name(name)) if name in self.inputs:
                return Leaf(condition, "itself", (), name, dtype or self.dtype_of(name), shown)
            case Value(Index(Name(name), _)) if name in self.inputs:
                raise self.beyond(f"{tensor.name} is an element of {name}")
            case Value(value):
                raise self.beyond(f"output {tensor.name} is {value}, which is no tensor")
            case Itself():
                return Leaf(condition, "itself", (), tensor.name, dtype or self.dtype_of(tensor.name), shown)
            case Like(Name(name)):
                return Leaf(condition, "like", (), name, dtype or self.dtype_of(name), shown)
            case Like(Index()):
                raise self.beyond(f"{tensor.name} is like an element of a list")
            case Dims(items):
                if dtype is None:
                    dtype = self.default_dtype(tensor) if shared is None else self.dtype(shared)
                return Leaf(condition, "fresh", tuple([self.piece(item) for item in items]), "", dtype, shown)
        raise AssertionError(shape)

    def dtype_of(self, *names: str) -> Node:
        return Node(Op.DTYPE_OF, Kind.DTYPE, (), names)

    def default_dtype(self, tensor: Tensor) -> Node:
        if not self.inputs:
            raise self.fault(f"output {tensor.name} has no dtype and no input gives one")
        return self.dtype_of(*self.inputs)

    def piece(self, item: Dim) -> Piece:
        if isinstance(item, Ellipsis_):
            return Piece(self.sizes(Name("...")))
        axes = None if item.axis is None else self.axes(item.axis)
        assert item.value is not None
        return Piece(self.sizes(item.value) if isinstance(item, Group) else self.size(item.value), axes)

    def axes(self, axis: Expr) -> Node:
        """The axes that an expression names, as a list: those of a list, or one."""

        def one(leaf: Expr) -> Node:
            kind = self.kind(leaf)
            if kind is Kind.SIZES:
                return self.sizes(leaf)
            if kind is not Kind.NUMBER:
                return refused(Kind.SIZES, f"{leaf} is no axis")
            if isinstance(leaf, Name) and leaf.id in self.attrs and self.attrs[leaf.id].optional:
                raise self.beyond(f"the axis {leaf} may be None")
            return Node(Op.ITEMS, Kind.SIZES, (self.number(leaf),))

        return self.spread(axis, one)

    # ----------------------------------------------------------------------------------------------------- expressions

    def spread(self, node: Expr, leaf: Callable[[Expr], Node]) -> Node:
        """What ``leaf`` makes of an expression, or of each that a choice, ``or`` or ``and`` chooses from."""
        match node:
            case Conditional(then, condition, otherwise):
                return choice(self.condition(condition), self.spread(then, leaf), self.spread(otherwise, leaf))
            case Binary("or", left, right) if self.kind(node) is not Kind.BOOL:
                return choice(self.condition(left), self.spread(left, leaf), self.spread(right, leaf))
            case Binary("and", left, right) if self.kind(node) is not Kind.BOOL:
                return choice(self.condition(left), self.spread(right, leaf), self.spread(left, leaf))
        result = leaf(node)
        self.made += 1
        if self.made > MAX_NODES:
            raise self.beyond(f"has more than {MAX_NODES} operations")
        return result

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
                return Kind.OTHER
            case Name("..."):
                return Kind.SIZES
            case Name(name):
                if name in self.attrs:
                    return self.attrs[name].kind
                if name in self.defined:
                    return self.defined[name].kind
                return Kind.SIZES if name in self.groups else Kind.BOOL if name in self.inputs else Kind.NUMBER
            case Conditional(then, _, otherwise):
                kind = self.kind(then)
                return kind if kind is self.kind(otherwise) else None
            case Binary(("and" | "or"), left, right):
                kind = self.kind(left)
                return kind if kind is self.kind(right) else None
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
        if kind not in makers:
            raise self.beyond(f"{clause.name} = {clause.value} is neither a number, a list nor a condition")
        return makers[kind](clause.value)

    def truth_value(self, node: Expr) -> Node:
        return Node(Op.FROM_CONDITION, Kind.BOOL, (self.condition(node),))

    def number(self, node: Expr) -> Node:
        """An expression as an integer; a bool counts as 0 or 1."""
        return self.spread(node, self.plain_number)

    def size(self, node: Expr) -> Node:
        """An expression as a dimension of an output; a bool is none."""

        def one(leaf: Expr) -> Node:
            if self.kind(leaf) is Kind.BOOL:
                return refused(Kind.NUMBER, f"{leaf} is a bool, not an integer")
            return self.plain_number(leaf)

        return self.spread(node, one)

    def plain_number(self, node: Expr) -> Node:
        match node:
            case Literal(bool() | int() as value):
                return integer(int(value))
            case Name(name):
                return self.named_number(name)
            case Index(name, index):
                if self.kind(name) is not Kind.SIZES:
                    return refused(Kind.NUMBER, f"{name} is not a list")
                return Node(Op.ITEM, Kind.NUMBER, (self.named_list(name.id), self.number(index)))
            case Unary("-", operand):
                return Node(Op.NEGATE, Kind.NUMBER, (self.number(operand),))
            case Binary(operator, left, right) if operator in _ARITHMETIC:
                return Node(_ARITHMETIC[operator], Kind.NUMBER, (self.number(left), self.number(right)))
            case Call(function, arguments):
                return self.call(function, arguments, node)
            case Literal() | Tuple():
                return refused(Kind.NUMBER, f"{node} is not an integer")
        return Node(Op.FROM_CONDITION, Kind.NUMBER, (self.condition(node),))

    def named_number(self, name: str) -> Node:
        if name in self.inputs:
            raise self.fault(f"{name} is a tensor; write rank({name}), numel({name}) or dtype({name})")
        kind = self.kind(Name(name))
        if kind not in (Kind.NUMBER, Kind.BOOL):
            return refused(Kind.NUMBER, f"{name} is not an integer")
        if name in self.attrs:
            return Node(Op.ATTR, kind, (), name)
        self.known(name)
        return Node(Op.DIMENSION, kind, (), name)

    def known(self, name: str) -> None:
        """Refuse a name that only a later input or clause gives a value."""
        if name not in self.dims | self.groups | self.defined.keys():
            givers = [t.name for t in self.relation.input_tensors if name in bound_names(t)]
            raise self.fault(
                f"{name} is used before {' or '.join(givers)} gives it" if givers else f"{name} means nothing here"
            )

    def named_list(self, name: str) -> Node:
        if name == "...":
            if not self.ellipsis:
                raise self.fault("there is a '...' that no input has")
            return Node(Op.ELLIPSIS, Kind.SIZES)
        if name in self.attrs:
            return Node(Op.ATTR, Kind.SIZES, (), name)
        self.known(name)
        return Node(Op.GROUP, Kind.SIZES, (), name)

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
                case Name(name) if name in self.dims:
                    self.known(name)
            return refused(Kind.SIZES, f"{leaf} is not a list of sizes")

        return self.spread(node, one)

    def call(self, function: str, arguments: tuple[Expr, ...], node: Expr) -> Node:
        first = arguments[0]
        if function in ("rank", "numel"):
            if not isinstance(first, Name) or first.id not in self.inputs:
                raise self.fault(f"{function} takes an input, got {first}")
            return Node(Op.RANK if function == "rank" else Op.ELEMENTS, Kind.NUMBER, (), first.id)
        if function == "len" and isinstance(first, Name) and first.id in self.inputs:
            return Node(Op.RANK, Kind.NUMBER, (), first.id)
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
                return refused(Kind.NUMBER, f"{node}: {wanted} is not an integer")
            return Node(Op.POSITION, Kind.NUMBER, (self.sizes(first), self.number(wanted)))
        if function in _REDUCTIONS:
            return Node(_REDUCTIONS[function], Kind.NUMBER, (self.sizes(first),))
        return refused(Kind.NUMBER, f"{node} is not an integer")

    # ------------------------------------------------------------------------------------------------------ conditions

    def condition(self, node: Expr) -> Node:
        match node:
            case Literal(value):
                return always(bool(value))
            case Name(name) if name in self.inputs:
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
                return self.comparison(operator, left, right)
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
            return Node(Op.TRUTH, Kind.BOOL, (Node(Op.ATTR, Kind.FLOAT, (), node.id),))
        if kind is Kind.SIZES:
            return Node(Op.FILLED, Kind.BOOL, (self.sizes(node),))
        if kind is Kind.TEXT and isinstance(node, Name):
            return Node(Op.FILLED, Kind.BOOL, (Node(Op.ATTR, Kind.TEXT, (), node.id),))
        raise self.beyond(f"{node} as a condition")

    def identity(self, operator: str, left: Expr, right: Expr) -> Node:
        if right == Literal(None) and isinstance(left, Name):
            given = always(True)
            if left.id in self.inputs:
                given = Node(Op.PRESENT, Kind.BOOL, (), left.id)
            elif left.id in self.attrs and self.attrs[left.id].optional:
                given = Node(Op.GIVEN, Kind.BOOL, (), left.id)
            return given if operator == "is not" else Node(Op.NOT, Kind.BOOL, (given,))
        raise self.beyond(f"{left} {operator} {right}: only 'is None' has one meaning everywhere")

    def among(self, left: Expr, right: Expr) -> Node:
        if isinstance(right, Tuple):
            if _is_number(self.kind(left)) and all(_is_number(self.kind(item)) for item in right.items):
                # Python evaluates all items before it compares.
                items = Node(Op.ITEMS, Kind.SIZES, tuple(map(self.number, right.items)))
                if not all(item.op in _NEVER_REFUSE for item in items.args):
                    return Node(Op.COMPARE, Kind.BOOL, (self.number(left), items), "in")
            if not all(isinstance(item, Literal | Name) and str(item) not in self.inputs for item in right.items):
                raise self.beyond(f"{left} in {right}: an item may be refused")
            result = always(False)
            for item in reversed(right.items):
                test = self.comparison("==", left, item)
                result = test if result == always(False) else Node(Op.OR, Kind.BOOL, (test, result))
            return result
        if self.kind(right) is not Kind.SIZES or self.kind(left) not in (Kind.NUMBER, Kind.BOOL):
            raise self.beyond(f"{left} in {right}")
        arguments = (self.number(left), self.sizes(right))
        return Node(Op.COMPARE, Kind.BOOL, arguments, "in")

    def comparison(self, operator: str, left: Expr, right: Expr) -> Node:
        if _is_dtype(left) or _is_dtype(right):
            if operator not in ("==", "!="):
                raise self.beyond(f"{left} {operator} {right} compares dtypes")
            return Node(Op.COMPARE, Kind.BOOL, (self.dtype(left), self.dtype(right)), operator)
        return self.spread(left, lambda a: self.spread(right, lambda b: self.compare(operator, a, b)))

    def compare(self, operator: str, left: Expr, right: Expr) -> Node:
        a, b = self.operand_of_comparison(left), self.operand_of_comparison(right)
        same = (
            (a.kind in _NUMERIC and b.kind in _NUMERIC)
            or (a.kind is Kind.TEXT and b.kind is Kind.TEXT)
            or (a.kind is Kind.SIZES and b.kind is Kind.SIZES and operator in ("==", "!="))
        )
        if not same:
            if not all(node.op in _NEVER_REFUSE for side in (a, b) for node in below(side)) or a.kind is b.kind:
                raise self.beyond(f"{left} {operator} {right}")
            if operator in ("==", "!="):
                return always(operator == "!=")
            return refused(Kind.BOOL, f"{left} {operator} {right}: cannot be compared")
        return Node(Op.COMPARE, Kind.BOOL, (a, b), operator)

    def operand_of_comparison(self, node: Expr) -> Node:
        kind = self.kind(node)
        if isinstance(node, Name) and node.id in self.attrs:
            if self.attrs[node.id].optional or kind in (Kind.OTHER, Kind.DTYPE):
                raise self.beyond(f"attr {node} in a comparison")
            return Node(Op.ATTR, kind, (), node.id)  # type: ignore[arg-type]
        if isinstance(node, Literal) and isinstance(node.value, str):
            return Node(Op.TEXT, Kind.TEXT, (), node.value)
        if node == Literal(None):
            return Node(Op.TEXT, Kind.OTHER, (), "None")
        if kind is Kind.SIZES:
            return self.sizes(node)
        if kind is Kind.DTYPE:
            raise self.beyond(f"{node} in a comparison")
        if isinstance(node, Name) and node.id in self.inputs:
            raise self.beyond(f"the presence of {node} in a comparison")
        return self.number(node)

    # ---------------------------------------------------------------------------------------------------------- dtypes

    def dtype(self, node: Expr) -> Node:
        """An expression as a dtype."""
        match node:
            case Conditional(then, condition, otherwise):
                return choice(self.condition(condition), self.dtype(then), self.dtype(otherwise))
            case Call("dtype", (argument,)):
                return self.dtype(argument)
            case Call("promote", arguments):
                return self.promoted(arguments)
            case Call("floating", arguments):
                return Node(Op.FLOATING, Kind.DTYPE, (self.promoted(arguments),))
            case Call("integral_sum", (argument,)):
                return Node(Op.INTEGRAL_SUM, Kind.DTYPE, (self.dtype(argument),))
            case Call("real", (argument,)):
                return Node(Op.REAL, Kind.DTYPE, (self.dtype(argument),))
            case Name(name):
                return self.named_dtype(name)
            case Index(Name(name), _) if name in self.inputs:
                raise self.beyond(f"{node} is the dtype of an element of a list")
        raise self.fault(f"{node} is no dtype; write the name of a dtype, an input, a dtype attr, or promote(…)")

    def named_dtype(self, name: str) -> Node:
        if name in self.inputs:
            return self.dtype_of(name)
        if name in self.attrs:
            attr = self.attrs[name]
            if attr.kind is Kind.DTYPE or attr.names_dtype:
                return Node(Op.DTYPE_ATTR, Kind.DTYPE, (), name)
            if attr.kind is Kind.TEXT or attr.kind is Kind.OTHER:
                raise self.beyond(f"attr {name} as a dtype")
            return refused(Kind.DTYPE, f"attr {name} names no dtype")
        if name in self.symbols:
            return self.dtype_of(*self.symbols[name])
        if name in CATEGORY:
            return Node(Op.DTYPE, Kind.DTYPE, (), name)
        raise self.fault(f"{name} is no dtype here; the dtypes are {', '.join(CATEGORY)}")

    def promoted(self, arguments: tuple[Expr, ...]) -> Node:
        return Node(Op.PROMOTE, Kind.DTYPE, tuple([self.operand(argument) for argument in arguments]))

    def operand(self, node: Expr) -> Node:
        if isinstance(node, Name) and node.id in self.inputs:
            return Node(Op.TENSOR, Kind.DTYPE, (), node.id)
        if isinstance(node, Name) and node.id in self.attrs and node.id not in CATEGORY:
            attr = self.attrs[node.id]
            if attr.kind in _NUMERIC and not attr.optional:
                return Node(Op.SCALAR, Kind.DTYPE, (Node(Op.ATTR, attr.kind, (), node.id),))
            if attr.kind is not Kind.DTYPE:
                raise self.beyond(f"attr {node} in a promotion")
        return self.dtype(node)


#: What evaluates to something in every call.
_NEVER_REFUSE = frozenset({Op.INTEGER, Op.ATTR, Op.TEXT, Op.ALWAYS, Op.PRESENT, Op.COMPARE, Op.OR, Op.DTYPE})


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

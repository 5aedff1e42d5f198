"""Names and expressions of a relation → closures: the part of the compiler that inputs and outputs share.

One syntax serves sizes, conditions and dtypes; :meth:`Scope.value`, :meth:`Scope.condition` and :meth:`Scope.dtype`
read it in each way.
"""

from __future__ import annotations

import operator as operators
from collections.abc import Callable
from typing import Any, Generic

from ascend_graph.shapes.arithmetic import (
    among,
    extreme,
    negated,
    operand_of,
    position_of,
    product,
    show,
    total,
    within,
)
from ascend_graph.shapes.dtypes import CATEGORY, Operand
from ascend_graph.shapes.errors import RelationError, ShapeError
from ascend_graph.shapes.parser import DTYPE_FUNCTIONS, GROUP_FUNCTIONS
from ascend_graph.shapes.program import (
    Env,
    T,
    Target,
    Value,
    always,
    constant_of,
    dtype_of,
    known_condition,
    shape_of,
    slot_dtype,
    slot_of,
    slot_value,
)
from ascend_graph.shapes.statement import Statement, dtype_symbols
from ascend_graph.shapes.syntax import (
    Binary,
    Call,
    Conditional,
    Definition,
    Dims,
    Expr,
    Index,
    Literal,
    Name,
    Tuple,
    Unary,
    bound_names,
    walk,
)

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operators.eq,
    "!=": operators.ne,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
    "in": among,
    "not in": lambda a, b: negated(among(a, b)),
    "is": operators.is_,
    "is not": operators.is_not,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operators.add,
    "-": operators.sub,
    "*": operators.mul,
    "//": operators.floordiv,
    "%": operators.mod,
}


class Scope(Generic[T]):
    """What the names of a relation mean for one target: attrs, slots of the environment, inputs."""

    def __init__(self, relation: Statement, target: Target[T]) -> None:
        self.relation = relation
        self.present, self.system = target.present, target.system
        self.check, self.decide = target.check, target.decide
        attrs = target.attrs
        inputs = relation.inputs
        self.inputs = {name: number for number, name in enumerate(inputs)}
        self.attrs = {name: slot for slot, name in enumerate(attrs)}
        self.input_slot = {name: len(attrs) + number for name, number in self.inputs.items()}
        #: Inputs that are one tensor for certain; one without dimensions may also stand for a list.
        self.single = {
            t.name
            for t in relation.input_tensors
            if t.index is None and any(isinstance(a.shape, Dims) for a in t.alternatives)
        }
        self.first = len(attrs) + len(inputs)
        self.template: list[Any] = []
        #: Dimensions, per-element dimensions, groups, definitions and list indices.
        self.slots: dict[str, int] = {}
        self.vectors: set[str] = set()
        self.groups: set[str] = set()
        #: Slots that hold a value in every run, and those that a conditional pattern may leave empty.
        self.bound: set[int] = set()
        self.origin: dict[int, str] = {}
        self.symbols: dict[str, list[str]] = {}
        self.ellipsis: int | None = None

    def new_slot(self, name: str | None = None, initial: Any = None) -> int:
        slot = self.first + len(self.template)
        self.template.append(initial)
        if name is not None:
            self.slots[name] = slot
        return slot

    def fault(self, message: str) -> RelationError:
        return RelationError(f"{self.relation}: {message}")

    def refusal(self, message: str) -> Value:
        """The value of what an absent input would give: refused where it is used, for a condition may keep it from that."""
        error = self.fault(message)

        def refuse(env: Env) -> Any:
            raise error

        return refuse

    # ---------------------------------------------------------------------------------------------------------- inputs

    def shape_of(self, name: str) -> Value:
        """The shape of an input that is present, or those of a list."""
        slot = self.input_slot[name]
        return (lambda env: env[slot].shape) if name in self.single else (lambda env: shape_of(env[slot]))

    def dtype_of(self, name: str) -> Value:
        """The dtype of an input that is present, or of the first of a list."""
        slot = self.input_slot[name]
        return slot_dtype(slot) if name in self.single else (lambda env: dtype_of(env[slot]))

    # ----------------------------------------------------------------------------------------------------- expressions

    def value(self, node: Expr) -> Value:
        match node:
            case Literal(value):
                return always(value)
            case Name(name):
                return self.named(name)
            case Index(name, index):
                return self.indexed(name.id, self.value(index), node)
            case Conditional(then, condition, otherwise):
                return self.choice(then, condition, otherwise, self.value)
            case Unary("-", operand):
                inner = self.number(operand)
                return lambda env: within(-inner(env), node)
            case Binary(("+" | "-" | "*" | "//" | "%") as operator, left, right):
                return self.arithmetic(operator, left, right, node)
            case Call():
                return self.call(node)
            case Tuple(items):
                values = [self.value(item) for item in items]
                return lambda env: tuple([value(env) for value in values])
            case Binary(("and" | "or") as operator, left, right) if not (_is_test(left) and _is_test(right)):
                return self.either(operator, left, right)
        return self.condition(node)

    def named(self, name: str) -> Value:
        if name == "...":
            return self.ellipsis_value("of this call")
        if name in self.attrs:
            return slot_value(self.attrs[name])
        if name in self.slots:
            slot = self.slots[name]
            return slot_value(slot) if slot in self.bound else self.maybe(slot, name)
        if name in self.inputs:
            raise self.fault(
                f"{name} is a tensor; write rank({name}), numel({name}) or dtype({name}), or name a dimension"
            )
        givers = [t.name for t in self.relation.input_tensors if name in bound_names(t)]
        if any(giver not in self.present for giver in givers):
            return self.refusal(f"{name} is given only by {', '.join(givers)}, which is absent")
        if givers:
            raise self.fault(f"{name} is used before {', '.join(givers)} gives it")
        raise self.fault(f"{name} means nothing here")

    def maybe(self, slot: int, name: str) -> Value:
        """The value of a slot that some patterns leave empty."""

        def maybe(env: Env) -> Any:
            value = env[slot]
            if value is None:
                raise ShapeError(f"{name} is not given: its input has another form here")
            return value

        return maybe

    def ellipsis_value(self, subject: str) -> Value:
        if self.ellipsis is not None:
            return slot_value(self.ellipsis) if self.ellipsis in self.bound else self.maybe(self.ellipsis, "'...'")
        message = f"output {subject} has '...', but no input that is present has"
        if any("..." in str(t) for t in self.relation.input_tensors if t.name not in self.present):
            return self.refusal(message)
        raise self.fault(message)

    def indexed(self, name: str, index: Value, node: Expr) -> Value:
        base = self.named(name)

        def item(env: Env) -> Any:
            values, at = base(env), index(env)
            if not isinstance(values, list | tuple):
                raise ShapeError(f"{node}: {name} is {show(values)}, not a list")
            if not isinstance(at, int) or not -len(values) <= at < len(values):
                raise ShapeError(f"{node}: {name} has {len(values)} element(s), there is no {at}: {show(values)}")
            return values[at]

        return item

    def number(self, node: Expr) -> Value:
        """The value of an expression that has to be a number."""
        value = self.value(node)
        if self.is_size(node):
            return value

        def number(env: Env) -> Any:
            found = value(env)
            if found.__class__ is int or hasattr(found, "__sym_min__"):
                return found
            if found.__class__ is bool:
                return int(found)
            if hasattr(found, "__sym_not__"):  # a condition on symbolic sizes
                return int(bool(found))
            raise ShapeError(f"{node} is {show(found)}, not an integer")

        return number

    def is_size(self, node: Expr) -> bool:
        """Whether an expression is never anything but an integer of at least 0."""
        match node:
            case Literal(value):
                return value.__class__ is int and value >= 0
            case Name(name):
                return self.is_dimension(name)
            case Binary("+" | "*" | "//" | "%", left, right):
                return self.is_size(left) and self.is_size(right)
            case Conditional(then, _, otherwise):
                return self.is_size(then) and self.is_size(otherwise)
            case Call("rank" | "numel" | "len"):
                return True
            case Call("ceildiv" | "min" | "max", arguments) if len(arguments) > 1:
                return all(map(self.is_size, arguments))
        return False

    def is_dimension(self, name: str) -> bool:
        """Whether a name is a plain dimension that every run binds."""
        return (
            name not in self.attrs
            and self.slots.get(name) in self.bound
            and name not in self.vectors
            and name not in self.groups
            and not self.is_defined(name)
        )

    def is_group(self, name: str) -> bool:
        """Whether a name is a group that every run binds to dimensions of an input."""
        return name in self.groups - self.vectors and name not in self.attrs and self.slots.get(name) in self.bound

    def is_defined(self, name: str) -> bool:
        """Whether a clause after ``where`` gives the name."""
        return any(isinstance(c, Definition) and c.name == name for c in self.relation.clauses)

    def arithmetic(self, operator: str, left: Expr, right: Expr, node: Expr) -> Value:
        a, b, compute = self.number(left), self.number(right), _ARITHMETIC[operator]
        constant, slot = constant_of(b), slot_of(a)
        if operator in ("//", "%") and not constant:

            def divide(env: Env) -> Any:
                dividend, divisor = a(env), b(env)
                self.not_zero(divisor, right, node)
                return within(compute(dividend, divisor), node)

            return divide
        if operator in ("//", "%"):
            return (
                (lambda env: compute(a(env), constant)) if slot is None else (lambda env: compute(env[slot], constant))
            )
        if constant is None:
            return lambda env: within(compute(a(env), b(env)), node)
        if slot is None:
            return lambda env: within(compute(a(env), constant), node)
        return lambda env: within(compute(env[slot], constant), node)

    def not_zero(self, divisor: Any, right: Expr, node: Expr) -> None:
        if divisor.__class__ is not int or divisor == 0:
            self.check(divisor != 0, lambda: f"{node} divides by {right}, which is 0")

    def call(self, node: Call) -> Value:
        function, arguments = node.function, node.arguments
        first = arguments[0]
        if function in ("rank", "numel", "len") and isinstance(first, Name) and first.id in self.inputs:
            name = first.id
            if name not in self.present:
                return self.refusal(f"{node} asks for {name}, which is absent")
            shape = self.shape_of(name)
            return (lambda env: product(shape(env), node)) if function == "numel" else (lambda env: len(shape(env)))
        if function in ("rank", "numel"):
            raise self.fault(f"{function} takes an input, got {first}")
        if function in DTYPE_FUNCTIONS:
            return self.dtype(node)
        if function in GROUP_FUNCTIONS:
            return self.group(node)
        if function == "ceildiv":
            a, b = map(self.number, arguments)

            def ceildiv(env: Env) -> Any:
                dividend, divisor = a(env), b(env)
                self.not_zero(divisor, arguments[1], node)
                return within(-(-dividend // divisor), node)

            return ceildiv
        if function in ("min", "max") and len(arguments) > 1:
            numbers = [self.number(argument) for argument in arguments]
            return lambda env: extreme(function, [number(env) for number in numbers])
        value = self.value(first)
        if function == "index":
            wanted = self.value(arguments[1])
            return lambda env: position_of(value(env), wanted(env), node)

        def reduce(env: Env) -> Any:
            items = value(env)
            if not isinstance(items, list | tuple):
                raise ShapeError(f"{node}: {first} is {show(items)}, not a list")
            if function == "len":
                return len(items)
            if function == "prod":
                return product(items, node)
            if function == "sum":
                return total(items, node)
            if not items:
                raise ShapeError(f"{node}: {first} is empty")
            return extreme(function, items)

        return reduce

    def choice(self, then: Expr, condition: Expr, otherwise: Expr, compile_: Callable[[Expr], Value]) -> Value:
        test = self.condition(condition)
        constant = known_condition(test)
        if constant is not None:  # the other side may name what is absent
            return compile_(then if constant else otherwise)
        a, b = compile_(then), compile_(otherwise)
        return lambda env: a(env) if test(env) else b(env)

    def condition(self, node: Expr) -> Value:
        match node:
            case Name(name) if name in self.inputs:
                return always(name in self.present)
            case Unary("not", operand):
                inner = self.condition(operand)
                constant = known_condition(inner)
                return (lambda env: negated(inner(env))) if constant is None else always(not constant)
            case Binary(("and" | "or") as operator, left, right):
                return self.connective(operator, left, right)
            case Binary(("is" | "is not") as operator, Name(name), Literal(None)) if name in self.inputs:
                return always((name not in self.present) == (operator == "is"))
            case Binary(operator, left, right) if operator in _COMPARE:
                compile_ = self.dtype if _is_dtype(left) or _is_dtype(right) else self.value
                a = compile_(left)
                b = self.members(right, compile_) if operator in ("in", "not in") else compile_(right)
                compare = _COMPARE[operator]

                def compared(env: Env) -> Any:
                    x, y = a(env), b(env)
                    if x.__class__ is list and y.__class__ is tuple:  # a list attr beside dimensions
                        x = tuple(x)
                    elif x.__class__ is tuple and y.__class__ is list and operator not in ("in", "not in"):
                        y = tuple(y)
                    try:
                        return compare(x, y)
                    except TypeError:
                        raise ShapeError(f"{node}: cannot compare {show(x)} with {show(y)}") from None

                return compared
        return self.value(node)

    def members(self, node: Expr, compile_: Callable[[Expr], Value]) -> Value:
        if not isinstance(node, Tuple):
            return self.value(node)
        values = [compile_(item) for item in node.items]
        return lambda env: [value(env) for value in values]

    def connective(self, operator: str, left: Expr, right: Expr) -> Value:
        decisive = operator == "or"
        a = self.condition(left)
        known = known_condition(a)
        if known is not None:
            return always(decisive) if known is decisive else self.condition(right)
        b = self.condition(right)
        # A division demands a divisor that is not 0, whatever the left side says.
        demands = any(
            (isinstance(n, Binary) and n.operator in ("//", "%")) or (isinstance(n, Call) and n.function == "ceildiv")
            for n in walk(right)
        )

        def connected(env: Env) -> Any:
            first = a(env)
            if not hasattr(first, "__sym_not__") or demands:
                return first if bool(first) is decisive else b(env)
            # A condition on symbolic sizes stays one, to be checked as a whole; unless the left side decides alone.
            try:
                second = b(env)
            except (ShapeError, RelationError):
                if bool(first) is decisive:
                    return first
                raise
            if not hasattr(second, "__sym_not__"):
                second = second != 0 if hasattr(second, "__sym_min__") else bool(second)
            return first | second if decisive else first & second

        return connected

    def either(self, operator: str, left: Expr, right: Expr) -> Value:
        """``a or b`` and ``a and b`` as values: one of the two."""
        decisive = operator == "or"
        test = self.condition(left)
        known = known_condition(test)
        if known is not None:
            return self.value(left if known is decisive else right)
        a, b = self.value(left), self.value(right)
        return lambda env: a(env) if bool(test(env)) is decisive else b(env)

    def group(self, expression: Expr) -> Value:
        """An expression as a list of sizes."""
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------------------------- dtypes

    def dtype(self, node: Expr) -> Value:
        """The same syntax read as a dtype."""
        match node:
            case Conditional(then, condition, otherwise):
                return self.choice(then, condition, otherwise, self.dtype)
            case Call("dtype", (argument,)):
                return self.dtype(argument)
            case Call("promote" | "floating", arguments):
                operands = [self.operand(argument) for argument in arguments]
                system = self.system

                def promoted(env: Env) -> Any:
                    try:
                        result = system.promote([operand(env) for operand in operands])
                    except ValueError as error:
                        raise ShapeError(f"{node}: {error}") from None
                    return system.floating(result) if node.function == "floating" else result

                return promoted
            case Call(("integral_sum" | "real") as function, (argument,)):
                inner, apply = self.dtype(argument), getattr(self.system, function)
                return lambda env: apply(inner(env))
            case Name(name):
                return self.named_dtype(name)
            case Index(Name(name), _) if name in self.inputs and name not in self.present:
                return self.refusal(f"a dtype is that of {node}, which is absent")
            case Index(Name(name), index) if name in self.inputs:
                slot, at = self.input_slot[name], self.value(index)

                def element(env: Env) -> Any:
                    try:
                        return env[slot][at(env)].dtype
                    except (IndexError, AttributeError):
                        raise ShapeError(f"{node}: {name} has no such tensor") from None

                return element
        raise self.fault(f"{node} is no dtype; write the name of a dtype, an input, a dtype attr, or promote(…)")

    def named_dtype(self, name: str) -> Value:
        if name in self.inputs:
            if name not in self.present:
                return self.refusal(f"a dtype is that of {name}, which is absent; write '… if {name} else …'")
            return self.dtype_of(name)
        if name in self.attrs:
            slot, system = self.attrs[name], self.system

            def from_attr(env: Env) -> Any:
                dtype = system.from_attr(env[slot])
                if dtype is None:
                    raise ShapeError(f"attr {name} is {show(env[slot])}, which names no dtype")
                return dtype

            return from_attr
        if name in self.symbols:
            return self.dtype_of(self.symbols[name][0])
        if name in dtype_symbols(self.relation):
            return self.refusal(f"a dtype is {name}, which no input that is present has")
        if name in CATEGORY:
            try:
                return always(self.system.from_name(name))
            except KeyError:
                raise self.fault(f"dtype {name} does not exist here") from None
        raise self.fault(
            f"{name} is no dtype here: neither an input that is present, nor an attr, nor one of {', '.join(CATEGORY)}"
        )

    def operand(self, node: Expr) -> Value:
        if isinstance(node, Name) and node.id in self.inputs and node.id in self.present:
            given = self.input_slot[node.id]
            return lambda env: operand_of(env[given])
        if isinstance(node, Name) and node.id in self.attrs and node.id not in CATEGORY:
            slot = self.attrs[node.id]
            return lambda env: (
                Operand(None, number=env[slot])
                if isinstance(env[slot], bool | int | float | complex) or type(env[slot]).__name__.startswith("Sym")
                else Operand(self.system.from_attr(env[slot]))
            )
        of = self.dtype(node)
        return lambda env: Operand(of(env))


def _is_test(node: Expr) -> bool:
    """Whether an expression is True or False and nothing else."""
    match node:
        case Binary(("and" | "or"), left, right):
            return _is_test(left) and _is_test(right)
        case Binary(operator, _, _):
            return operator in _COMPARE
        case Unary("not", _):
            return True
        case Literal(bool()):
            return True
    return False


def _is_dtype(node: Expr) -> bool:
    return isinstance(node, Call) and node.function in DTYPE_FUNCTIONS

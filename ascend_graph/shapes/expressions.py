"""Names and expressions of a relation → closures: the part of the compiler that inputs and outputs share.

One syntax serves sizes, conditions and dtypes; :meth:`Scope.value`, :meth:`Scope.condition` and :meth:`Scope.dtype`
read it in each way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic

from ascend_graph.shapes.arithmetic import (
    among,
    extreme,
    first_of,
    negated,
    operand_of,
    position_of,
    product,
    show,
)
from ascend_graph.shapes.dtypes import CATEGORY, Operand
from ascend_graph.shapes.errors import RelationError, ShapeError
from ascend_graph.shapes.parser import DTYPE_FUNCTIONS
from ascend_graph.shapes.program import Env, T, Target, Value, always, known_condition, slot_value
from ascend_graph.shapes.syntax import Binary, Call, Conditional, Expr, Index, Literal, Name, Tuple, Unary, bound_names

if TYPE_CHECKING:
    from ascend_graph.shapes.relation import Relation

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "in": among,
    "not in": lambda a, b: negated(among(a, b)),
    "is": lambda a, b: a is b,
    "is not": lambda a, b: a is not b,
}


class Scope(Generic[T]):
    """What the names of a relation mean for one target: attrs, slots of the environment, inputs."""

    def __init__(self, relation: Relation, target: Target[T]) -> None:
        self.relation = relation
        self.present, self.system = target.present, target.system
        self.check, self.decide = target.check, target.decide
        attrs = target.attrs
        inputs = relation.inputs
        self.inputs = {name: number for number, name in enumerate(inputs)}
        self.attrs = {name: slot for slot, name in enumerate(attrs)}
        self.dtype_slot = {name: len(attrs) + number for name, number in self.inputs.items()}
        self.shape_slot = {name: len(attrs) + len(inputs) + number for name, number in self.inputs.items()}
        self.first = len(attrs) + 2 * len(inputs)
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
                inner = self.value(operand)
                return lambda env: -self.number(inner(env), operand)
            case Binary(("+" | "-" | "*" | "//" | "%") as operator, left, right):
                return self.arithmetic(operator, left, right, node)
            case Call():
                return self.call(node)
            case Tuple(items):
                values = [self.value(item) for item in items]
                return lambda env: tuple([value(env) for value in values])
        return self.condition(node)

    def named(self, name: str) -> Value:
        if name == "...":
            return self.ellipsis_value("of this call")
        if name in self.attrs:
            return slot_value(self.attrs[name])
        if name in self.slots:
            slot = self.slots[name]
            if slot in self.bound:
                return slot_value(slot)

            def maybe(env: Env) -> Any:
                value = env[slot]
                if value is None:
                    raise ShapeError(f"{name} is not given: its input has another form here")
                return value

            return maybe
        if name in self.inputs:
            raise self.fault(
                f"{name} is a tensor; write rank({name}), numel({name}) or dtype({name}), or name a dimension"
            )
        givers = [t.name for t in self.relation.input_tensors if name in bound_names(t)]
        if givers:
            raise self.fault(f"{name} is given only by {', '.join(givers)}, which is absent")
        raise self.fault(f"{name} means nothing here")

    def ellipsis_value(self, subject: str) -> Value:
        if self.ellipsis is None:
            raise self.fault(f"output {subject} has '...', but no input that is present has")
        return slot_value(self.ellipsis)

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

    def number(self, value: Any, node: Expr) -> Any:
        if value.__class__ is not int and (value is None or isinstance(value, str | float | list | tuple)):
            raise ShapeError(f"{node} is {show(value)}, not an integer")
        return value

    def arithmetic(self, operator: str, left: Expr, right: Expr, node: Expr) -> Value:
        a, b, number = self.value(left), self.value(right), self.number
        if operator == "+":
            return lambda env: number(a(env), left) + number(b(env), right)
        if operator == "-":
            return lambda env: number(a(env), left) - number(b(env), right)
        if operator == "*":
            return lambda env: number(a(env), left) * number(b(env), right)
        floor = operator == "//"

        def divide(env: Env) -> Any:
            dividend, divisor = number(a(env), left), number(b(env), right)
            self.not_zero(divisor, right, node)
            return dividend // divisor if floor else dividend % divisor

        return divide

    def not_zero(self, divisor: Any, right: Expr, node: Expr) -> None:
        if divisor.__class__ is not int or divisor == 0:
            self.check(divisor != 0, lambda: f"{node} divides by {right}, which is 0")

    def call(self, node: Call) -> Value:
        function, arguments = node.function, node.arguments
        first = arguments[0]
        if function in ("rank", "numel", "len") and isinstance(first, Name) and first.id in self.inputs:
            name = first.id
            if name not in self.present:
                raise self.fault(f"{node} asks for {name}, which is absent")
            slot = self.shape_slot[name]
            return (lambda env: product(env[slot])) if function == "numel" else (lambda env: len(env[slot]))
        if function in ("rank", "numel"):
            raise self.fault(f"{function} takes an input, got {first}")
        if function in DTYPE_FUNCTIONS:
            return self.dtype(node)
        values = [self.value(argument) for argument in arguments]
        if function == "ceildiv":
            a, b = values

            def ceildiv(env: Env) -> Any:
                dividend, divisor = self.number(a(env), first), self.number(b(env), arguments[1])
                self.not_zero(divisor, arguments[1], node)
                return -(-dividend // divisor)

            return ceildiv
        if function == "index":
            return lambda env: position_of(values[0](env), values[1](env), node)
        if function in ("min", "max") and len(values) > 1:
            return lambda env: extreme(function, [self.number(v(env), first) for v in values])
        value = values[0]

        def reduce(env: Env) -> Any:
            items = value(env)
            if not isinstance(items, list | tuple):
                raise ShapeError(f"{node}: {first} is {show(items)}, not a list")
            if function == "len":
                return len(items)
            if function == "prod":
                return product(items)
            if function == "sum":
                return sum(items[1:], items[0]) if items else 0
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

        def connected(env: Env) -> Any:
            first = a(env)
            if hasattr(first, "__sym_not__"):  # a condition on symbolic sizes stays one, to be checked as a whole
                return first | b(env) if decisive else first & b(env)
            return first if bool(first) is decisive else b(env)

        return connected

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
            case Index(Name(name), index) if name in self.inputs and name in self.present:
                slot, at = self.dtype_slot[name], self.value(index)
                return lambda env: env[slot][at(env)]
        raise self.fault(f"{node} is no dtype; write the name of a dtype, an input, a dtype attr, or promote(…)")

    def named_dtype(self, name: str) -> Value:
        if name in self.inputs:
            if name not in self.present:
                raise self.fault(f"a dtype is that of {name}, which is absent; write '… if {name} else …'")
            slot = self.dtype_slot[name]
            return lambda env: first_of(env[slot])
        if name in self.attrs:
            slot, system = self.attrs[name], self.system

            def from_attr(env: Env) -> Any:
                dtype = system.from_attr(env[slot])
                if dtype is None:
                    raise ShapeError(f"attr {name} is {show(env[slot])}, which names no dtype")
                return dtype

            return from_attr
        if name in self.symbols:
            slot = self.dtype_slot[self.symbols[name][0]]
            return lambda env: first_of(env[slot])
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
            dtype, shape = self.dtype_slot[node.id], self.shape_slot[node.id]
            return lambda env: operand_of(env[dtype], env[shape])
        if isinstance(node, Name) and node.id in self.attrs and node.id not in CATEGORY:
            slot = self.attrs[node.id]
            return lambda env: (
                Operand(None, number=env[slot])
                if isinstance(env[slot], bool | int | float | complex) or type(env[slot]).__name__.startswith("Sym")
                else Operand(self.system.from_attr(env[slot]))
            )
        of = self.dtype(node)
        return lambda env: Operand(of(env))


def _is_dtype(node: Expr) -> bool:
    return isinstance(node, Call) and node.function in DTYPE_FUNCTIONS

"""Nodes of a relation's form → closures: the part of the compiler that inputs and outputs share."""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Sequence
from typing import Any, Generic

from ascend_graph.shapes.arithmetic import (
    among,
    extreme,
    item_of,
    negated,
    operand_of,
    position_of,
    product,
    reshape,
    show,
    total,
    within,
)
from ascend_graph.shapes.dtypes import Operand
from ascend_graph.shapes.errors import RelationError, ShapeError
from ascend_graph.shapes.form import Form, Kind, Match, Node, Op, below
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
#: What checks something when it is evaluated, and must not be where a condition keeps it from that.
_DEMANDING = _DIVISIONS | {Op.RESHAPE}
_EXTREMES = {Op.MINIMUM: "min", Op.MAXIMUM: "max", Op.SMALLEST: "min", Op.LARGEST: "max"}


class Scope(Generic[T]):
    """Where a run keeps what the names of a form stand for, and closures that compute its nodes from that."""

    def __init__(self, relation: object, form: Form, target: Target[T]) -> None:
        self.relation, self.form = relation, form
        self.present, self.system = target.present, target.system
        self.check, self.decide = target.check, target.decide
        self.attrs = {name: slot for slot, (name, _) in enumerate(target.attrs)}
        self.input_slot = {name: len(self.attrs) + number for number, name in enumerate(form.inputs)}
        matches = [step for step in form.steps if isinstance(step, Match)]
        self.index_of = {match.input: match.index for match in matches}
        #: Inputs that are one tensor for certain; one without dimensions may also stand for a list.
        self.single = {m.input for m in matches if m.index is None and any(p.items is not None for p in m.patterns)}
        #: By dimension or group, the inputs that give it.
        self.givers: dict[str, list[str]] = {}
        for match in matches:
            for item in [item for pattern in match.patterns for item in pattern.items or ()]:
                if item.axes is None or item.axes.op is not Op.RANGE:  # which takes as many as are known
                    self.givers.setdefault("..." if item.what == "ellipsis" else item.name, []).append(match.input)
        self.first = len(self.attrs) + len(form.inputs)
        self.template: list[Any] = []
        #: Of dimensions, groups and definitions, and of indices of lists and how many tensors these have.
        self.slots: dict[str, int] = {}
        self.indices: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        #: Slots that hold a value in every run; a conditional pattern may leave others empty.
        self.bound: set[int] = set()
        #: Slots that hold one in some runs.
        self.filled: set[int] = set()
        #: Those of dimensions, and of groups, that are sizes of an input.
        self.sizes_of_inputs: set[int] = set()
        self.ellipsis: int | None = None
        #: What first gave a slot its value, for messages.
        self.origin: dict[int, str] = {}
        #: Of the list of tensors that is compiled: what differs per tensor, and slots that every tensor finds empty.
        self.elements: dict[str, int] = {}
        self.scratches: list[int] = []

    def new_slot(self, initial: Any = None) -> int:
        self.template.append(initial)
        return self.first + len(self.template) - 1

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

    # ----------------------------------------------------------------------------------------------------------- nodes

    def value(self, node: Node) -> Value:
        """What computes a node: an integer, a list, a condition, a dtype or an attr's value, by its kind."""
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
        if node.kind is Kind.BOOL:
            return self.condition(node)
        if node.kind is Kind.DTYPE:
            return self.dtype(node)
        return self.sizes(node) if node.kind is Kind.SIZES else self.computed(node)

    def number(self, node: Node) -> Value:
        """What computes a node as an integer: of a condition, 1 or 0."""
        value = self.value(node)
        if node.kind is not Kind.BOOL:
            return value
        constant = constant_of(value)
        return (lambda env: int(bool(value(env)))) if constant is None else always(int(constant))

    def choice(self, node: Node) -> Value:
        condition, then, otherwise = node.args
        test = self.condition(condition)
        known = known_condition(test)
        if known is not None:
            return self.value(then if known else otherwise)
        a, b = self.value(then), self.value(otherwise)
        if then.kind is not otherwise.kind and Kind.BOOL in (then.kind, otherwise.kind) and node.kind is Kind.NUMBER:
            a, b = self.number(then), self.number(otherwise)
        return lambda env: a(env) if test(env) else b(env)

    def refused(self, node: Node) -> Value:
        assert isinstance(node.value, tuple)
        subject, what = node.value
        found = self.value(node.args[0]) if node.args else None

        def refuse(env: Env) -> Any:
            raise ShapeError(f"{subject} is {what}" if found is None else f"{subject} is {show(found(env))}, {what}")

        return refuse

    def named(self, name: str) -> Value:
        slot = self.slots.get(name)
        if slot is None:
            return self.refusal(f"{name} is given only by {', '.join(self.givers[name])}, which is absent")
        return slot_value(slot) if slot in self.bound else _perhaps(slot, name)

    def leading(self) -> Value:
        if self.ellipsis is None:
            return self.refusal(f"'...' is given only by {', '.join(self.givers['...'])}, which is absent")
        return slot_value(self.ellipsis) if self.ellipsis in self.bound else _perhaps(self.ellipsis, "'...'")

    def index(self, name: str) -> int:
        """The slot of an index."""
        if name not in self.indices:
            self.indices[name] = self.new_slot()
        return self.indices[name]

    def computed(self, node: Node) -> Value:
        """A number that is computed."""
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

    def item(self, node: Node) -> Value:
        items, at = self.value(node.args[0]), self.number(node.args[1])
        if node.args[0].kind is Kind.SIZES or node.kind is Kind.OTHER:
            return lambda env: item_of(items(env), at(env), node.args[0])

        def item(env: Env) -> Any:
            found = item_of(items(env), at(env), node.args[0])
            if found.__class__ is not int and not hasattr(found, "__sym_min__"):
                raise ShapeError(f"{node} is {show(found)}, not an integer")
            return found

        return item

    def extreme(self, function: str, items: Value, node: Node) -> Value:
        def found(env: Env) -> Any:
            values = items(env)
            if not values:
                raise ShapeError(f"{node}: the list is empty")
            return extreme(function, values)

        return found

    def measured(self, node: Node) -> Value:
        name = str(node.value)
        if name not in self.present:
            return self.refusal(f"{node} asks for {name}, which is absent")
        shape = self.shape_of(name)
        if node.op is Op.RANK:
            return lambda env: len(shape(env))
        return lambda env: product(shape(env), node)

    def arithmetic(self, node: Node) -> Value:
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

    def division(self, node: Node, a: Value, b: Value) -> Value:
        compute, check, right = _ARITHMETIC[node.op], self.check, node.args[1]

        def divide(env: Env) -> Any:
            dividend, divisor = a(env), b(env)
            if divisor.__class__ is not int or divisor == 0:
                check(divisor != 0, lambda: f"{node} divides by {right}, which is 0")
            return within(compute(dividend, divisor), node)

        return divide

    def sizes(self, node: Node) -> Value:
        """A list of numbers that is computed."""
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
                return lambda env: reshape(source(env), wanted(env), str(node), self.check)
            case Op.ELEMENT:
                lists, at = self.value(node.args[0]), self.number(node.args[1])
                return lambda env: item_of(lists(env), at(env), node.args[0])
        raise AssertionError(node.op)

    # ------------------------------------------------------------------------------------------------------ conditions

    def condition(self, node: Node) -> Value:
        """What computes a condition: True, False or a symbolic bool."""
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

    def truth(self, node: Node) -> Value:
        """Whether a number is not 0, or the condition that it is."""
        value = self.value(node)
        if node.kind is Kind.BOOL:
            return value
        if node.kind is Kind.OTHER:
            return lambda env: bool(value(env))
        constant = constant_of(value)
        return (lambda env: value(env) != 0) if constant is None else always(constant != 0)

    def comparison(self, node: Node) -> Value:
        a, b = map(self.value, node.args)
        compare = _COMPARE[str(node.value)]
        if all(arg.kind is Kind.SIZES for arg in node.args):

            def same(env: Env) -> Any:
                return compare(tuple(a(env)), tuple(b(env)))

            return same
        mixed = {arg.kind for arg in node.args} == {Kind.BOOL, Kind.NUMBER}

        def compared(env: Env) -> Any:
            x, y = a(env), b(env)
            if mixed:  # a symbolic size is not compared with a bool
                x, y = (int(v) if v.__class__ is bool else v for v in (x, y))
            try:
                return compare(x, y)
            except TypeError:
                raise ShapeError(f"{node}: cannot compare {show(x)} with {show(y)}") from None

        return compared

    def connective(self, node: Node) -> Value:
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

    # ---------------------------------------------------------------------------------------------------------- dtypes

    def dtype(self, node: Node) -> Value:
        """What computes a dtype."""
        match node.op:
            case Op.CHOICE:
                return self.choice(node)
            case Op.REFUSED:
                return self.refused(node)
            case Op.DTYPE:
                try:
                    return always(self.system.from_name(str(node.value)))
                except KeyError:
                    raise self.fault(f"dtype {node.value} does not exist here") from None
            case Op.DTYPE_OF:
                assert isinstance(node.value, tuple)
                return self.first_dtype(node.value, node.args)
            case Op.DTYPE_ATTR:
                return self.dtype_attr(str(node.value))
            case Op.PROMOTE:
                return self.promotion(node)
            case Op.FLOATING | Op.INTEGRAL_SUM | Op.REAL:
                inner, apply = self.dtype(node.args[0]), getattr(self.system, node.op.name.lower())
                return lambda env: apply(inner(env))
        raise AssertionError(node.op)

    def first_dtype(self, names: Sequence[str], element: Sequence[Node]) -> Value:
        name = next((name for name in names if name in self.present), None)
        if name is None:
            several = f"{', '.join(names)}, which are" if len(names) > 1 else f"{names[0]}, which is"
            return self.refusal(f"a dtype is that of {several} absent; write '… if {names[0]} else …'")
        # The tensors of a list output have the dtypes of those of the input list with its index.
        if not element or (element[0].op is Op.INDEX and element[0].value != self.index_of[name]):
            return self.dtype_of(name)
        slot, at = self.input_slot[name], self.number(element[0])

        def of_element(env: Env) -> Any:
            tensor = item_of(env[slot], at(env), name)
            if tensor is None:
                raise ShapeError(f"{name}[{at(env)}] is None, its dtype is asked for")
            return tensor.dtype

        return of_element

    def dtype_attr(self, name: str) -> Value:
        slot, system = self.attrs[name], self.system

        def from_attr(env: Env) -> Any:
            dtype = system.from_attr(env[slot])
            if dtype is None:
                raise ShapeError(f"attr {name} is {show(env[slot])}, which names no dtype")
            return dtype

        return from_attr

    def promotion(self, node: Node) -> Value:
        operands = [self.operand(argument) for argument in node.args]
        system = self.system

        def promoted(env: Env) -> Any:
            try:
                return system.promote([operand(env) for operand in operands])
            except ValueError as error:
                raise ShapeError(f"{node}: {error}") from None

        return promoted

    def operand(self, node: Node) -> Value:
        match node.op:
            case Op.TENSOR if node.value in self.present:
                given = self.input_slot[str(node.value)]
                return lambda env: operand_of(env[given])
            case Op.TENSOR:
                return self.first_dtype((str(node.value),), ())
            case Op.SCALAR if node.args[0].kind is Kind.OTHER:
                number, of = self.value(node.args[0]), self.dtype_attr(str(node.args[0].value))
                return lambda env: (
                    Operand(None, number=number(env)) if isinstance(number(env), complex) else Operand(of(env))
                )
            case Op.SCALAR:
                number = self.value(node.args[0])
                return lambda env: Operand(None, number=number(env))
        dtype = self.dtype(node)
        return lambda env: Operand(dtype(env))


def _perhaps(slot: int, name: str) -> Value:
    """The value of a slot that some patterns leave empty."""

    def value(env: Env) -> Any:
        found = env[slot]
        if found is None:
            raise ShapeError(f"{name} is not given: its input has another form here")
        return found

    return value


def _applied(compute: Callable[[Any, Any], Any], a: Value, constant: int, slot: int | None) -> Value:
    return (lambda env: compute(a(env), constant)) if slot is None else (lambda env: compute(env[slot], constant))

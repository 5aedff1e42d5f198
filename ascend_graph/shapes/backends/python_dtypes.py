"""Closures for the dtypes of relations, and the state that all closures share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic

from ascend_graph.shapes.arithmetic import item_of, operand_of, show
from ascend_graph.shapes.backends.program import (
    Env,
    T,
    Target,
    Value,
    always,
    dtype_of,
    known_condition,
    shape_of,
    slot_dtype,
    slot_value,
)
from ascend_graph.shapes.dtypes import PromotionOperand
from ascend_graph.shapes.errors import RelationError, ShapeError
from ascend_graph.shapes.form import ExpressionKind, ExpressionNode, Form, Match, Op


class ScopeState(Generic[T]):
    """Slots, names and errors of one compiled relation."""

    def __init__(self, relation: object, form: Form, target: Target[T]) -> None:
        self.relation, self.form = relation, form
        self.present, self.system = target.present, target.system
        self.check, self.decide = target.check, target.decide
        self.attrs = {name: slot for slot, (name, _) in enumerate(target.attrs)}
        self.input_slot = {name: len(self.attrs) + number for number, name in enumerate(form.inputs)}
        matches = [step for step in form.steps if isinstance(step, Match)]
        self.index_of = {match.input: match.index for match in matches}
        #: Inputs that are certainly one tensor; an input without dimensions may also stand for a list.
        self.single = {m.input for m in matches if m.index is None and any(p.items is not None for p in m.patterns)}
        #: The inputs that give each dimension or group.
        self.givers: dict[str, list[str]] = {}
        for match in matches:
            for item in [item for pattern in match.patterns for item in pattern.items or ()]:
                if item.axes is None or item.axes.op is not Op.RANGE:  # which takes as many as are known
                    self.givers.setdefault("..." if item.what == "ellipsis" else item.name, []).append(match.input)
        self.first = len(self.attrs) + len(form.inputs)
        self.template: list[Any] = []
        #: The slots of dimensions, groups and definitions; then those of list indices and of list lengths.
        self.slots: dict[str, int] = {}
        self.indices: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        #: Slots that hold a value in every run; a conditional pattern may leave others empty.
        self.bound: set[int] = set()
        #: Slots that hold a value in some runs.
        self.filled: set[int] = set()
        #: Slots of dimensions and groups that are sizes of an input.
        self.sizes_of_inputs: set[int] = set()
        self.ellipsis: int | None = None
        #: The first source of each slot's value, for messages.
        self.origin: dict[int, str] = {}
        #: State of the list of tensors being compiled: slots that differ per tensor, and slots that each finds empty.
        self.elements: dict[str, int] = {}
        self.scratches: list[int] = []

    def new_slot(self, initial: Any = None) -> int:
        self.template.append(initial)
        return self.first + len(self.template) - 1

    def fault(self, message: str) -> RelationError:
        return RelationError(f"{self.relation}: {message}")

    def refusal(self, message: str) -> Value:
        """Return a closure that raises when it is evaluated: the value of a name that only an absent input gives.

        A condition may keep it from being evaluated.
        """
        error = self.fault(message)

        def refuse(env: Env) -> Any:
            raise error

        return refuse

    def shape_of(self, name: str) -> Value:
        """Return a closure for the shape of a present input, or for those of a list."""
        slot = self.input_slot[name]
        return (lambda env: env[slot].shape) if name in self.single else (lambda env: shape_of(env[slot]))

    def dtype_of(self, name: str) -> Value:
        """Return a closure for the dtype of a present input, or of the first of a list."""
        slot = self.input_slot[name]
        return slot_dtype(slot) if name in self.single else (lambda env: dtype_of(env[slot]))

    def dtypes_of(self, name: str) -> Callable[[Env], Iterable[Any]]:
        """Return a closure for the dtypes of a present input: of each tensor that a list has."""
        slot, one = self.input_slot[name], self.dtype_of(name)
        if name in self.single:
            return lambda env: (one(env),)

        def every(env: Env) -> list[Any]:
            given = env[slot] if isinstance(env[slot], list | tuple) else (env[slot],)
            return [tensor.dtype for tensor in given if tensor is not None]

        return every

    def choice(self, node: ExpressionNode) -> Value:
        condition, then, otherwise = node.args
        test = self.condition(condition)
        known = known_condition(test)
        if known is not None:
            return self.value(then if known else otherwise)
        a, b = self.value(then), self.value(otherwise)
        if (
            then.kind is not otherwise.kind
            and ExpressionKind.BOOL in (then.kind, otherwise.kind)
            and node.kind is ExpressionKind.NUMBER
        ):
            a, b = self.number(then), self.number(otherwise)
        return lambda env: a(env) if test(env) else b(env)

    def refused(self, node: ExpressionNode) -> Value:
        assert isinstance(node.value, tuple)
        subject, expected = node.value
        found = self.value(node.args[0]) if node.args else None

        def refuse(env: Env) -> Any:
            given = "" if found is None else f" is {show(found(env))}"
            raise ShapeError(f"{subject}{given}; expected {expected}")

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
        """Return the slot of an index."""
        if name not in self.indices:
            self.indices[name] = self.new_slot()
        return self.indices[name]

    def value(self, node: ExpressionNode) -> Value:
        """Return a closure for a node: an integer, a list, a condition, a dtype or an attr's value, by its kind."""
        raise NotImplementedError

    def condition(self, node: ExpressionNode) -> Value:
        """Return a closure for a condition: True, False or a symbolic bool."""
        raise NotImplementedError

    def number(self, node: ExpressionNode) -> Value:
        """Return a closure for a node as an integer; a condition gives 1 or 0."""
        raise NotImplementedError


class DtypeScope(ScopeState[T]):
    """Compiler of dtypes."""

    def dtype(self, node: ExpressionNode) -> Value:
        """Return a closure for a dtype."""
        match node.op:
            case Op.CHOICE:
                return self.choice(node)
            case Op.REFUSED:
                return self.refused(node)
            case Op.DTYPE:
                try:
                    return always(self.system.from_name(str(node.value)))
                except KeyError:
                    raise self.fault(f"dtype {node.value} does not exist in this torch; write another") from None
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

    def first_dtype(self, names: Sequence[str], element: Sequence[ExpressionNode]) -> Value:
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
                raise ShapeError(f"{name}[{at(env)}] is None; expected a tensor, for its dtype is asked for")
            return tensor.dtype

        return of_element

    def dtype_attr(self, name: str) -> Value:
        slot, system = self.attrs[name], self.system

        def from_attr(env: Env) -> Any:
            dtype = system.from_attr(env[slot])
            if dtype is None:
                line = f". Write: {name} if {name} is not None else …" if env[slot] is None else ""
                raise ShapeError(f"attr {name} is {show(env[slot])}; expected a dtype{line}")
            return dtype

        return from_attr

    def promotion(self, node: ExpressionNode) -> Value:
        operands = [self.operand(argument) for argument in node.args]
        system = self.system

        def promoted(env: Env) -> Any:
            try:
                return system.promote([operand(env) for operand in operands])
            except ValueError as error:
                raise ShapeError(f"{node}: {error}") from None

        return promoted

    def operand(self, node: ExpressionNode) -> Value:
        match node.op:
            case Op.TENSOR if node.value in self.present:
                given = self.input_slot[str(node.value)]
                return lambda env: operand_of(env[given])
            case Op.TENSOR:
                return self.first_dtype((str(node.value),), ())
            case Op.SCALAR if node.args[0].kind is ExpressionKind.OTHER:
                number, of = self.value(node.args[0]), self.dtype_attr(str(node.args[0].value))
                return lambda env: (
                    PromotionOperand(None, number=number(env))
                    if isinstance(number(env), complex)
                    else PromotionOperand(of(env))
                )
            case Op.SCALAR:
                number = self.value(node.args[0])
                return lambda env: PromotionOperand(None, number=number(env))
        dtype = self.dtype(node)
        return lambda env: PromotionOperand(dtype(env))


def _perhaps(slot: int, name: str) -> Value:
    """Return a closure for a slot that some patterns leave empty."""

    def value(env: Env) -> Any:
        found = env[slot]
        if found is None:
            raise ShapeError(
                f"{name} is not given, for its input has another form here; write a condition on the input"
            )
        return found

    return value

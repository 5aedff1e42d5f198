"""Conditions and arithmetic on the interpreter's values; one that is not certain gives an unknown value."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ascend_graph.adoption.interpreter.values import (
    UNDEFINED,
    UNKNOWN,
    ArgumentValue,
    Choice,
    Constant,
    Dtype,
    Input,
    NewTensor,
    Operation,
    Options,
    Property,
    Record,
    Several,
    Sizes,
    SizeValue,
    Unknown,
    assumed,
    is_known,
)


def truth(value: Any) -> Any:
    """Return a value as a condition."""
    if isinstance(value, Constant):
        return Constant(bool(value.value))
    if isinstance(value, Input):
        return Property(value.name, "present")
    if isinstance(value, NewTensor | Sizes | Several | SizeValue):
        return UNKNOWN
    if isinstance(value, Choice) and (value.then, value.otherwise) == (Constant(True), Constant(False)):
        return value.condition
    if isinstance(value, Choice) and (value.then, value.otherwise) == (Constant(False), Constant(True)):
        return negated(value.condition)
    return value


def is_condition(value: Any) -> bool:
    """Return whether a value is true or false, or an argument that is asked for."""
    if isinstance(value, Choice):
        return is_condition(value.then) and is_condition(value.otherwise)
    if isinstance(value, Constant):
        return isinstance(value.value, bool)
    if isinstance(value, Operation):
        return value.operator in (*_OPPOSITES, "and", "or", "not")
    return isinstance(value, ArgumentValue | Input | Unknown) or (
        isinstance(value, Property) and value.what in ("present", "contiguous")
    )


def negated(value: Any) -> Any:
    """Return the opposite of a condition."""
    if isinstance(value, Constant):
        return Constant(not value.value)
    if isinstance(value, Operation) and value.operator in _OPPOSITES:
        return Operation(_OPPOSITES[value.operator], value.operands)
    if isinstance(value, Operation) and value.operator == "not":
        return value.operands[0]
    return UNKNOWN if not is_known(value) else Operation("not", (value,))


def is_emptiness(condition: Any) -> bool:
    """Return whether a condition holds for tensors without items, or absent ones, alone."""
    if not isinstance(condition, Operation):
        return False
    if condition.operator in ("and", "or"):
        return (any if condition.operator == "and" else all)(map(is_emptiness, condition.operands))
    if condition.operator == "not":
        return isinstance(condition.operands[0], Property) and condition.operands[0].what == "present"
    left, right = condition.operands
    of_size = isinstance(left, SizeValue) or (isinstance(left, Property) and left.what == "numel")
    return of_size and (condition.operator, right) in (("==", Constant(0)), ("<=", Constant(0)), ("<", Constant(1)))


_OPPOSITES = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def combined(operator: str, parts: list[Any]) -> Any:
    """Return conditions joined by ``and`` or ``or``."""
    found = []
    for one in parts:
        if isinstance(one, Constant):
            if bool(one.value) == (operator == "or"):
                return one
        else:
            found.append(one)
    if not found:
        return Constant(operator == "and")
    if len(found) == 1:
        return found[0]
    return Operation(operator, tuple(found))


def choice(condition: Any, then: Any, otherwise: Any) -> Any:
    """Return one of two values by a condition; an undefined one is never chosen."""
    if then == otherwise and not isinstance(then, Input):
        return then
    opposite, both = negated(condition), (then, otherwise)
    then, otherwise = assumed(then, condition, opposite), assumed(otherwise, opposite, condition)
    if not isinstance(then, Input):
        if assumed(both[1], condition, opposite) == then:
            return both[1]  # dtype(x) == float16 ? float16 : dtype(x)
        if assumed(both[0], opposite, condition) == otherwise:
            return both[0]
    if isinstance(then, Input) and otherwise == then:
        return replace(then, contiguous=_contiguous(condition, then, otherwise))
    if otherwise in (then, UNDEFINED):
        return then
    if then == UNDEFINED:
        return otherwise
    if isinstance(condition, Constant):
        return then if condition.value else otherwise
    if not is_known(condition) or isinstance(then, Unknown) or isinstance(otherwise, Unknown):
        return UNKNOWN
    if isinstance(then, Several) and isinstance(otherwise, Several) and len(then.items) == len(otherwise.items):
        return Several(tuple(choice(condition, a, b) for a, b in zip(then.items, otherwise.items, strict=True)))
    if isinstance(then, Record) and isinstance(otherwise, Record):
        names = dict.fromkeys(name for one in (then, otherwise) for name, _ in one.members)
        return Record(tuple(sorted((n, choice(condition, then.member(n), otherwise.member(n))) for n in names)))
    if isinstance(then, Options) and isinstance(otherwise, Options):
        if then.dtype is None or otherwise.dtype is None:
            return then if then == otherwise else UNKNOWN
        on_device = then.on_device if then.on_device == otherwise.on_device else False
        return Options(choice(condition, then.dtype, otherwise.dtype), on_device)
    if (
        isinstance(condition, Operation)
        and condition.operator in ("==", "!=")
        and condition.operands[1] == Constant(None)
    ):
        given, absent = (then, otherwise) if condition.operator == "!=" else (otherwise, then)
        if absent == Constant(None) and given == condition.operands[0]:
            return given  # n.has_value() ? n : nullopt
    present = isinstance(condition, Property) and condition.what == "present"
    if present and then == Input(condition.tensor) and otherwise == Constant(None):
        return then  # x.has_value() ? *x : Tensor()
    return Choice(condition, then, otherwise)


def _contiguous(condition: Any, then: Input, otherwise: Input) -> bool | None:
    """Return whether an argument has contiguous memory after a branch: ``x.is_contiguous() ? x : x.contiguous()`` has."""
    asked = Property(then.name, "contiguous")
    if then.contiguous == otherwise.contiguous:
        return then.contiguous
    made = otherwise if condition == asked else then if condition == negated(asked) else None
    return True if made is not None and made.contiguous else None


def compared(operator: str, left: Any, right: Any) -> Any:
    """Return a comparison as a condition."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        try:
            return Constant(
                {
                    "==": left.value == right.value, "!=": left.value != right.value,
                }.get(operator)
                if operator in ("==", "!=")
                else {
                    "<": left.value < right.value, "<=": left.value <= right.value,
                    ">": left.value > right.value, ">=": left.value >= right.value,
                }[operator]
            )  # fmt: skip
        except TypeError:
            return UNKNOWN
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Input) and other == Constant(None):
            present = Property(one.name, "present")
            return present if operator == "!=" else negated(present)
        if isinstance(one, NewTensor) and other == Constant(None):
            return Constant(operator == "!=")
    if isinstance(left, Dtype) and isinstance(right, Dtype):
        return Constant((left == right) == (operator == "=="))
    if not is_known(left) or not is_known(right) or isinstance(left, Sizes | NewTensor | Input | Several):
        return UNKNOWN
    return Operation(operator, (left, right))


def least(value: Any, positive: Any = None) -> float:
    """Return the least that a number may be, as sizes and arguments are not negative; -inf if a size is subtracted.

    Args:
        value: The number.
        positive: A number that is at least 1, as what is divided by it has a quotient.
    """
    if value == positive:
        return 1
    if isinstance(value, Constant):
        return value.value if isinstance(value.value, int) else -math.inf
    if isinstance(value, Choice):
        return min(least(value.then, positive), least(value.otherwise, positive))
    if not isinstance(value, Operation):
        return 0
    bounds = [least(one, positive) for one in value.operands]
    if value.operator == "-" and isinstance(value.operands[1], Constant):
        return bounds[0] - bounds[1]
    if value.operator == "+":
        return sum(bounds)
    if value.operator in ("max", "min"):
        return max(bounds) if value.operator == "max" else min(bounds)
    return -math.inf if value.operator == "-" or min(bounds) < 0 else 0


def is_below_zero(value: Any, divisor: Any) -> bool:
    """Return whether a dividend is negative in some calls: ``n - 1``. A window that does not fit is not such a call."""
    return -math.inf < least(value, divisor) < 0


def quotient(left: Any, right: Any) -> Any:
    """Return a quotient of C++ whose dividend may be negative: it rounds towards zero."""
    down = operation("//", left, right)
    if isinstance(left, Constant):
        return down
    up = operation("-", Constant(0), operation("//", operation("-", Constant(0), left), right))
    return choice(compared(">=", left, Constant(0)), down, up)


def operation(operator: str, left: Any, right: Any) -> Any:
    """Return an arithmetic operation on sizes and numbers."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        a, b = left.value, right.value
        if not isinstance(a, int) or not isinstance(b, int):
            return UNKNOWN
        if operator in ("//", "%") and (b <= 0 or a < 0):
            return UNKNOWN  # C++ rounds towards zero, Python down
        return Constant(
            {
                "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b if abs(a) < 2**40 and abs(b) < 2**20 else 0,
                "//": lambda: a // b, "%": lambda: a % b, "max": lambda: max(a, b), "min": lambda: min(a, b),
            }[operator]()
        )  # fmt: skip
    if operator in ("+", "-") and right == Constant(0) and type(right.value) is int:
        return left if isinstance(left, SizeValue | Property | Operation) else _operation(operator, left, right)
    if operator == "+" and left == Constant(0) and isinstance(right, SizeValue | Property | Operation):
        return right
    return _operation(operator, left, right)


def _operation(operator: str, left: Any, right: Any) -> Any:
    numbers = Constant | ArgumentValue | SizeValue | Property | Operation | Choice
    if not isinstance(left, numbers) or not isinstance(right, numbers) or not (is_known(left) and is_known(right)):
        return UNKNOWN
    if any(isinstance(one, Constant) and not isinstance(one.value, int) for one in (left, right)):
        return UNKNOWN
    return Operation(operator, (left, right))

"""Values of the interpreter: sizes, shapes, dtypes and tensors as trees over the arguments of an operator."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

_serials = count(1)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that the sources do not state in a form that is understood."""

    #: The expression that is not understood, as written; empty if it is not known. All unknown values are equal.
    cause: str = field(default="", compare=False)


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Undefined:
    """A variable that nothing was assigned to: reading it is an error, so any value may stand for it."""


UNDEFINED = Undefined()


@dataclass(frozen=True, slots=True)
class Closure:
    """A function that was written in place."""

    text: str
    #: The variables outside of it that it may change.
    writes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TorchOperator:
    """An operator that a function looks up in torch's dispatcher, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, a bool, a string, or None."""

    value: Any


@dataclass(frozen=True, slots=True)
class ArgumentValue:
    """An argument of the operator that is not a tensor."""

    name: str


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor argument, or a list of tensors."""

    name: str
    #: True if its memory was made contiguous, None if that depends on the call. Its values are those of the argument.
    contiguous: bool | None = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Element:
    """A tensor of a list argument, by its constant index."""

    name: str
    index: int


@dataclass(frozen=True, slots=True)
class SizeValue:
    """Size of a tensor argument along an axis; a negative axis counts from the end."""

    tensor: str
    axis: int


@dataclass(frozen=True, slots=True)
class Property:
    """Property of a tensor argument: ``rank``, ``numel``, ``present``, ``contiguous``, ``stride:0``, ``strides``, ``len``."""

    tensor: str
    what: str


@dataclass(frozen=True, slots=True)
class Operation:
    """Operator with its operands: arithmetic, comparison, ``and``, ``or``, ``not``, ``item``."""

    operator: str
    operands: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of two values, by a condition."""

    condition: Any
    then: Any
    otherwise: Any


@dataclass(frozen=True, slots=True)
class Slice:
    """Consecutive sizes of a tensor argument; ``stop`` is None for the end, or negative from the end."""

    tensor: str
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class Sizes:
    """A shape: sizes and slices of shapes."""

    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SizeRun:
    """Consecutive sizes of a tensor argument between bounds that only the call knows; ``stop`` is None for the end."""

    tensor: str
    start: Any
    stop: Any


@dataclass(frozen=True, slots=True)
class Repeated:
    """A size that stands as often as only the call knows."""

    item: Any
    count: Any


@dataclass(frozen=True, slots=True)
class Assembled:
    """A shape whose number of dimensions only the call knows: sizes, slices, parts and repeated sizes."""

    parts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Dtype:
    """A dtype by torch's name."""

    name: str


@dataclass(frozen=True, slots=True)
class DtypeOf:
    """The dtype of a tensor argument."""

    tensor: str


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a new tensor: ``on_device`` is False if another device is asked for; what they do not name is None."""

    dtype: Any = None
    on_device: bool | None = None

    def over(self, other: Options) -> Options:
        """Return these options, with those of another where these name none."""
        dtype = other.dtype if self.dtype is None else self.dtype
        return Options(dtype, other.on_device if self.on_device is None else self.on_device)


@dataclass(frozen=True, slots=True)
class NewTensor:
    """A tensor that the function makes; ``like`` names the argument whose strides it has."""

    sizes: Any
    dtype: Any
    like: str = ""
    #: Number of the allocation; two that are alike are equal and have different numbers.
    serial: int = field(default_factory=lambda: next(_serials), compare=False)
    #: True for a tensor on the CPU, which is none of the operator's until it is moved.
    on_host: bool = False
    #: What a view is made of: a tensor, the method, and its arguments. None for a tensor with memory of its own.
    view: tuple[Any, str, tuple[Any, ...]] | None = None


@dataclass(frozen=True, slots=True)
class Several:
    """Several values: a tuple, a list that is returned."""

    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """A structure: its members that are known, by name."""

    members: tuple[tuple[str, Any], ...] = ()

    def member(self, name: str) -> Any:
        """Return the value of a member."""
        return dict(self.members).get(name, UNKNOWN)

    def replaced(self, name: str, value: Any) -> Record:
        """Return the structure after an assignment to a member."""
        return Record(tuple(sorted((dict(self.members) | {name: value}).items())))


@dataclass(frozen=True, slots=True)
class Device:
    """A device: that of an argument, or another."""

    is_operators: bool


def is_known(value: Any) -> bool:
    """Return whether no part of a value is unknown."""
    if isinstance(value, Unknown | Undefined | Closure):
        return False
    if isinstance(value, Operation):
        return all(map(is_known, value.operands))
    if isinstance(value, Choice):
        return is_known(value.condition) and is_known(value.then) and is_known(value.otherwise)
    if isinstance(value, Sizes | Several):
        return all(map(is_known, value.items))
    if isinstance(value, Assembled):
        return all(map(is_known, value.parts))
    if isinstance(value, SizeRun):
        return is_known(value.start) and is_known(value.stop)
    if isinstance(value, Repeated):
        return is_known(value.item) and is_known(value.count)
    if isinstance(value, NewTensor):
        return is_known(value.sizes) and is_known(value.dtype) and (value.view is None or is_known(value.view[0]))
    if isinstance(value, Options):
        return value.dtype is None or is_known(value.dtype)
    return True


def cause_of(value: Any) -> str:
    """Return the cause of the first unknown part of a value; empty if there is none."""
    if isinstance(value, Unknown):
        return value.cause
    inner: tuple[Any, ...] = ()
    if isinstance(value, Operation):
        inner = value.operands
    elif isinstance(value, Choice):
        inner = (value.condition, value.then, value.otherwise)
    elif isinstance(value, Sizes | Several):
        inner = value.items
    elif isinstance(value, NewTensor):
        inner = (value.sizes, value.dtype)
    elif isinstance(value, Options):
        inner = (value.dtype,)
    return next((cause for one in inner if (cause := cause_of(one))), "")


def assumed(value: Any, condition: Any, opposite: Any) -> Any:
    """Return a value where a condition holds, and its opposite does not."""
    if isinstance(value, DtypeOf) and isinstance(condition, Operation) and condition.operator == "==":
        left, right = condition.operands
        same = (
            {left: right, right: left}.get(value) if isinstance(left, DtypeOf) or isinstance(right, DtypeOf) else None
        )
        return same if isinstance(same, Dtype) else value
    if isinstance(value, Choice):
        if condition == value.condition:
            return assumed(value.then, condition, opposite)
        if opposite == value.condition:
            return assumed(value.otherwise, condition, opposite)
        then, otherwise = (assumed(one, condition, opposite) for one in (value.then, value.otherwise))
        return then if then == otherwise else Choice(assumed(value.condition, condition, opposite), then, otherwise)
    if isinstance(value, Operation):
        return Operation(value.operator, tuple(assumed(one, condition, opposite) for one in value.operands))
    if isinstance(value, Sizes | Several):
        return type(value)(tuple(assumed(one, condition, opposite) for one in value.items))
    if isinstance(value, NewTensor) and value.view is None:
        sizes, dtype = (assumed(one, condition, opposite) for one in (value.sizes, value.dtype))
        return replace(value, sizes=sizes, dtype=dtype)
    return value


def node_count(value: Any) -> int:
    """Return the number of nodes of a value."""
    if isinstance(value, Operation):
        return 1 + sum(map(node_count, value.operands))
    if isinstance(value, Choice):
        return 1 + node_count(value.condition) + node_count(value.then) + node_count(value.otherwise)
    if isinstance(value, Sizes | Several):
        return 1 + sum(map(node_count, value.items))
    if isinstance(value, Record):
        return 1 + max((node_count(one) for _, one in value.members), default=0)
    if isinstance(value, NewTensor):
        inner = 0 if value.view is None else node_count(value.view[0])
        return 1 + node_count(value.sizes) + node_count(value.dtype) + inner
    return 1


def allocations(value: Any) -> tuple[int, ...]:
    """Return the numbers of the allocations that a value may be."""
    if isinstance(value, NewTensor):
        return (value.serial,)
    if isinstance(value, Choice):
        return (*allocations(value.then), *allocations(value.otherwise))
    return ()


def without_strides(value: Any) -> Any:
    """Return a value whose tensors have shapes and dtypes alone, arguments that are returned, too."""
    if isinstance(value, Input):
        return NewTensor(Sizes((Slice(value.name),)), DtypeOf(value.name))
    if isinstance(value, NewTensor):
        return NewTensor(value.sizes, value.dtype, on_host=value.on_host)
    if isinstance(value, Choice):
        return Choice(value.condition, without_strides(value.then), without_strides(value.otherwise))
    if isinstance(value, Several):
        return Several(tuple(map(without_strides, value.items)))
    return value

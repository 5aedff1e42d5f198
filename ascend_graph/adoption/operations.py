"""Operations on the interpreter's values; one that is not certain gives an unknown value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ascend_graph.adoption.values import (
    UNDEFINED,
    UNKNOWN,
    ArgumentValue,
    Choice,
    Constant,
    Device,
    Dtype,
    DtypeOf,
    Element,
    Input,
    NewTensor,
    Operation,
    Options,
    Property,
    Several,
    Sizes,
    SizeValue,
    Slice,
    Unknown,
    is_known,
)

#: Options that name no device: those of a tensor on the CPU.
HOST_OPTIONS = Options(Dtype("float32"), False)


@dataclass(frozen=True, slots=True)
class SizesIterator:
    """Iterator over sizes: their begin or their end."""

    sizes: Sizes
    offset: int
    is_end: bool


def node_count(value: Any) -> int:
    """Return the number of nodes of a value."""
    if isinstance(value, Operation):
        return 1 + sum(map(node_count, value.operands))
    if isinstance(value, Choice):
        return 1 + node_count(value.condition) + node_count(value.then) + node_count(value.otherwise)
    if isinstance(value, Sizes | Several):
        return 1 + sum(map(node_count, value.items))
    if isinstance(value, NewTensor):
        return 1 + node_count(value.sizes) + node_count(value.dtype)
    return 1


def truth(value: Any) -> Any:
    """Return a value as a condition."""
    if isinstance(value, Constant):
        return Constant(bool(value.value))
    if isinstance(value, Input):
        return Property(value.name, "present")
    if isinstance(value, NewTensor | Sizes | Several | SizeValue):
        return UNKNOWN
    return value


def negated(value: Any) -> Any:
    """Return the opposite of a condition."""
    if isinstance(value, Constant):
        return Constant(not value.value)
    if isinstance(value, Operation) and value.operator in _OPPOSITES:
        return Operation(_OPPOSITES[value.operator], value.operands)
    if isinstance(value, Operation) and value.operator == "not":
        return value.operands[0]
    return UNKNOWN if not is_known(value) else Operation("not", (value,))


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
    present = isinstance(condition, Property) and condition.what == "present"
    if present and then == Input(condition.tensor) and otherwise == Constant(None):
        return then  # x.has_value() ? *x : Tensor()
    return Choice(condition, then, otherwise)


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


def operation(operator: str, left: Any, right: Any) -> Any:
    """Return an arithmetic operation on sizes and numbers."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        a, b = left.value, right.value
        if not isinstance(a, int) or not isinstance(b, int):
            return UNKNOWN
        if operator in ("//", "%") and b == 0:
            return UNKNOWN
        return Constant(
            {
                "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b if abs(a) < 2**40 and abs(b) < 2**20 else 0,
                "//": lambda: a // b, "%": lambda: a % b, "max": lambda: max(a, b), "min": lambda: min(a, b),
            }[operator]()
        )  # fmt: skip
    numbers = Constant | ArgumentValue | SizeValue | Property | Operation | Choice
    if not isinstance(left, numbers) or not isinstance(right, numbers) or not (is_known(left) and is_known(right)):
        return UNKNOWN
    if any(isinstance(one, Constant) and not isinstance(one.value, int) for one in (left, right)):
        return UNKNOWN
    return Operation(operator, (left, right))


def length(value: Any) -> Any:
    """Return the number of items."""
    if isinstance(value, Sizes):
        slices = [one for one in value.items if isinstance(one, Slice)]
        if not slices:
            return Constant(len(value.items))
        if len(value.items) == 1 and value.items[0] == Slice(slices[0].tensor):
            return Property(slices[0].tensor, "rank")
        return UNKNOWN
    if isinstance(value, Input):
        return Property(value.name, "len")
    return UNKNOWN


def item_of(owner: Any, index: Any) -> Any:
    """Return an item of sizes, a tuple, a list argument or an attr by its index."""
    if isinstance(owner, Choice):
        return choice(owner.condition, item_of(owner.then, index), item_of(owner.otherwise, index))
    number = index.value if isinstance(index, Constant) else None
    if isinstance(owner, Input) and isinstance(number, int) and number >= 0:
        return Element(owner.name, number)
    if isinstance(owner, Several) and isinstance(number, int) and -len(owner.items) <= number < len(owner.items):
        return owner.items[number]
    if isinstance(owner, ArgumentValue) and isinstance(number, int):
        return Operation("item", (owner, Constant(number)))
    if not isinstance(owner, Sizes):
        return UNKNOWN
    items = owner.items
    if number is None:
        # x.size(x.dim() - 1) is x.size(-1).
        if len(items) == 1 and isinstance(items[0], Slice) and items[0] == Slice(items[0].tensor):
            back = from_end(index, items[0].tensor)
            if back is not None:
                return SizeValue(items[0].tensor, back)
            if isinstance(index, Choice):
                return choice(index.condition, item_of(owner, index.then), item_of(owner, index.otherwise))
        return UNKNOWN
    if not isinstance(number, int) or isinstance(number, bool):
        return UNKNOWN
    if not any(isinstance(one, Slice) for one in items):
        return items[number] if -len(items) <= number < len(items) else UNKNOWN
    position = number if number >= 0 else len(items) + number
    if number >= 0:
        for n, one in enumerate(items):
            if isinstance(one, Slice):
                if one.stop is not None and one.stop >= 0 and one.start + number - n >= one.stop:
                    return UNKNOWN
                return SizeValue(one.tensor, one.start + number - n) if one.start >= 0 else UNKNOWN
            if n == position:
                return one
    else:
        for n, one in enumerate(reversed(items)):
            if isinstance(one, Slice):
                end = 0 if one.stop is None else one.stop
                return SizeValue(one.tensor, end + number + n) if end <= 0 else UNKNOWN
            if n == -number - 1:
                return one
    return UNKNOWN


def from_end(index: Any, tensor: str) -> int | None:
    """Return the negative axis that ``x.dim() - n`` is, or None."""
    if isinstance(index, Operation) and index.operator == "-":
        left, right = index.operands
        if left == Property(tensor, "rank") and isinstance(right, Constant) and isinstance(right.value, int):
            return -right.value if right.value > 0 else None
    return None


def range_of(tensor: str, first: Any, last: Any) -> tuple[Any, ...] | None:
    """Return the sizes of an argument from one axis to another, or None."""
    start = first.value if isinstance(first, Constant) else from_end(first, tensor)
    if last == Property(tensor, "rank"):
        stop = None
    else:
        stop = last.value if isinstance(last, Constant) else from_end(last, tensor)
        if stop is None:
            return None
    if not isinstance(start, int) or isinstance(start, bool):
        return None
    if isinstance(stop, int) and stop >= 0 and start >= 0:
        return tuple(SizeValue(tensor, n) for n in range(start, stop)) if stop - start <= 16 else None
    return (Slice(tensor, start, stop),)


def cut(owner: Sizes, lower: Any, upper: Any) -> Any:
    """Return a part of a shape, as Python slices it."""
    bounds: list[int | None] = []
    for one in (lower, upper):
        if one is None or (isinstance(one, Constant) and one.value is None):
            bounds.append(None)
        elif isinstance(one, Constant) and isinstance(one.value, int):
            bounds.append(one.value)
        elif len(owner.items) == 1 and isinstance(owner.items[0], Slice):
            back = from_end(one, owner.items[0].tensor)
            if back is None:
                return UNKNOWN
            bounds.append(back)
        else:
            return UNKNOWN
    low, high = bounds
    if not any(isinstance(one, Slice) for one in owner.items):
        return Sizes(owner.items[low:high])
    only = owner.items[0] if len(owner.items) == 1 else None
    if not isinstance(only, Slice) or only != Slice(only.tensor):
        return UNKNOWN
    start = low or 0
    if high is not None and start >= 0 and high >= 0:
        return Sizes(tuple(SizeValue(only.tensor, n) for n in range(start, min(high, start + 17))))
    if start < 0:
        stop = high if high is not None else 0
        return Sizes(tuple(SizeValue(only.tensor, n) for n in range(start, stop))) if stop <= 0 else UNKNOWN
    return Sizes((Slice(only.tensor, start, high),))


def sliced(owner: Sizes, arguments: list[Any]) -> Any:
    """Return ``sizes.slice(start, count)``."""
    if not arguments or not all(isinstance(one, Constant) for one in arguments):
        return UNKNOWN
    start = arguments[0]
    stop = Constant(start.value + arguments[1].value) if len(arguments) > 1 else None
    return cut(owner, start, stop)


def between(begin: SizesIterator, end: SizesIterator) -> Any:
    """Return the sizes between two iterators of them."""
    if begin.is_end or not end.is_end or begin.sizes != end.sizes:
        return UNKNOWN
    return begin.sizes


def unpacked(value: Any, count: int) -> tuple[Any, ...]:
    """Return the values of an assignment to several names."""
    if isinstance(value, Several) and len(value.items) == count:
        return value.items
    if isinstance(value, Sizes):
        if not any(isinstance(one, Slice) for one in value.items):
            return value.items if len(value.items) == count else (UNKNOWN,) * count
        if len(value.items) == 1 and value.items[0] == Slice(value.items[0].tensor):
            return tuple(SizeValue(value.items[0].tensor, n) for n in range(count))
    return (UNKNOWN,) * count


def is_tensor(value: Any) -> bool:
    """Return whether a value is a tensor."""
    if isinstance(value, Choice):
        return is_tensor(value.then) or is_tensor(value.otherwise)
    return isinstance(value, NewTensor | Input)


def joined(parts: list[Any]) -> Any:
    """Return sizes that are given one by one as a shape."""
    items: list[Any] = []
    for one in parts:
        if isinstance(one, Sizes):
            items += one.items
        elif isinstance(one, Constant | ArgumentValue | SizeValue | Property | Operation | Choice):
            items.append(one)
        else:
            return UNKNOWN
    return Sizes(tuple(items))


def with_option(options: Any, given: Any) -> Any:
    """Return options with a dtype or a device."""
    if not isinstance(options, Options):
        return UNKNOWN
    if isinstance(given, Dtype | DtypeOf | ArgumentValue):
        return Options(given, options.on_device)
    if isinstance(given, Choice):
        return Options(given, options.on_device) if is_known(given) else UNKNOWN
    if isinstance(given, Device):
        return Options(options.dtype, given.is_operators)
    if isinstance(given, Constant) and isinstance(given.value, str):
        return Options(options.dtype, given.value.partition(":")[0] in ("npu", "meta"))
    return UNKNOWN


def new_tensor(
    sizes: Any, dtype: Any, options: list[Any], keywords: Mapping[str, Any], made: Any = HOST_OPTIONS
) -> Any:
    """Return a new tensor of these sizes and options, or an unknown one."""
    for one in options:
        made = one if isinstance(one, Options) else with_option(made, one)
        if isinstance(made, Unknown):
            return UNKNOWN
    if dtype is not None:
        made = with_option(made, dtype)
    if "device" in keywords:
        made = with_option(made, keywords["device"])
    if not isinstance(made, Options) or not made.on_device or {*keywords} - {"dtype", "device", "size"}:
        return UNKNOWN
    if isinstance(sizes, Choice):
        return choice(
            sizes.condition,
            new_tensor(sizes.then, None, [made], {}),
            new_tensor(sizes.otherwise, None, [made], {}),
        )
    if isinstance(sizes, Constant | SizeValue | ArgumentValue | Operation | Property):
        sizes = Sizes((sizes,))
    if not isinstance(sizes, Sizes) or not is_known(sizes) or not is_known(made.dtype):
        return UNKNOWN
    return NewTensor(sizes, made.dtype)


def new_like(arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
    """Return a new tensor as ``empty_like`` makes it."""
    if not arguments or {*keywords} - {"dtype", "device"}:
        return UNKNOWN
    owner = arguments[0]
    if isinstance(owner, Input):
        dtype: Any = DtypeOf(owner.name)
        sizes: Any = Sizes((Slice(owner.name),))
        like = owner.name
    elif isinstance(owner, NewTensor):
        dtype, sizes, like = owner.dtype, owner.sizes, owner.like
    else:
        return UNKNOWN
    made: Any = Options(dtype)
    for one in [*arguments[1:], *keywords.values()]:
        made = (
            Options(one.dtype, made.on_device and one.on_device) if isinstance(one, Options) else with_option(made, one)
        )
    if not isinstance(made, Options) or not made.on_device:
        return UNKNOWN
    return NewTensor(sizes, made.dtype, like)


def default_of(kind: str) -> Any:
    """Return the value of a declaration without one."""
    plain = kind.replace("const", "").strip()
    if "Tensor" in plain and "<" not in plain:
        return Constant(None)
    if "vector" in plain.lower():
        return Sizes(())
    if plain in (
        "int64_t",
        "int32_t",
        "int",
        "uint32_t",
        "uint64_t",
        "size_t",
        "double",
        "float",
        "bool",
        "c10::SymInt",
    ):
        return UNDEFINED
    return UNKNOWN

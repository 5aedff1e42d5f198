"""Views, casts and copies of tensors: their sizes, and whether their memory is contiguous."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ascend_graph.adoption.interpreter.sizes import with_inferred_size
from ascend_graph.adoption.interpreter.values import (
    UNKNOWN,
    Constant,
    Device,
    Dtype,
    DtypeOf,
    Input,
    NewTensor,
    Options,
    Sizes,
    SizeValue,
    Slice,
    is_known,
)

#: Methods and functions that :func:`viewed` knows.
VIEW_METHODS = frozenset(
    {
        "permute", "transpose", "view", "reshape", "unsqueeze", "squeeze", "narrow", "slice", "contiguous", "to", "clone", "detach",
        "select", "swapaxes", "type_as", "flatten",
    }
)  # fmt: skip


def viewed(owner: Any, name: str, arguments: list[Any]) -> Any:
    """Return the tensor that a method of ``owner`` gives; unknown if its sizes are not certain."""
    if not isinstance(owner, Input | NewTensor):
        return UNKNOWN
    if isinstance(owner, NewTensor) and owner.on_host and name not in ("to", "clone"):
        return UNKNOWN
    if name == "contiguous":
        return contiguous(owner)
    if name in ("to", "clone", "detach", "type_as"):
        return _copied(owner, name, arguments)
    numbers = [one.value if isinstance(one, Constant) else None for one in arguments]
    if name in ("view", "reshape"):
        sizes = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], Sizes) else Sizes(tuple(arguments))
        sizes = with_inferred_size(sizes, _sizes(owner)) if is_known(sizes) else sizes
        if not is_known(sizes):
            return UNKNOWN
        if isinstance(owner, NewTensor) and owner.view is None and not owner.like:
            return NewTensor(sizes, owner.dtype)
        return _view(owner, name, (sizes,), sizes)
    if name == "permute":
        order = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], Sizes) else Sizes(tuple(arguments))
        return _permuted(owner, order)
    if name in ("transpose", "swapaxes") and len(numbers) == 2 and all(isinstance(one, int) for one in numbers):
        return _transposed(owner, name, numbers[0], numbers[1])  # type: ignore[arg-type]
    if name in ("narrow", "slice"):
        return _narrowed(owner, name, arguments)
    if name in ("unsqueeze", "squeeze", "select") and numbers and isinstance(numbers[0], int):
        return _with_other_rank(owner, name, arguments, numbers[0])
    return UNKNOWN


def contiguous(owner: Any) -> Any:
    """Return a tensor with the same values whose memory is contiguous; an argument stays one."""
    if isinstance(owner, Input):
        return replace(owner, contiguous=True)
    if isinstance(owner, NewTensor) and (owner.view is not None or owner.like):
        return NewTensor(owner.sizes, owner.dtype)
    return owner


def _sizes(owner: Any) -> Sizes:
    sizes = Sizes((Slice(owner.name),)) if isinstance(owner, Input) else owner.sizes
    return sizes if isinstance(sizes, Sizes) else Sizes((UNKNOWN,))


def _dtype(owner: Any) -> Any:
    return DtypeOf(owner.name) if isinstance(owner, Input) else owner.dtype


def _view(owner: Any, name: str, arguments: tuple[Any, ...], sizes: Sizes) -> Any:
    return NewTensor(sizes, _dtype(owner), view=(owner, name, arguments)) if is_known(sizes) else UNKNOWN


def _names_device(option: Any) -> bool:
    return isinstance(option, Device) or (isinstance(option, Options) and option.on_device is not None)


def _copied(owner: Any, name: str, arguments: list[Any]) -> Any:
    dtype = _dtype(owner)
    for one in arguments:
        if isinstance(one, Dtype | DtypeOf):
            dtype = one
        elif isinstance(one, Options):
            dtype = dtype if one.dtype is None else one.dtype
            if one.on_device is False:
                return UNKNOWN
        elif name == "type_as" and isinstance(one, Input | NewTensor):
            dtype = _dtype(one)
        elif isinstance(one, Device):
            if not one.is_operators:
                return UNKNOWN
        elif not (isinstance(one, Constant) and isinstance(one.value, bool)):
            return UNKNOWN
    if isinstance(owner, NewTensor) and owner.on_host:
        return NewTensor(owner.sizes, dtype, on_host=not any(_names_device(one) for one in arguments))
    if name == "detach" or (dtype == _dtype(owner) and name != "clone"):
        return owner if isinstance(owner, NewTensor) else _view(owner, "detach", (), _sizes(owner))
    if isinstance(owner, Input):
        return (
            UNKNOWN
            if owner.contiguous is None
            else NewTensor(_sizes(owner), dtype, "" if owner.contiguous else owner.name)
        )
    if owner.view is not None:
        # A copy keeps the order of the dimensions in memory.
        return NewTensor(owner.sizes, dtype, view=(owner, "to", (dtype,)))
    return NewTensor(owner.sizes, dtype, owner.like)


def _permuted(owner: Any, order: Sizes) -> Any:
    axes = [one.value if isinstance(one, Constant) else None for one in order.items]
    if not all(isinstance(one, int) for one in axes) or sorted(a % len(axes) for a in axes) != list(range(len(axes))):  # type: ignore[operator]
        return UNKNOWN
    items = _items(owner, len(axes))
    if items is None:
        return UNKNOWN
    return _view(owner, "permute", (order,), Sizes(tuple(items[a] for a in axes)))  # type: ignore[index]


def _items(owner: Any, rank: int) -> list[Any] | None:
    """Return the sizes of a tensor one by one, for an operation that only tensors of this rank allow."""
    items = _sizes(owner).items
    if not any(isinstance(one, Slice) for one in items):
        return list(items) if len(items) == rank else None
    if len(items) == 1 and items[0] == Slice(items[0].tensor):
        return [SizeValue(items[0].tensor, axis) for axis in range(rank)]
    return None


def _transposed(owner: Any, name: str, first: int, second: int) -> Any:
    items: list[Any] = list(_sizes(owner).items)
    if len(items) == 1 and isinstance(items[0], Slice) and items[0] == Slice(items[0].tensor):
        tensor = items[0].tensor
        if first >= 0 and second >= 0:
            items = [
                *(SizeValue(tensor, n) for n in range(max(first, second) + 1)),
                Slice(tensor, max(first, second) + 1),
            ]
        elif first < 0 and second < 0:
            least = min(first, second)
            items = [Slice(tensor, 0, least), *(SizeValue(tensor, n) for n in range(least, 0))]
        else:
            return UNKNOWN
    elif any(isinstance(one, Slice) for one in items) or not all(
        -len(items) <= n < len(items) for n in (first, second)
    ):
        return UNKNOWN
    items[first], items[second] = items[second], items[first]
    return _view(owner, name, (Constant(first), Constant(second)), Sizes(tuple(items)))


def _narrowed(owner: Any, name: str, arguments: list[Any]) -> Any:
    """Return ``narrow(axis, start, length)``, or ``slice(axis, start, end)`` from 0 on."""
    if len(arguments) != 3 or not is_known(Sizes(tuple(arguments))):
        return UNKNOWN
    axis, start, length = arguments
    items = list(_sizes(owner).items)
    number = axis.value if isinstance(axis, Constant) else None
    plain = not any(isinstance(one, Slice) for one in items)
    begins = name == "narrow" or start == Constant(0)
    if not begins or not isinstance(number, int) or not plain or not -len(items) <= number < len(items):
        return UNKNOWN
    items[number] = length
    return _view(owner, "narrow", (axis, start, length), Sizes(tuple(items)))


def _with_other_rank(owner: Any, name: str, arguments: list[Any], axis: int) -> Any:
    items = list(_sizes(owner).items)
    if any(isinstance(one, Slice) for one in items):
        return UNKNOWN
    if name == "unsqueeze" and -len(items) - 1 <= axis <= len(items):
        items.insert(axis if axis >= 0 else len(items) + 1 + axis, Constant(1))
    elif name == "squeeze" and -len(items) <= axis < len(items) and items[axis] == Constant(1):
        del items[axis]
    elif name == "select" and len(arguments) == 2 and -len(items) <= axis < len(items):
        del items[axis]
        if not is_known(arguments[1]):
            return UNKNOWN
        return _view(owner, name, tuple(arguments), Sizes(tuple(items)))
    else:
        return UNKNOWN
    if isinstance(owner, NewTensor) and owner.view is None and not owner.like:
        return NewTensor(Sizes(tuple(items)), owner.dtype)
    return _view(owner, name, tuple(arguments), Sizes(tuple(items)))

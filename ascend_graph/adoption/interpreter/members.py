"""Attributes and methods of tensors, shapes, options and optional arguments."""

from __future__ import annotations

from typing import Any

from ascend_graph.adoption.interpreter.conditions import choice, negated
from ascend_graph.adoption.interpreter.mappings import MapEntry, found_value, map_method
from ascend_graph.adoption.interpreter.sizes import SizesIterator, item_of, length, number_of_items, sliced
from ascend_graph.adoption.interpreter.tensors import HOST_OPTIONS, with_option
from ascend_graph.adoption.interpreter.values import (
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
    Record,
    Sizes,
    Slice,
)
from ascend_graph.adoption.interpreter.views import VIEW_METHODS, viewed

_SAME = frozenset(
    {
        "contiguous", "value", "c_str", "data", "to_contiguous", "get", "detach", "item_ptr", "vec", "toTensor",
        "expect_int", "guard_int", "sym_int", "cast",
    }
)  # fmt: skip
#: Methods that give a size as a number, of a file and a line.
_GUARDS = frozenset({"guard_int", "expect_int", "as_int_unchecked"})
#: Methods that write values, and return their tensor.
_IN_PLACE = frozenset(
    {
        "fill_", "zero_", "copy_", "add_", "sub_", "mul_", "div_", "clamp_", "clamp_min_", "clamp_max_", "masked_fill_",
        "uniform_", "normal_", "random_", "bernoulli_", "neg_", "abs_", "sqrt_", "exp_", "floor_", "ceil_", "round_", "relu_",
    }
)  # fmt: skip


def member(owner: Any, name: str) -> Any:
    """Return ``owner.name`` or ``owner.name()``."""
    if isinstance(owner, Choice):
        return choice(owner.condition, member(owner.then, name), member(owner.otherwise, name))
    if isinstance(owner, Record):
        return owner.member(name)
    if isinstance(owner, MapEntry):
        return found_value(owner) if name == "second" else UNKNOWN
    if isinstance(owner, Element):
        owner = Input(f"{owner.name}[{owner.index}]")
    if name in ("shape", "sizes", "sym_sizes"):
        if isinstance(owner, Input):
            return Sizes((Slice(owner.name),))
        return owner.sizes if isinstance(owner, NewTensor) else UNKNOWN
    if name == "dtype" and isinstance(owner, Options):
        return owner.over(HOST_OPTIONS).dtype
    if name in ("dtype", "scalar_type", "type"):
        if isinstance(owner, Input):
            return DtypeOf(owner.name)
        return owner.dtype if isinstance(owner, NewTensor) else owner if isinstance(owner, Dtype) else UNKNOWN
    if name in ("dim", "ndim", "ndimension"):
        if isinstance(owner, Input):
            return Property(owner.name, "rank")
        return length(owner.sizes) if isinstance(owner, NewTensor) else UNKNOWN
    if name == "options":
        if isinstance(owner, Input):
            return Options(DtypeOf(owner.name), True)
        return Options(owner.dtype, not owner.on_host) if isinstance(owner, NewTensor) else UNKNOWN
    if name == "device":
        if isinstance(owner, Options):
            return Device(bool(owner.on_device))
        return Device(not getattr(owner, "on_host", False)) if isinstance(owner, Input | NewTensor) else UNKNOWN
    if name in ("has_value", "defined"):
        if isinstance(owner, Input):
            return Property(owner.name, "present")
        if isinstance(owner, ArgumentValue):
            return Operation("!=", (owner, Constant(None)))
        return Constant(owner != Constant(None)) if isinstance(owner, NewTensor | Constant) else UNKNOWN
    if name == "is_none":
        return negated(member(owner, "has_value"))
    if name in ("numel", "sym_numel", "nelement") and isinstance(owner, Input):
        return Property(owner.name, "numel")
    if name in ("numel", "sym_numel", "nelement") and isinstance(owner, NewTensor):
        return number_of_items(owner.sizes)
    if name == "is_contiguous" and isinstance(owner, Input):
        return Constant(True) if owner.contiguous else Property(owner.name, "contiguous")
    if name in ("strides", "sym_strides") and isinstance(owner, Input):
        return Property(owner.name, "strides")
    if name in ("size", "length"):
        return length(owner)
    if name == "back" and isinstance(owner, Sizes):
        return item_of(owner, Constant(-1))
    if name == "front" and isinstance(owner, Sizes):
        return item_of(owner, Constant(0))
    if name == "empty" and isinstance(owner, Input | ArgumentValue):
        return UNKNOWN
    return owner if name in _SAME else UNKNOWN


def method_result(owner: Any, name: str, arguments: list[Any]) -> Any:
    """Return ``owner.name(arguments)``."""
    if isinstance(owner, Choice):
        then, otherwise = (method_result(one, name, arguments) for one in (owner.then, owner.otherwise))
        return choice(owner.condition, then, otherwise)
    if isinstance(owner, Element):
        owner = Input(f"{owner.name}[{owner.index}]")
    held = map_method(owner, name, arguments)
    if held is not None:
        return held
    if name in ("size", "sym_size") and arguments:
        return item_of(member(owner, "sizes"), arguments[0])
    if name in _GUARDS:
        return owner
    if name in ("stride", "sym_stride"):
        axis = arguments[0] if arguments else None
        if isinstance(owner, Input) and axis is None:
            return Property(owner.name, "strides")
        if isinstance(owner, Input) and isinstance(axis, Constant) and isinstance(axis.value, int):
            return Property(owner.name, f"stride:{axis.value}")
        return UNKNOWN
    if name in ("begin", "end", "cbegin", "cend") and not arguments:
        items = owner if isinstance(owner, Sizes) else member(owner, "sizes") if isinstance(owner, Input) else None
        return SizesIterator(items, 0, name.endswith("end")) if isinstance(items, Sizes) else UNKNOWN
    if (
        name in ("dtype", "device", "layout", "pinned_memory", "requires_grad")
        and arguments
        and isinstance(owner, Options)
    ):
        # How a tensor is laid out as strided memory, or differentiated, changes neither its sizes nor its dtype.
        return with_option(owner, arguments[0]) if name in ("dtype", "device") else owner
    if name == "value_or" and len(arguments) == 1:
        if isinstance(owner, ArgumentValue):
            return choice(Operation("!=", (owner, Constant(None))), owner, arguments[0])
        return owner if isinstance(owner, Input) and arguments[0] == Constant(None) else UNKNOWN
    if name in ("slice", "vec") and isinstance(owner, Sizes):
        return sliced(owner, arguments) if name == "slice" else owner
    if name in _IN_PLACE and isinstance(owner, Input | NewTensor):
        return owner
    if name == "cpu" and isinstance(owner, Input | NewTensor) and not arguments:
        return NewTensor(member(owner, "sizes"), member(owner, "dtype"), on_host=True)
    if name in VIEW_METHODS and isinstance(owner, Input | NewTensor) and (name != "slice" or arguments):
        return viewed(owner, name, arguments)
    return member(owner, name) if not arguments else UNKNOWN

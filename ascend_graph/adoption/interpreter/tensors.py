"""New tensors of the interpreter, from sizes and options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ascend_graph.adoption.interpreter.conditions import choice
from ascend_graph.adoption.interpreter.values import (
    UNDEFINED,
    UNKNOWN,
    ArgumentValue,
    Assembled,
    Choice,
    Constant,
    Device,
    Dtype,
    DtypeOf,
    Input,
    NewTensor,
    Operation,
    Options,
    Property,
    Sizes,
    SizeValue,
    Slice,
    Unknown,
    is_known,
)

#: What options stand for that name nothing: a tensor on the CPU.
HOST_OPTIONS = Options(Dtype("float32"), False)
#: Types whose variables are undefined until they are assigned.
_PLAIN_TYPES = frozenset(
    ("int64_t", "int32_t", "int", "uint32_t", "uint64_t", "size_t", "double", "float", "bool", "c10::SymInt")
)


def is_tensor(value: Any) -> bool:
    """Return whether a value is a tensor."""
    if isinstance(value, Choice):
        return is_tensor(value.then) or is_tensor(value.otherwise)
    return isinstance(value, NewTensor | Input)


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
        made = one.over(made) if isinstance(one, Options) else with_option(made, one)
        if isinstance(made, Unknown):
            return UNKNOWN
    if dtype is not None:
        made = with_option(made, dtype)
    if "device" in keywords:
        made = with_option(made, keywords["device"])
    if not isinstance(made, Options) or {*keywords} - {"dtype", "device", "size"}:
        return UNKNOWN
    if isinstance(sizes, Choice):
        return choice(
            sizes.condition,
            new_tensor(sizes.then, None, [made], {}),
            new_tensor(sizes.otherwise, None, [made], {}),
        )
    if isinstance(sizes, Constant | SizeValue | ArgumentValue | Operation | Property):
        sizes = Sizes((sizes,))
    if isinstance(sizes, Sizes | Assembled | Unknown):
        # One of unknown sizes is known to be a tensor of its own.
        return NewTensor(sizes, made.dtype, on_host=not made.on_device)
    return UNKNOWN


def new_like(arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
    """Return a new tensor as ``empty_like`` makes it."""
    if not arguments or {*keywords} - {"dtype", "device"}:
        return UNKNOWN
    owner = arguments[0]
    if isinstance(owner, Choice):
        then, otherwise = (new_like([one, *arguments[1:]], keywords) for one in (owner.then, owner.otherwise))
        return choice(owner.condition, then, otherwise)
    if isinstance(owner, Input):
        if owner.contiguous is None:
            return UNKNOWN
        dtype: Any = DtypeOf(owner.name)
        sizes: Any = Sizes((Slice(owner.name),))
        like = "" if owner.contiguous else owner.name
    elif isinstance(owner, NewTensor):
        dtype, sizes, like = owner.dtype, owner.sizes, owner.like
    else:
        return UNKNOWN
    made: Any = Options(dtype, not (isinstance(owner, NewTensor) and owner.on_host))
    for one in [*arguments[1:], *keywords.values()]:
        made = one.over(made) if isinstance(one, Options) else with_option(made, one)
        if not isinstance(made, Options):
            return UNKNOWN
    if not isinstance(made, Options) or not made.on_device:
        return UNKNOWN
    if isinstance(owner, NewTensor) and owner.view is not None:
        return NewTensor(sizes, made.dtype, view=(owner, "to", (made.dtype,)))
    return NewTensor(sizes, made.dtype, like)


def default_of(kind: str) -> Any:
    """Return the value of a declaration without one."""
    plain = kind.replace("const", "").strip()
    if re.fullmatch(r"(?:(?:c10|std|at)::optional<)?(?:at::|torch::)?Tensor>?", plain.replace(" ", "")):
        return Constant(None)
    if "vector" in plain.lower():
        return Sizes(())
    return UNDEFINED if plain in _PLAIN_TYPES else UNKNOWN

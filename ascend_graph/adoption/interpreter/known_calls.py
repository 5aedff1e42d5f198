"""Functions of torch, torch_npu and the standard library that make tensors, shapes and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ascend_graph.adoption.cpp.expressions import ARRAY, DEFAULT, FLOAT
from ascend_graph.adoption.interpreter.conditions import operation
from ascend_graph.adoption.interpreter.members import member
from ascend_graph.adoption.interpreter.sizes import SizesIterator, between, joined, length
from ascend_graph.adoption.interpreter.tensors import default_of, is_tensor, new_like, new_tensor, with_option
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
    NewTensor,
    Operation,
    Options,
    Property,
    Several,
    Sizes,
    SizeValue,
    Unknown,
    is_known,
)

#: Maximum number of items of an array or vector that is followed.
MAX_ITEMS = 16
#: Functions that return their only argument as far as sizes are concerned.
_WRAPPERS = frozenset(
    {
        "move", "forward", "string", "SymInt", "int64_t", "int32_t", "uint32_t", "uint64_t", "size_t", "int", "IntArrayRef",
        "SymIntArrayRef", "vector", "SymDimVector", "DimVector", "SmallVector", "string_view", "tuple", "pair", "make_tuple",
        "forward_as_tuple", "make_pair", "tie", "as_const", "asIntArrayRefSlow", "fromIntArrayRefSlow", "Size", "list", "float",
        "double", "bool", "TensorList", "ref", "cref", "static_cast", "optional", "make_optional", "initializer_list", "array",
        "sym_int", "_sym_int",
    }
)  # fmt: skip
_TUPLES = frozenset({"tuple", "pair", "make_tuple", "forward_as_tuple", "make_pair", "tie"})
#: Functions that make a tensor of the sizes and options that are given.
MAKERS = frozenset(
    {
        "empty", "zeros", "ones", "empty_symint", "zeros_symint", "ones_symint", "new_empty", "new_zeros", "new_ones", "rand",
        "randn",
    }
)  # fmt: skip
_LIKE = frozenset({"empty_like", "zeros_like", "ones_like", "rand_like", "full_like"})
#: Functions other than those of ``MAKERS`` whose tensors hold values.
FILLING = frozenset({"full", "full_symint", *_LIKE}) - {"empty_like"}
#: Allocators of torch_npu: ``(tensor)`` or ``(sizes, options)``.
_ALLOCATORS = frozenset(
    {
        "apply_tensor_without_format", "apply_tensor", "ApplyTensor", "ApplyTensorWithoutFormat", "apply_tensor_with_sizes",
        "ApplyTensorWithSizes", "empty_with_format", "ApplyTensorWithFormat", "apply_tensor_with_format",
    }
)  # fmt: skip


def known_call(last: str, arguments: list[Any], keywords: Mapping[str, Any]) -> Any | None:
    """Return the result of a function that is known by its unqualified name, or None."""
    if last in ("full", "full_symint") and arguments:
        options = arguments[2:]
        return (
            new_tensor(arguments[0], keywords.get("dtype"), options, keywords)
            if "dtype" in keywords or len(arguments) > 2
            else UNKNOWN
        )
    if last in ("full_like", "cumsum", "cumprod") and len(arguments) > 1:
        return (new_like if last == "full_like" else _summed)([arguments[0], *arguments[2:]], keywords)
    if last in _LIKE or (last in _ALLOCATORS and len(arguments) == 1):
        return new_like(arguments, keywords)
    if last in _ALLOCATORS and len(arguments) >= 2:
        return _allocated(last, arguments, keywords)
    if last == DEFAULT:
        return default_of(str(arguments[0].value) if isinstance(arguments[0], Constant) else "")
    if last in ("value_or_else", "npu_format_cast") and arguments:
        return arguments[0]
    if last in ("dtype", "device") and len(arguments) == 1:
        return with_option(Options(), arguments[0])
    if last == "Device" and len(arguments) == 1 and isinstance(arguments[0], Constant):
        return Device(str(arguments[0].value).partition(":")[0] in ("npu", "meta"))
    if last == "get_npu_device_type" and not arguments:
        return Device(True)
    if last == "TensorOptions":
        made: Any = Options()
        for one in arguments:
            made = with_option(made, one)
        return made
    if last in ("Tensor", "nullopt_t") and (
        not arguments or arguments[0] in (Constant(None), Sizes((Constant(None),))) or is_tensor(arguments[0])
    ):
        return arguments[0] if arguments and is_tensor(arguments[0]) else Constant(None)
    if last in ("max", "min") and len(arguments) == 2:
        return operation(last, *arguments)
    if last == "accumulate" and len(arguments) == 4 and "multiplies" in str(arguments[3]):
        begin, end, start, _ = arguments
        factors = (
            between(begin, end) if isinstance(begin, SizesIterator) and isinstance(end, SizesIterator) else UNKNOWN
        )
        return Operation("prod", (factors,)) if is_known(factors) and start == Constant(1) else UNKNOWN
    if last == "len" and len(arguments) == 1:
        return length(arguments[0])
    if last in _TUPLES:
        if len(arguments) == 1 and isinstance(arguments[0], Sizes | Several):
            arguments = list(arguments[0].items)
        return Several(tuple(arguments))
    if last in _WRAPPERS or last.endswith("LIKELY") or last.startswith(("SmallVector", "vector", "array")):
        return _wrapped(last, arguments)
    if last == ARRAY:
        return _array(*arguments)
    if last == FLOAT:
        # Arithmetic with fractions is not that of sizes.
        number = arguments[0]
        if isinstance(number, Constant) and type(number.value) is int:
            return Constant(float(number.value))
        return number if isinstance(number, Constant | ArgumentValue) else UNKNOWN
    return None


def _summed(arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
    """Return the result of ``cumsum``, of a tensor and a dtype: contiguous; without a dtype integers have another one."""
    given = [*arguments[1:], *(value for name, value in keywords.items() if name == "dtype")]
    made = new_like([arguments[0], *given], {})
    is_own = isinstance(made, NewTensor) and made.view is None and given and given != [Constant(None)]
    return replace(made, like="") if is_own and not {*keywords} - {"dtype", "dim"} else UNKNOWN


def _allocated(last: str, arguments: list[Any], keywords: Mapping[str, Any]) -> Any:
    """Return what an allocator of torch_npu makes: of sizes and options, or of a tensor with other sizes or options."""
    first, second = arguments[:2]
    if not is_tensor(first):
        return new_tensor(first, None, arguments[1:2], keywords)
    if isinstance(first, Choice):
        return UNKNOWN
    options = [member(first, "options")]
    if isinstance(second, Options):
        return new_tensor(member(first, "sizes"), None, [second.over(options[0])], keywords)
    if isinstance(second, Sizes | Assembled) or "ormat" not in last.removesuffix("ithout_format").removesuffix(
        "ithoutFormat"
    ):
        return new_tensor(second, None, options, keywords)
    # (tensor, format), (tensor, format, keep); a third argument that is no bool is the format of sizes that are unknown.
    keeps = len(arguments) == 2 or (isinstance(arguments[2], Constant) and isinstance(arguments[2].value, bool))
    return new_tensor(member(first, "sizes"), None, options, keywords) if keeps else UNKNOWN


def made_tensor(arguments: list[Any], keywords: Mapping[str, Any], owner: Any) -> Any:
    """Return the tensor that ``empty``, ``zeros`` and the like make; ``owner`` is that of ``x.new_empty``, or None."""
    sizes = [one for one in arguments if not isinstance(one, Options | Dtype | DtypeOf | Device)]
    options = [one for one in arguments if isinstance(one, Options | Dtype | DtypeOf | Device)]
    if "size" in keywords:
        sizes = [keywords["size"]]
    if not sizes or any(isinstance(one, Several) for one in sizes):
        return UNKNOWN
    unknown = next((one for one in sizes if isinstance(one, Unknown)), None)
    if unknown is not None:
        return NewTensor(unknown, unknown)  # The unknown argument may be sizes or options.
    if any(isinstance(one, Choice) for one in arguments) and len(arguments) != len(sizes) + len(options):
        return UNKNOWN
    if len(sizes) > 1 and any(
        isinstance(one, Choice) and isinstance(one.then, Options | Dtype | DtypeOf) for one in sizes
    ):
        return UNKNOWN
    shape = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], Sizes | Assembled | Choice) else joined(sizes)
    default: Any = Dtype("float32")
    if owner is not None:
        default = member(owner, "dtype")
    base = Options(default, owner is not None)
    return new_tensor(shape, keywords.get("dtype"), options, keywords, base)


def _array(count: Any, items: Any) -> Any:
    """Return an array of C++: items that are not given are zero if others are, and undefined if none are."""
    given = items.items if isinstance(items, Sizes) else () if items == Constant(None) else None
    number = len(given or ()) if count == Constant(None) else getattr(count, "value", None)
    if given is None or type(number) is not int or not len(given) <= number <= MAX_ITEMS:
        return UNKNOWN
    rest = UNDEFINED if items == Constant(None) else Constant(0)
    return Sizes((*given, *[rest] * (number - len(given))))


def _wrapped(last: str, arguments: list[Any]) -> Any:
    if not arguments:
        return Sizes(()) if last not in ("string", "optional") else Constant(None)
    first = arguments[0]
    if last.endswith(("ector", "Vector")) and len(arguments) == 1:
        if isinstance(first, Constant) and type(first.value) is int:
            return Sizes((Constant(0),) * first.value) if 0 <= first.value <= MAX_ITEMS else UNKNOWN
        if isinstance(first, SizeValue | Property | Operation):
            return UNKNOWN  # So many zeros.
    if len(arguments) == 1 or (last in ("string", "string_view") and arguments[1:] == [length(arguments[0])]):
        return arguments[0]
    if len(arguments) == 2 and "ector" in last and isinstance(arguments[0], Constant):
        count = arguments[0].value  # vector(n, value)
        if isinstance(count, int) and 0 <= count <= MAX_ITEMS:
            return Sizes((arguments[1],) * count)
    if len(arguments) == 2 and all(isinstance(one, SizesIterator) for one in arguments):
        begin, end = arguments
        return between(begin, end)
    return UNKNOWN

"""Random calls of a shape function, within a relation and beyond it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import torch

from ascend_graph.inference.attr_draws import attr_value
from ascend_graph.inference.domains import AttrArgument
from ascend_graph.inference.functions.values import (
    NUMBERS,
    attr_argument,
    dtype_attrs,
    first_dtype,
    input_dtypes,
    relation_attrs,
    tried_texts,
    usable_dtypes,
)
from ascend_graph.prototypes import Attr, DataType, OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.dtypes import TORCH_NAMES
from ascend_graph.shapes import Relation
from ascend_graph.shapes.functions import InputSpec, ShapeFunction


def draw_call(
    function: ShapeFunction, relations: Sequence[Relation], rng: random.Random
) -> tuple[list[Any], dict[str, Any]] | None:
    """Return inputs and attrs of a call that a kernel can make too, mostly one that some relation takes.

    None if a few tries find none.
    """
    chosen = rng.choice(relations) if relations else None
    attrs = drawn_attrs(function, chosen, rng)
    if chosen and rng.random() < 0.8:
        inputs = from_relation(chosen, function.prototype, attrs, rng, _SMALL)
        return None if inputs is None else (inputs, attrs)
    return any_inputs(function.prototype, rng, _SMALL), attrs


def drawn_attrs(function: ShapeFunction, relation: Relation | None, rng: random.Random) -> dict[str, Any]:
    """Return values of all attrs, dtypes for those that a relation takes as such."""
    found = dtype_attrs(relation, function.prototype) if relation is not None else ()
    return random_attrs(function, rng, dict.fromkeys(found, ()))


def random_attrs(
    function: ShapeFunction,
    rng: random.Random,
    dtypes: Mapping[str, Sequence[torch.dtype]] = MappingProxyType({}),
    length: int = 0,
) -> dict[str, Any]:
    """Return values of all attrs, those of ``dtypes`` among its dtypes; lists of any or a given length."""
    length = length or rng.choice((1, 2, 2, 3, 4, 5))
    return {
        attr.name: random_attr(attr, attr_argument(attr, tried_texts(function), dtypes.get(attr.name)), rng, length)
        for attr in function.prototype.attrs
    }


def random_attr(attr: Attr, argument: AttrArgument, rng: random.Random, length: int = 2) -> Any:
    if argument.kind == "dtype":
        return int(NUMBERS[rng.choice(tuple(getattr(torch, name) for name in argument.choices) or _DTYPES)])
    if argument.kind in ("int", "int[]") and rng.random() < 0.15:  # what only few values do
        one = partial(rng.choice, (*range(42), 64, 128))
        return one() if argument.kind == "int" else tuple(one() for _ in range(min(length, 5)))
    if argument.kind == "int[]" and rng.random() < 0.4:  # as axes are
        return tuple(rng.sample((0, 1, 2, 3, -1), min(length, 5)))
    value = attr_value(argument, rng, length)
    return () if value is None else value


#: Dtypes of outputs that attrs name: results, and what they are quantized to.
_DTYPES = (
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int32,
    torch.int8,
    torch.float8_e5m2,
    torch.float8_e4m3fn,
)


def reshaped(given: Any, shape: tuple[int, ...]) -> Any:
    if given is None:
        return None
    return [replace(one, shape=shape) for one in given] if isinstance(given, list) else replace(given, shape=shape)


def other_inputs(parameter: Parameter, given: Any, rng: random.Random, sizes: Sequence[int]) -> Iterator[Any]:
    """Yield an input with other sizes, ranks and dtypes, and without it if it is optional."""
    is_list = parameter.kind is ParameterKind.DYNAMIC
    if given is None:
        first = InputSpec((8, 8), first_dtype(parameter.dtypes))
        yield [first] if is_list else first
        return
    spec = given[0] if is_list else given
    shape = spec.shape
    shapes = [
        tuple(2 * size for size in shape),
        (*shape, 3),
        shape[:-1],
        (*shape[:-1], 1),
        tuple(rng.choice(_SMALL) for _ in shape),
        tuple(rng.choice(sizes) for _ in shape),
    ]
    for other in shapes:
        yield reshaped(given, other)
    for dtype in usable_dtypes(parameter.dtypes)[:6]:
        changed = replace(spec, dtype=NUMBERS[dtype])
        yield [changed] * len(given) if is_list else changed
    if parameter.kind is ParameterKind.OPTIONAL:
        yield None
    if is_list:
        yield [*given, spec]


_SMALL = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 32, 64, 7, 9)
#: Sizes beyond the blocks that kernels compute with, of 32 to 512: a function needs no memory for them.
LARGE = (1, 2, 32, 33, 64, 65, 96, 128, 130, 200, 256, 260, 384, 512, 520, 1024, 1500, 2048, 4096)


#: Most elements of a tensor: sizes in bytes are numbers of 64 bits.
_MOST = 1 << 48


def is_countable(shapes: Iterable[Any]) -> bool:
    """Return whether none of some shapes, or lists of shapes, has more elements than can be counted in bytes."""
    each = (one for shape in shapes if shape is not None for one in (shape if isinstance(shape, list) else [shape]))
    return all(math.prod(shape) <= _MOST for shape in each)


def drawn_sizes(function: ShapeFunction, rng: random.Random) -> tuple[int, ...]:
    """Return the sizes to choose from in one call of a function."""
    return LARGE if rng.random() < 0.3 and not function.needs_memory else _SMALL


def any_inputs(prototype: OpPrototype, rng: random.Random, sizes: Sequence[int]) -> list[Any]:
    """Return tensors of any ranks, and of sizes to choose from; often some have the same shape, or a part of it, and at times all."""
    rank = rng.randint(0, 5)
    shape = tuple(rng.choice(sizes) for _ in range(rank))
    alike = rng.choice((0.5, 0.5, 1))
    inputs: list[Any] = []
    for parameter, dtype in zip(prototype.inputs, _drawn_dtypes(prototype, rng), strict=True):
        if parameter.kind is ParameterKind.OPTIONAL and rng.random() < 0.5:
            inputs.append(None)
            continue
        own = shape
        if rng.random() >= alike:
            parts = (shape[:-1], shape[-1:], shape[:1], shape[1:])  # as indices, weights and scales are
            own = (
                rng.choice(parts) if rng.random() < 0.3 else tuple(rng.choice(sizes) for _ in range(rng.randint(0, 5)))
            )
        if not is_countable([own]):
            own = own[:2]
        spec = InputSpec(own, dtype)
        inputs.append([spec] * rng.randint(1, 3) if parameter.kind is ParameterKind.DYNAMIC else spec)
    return inputs


def _drawn_dtypes(prototype: OpPrototype, rng: random.Random) -> list[DataType]:
    """Return a dtype for each input: mostly those that stand at one place of their lists, for many functions take no others."""
    choices = input_dtypes(prototype)
    if rng.random() < 0.4:
        return [NUMBERS[rng.choice(some)] for some in choices]
    # Some functions take few of the dtypes that are listed: mostly the usual ones, which are first.
    place = rng.randrange(len(choices[0])) if choices and rng.random() < 0.7 else 0
    first = choices[0][place] if choices else None
    return [
        NUMBERS[some[place] if len(some) == len(choices[0]) else first if first in some else rng.choice(some)]
        for some in choices
    ]


def from_relation(
    relation: Relation, prototype: OpPrototype, attrs: Mapping[str, Any], rng: random.Random, sizes: Sequence[int]
) -> list[Any] | None:
    """Return inputs that a relation takes with these attrs, or None if some tries find none."""
    from ascend_graph.shapes import RelationError
    from ascend_graph.shapes.samples import RelationSampleError, sample

    optional = [p.name for p in prototype.inputs if p.kind is ParameterKind.OPTIONAL]
    named = {
        name: TORCH_NAMES[NUMBERS[value]] if isinstance(value, torch.dtype) else value
        for name, value in relation_attrs(relation, prototype, attrs).items()
    }
    try:
        found = sample(relation, named, rng, optional=optional, sizes=sizes, tries=6)
    except (RelationSampleError, RelationError, TypeError, KeyError):
        return None
    if not is_countable(found.shapes.values()):
        return None
    inputs: list[Any] = []
    common = next((tuple(s) for s in found.shapes.values() if isinstance(s, tuple)), ()) if rng.random() < 0.5 else None
    for parameter, dtype in zip(prototype.inputs, _drawn_dtypes(prototype, rng), strict=True):
        shape = found.shapes.get(parameter.name)
        if shape is None and parameter.name not in found.shapes and parameter.kind is not ParameterKind.OPTIONAL:
            shape = tuple(rng.choice(_SMALL) for _ in range(rng.randint(0, 4))) if common is None else common
        if shape is None:
            inputs.append(None)
        elif isinstance(shape, list):
            inputs.append([InputSpec(tuple(one), dtype) for one in shape])
        elif parameter.kind is ParameterKind.DYNAMIC:
            inputs.append([InputSpec(tuple(shape), dtype)] * rng.randint(1, 3))
        else:
            inputs.append(InputSpec(tuple(shape), dtype))
    return inputs

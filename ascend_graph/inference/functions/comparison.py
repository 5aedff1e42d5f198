"""Comparison of a relation with a shape function, on fresh calls."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ascend_graph.dispatch.meta_dtypes import TORCH
from ascend_graph.inference.functions.drawing import any_inputs, drawn_attrs, drawn_sizes, from_relation, reshaped
from ascend_graph.inference.functions.isolation import in_fork
from ascend_graph.inference.functions.questions import called
from ascend_graph.inference.functions.values import DTYPES, on_each, relation_attrs, with_declared_dtypes
from ascend_graph.inference.functions.wording import flat_specs, shown, text_of
from ascend_graph.prototypes import OpPrototype
from ascend_graph.shapes import Relation, parse_relation
from ascend_graph.shapes.functions import Answer, InputSpec, ShapeFunction, ShapeFunctionError
from ascend_graph.shapes.syntax import WhereDefinition


@dataclass(frozen=True, slots=True)
class Agreement:
    """Comparison of a relation with a shape function on fresh inputs."""

    #: Calls that both answered, those that only the relation refused, and those that only the function refused.
    compared: int
    refused_by_relation: int
    refused_by_function: int
    #: Calls with different answers, in words.
    differing: tuple[str, ...] = ()


def agreement(
    relation: Relation,
    function: ShapeFunction,
    count: int,
    attrs: Mapping[str, Any] = MappingProxyType({}),
    *,
    seed: int = 0,
    ask: Callable[[bytes], None] = lambda question: None,
) -> Agreement:
    """Compare a relation, in the prototype's names, with a shape function on random inputs.

    Half of the inputs are drawn from the relation, half of them are tensors of any ranks and sizes.

    Args:
        relation: The relation.
        function: The function.
        count: The number of calls that both shall answer; fewer if inputs that both take are rare.
        attrs: Values of attrs in all calls; the others are random.
        seed: The seed of the random inputs.
        ask: Called with each question.
    """
    rng = random.Random(seed)
    prototype = function.prototype
    compared = by_relation = by_function = 0
    differing: list[str] = []
    for number in range(count * 8):
        if compared >= count:
            break
        given = {**drawn_attrs(function, relation, rng), **attrs}
        sizes = drawn_sizes(function, rng)
        drawn = (
            any_inputs(prototype, rng, sizes) if number % 2 else from_relation(relation, prototype, given, rng, sizes)
        )
        if drawn is None:
            continue
        mine = answer_of_relation(relation, prototype, drawn, given)
        try:
            theirs = with_declared_dtypes(prototype, drawn, called(function, ask, drawn, given))
        except ShapeFunctionError:
            by_function += mine is not None
            continue
        if mine is None:
            by_relation += 1
            continue
        compared += 1
        difference = _difference(prototype, mine, theirs, function.says_dtypes)
        if difference:
            differing.append(f"of {shown(prototype, drawn, given)} {difference}")
    return Agreement(compared, by_relation, by_function, tuple(differing))


def input_with_more_dimensions(
    relation: Relation, function: ShapeFunction, *, seed: int = 0, ask: Callable[[bytes], None] = lambda question: None
) -> str:
    """Return an input of which the function takes one dimension more than the relation does, or an empty text.

    A dimension is added to inputs drawn from the relation, of a size that occurs or another. A function that reads sizes
    without asking for the rank answers as before, which says nothing but of a scalar; one whose answer changes means the
    dimension.
    """
    rng, prototype = random.Random(seed), function.prototype
    for _ in range(8):
        attrs = drawn_attrs(function, relation, rng)
        drawn = from_relation(relation, prototype, attrs, rng, drawn_sizes(function, rng))
        if drawn is None or (before := _asked(function, ask, drawn, attrs)) is None:
            continue
        for number, (parameter, spec) in enumerate(zip(prototype.inputs, drawn, strict=True)):
            if not isinstance(spec, InputSpec) or spec.values is not None:
                continue
            sizes = dict.fromkeys((7, 1, 2, *(size for s in drawn if isinstance(s, InputSpec) for size in s.shape)))
            appended, prepended = (
                [[*drawn[:number], replace(spec, shape=shape), *drawn[number + 1 :]] for shape in shapes]
                for shapes in ([(*spec.shape, size) for size in sizes], [(size, *spec.shape) for size in sizes])
            )
            if any(answer_of_relation(relation, prototype, one, attrs) for one in (*appended, *prepended)):
                continue
            after = [_asked(function, ask, one, attrs) for one in appended]
            if any(one is not None and (one != before or not spec.shape) for one in after):
                return parameter.name
    return ""


def size_of_its_own(
    relation: Relation, function: ShapeFunction, *, seed: int = 0, ask: Callable[[bytes], None] = lambda question: None
) -> str:
    """Return an input with a size that the relation ties and the function does not, or an empty text.

    Sizes of inputs drawn from the relation are changed one at a time. Where two that the relation says are the same
    change the function's answer each, the relation was found by chance. One alone says nothing: many functions read the
    size of one input and do not look at the others, which a kernel does.
    """
    rng, prototype = random.Random(seed), function.prototype
    found: list[str] = []
    drawn_calls = 0
    for _ in range(8):
        attrs = drawn_attrs(function, relation, rng)
        drawn = from_relation(relation, prototype, attrs, rng, drawn_sizes(function, rng))
        if drawn is None or (before := _asked(function, ask, drawn, attrs)) is None:
            continue
        drawn_calls += 1
        free: dict[int, list[str]] = {}
        for number, (parameter, spec) in enumerate(zip(prototype.inputs, drawn, strict=True)):
            if not isinstance(spec, InputSpec) or spec.values is not None:
                continue
            for axis, size in enumerate(spec.shape):
                shape = (*spec.shape[:axis], size + 1, *spec.shape[axis + 1 :])
                other = [*drawn[:number], replace(spec, shape=shape), *drawn[number + 1 :]]
                if answer_of_relation(relation, prototype, other, attrs) is None:
                    after = _asked(function, ask, other, attrs)
                    if after is not None and after != before:
                        free.setdefault(size, []).append(parameter.name)
        found += [names[-1] for names in free.values() if len(names) > 1][:1]
    return found[0] if 2 * len(found) > drawn_calls else ""


def needless_condition(
    relation: Relation, function: ShapeFunction, *, seed: int = 0, ask: Callable[[bytes], None] = lambda question: None
) -> str:
    """Return the condition of a relation on sizes alone that the function does not have, or an empty text.

    The function answers inputs of such sizes that it forbids, or inputs that have all the same shape.
    """
    rng, prototype = random.Random(seed), function.prototype
    signature = str(relation).split(" where ")[0]
    attr_names = {attr.name for attr in prototype.attrs}
    for clause in relation.clauses:
        if isinstance(clause, WhereDefinition) or attr_names & set(re.findall(r"\w+", str(clause))):
            continue
        others = ", ".join(str(one) for one in relation.clauses if one is not clause)
        without = parse_relation(f"{signature} where {others}" if others else signature)
        for number in range(24):
            attrs = drawn_attrs(function, without, rng)
            drawn = from_relation(without, prototype, attrs, rng, drawn_sizes(function, rng))
            if drawn is None:
                continue
            if number % 2:
                first = next((spec.shape for spec in drawn if isinstance(spec, InputSpec)), ())
                drawn = [reshaped(spec, first) for spec in drawn]
            elif answer_of_relation(without, prototype, drawn, attrs) is None:
                continue
            if answer_of_relation(relation, prototype, drawn, attrs) is None and _asked(function, ask, drawn, attrs):
                return str(clause)
    return ""


def _asked(
    function: ShapeFunction, ask: Callable[[bytes], None], inputs: Sequence[Any], attrs: Mapping[str, Any]
) -> Sequence[Answer] | None:
    try:
        return called(function, ask, inputs, attrs)
    except ShapeFunctionError:
        return None


def isolated_agreement(relation: Relation, function: ShapeFunction, count: int, *, seed: int = 0) -> Agreement:
    """Return :func:`agreement`, with the function in a fork of this process.

    Raises:
        InferenceError: The function ended the process, or did not answer in time.
    """
    found, _ = in_fork(lambda asked, ask: agreement(relation, asked, count, seed=seed, ask=ask), function)
    return found


def answer_of_relation(
    relation: Relation, prototype: OpPrototype, inputs: Sequence[Any], attrs: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the outputs by name according to a relation in the prototype's names, or None if it refuses the call."""
    from ascend_graph.shapes import RelationError, ShapeError

    named = {p.name: spec for p, spec in zip(prototype.inputs, inputs, strict=True)}
    shapes = {n: on_each(named[n], lambda s: s.shape) for n in relation.inputs if n in named}
    dtypes = {n: on_each(named[n], lambda s: DTYPES[s.dtype]) for n in relation.inputs if n in named}
    try:
        results = relation.infer(shapes, dtypes, relation_attrs(relation, prototype, attrs), system=TORCH)
    except (RelationError, ShapeError, KeyError):
        return None
    return {
        name: None if one is None else on_each(one, lambda spec: (tuple(spec[0]), spec[1]))
        for name, one in zip(relation.outputs, results, strict=True)
    }


def _difference(prototype: OpPrototype, mine: Mapping[str, Any], theirs: Sequence[Answer], dtypes: bool) -> str:
    """Return the difference between both answers in words, or an empty text."""
    for parameter, output in zip(prototype.outputs, theirs, strict=True):
        if parameter.name not in mine or parameter.name in prototype.in_place or output is None:
            continue
        own = mine[parameter.name]
        name = parameter.name
        if own is None:
            return f"the relation makes no {name}, the function {text_of(output)}"
        ours, others = own if isinstance(own, list) else [own], flat_specs(output)
        if len(ours) != len(others):
            return f"the relation makes {len(ours)} tensors of {name}, the function {len(others)}"
        for (shape, dtype), other in zip(ours, others, strict=True):
            assert other.dtype is not None
            if shape != other.shape:
                return f"the relation makes {name} [{', '.join(map(str, shape))}], the function {text_of(other)}"
            if dtypes and other.dtype in DTYPES and dtype != DTYPES[other.dtype]:
                return f"the relation makes {name} {dtype}, the function {DTYPES[other.dtype]}"
    return ""

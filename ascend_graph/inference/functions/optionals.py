"""Patterns of optional inputs that change no answer, but that a function refuses if they do not fit."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ascend_graph.inference.functions.comparison import answer_of_relation
from ascend_graph.inference.functions.drawing import drawn_attrs, drawn_sizes, from_relation
from ascend_graph.inference.functions.questions import called
from ascend_graph.inference.functions.values import first_dtype
from ascend_graph.prototypes import ParameterKind
from ascend_graph.shapes import Relation, RelationError, parse_relation
from ascend_graph.shapes.functions import Answer, InferredOutput, InputSpec, ShapeFunction, ShapeFunctionError
from ascend_graph.shapes.syntax import DimensionGroup, Dims, Name, Size

#: Name of any dimensions before the last.
_LEADING = "leading"
#: Number of calls with an optional input that a pattern must explain, and number of draws for them.
_CALLS, _DRAWS = 10, 60


def with_optional_inputs(
    relation: Relation,
    function: ShapeFunction,
    relevant: Collection[str],
    *,
    seed: int = 0,
    ask: Callable[[bytes], None] = lambda question: None,
) -> Relation:
    """Return a relation with the optional inputs that the function refuses in all shapes but one, such as ``bias[n]``.

    Args:
        relation: The relation, in the prototype's names.
        function: The function that follows it.
        relevant: Names of inputs that change an answer, or whether there is one.
        seed: The seed of the calls.
        ask: Called with each question.
    """
    trial = _Trial(function, ask, seed)
    for parameter in function.prototype.inputs:
        if (
            parameter.kind is ParameterKind.OPTIONAL
            and parameter.name in relevant
            and parameter.name not in relation.inputs
        ):
            relation = next(
                (wider for wider in _with_input(relation, parameter.name) if trial.demands(wider, parameter.name)),
                relation,
            )
    return relation


def with_absent_inputs_given(
    relation: Relation,
    function: ShapeFunction,
    *,
    seed: int = 0,
    ask: Callable[[bytes], None] = lambda question: None,
) -> Relation:
    """Return a relation with patterns for all inputs that it demands to be absent, or as it is if one changes answers.

    An input in several patterns, such as ``[1]`` and ``[n]``, that changes no answer is left out: the function, which a
    graph asks too, refuses the others.
    """
    clauses = [str(clause) for clause in relation.clauses]
    absent = [t.name for t in relation.input_tensors if f"{t.name} is None" in clauses]
    if not absent:
        return relation
    inputs = ", ".join(str(t) for t in relation.input_tensors if t.name not in absent)
    outputs = ", ".join(map(str, relation.output_tensors))
    rest = ", ".join(clause for clause in clauses if clause.removesuffix(" is None") not in absent)
    try:
        without = parse_relation(f"{inputs} -> {outputs}{f' where {rest}' if rest else ''}")
    except RelationError:  # an output has the dtype of such an input
        return relation
    found = with_optional_inputs(without, function, absent, seed=seed, ask=ask)
    trial = _Trial(function, ask, seed)
    unsaid = [name for name in absent if name not in found.inputs]
    return found if all(trial.changes_nothing(without, name) for name in unsaid) else relation


def _with_input(relation: Relation, name: str) -> Iterator[Relation]:
    """Yield the relation with one more input, of the patterns that scales, biases and masks have."""
    outputs = f"-> {', '.join(map(str, relation.output_tensors))}"
    tail = f" where {', '.join(map(str, relation.clauses))}" if relation.clauses else ""
    for pattern in _patterns(relation):
        text = ", ".join((*map(str, relation.input_tensors), f"{name}[{pattern}]"))
        with contextlib.suppress(RelationError):  # a dimension has the name of a tensor
            yield parse_relation(f"{text} {outputs}{tail}")


def _patterns(relation: Relation) -> Iterator[str]:
    found: dict[str, None] = {}
    for tensor in (*relation.output_tensors, *relation.input_tensors):
        shape = tensor.alternatives[-1].shape
        if not isinstance(shape, Dims) or tensor.index is not None:
            continue
        named = [str(i) for i in shape.items if isinstance(i, Size | DimensionGroup) and isinstance(i.value, Name)]
        if named:
            found |= dict.fromkeys((named[-1], f"1, {named[-1]}", named[0], *named, f"*{_LEADING}, {named[-1]}"))
        if len(named) == len(shape.items):
            found[", ".join(named)] = None
    yield from (*found, "1", "")


class _Trial:
    """Comparison of the shapes that a function takes of an optional input with a pattern."""

    def __init__(self, function: ShapeFunction, ask: Callable[[bytes], None], seed: int) -> None:
        self.function, self.ask, self.seed = function, ask, seed

    def demands(self, relation: Relation, name: str) -> bool:
        """Return whether the function takes an input in the shapes that a relation says, and in no other.

        Its answer is the same as without the input.
        """
        rng, prototype = random.Random(self.seed), self.function.prototype
        at = [p.name for p in prototype.inputs].index(name)
        fitting = refused = 0
        for _ in range(_DRAWS):
            attrs = drawn_attrs(self.function, relation, rng)
            inputs = from_relation(relation, prototype, attrs, rng, drawn_sizes(self.function, rng))
            if inputs is None or not isinstance(inputs[at], InputSpec):
                continue
            without = self.answer(inputs, attrs, at, None)
            if without is None:
                continue
            shape = inputs[at].shape
            if self.answer(inputs, attrs, at, shape) != without:
                return False
            fitting += 1
            for other in _others(shape, [given.shape for given in inputs if isinstance(given, InputSpec)]):
                changed = [*inputs[:at], replace(inputs[at], shape=other), *inputs[at + 1 :]]
                takes = answer_of_relation(relation, prototype, changed, attrs) is not None
                answer = self.answer(inputs, attrs, at, other)
                # A function that reads the last size alone has nothing to read of a scalar.
                if answer != (without if takes else None) and (other or f"*{_LEADING}" not in str(relation)):
                    return False
                refused += not takes
            if fitting == _CALLS:
                break
        return fitting >= _CALLS // 2 and refused > 0

    def changes_nothing(self, relation: Relation, name: str) -> bool:
        """Return whether every answer with an input, of some that there are, is the one without it."""
        rng, prototype = random.Random(self.seed), self.function.prototype
        at = next(n for n, p in enumerate(prototype.inputs) if p.name == name)
        spec = InputSpec((), first_dtype(prototype.inputs[at].dtypes))
        answers = 0
        for _ in range(_DRAWS):
            attrs = drawn_attrs(self.function, relation, rng)
            inputs = from_relation(relation, prototype, attrs, rng, drawn_sizes(self.function, rng))
            if inputs is None or (without := self.answer(inputs, attrs, at, None)) is None:
                continue
            made = [output.shape for output in without if isinstance(output, InferredOutput)]
            shapes = [given.shape for given in inputs if isinstance(given, InputSpec)] + made
            shapes += [(1, *shape[-1:]) for shape in made] + [(*shape[:-2], 1, *shape[-1:]) for shape in made]
            for shape in _others((), shapes):
                given = self.answer([*inputs[:at], spec, *inputs[at + 1 :]], attrs, at, shape)
                if given not in (None, without):
                    return False
                answers += given is not None
        return answers >= _CALLS

    def answer(
        self, inputs: list[Any], attrs: dict[str, Any], at: int, shape: tuple[int, ...] | None
    ) -> Sequence[Answer] | None:
        """Return the answer with an input of a shape, or without it; None if the function refuses the call."""
        given = None if shape is None else replace(inputs[at], shape=shape)
        try:
            return called(self.function, self.ask, [*inputs[:at], given, *inputs[at + 1 :]], attrs)
        except ShapeFunctionError:
            return None


def _others(shape: tuple[int, ...], inputs: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """Yield shapes that differ in one size or in the number of dimensions, that broadcast to any, or that inputs have."""
    sizes = {size for one in inputs for size in one}
    yield from {(), (1,) * len(shape), shape[1:], *inputs, *((size,) for size in sizes)} - {shape}
    for axis, size in enumerate(shape):
        yield (*shape[:axis], size + 1, *shape[axis + 1 :])
    for size in (1, 3):
        yield (*shape, size)
        yield (size, *shape)

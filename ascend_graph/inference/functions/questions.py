"""Calls of a shape function: the values of inputs and attrs as it takes them, and its answers."""

from __future__ import annotations

import copy
import itertools
import pickle
import random
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

import torch

from ascend_graph.inference.functions.drawing import (
    any_inputs,
    drawn_sizes,
    other_inputs,
    random_attr,
    random_attrs,
    reshaped,
)
from ascend_graph.inference.functions.values import (
    DTYPES,
    NUMBERS,
    PLAIN,
    attr_argument,
    first_dtype,
    tried_texts,
    with_declared_dtypes,
)
from ascend_graph.inference.functions.wording import answer_text, flat_specs, run_text, shown
from ascend_graph.inference.results import InferenceError
from ascend_graph.inference.running import Returned, Run
from ascend_graph.prototypes import Attr, AttrType, OpPrototype, ParameterKind
from ascend_graph.shapes.functions import Answer, InferredOutput, InputSpec, ShapeFunction, ShapeFunctionError

#: Number of questions that are asked twice.
_TWICE = 24


#: Calls that a search may make, answered before or not, and processor seconds that it may take where calls are slow.
CALL_LIMIT, SECONDS_LIMIT = 9_000, 60.0

#: Words of the error of a function that answers nothing.
UNSET = "does not set the shape"


#: Number of calls in which each input and attr is changed, to see whether it matters.
_BASES = 10


#: Bytes before the question: its length and number.
HEAD = 8


class FunctionCaller:
    """Source of runs that asks a shape function; the same question is asked once."""

    has_strides = False

    def __init__(self, function: ShapeFunction, ask: Callable[[bytes], None], call_limit: int) -> None:
        self._function, self._ask = function, ask
        #: Number of calls so far, which callers with given values share, and the numbers at which all and this one end.
        self._calls = itertools.count()
        self._limit = self._until = call_limit
        self._deadline = time.process_time() + SECONDS_LIMIT
        #: Flags and texts with the values that the function takes, and those of them that decide what it takes.
        self.branching: dict[str, tuple[Any, ...]] = {}
        self.deciding: dict[str, tuple[Any, ...]] = {}
        #: Values of texts in calls that the function answers.
        self.texts: dict[str, tuple[str, ...]] = {}
        #: Number of items of lists in the calls that the function answers, 0 if any.
        self.list_length = 0
        self.runs = 0
        self.last_error = ""
        self.notes: list[str] = []
        #: Calls whose sizes are left unknown, or negative: the first one, and how many there are.
        self.unknown, self.unknown_calls = "", 0
        self._answers: dict[Any, Run] = {}
        self._first: list[tuple[Mapping[str, Any], Run]] = []
        self._fixed: Mapping[str, Any] = {}
        #: Outputs that were set, or absent, in some answer.
        self._set: set[int] = set()
        prototype = function.prototype
        self._fresh = [p.name not in prototype.in_place for p in prototype.outputs]
        self.dtype_attrs = self._find_dtype_attrs()

        self.names: Sequence[str] = [*(p.name for p in prototype.inputs), *(a.name for a in prototype.attrs)]

    def relevant(self, rng: random.Random) -> frozenset[str]:
        """Return the inputs and attrs that change an answer, or whether there is one, and the first input.

        Most InferShape functions read one input or two of many, and few attrs. The others have no part in a relation.
        """
        prototype = self._function.prototype
        bases = self._answered_calls(rng)
        if not bases:  # what is asked so simply is refused: anything may matter
            return frozenset(self.names)
        for inputs, attrs, answer in reversed(bases):
            if (again := self._answer(inputs, attrs)) != answer:
                call = shown(prototype, inputs, attrs)
                raise InferenceError(
                    f"{self._function.source} must be deterministic: of {call} it made {answer_text(answer)} first, then "
                    f"{answer_text(again)}"
                )
        found = {p.name for p in prototype.inputs[:1]}
        for number, parameter in enumerate(prototype.inputs):
            for inputs, attrs, answer in bases:
                others = list(other_inputs(parameter, inputs[number], rng, drawn_sizes(self._function, rng)))
                if any(
                    self._answer([*inputs[:number], other, *inputs[number + 1 :]], attrs) != answer for other in others
                ):
                    found.add(parameter.name)
                    break
        for attr in prototype.attrs:
            argument = attr_argument(attr, tried_texts(self._function), self.dtype_attrs.get(attr.name))
            for inputs, attrs, answer in bases:
                others = [random_attr(attr, argument, rng, self.list_length or 2) for _ in range(5)]
                if any(self._answer(inputs, {**attrs, attr.name: other}) != answer for other in others):
                    found.add(attr.name)
                    break
        self._check_sets_shapes()
        self.deciding = self._deciding(bases, found)
        self.names = [name for name in self.names if name in found]
        self._fixed = self._plain_call()
        return frozenset(found)

    def _deciding(self, bases: Sequence[Any], relevant: Container[str]) -> dict[str, tuple[Any, ...]]:
        """Return the flags and texts of which some values let the function answer calls that others do not, with them.

        They decide what inputs look like: ``transpose`` and ``layout``, not ``keepdim``. Texts that it never takes are left out;
        those that it takes are kept for every attr.
        """
        found: dict[str, tuple[Any, ...]] = {}
        for attr in self._function.prototype.attrs:
            if attr.type not in (AttrType.BOOL, AttrType.STRING):
                continue
            argument = attr_argument(attr, tried_texts(self._function))
            values: tuple[Any, ...] = (True, False)
            if attr.type is AttrType.STRING:
                defaults = () if attr.default is None else (attr.default,)  # a required text is never absent
                values = tuple(dict.fromkeys((*defaults, *argument.choices)))
            answers = [
                [self._answer(inputs, {**attrs, attr.name: value}) is not None for value in values]
                for inputs, attrs, _ in bases
            ]
            taken = [any(column) for column in zip(*answers, strict=True)]
            if attr.type is AttrType.STRING:
                self.texts[attr.name] = tuple(map(str, itertools.compress(values, taken)))
            if sum(taken) > 1 and attr.name in relevant:
                differ = any(len(set(itertools.compress(row, taken))) > 1 for row in answers)
                self.branching[attr.name] = tuple(itertools.compress(values, taken))
                if differ:
                    found[attr.name] = self.branching[attr.name]
        return found

    def with_values(self, values: Mapping[str, Any]) -> FunctionCaller:
        """Return a caller of the same function that gives some inputs and attrs these values.

        It may make two thirds of the calls of all, as long as some are left.
        """
        other = copy.copy(self)
        other.names = [name for name in self.names if name not in values]
        other._fixed = {**self._fixed, **values}
        other._answers, other._first, other.runs = {}, [], 0
        other._until = min(self._limit, next(self._calls) + self._limit * 2 // 3)
        return other

    def _check_sets_shapes(self) -> None:
        """Raise InferenceError if no answer sets an output: many functions return and set nothing."""
        for number, parameter in enumerate(self._function.prototype.outputs):
            if self._fresh[number] and number not in self._set:
                raise InferenceError(f"{self._function.source} {UNSET} of output {parameter.name}. Write shape=")

    def _answered_calls(self, rng: random.Random) -> list[tuple[list[Any], dict[str, Any], Any]]:
        """Return some calls with answers, and set the number of items that lists need, such as windows of pooling."""
        lists = any(a.type is AttrType.LIST_INT for a in self._function.prototype.attrs)
        for self.list_length in (0, 4, 5) if lists else (0,):
            if found := list(itertools.islice(self._bases(rng), _BASES)):
                return found
        self.list_length = 0
        return []

    def _bases(self, rng: random.Random) -> Iterator[tuple[list[Any], dict[str, Any], Any]]:
        """Yield calls with answers: tensors of one shape, then of any shapes."""
        prototype = self._function.prototype
        for number in range(_BASES * 36):
            inputs = any_inputs(prototype, rng, drawn_sizes(self._function, rng))
            if number % 3 != 2:
                shape = tuple(rng.choice((2, 4, 6, 8, 16)) for _ in range(rng.choice((1, 2, 2, 3, 3, 4, 4, 5))))
                inputs = [reshaped(given, shape) for given in inputs]
            attrs = _plain_attrs(prototype, self.list_length)
            if number % 2:
                attrs = random_attrs(
                    self._function, rng, self.dtype_attrs, self.list_length or rng.choice((1, 2, 2, 3))
                )
            answer = self._answer(inputs, attrs)
            if answer is not None:
                yield inputs, attrs, answer

    def _answer(self, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        try:
            outputs = called(self._function, self._ask, inputs, attrs)
        except ShapeFunctionError as error:
            self._note_error(error, inputs, attrs)
            return None
        self._set.update(n for n, o in enumerate(outputs) if o is None or any(one.is_set for one in flat_specs(o)))
        return with_declared_dtypes(self._function.prototype, inputs, outputs)

    def _plain_call(self) -> dict[str, Any]:
        """Return values of the inputs and attrs that have no part in the search."""
        prototype = self._function.prototype
        fixed: dict[str, Any] = {}
        for parameter in prototype.inputs:
            tensor = torch.empty((2, 4), dtype=DTYPES[first_dtype(parameter.dtypes)], device="meta")
            fixed[parameter.name] = (
                None
                if parameter.kind is ParameterKind.OPTIONAL
                else [tensor]
                if parameter.kind is ParameterKind.DYNAMIC
                else tensor
            )
        return fixed | _plain_attrs(prototype, self.list_length)

    def call(self, values: Mapping[str, Any], *, may_crash: bool = False) -> Run:
        """Ask the function, and return a refusal as a result.

        Raises:
            InferenceError: The search has made as many calls as it may. Their number is the same on every machine.
        """
        if next(self._calls) >= self._until or time.process_time() > self._deadline:
            raise InferenceError(f"{self._function.prototype.op_type}: the search took too long; write shape=")
        key = repr([_key(values[name]) for name in self.names])
        run = self._answers.get(key)
        if run is None:
            run = self._answers[key] = self._asked(values)
            if len(self._first) < _TWICE:
                self._first.append((dict(values), run))
        self.runs += not run.error
        return run

    def check_determinism(self) -> None:
        """Ask the first questions again, in another order.

        Raises:
            InferenceError: An answer differs.
        """
        for values, before in reversed(self._first):
            after = self._asked(values)
            if (after.outputs, bool(after.error)) != (before.outputs, bool(before.error)):
                raise InferenceError(
                    f"{self._function.source} must be deterministic: of "
                    f"{shown(self._function.prototype, *self._specs(values))} "
                    f"it made {run_text(before)} first, then {run_text(after)}"
                )

    def _find_dtype_attrs(self) -> dict[str, tuple[torch.dtype, ...]]:
        """Return the attrs whose value is a dtype, with the dtypes that the function takes, those of outputs more often.

        An ``Int`` attr is one if some output has the dtype that it numbers, for two numbers or more.
        """
        prototype, found = self._function.prototype, {}
        if not self._function.says_dtypes:
            return {}
        inputs = [
            [InputSpec((2, 2), first_dtype(p.dtypes))]
            if p.kind is ParameterKind.DYNAMIC
            else InputSpec((4, 8), first_dtype(p.dtypes))
            for p in prototype.inputs
        ]
        for attr in prototype.attrs:
            if attr.type not in (AttrType.INT, AttrType.TYPE):
                continue
            taken: list[torch.dtype] = []
            followed: dict[int, list[torch.dtype]] = {}
            for dtype, number in NUMBERS.items():
                attrs = _plain_attrs(prototype) | {attr.name: int(number)}
                try:
                    made = called(self._function, self._ask, inputs, attrs)
                except ShapeFunctionError:
                    continue
                taken.append(dtype)
                for place, output in enumerate(made):
                    if isinstance(output, InferredOutput) and output.dtype == number:
                        followed.setdefault(place, []).append(dtype)
            longest = max(followed.values(), key=len, default=[])
            if attr.type is AttrType.TYPE or len(longest) > 1:
                found[attr.name] = (*taken, *longest * 4)
        return found

    def _specs(self, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        prototype = self._function.prototype
        values = {**self._fixed, **values}
        inputs = [_spec(values[p.name]) for p in prototype.inputs]
        attrs = {a.name: _attr_value(a, values[a.name]) for a in prototype.attrs}
        return inputs, attrs

    def _asked(self, values: Mapping[str, Any]) -> Run:
        inputs, attrs = self._specs(values)
        try:
            outputs = called(self._function, self._ask, inputs, attrs)
        except ShapeFunctionError as error:
            self._note_error(error, inputs, attrs)
            return Run(error=str(error))
        steady = not self._function.says_dtypes  # a relation says nothing of them
        described = with_declared_dtypes(self._function.prototype, inputs, outputs, steady=steady)
        fresh = itertools.compress(described, self._fresh)
        try:
            return Run(tuple(_returned(output) for output in fresh))
        except ShapeFunctionError as error:
            return Run(error=str(error))

    def _note_error(self, error: ShapeFunctionError, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> None:
        """Keep the message, and note the first call that the function faulted or threw in."""
        self.last_error = str(error)
        if error.by_value:
            self.unknown = self.unknown or f"of {shown(self._function.prototype, inputs, attrs)} {error}"
            self.unknown_calls += 1
        if error.crashed and not self.notes:
            self.notes.append(f"of {shown(self._function.prototype, inputs, attrs)} {error}")


def called(
    function: ShapeFunction, ask: Callable[[bytes], None], inputs: Sequence[Any], attrs: Mapping[str, Any]
) -> Sequence[Answer]:
    """Call the function, and say before and after what it is asked."""
    attrs = {**attrs, **_list_lengths(function.prototype, inputs)}
    ask(pickle.dumps((inputs, attrs)))
    outputs = function.call(inputs, attrs)
    ask(b"")
    return outputs


def _list_lengths(prototype: OpPrototype, inputs: Sequence[Any]) -> dict[str, int]:
    """Return the value of the attr that GE's prototypes of one list name ``N``: its number of tensors."""
    lengths = [len(given) for given in inputs if isinstance(given, list)]
    if len(lengths) != 1:
        return {}
    return {a.name: lengths[0] for a in prototype.attrs if a.name == "N" and a.type is AttrType.INT}


def _key(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype
    if isinstance(value, list) and value and isinstance(value[0], torch.Tensor):
        return [(tuple(t.shape), t.dtype) for t in value]
    return value


def _spec(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return InputSpec(tuple(value.shape), NUMBERS[value.dtype])
    return None if value is None else [InputSpec(tuple(t.shape), NUMBERS[t.dtype]) for t in value]


def _attr_value(attr: Attr, value: Any) -> Any:
    return int(NUMBERS[value]) if isinstance(value, torch.dtype) else value


def _plain_attrs(prototype: OpPrototype, list_length: int = 0) -> dict[str, Any]:
    """Return a value for every attr: its default, or a plain one."""
    plain = {**PLAIN, AttrType.LIST_INT: (1,) * list_length}
    return {
        a.name: a.default if not a.required and a.default is not None else plain.get(a.type, ())
        for a in prototype.attrs
    }


def _returned(output: Answer) -> Any:
    """Describe an output as a run's.

    Raises:
        ShapeFunctionError: It has a dtype that torch lacks, which takes no part in a relation.
    """
    if output is None:
        return None
    if not isinstance(output, InferredOutput):
        return [_returned(one) for one in output]
    assert output.dtype is not None
    if output.dtype not in DTYPES:
        raise ShapeFunctionError(
            f"the dtype {output.dtype.ge_name} of an output is not a dtype of torch; expected one that torch has"
        )
    return Returned(output.shape, DTYPES[output.dtype], ())

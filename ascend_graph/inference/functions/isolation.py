"""Shape functions in a fork, which may die, with the question that it died of."""

from __future__ import annotations

import itertools
import mmap
import os
import pickle
import select
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from ascend_graph.inference.functions.questions import HEAD
from ascend_graph.inference.functions.wording import shown
from ascend_graph.inference.results import InferenceError
from ascend_graph.prototypes import OpPrototype
from ascend_graph.shapes.functions import Answer, InputSpec, ShapeFunction, ShapeFunctionError

#: Seconds that one answer may take.
ANSWER_LIMIT = 5.0
#: Bytes of the memory in which a child process leaves its last question.
_QUESTION = 1 << 14
#: Number of the question while none is asked.
_IDLE = bytes(4)

T = TypeVar("T")


#: Number of kinds of inputs that a function may leave without an answer.
_MOST_UNASKED = 3


@dataclass(frozen=True, slots=True)
class _Unasked:
    """Inputs of which a function is not asked, for it does not answer."""

    #: Position of an input that is a scalar, or has more dimensions than another.
    position: int
    other: int | None = None

    def holds(self, inputs: Sequence[Any]) -> bool:
        rank, limit = _rank(inputs[self.position]), 0 if self.other is None else _rank(inputs[self.other])
        if rank is None or limit is None:
            return False
        return rank == 0 if self.other is None else rank > limit

    def text(self, prototype: OpPrototype) -> str:
        name = prototype.inputs[self.position].name
        if self.other is None:
            return f"a scalar {name}"
        return f"{name} with more dimensions than {prototype.inputs[self.other].name}"


class UnansweredError(InferenceError):
    """Error of a function that did not answer in time, for the kinds of inputs in ``causes`` perhaps."""

    def __init__(self, message: str, causes: Sequence[_Unasked]) -> None:
        super().__init__(message)
        self.causes = causes


def in_fork(
    work: Callable[[ShapeFunction, Callable[[bytes], None]], T], function: ShapeFunction
) -> tuple[T, tuple[str, ...]]:
    """Run work with a function in a fork of this process, and again without inputs that the function does not answer.

    Many functions count down from the number of dimensions less one, or less that of another input, which has no end for
    a scalar.

    Returns:
        The result, and the kinds of inputs of which the function was not asked, in words.

    Raises:
        InferenceError: The work raised it, or the child crashed or did not end.
    """
    never: list[_Unasked] = []
    while True:
        try:
            found = _in_one_fork(partial(work, _without(function, tuple(never))), function)
        except UnansweredError as error:
            cause = next((cause for cause in error.causes if cause not in never), None)
            if cause is None or len(never) == _MOST_UNASKED:
                raise
            never.append(cause)
        else:
            return found, tuple(cause.text(function.prototype) for cause in never)


def _without(function: ShapeFunction, unasked: Sequence[_Unasked]) -> ShapeFunction:
    """Return the function, which refuses some kinds of inputs without being asked."""

    def call(given: Sequence[Any], attrs: Mapping[str, Any]) -> Sequence[Answer]:
        for one in unasked:
            if one.holds(given):
                kind = one.text(function.prototype)
                raise ShapeFunctionError(f"{function.source} does not answer {kind} in time; expected other inputs")
        return function.call(given, attrs)

    return replace(function, call=call) if unasked else function


def _rank(spec: Any) -> int | None:
    return len(spec.shape) if isinstance(spec, InputSpec) and spec.values is None else None


def _causes(inputs: Sequence[Any]) -> list[_Unasked]:
    """Return the kinds of these inputs that may be why a function did not answer, scalars first."""
    every = [_Unasked(n) for n in range(len(inputs))]
    every += [_Unasked(n, other) for n, other in itertools.permutations(range(len(inputs)), 2)]
    return [one for one in every if one.holds(inputs)]


def _in_one_fork(work: Callable[[Callable[[bytes], None]], T], function: ShapeFunction) -> T:
    """Run work in a fork; the child leaves each question in shared memory before it asks."""
    with mmap.mmap(-1, _QUESTION) as memory:
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forks beside threads: the child runs Python alone
            child = os.fork()
        if child == 0:
            _serve(work, memory, writing)
        os.close(writing)
        try:
            data = _received(reading, memory)
        except BaseException:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        finally:
            os.close(reading)
        if data is None:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if data:
            result = pickle.loads(data)
            if isinstance(result, InferenceError):
                raise result
            return result  # type: ignore[no-any-return]
        code = os.waitstatus_to_exitcode(status)
        how = "did not answer in time" if data is None else _ending(code)
        asked = _last_question(memory)
        of = f" of {shown(function.prototype, *asked)}" if asked else ""
        message = f"{function.source} {how}{of}; correct it, or give shape="
        if data is None:
            raise UnansweredError(message, _causes(asked[0]) if asked else ())
        raise InferenceError(message)


def _ending(code: int) -> str:
    return f"ended the process by {signal.Signals(-code).name}" if code < 0 else f"ended the process with status {code}"


def _last_question(memory: mmap.mmap) -> tuple[Sequence[Any], Mapping[str, Any]] | None:
    """Return the inputs and attrs of the last question, or None before the first."""
    length = int.from_bytes(memory[:4], "little")
    return pickle.loads(memory[HEAD : HEAD + length]) if length else None


def _received(reading: int, memory: mmap.mmap) -> bytes | None:
    """Return what the child wrote until it closed the pipe, or None if one answer takes too long."""
    data, question, since = b"", _IDLE, time.monotonic()
    while True:
        ready, _, _ = select.select([reading], [], [], 0.5)
        if not ready:
            if memory[4:HEAD] == _IDLE or memory[4:HEAD] != question:
                question, since = memory[4:HEAD], time.monotonic()
            elif time.monotonic() - since > ANSWER_LIMIT:
                return None
            continue
        part = os.read(reading, 1 << 16)
        if not part:
            return data
        data += part


def _serve(work: Callable[[Callable[[bytes], None]], Any], memory: mmap.mmap, writing: int) -> None:
    """Do the work in the child, write its result, and end without the exit handlers of the parent."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        # Authors' functions log each of the calls, a thousand a search.
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        warnings.simplefilter("ignore")

        count = itertools.count(1)

        def ask(question: bytes) -> None:
            if not question:
                memory[4:HEAD] = _IDLE
                return
            if len(question) < _QUESTION - HEAD:
                memory[HEAD : HEAD + len(question)] = question
                memory[:4] = len(question).to_bytes(4, "little")
            memory[4:HEAD] = next(count).to_bytes(4, "little")

        try:
            data = pickle.dumps(work(ask))
        except InferenceError as error:
            data = pickle.dumps(error)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            data = pickle.dumps(InferenceError(f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"))
        while data:
            data = data[os.write(writing, data) :]
        status = 0
    finally:
        os._exit(status)

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
from collections.abc import Callable
from typing import Any, TypeVar

from ascend_graph.inference.functions.questions import HEAD, shown
from ascend_graph.inference.results import InferenceError
from ascend_graph.prototypes import OpPrototype
from ascend_graph.shapes.functions import ShapeFunction

#: Processor seconds that a search may take, and seconds that one answer may take.
SEARCH_LIMIT, ANSWER_LIMIT = 3.0, 5.0
#: Bytes of the memory in which a child process leaves its last question.
_QUESTION = 1 << 14
#: Number of the question while none is asked.
_IDLE = bytes(4)

T = TypeVar("T")


def in_fork(work: Callable[[Callable[[bytes], None]], T], function: ShapeFunction) -> T:
    """Run work in a fork of this process; the child leaves each question in shared memory before it asks.

    Raises:
        InferenceError: The work raised it, or the child crashed or did not end.
    """
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
        raise InferenceError(
            f"{function.source} {how}{_last_question(function.prototype, memory)}; correct it, or give shape="
        )


def _ending(code: int) -> str:
    return f"ended the process by {signal.Signals(-code).name}" if code < 0 else f"ended the process with status {code}"


def _last_question(prototype: OpPrototype, memory: mmap.mmap) -> str:
    length = int.from_bytes(memory[:4], "little")
    if not length:
        return ""
    return f" of {shown(prototype, *pickle.loads(memory[HEAD : HEAD + length]))}"


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

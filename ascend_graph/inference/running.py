"""Execution of an untrusted eager kernel: with a time limit, and if possible in a process of its own.

A kernel called with inputs that it does not expect may raise, hang, or write over memory. A child process survives the
last two. It is a fork of this process, so every operator registered here exists there too. A device in use cannot be
taken into a fork: its kernels run on a thread of this process, and a crash there ends the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import io
import multiprocessing
import multiprocessing.connection
import os
import pickle
import queue
import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from ascend_graph.errors import AscendGraphError

#: Time limit for a child process to show that torch works in it, in seconds.
START_LIMIT = 10.0


class KernelError(AscendGraphError):
    """Error of a kernel that hung, crashed, or returned outputs that its schema does not declare."""


@dataclass(frozen=True, slots=True)
class Returned:
    """Description of a tensor that a kernel returned."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    strides: tuple[int, ...]
    #: Input whose memory it shares although the schema does not declare it.
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """Result of one call: per output a :class:`Returned`, a list of them, or ``None``; or the exception's text."""

    outputs: tuple[Any, ...] = ()
    error: str = ""


class Caller(Protocol):
    """Source of the runs of one operator: its kernel, or a function that says what the kernel would return."""

    runs: int
    last_error: str
    #: True if the outputs of a run have the strides of the kernel's outputs.
    has_strides: bool

    @property
    def names(self) -> Sequence[str]:
        """The arguments of a call, in order."""

    def call(self, values: Mapping[str, Any], *, may_crash: bool = False) -> Run:
        """Run the operator with arguments by name, and return an exception that it raises as a result."""


class Runner:
    """Context manager that calls one kernel repeatedly.

    Args:
        kernel: The eager kernel, called with the schema's arguments.
        schema: Its schema.
        device: The device of a call's tensors.
        limit: The time limit of one run, in seconds.
        given: The calls to come, by argument; their tensors stay on their devices.

    A call raises :class:`KernelError` if the kernel hangs, crashes, or breaks its schema.
    """

    def __init__(
        self,
        kernel: Callable[..., Any],
        schema: torch.FunctionSchema,
        device: str | torch.device,
        limit: float,
        *,
        given: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        self.schema, self.limit = schema, limit
        self.runs = 0
        self.last_error = ""
        self.has_strides = True
        self._devices = {torch.device(device), *(t.device for call in given or () for t in _tensors(call.values()))}
        self._kernel = _Kernel(kernel, schema, torch.device(device) if given is None else None)
        self._worker: _Worker | None = None

    def __enter__(self) -> Runner:
        self._worker = _worker(self._kernel, self._devices)
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker is not None:
            self._worker.close()

    @property
    def names(self) -> Sequence[str]:
        """The arguments of the schema, in order."""
        return [a.name for a in self.schema.arguments]

    def call(self, values: Mapping[str, Any], *, may_crash: bool = False) -> Run:
        """Run the kernel with arguments by name, and return an exception that it raises as a result, or that it crashed."""
        assert self._worker is not None
        shapes = {k: tuple(v.shape) for k, v in values.items() if isinstance(v, torch.Tensor)}
        try:
            run = self._worker.call(dict(values), self.limit)
        except TimeoutError:
            raise KernelError(
                f"{self.schema.name} did not return within {self.limit} s for {shapes}; give shape= or samples="
            ) from None
        except _CrashedError as error:
            crash = f"{self.schema.name} crashed the process it ran in ({error}) for {shapes}; give shape= or samples="
            if not may_crash:
                raise KernelError(crash) from None
            self._worker.close()
            self._worker, run = _worker(self._kernel, self._devices), Run(error=crash)
        if run.error:
            self.last_error = run.error
        else:
            self.runs += 1
        return run


class _CrashedError(Exception):
    """Error of a process that ended while it ran the kernel."""


# ------------------------------------------------------------------------------------------------------------- one call


@dataclass(frozen=True, slots=True)
class _Kernel:
    """Kernel with its schema, by which its results are checked."""

    function: Callable[..., Any]
    schema: torch.FunctionSchema
    #: Device of a call's tensors; ``None`` leaves them on theirs.
    device: torch.device | None

    def run(self, values: Mapping[str, Any]) -> Run:
        """Call the kernel and describe its outputs."""
        values = {name: self.placed(value) for name, value in values.items()}
        args = [values[a.name] for a in self.schema.arguments if not a.kwarg_only]
        kwargs = {a.name: values[a.name] for a in self.schema.arguments if a.kwarg_only}
        read = [a.name for a in self.schema.arguments if a.alias_info is None or not a.alias_info.is_write]
        before = {name: list(map(_bytes, _tensors([values[name]]))) for name in read}
        try:
            with torch.no_grad():
                result = self.function(*args, **kwargs)
        except Exception as error:  # what a kernel raises says that the inputs are invalid
            return Run(error=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        for name in read:
            if any(map(_differ, before[name], map(_bytes, _tensors([values[name]])))):
                raise KernelError(self.hidden_write(name))
        return Run(self.described(result, values))

    def hidden_write(self, argument: str) -> str:
        """Return the message that the kernel writes to an argument, with the schema that declares it."""
        letter = next(c for c in "abcdefghijklmnopqrstuvwxyz" if f"({c}!)" not in str(self.schema))
        written = re.sub(rf"\bTensor(?=[\[\]?]* {argument}\b)", f"Tensor({letter}!)", str(self.schema))
        return (
            f"{self.schema.name} writes to its argument {argument}, which its schema does not say: torch.compile may drop or "
            f"reorder the call. Write: {written}"
        )

    def placed(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value if self.device is None else value.to(self.device)
        return [self.placed(item) for item in value] if isinstance(value, list) else value

    def described(self, result: Any, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Describe the outputs, aliases of inputs included, and check their number and kinds against the schema."""
        lists = ["List[" in str(r.type) for r in self.schema.returns]
        several = isinstance(result, list | tuple) and lists != [True]
        outputs = tuple(result) if several else (result,)
        name = self.schema.name
        if len(outputs) != len(lists):
            raise KernelError(
                f"{name} returned {len(outputs)} output(s); expected {len(lists)} by its schema: {self.schema}"
            )
        given = {
            t.untyped_storage().data_ptr(): key
            for key, value in values.items()
            for t in (value if isinstance(value, list) else [value])
            if isinstance(t, torch.Tensor) and t.untyped_storage().nbytes()
        }
        found: list[Any] = []
        for number, (output, is_list) in enumerate(zip(outputs, lists, strict=True)):
            tensors = list(output) if is_list and isinstance(output, list | tuple) else [output]
            described = [None if t is None else self.tensor(t, number, given) for t in tensors]
            found.append(described if is_list else described[0])
        return tuple(found)

    def tensor(self, tensor: Any, number: int, given: Mapping[int, str]) -> Returned:
        name = self.schema.name
        if not isinstance(tensor, torch.Tensor):
            raise KernelError(f"{name} returned {type(tensor).__name__} as output {number}; expected a tensor")
        if tensor.layout is not torch.strided:
            raise KernelError(f"output {number} of {name} is {tensor.layout}; expected a strided tensor")
        owner = given.get(tensor.untyped_storage().data_ptr())
        declared = self.schema.returns[number].alias_info is not None
        aliased = owner is not None and tensor.untyped_storage().nbytes() and not declared
        return Returned(tuple(tensor.shape), tensor.dtype, tuple(tensor.stride()), owner if owner and aliased else "")


# -------------------------------------------------------------------------------------------------------------- workers


class _Worker(Protocol):
    """Worker in which a kernel runs; :meth:`call` raises ``TimeoutError``, ``_CrashedError`` or ``KernelError``."""

    def call(self, values: dict[str, Any], limit: float) -> Run: ...

    def close(self) -> None: ...


def _worker(kernel: _Kernel, devices: Iterable[torch.device]) -> _Worker:
    if hasattr(os, "fork") and not multiprocessing.current_process().daemon and all(map(_survives_fork, devices)):
        with contextlib.suppress(TimeoutError, _CrashedError, OSError):
            return _Child(kernel)
    return _Thread(kernel)


def _survives_fork(device: torch.device) -> bool:
    """Return whether a device works in a fork of this process: the CPU, or one that is not initialized yet."""
    if device.type == "cpu":
        return True
    initialized = getattr(torch.get_device_module(device), "is_initialized", None)
    return initialized is not None and not initialized()


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy of a tensor's elements as bytes, so that NaN equals itself."""
    return tensor.detach().cpu().clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)


def _differ(a: torch.Tensor, b: torch.Tensor) -> bool:
    return not torch.equal(a, b)


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


class _Thread:
    """Worker on a thread, so that a kernel that hangs does not block the caller."""

    def __init__(self, kernel: _Kernel) -> None:
        self._kernel = kernel
        self._jobs: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Run | KernelError] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="ascend_graph-inference").start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                self._results.put(self._kernel.run(job))
            except KernelError as error:
                self._results.put(error)

    def call(self, values: dict[str, Any], limit: float) -> Run:
        self._jobs.put(values)
        try:
            result = self._results.get(timeout=limit)
        except queue.Empty:
            raise TimeoutError from None
        if isinstance(result, KernelError):
            raise result
        return result

    def close(self) -> None:
        self._jobs.put(None)


class _Child:
    """Worker in a forked process. Tensors travel as bytes: they are small, and sharing memory needs files."""

    def __init__(self, kernel: _Kernel) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(kernel, theirs, self._pipe), daemon=True)
        with warnings.catch_warnings():
            # Python warns of forks while threads run, for locks these may hold; the first answer shows that none is missed.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        theirs.close()
        try:
            self._receive(START_LIMIT)
        except BaseException:
            self.close()
            raise

    def call(self, values: dict[str, Any], limit: float) -> Run:
        try:
            self._pipe.send_bytes(_packed(values))
        except (BrokenPipeError, ConnectionResetError):
            raise _CrashedError(self._ending()) from None
        result = self._receive(limit)
        if isinstance(result, KernelError):
            raise result
        assert isinstance(result, Run)
        return result

    def _receive(self, limit: float) -> Any:
        if not self._pipe.poll(limit):
            raise TimeoutError
        try:
            return pickle.loads(self._pipe.recv_bytes())
        except (EOFError, ConnectionResetError):
            raise _CrashedError(self._ending()) from None

    def _ending(self) -> str:
        self._process.join(1)
        code = self._process.exitcode
        return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"

    def close(self) -> None:
        self._pipe.close()
        self._process.kill()
        self._process.join()


def _serve(kernel: _Kernel, pipe: Any, parent: multiprocessing.connection.Connection) -> None:
    """Answer calls in the child process until the pipe closes."""
    parent.close()
    faulthandler.disable()  # the parent reports a crash
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # the threads of OpenMP do not survive a fork
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            torch.ones(2, device=kernel.device).sum().item()
        except Exception:  # a device that does not work here: the parent falls back to a thread
            os._exit(1)
    pipe.send_bytes(pickle.dumps(True))
    for values in _received(pipe):
        try:
            answer: Run | KernelError = kernel.run(values)
        except KernelError as error:
            answer = error
        pipe.send_bytes(pickle.dumps(answer))
    os._exit(0)  # without the exit handlers of the parent, which would shut down what is the parent's


def _received(pipe: Any) -> Iterator[Any]:
    with contextlib.suppress(EOFError, ConnectionResetError):
        while True:
            yield pickle.loads(pipe.recv_bytes())


class _Pickler(pickle.Pickler):
    """Pickler of CPU tensors as bytes; torch's own way goes through files and shared memory."""

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return NotImplemented
        storage = value.untyped_storage()
        data = ctypes.string_at(storage.data_ptr(), storage.nbytes()) if storage.nbytes() else b""
        return _unpacked, (data, value.dtype, tuple(value.shape), value.stride(), value.storage_offset())


def _packed(values: Mapping[str, Any]) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer).dump(values)
    return buffer.getvalue()


def _unpacked(
    data: bytes, dtype: torch.dtype, shape: Sequence[int], strides: Sequence[int], offset: int
) -> torch.Tensor:
    storage = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
    return torch.empty(0, dtype=dtype).set_(storage.untyped_storage(), offset, tuple(shape), tuple(strides))


def bind(schema: torch.FunctionSchema, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's arguments by name, with defaults filled in."""
    names = [a.name for a in schema.arguments]
    values = {a.name: a.default_value for a in schema.arguments if a.has_default_value()}
    return dict.fromkeys(names) | values | dict(zip(names, args, strict=False)) | dict(kwargs)

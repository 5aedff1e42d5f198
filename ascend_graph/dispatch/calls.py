"""Exclusion of an operator's calls during its changes.

PyTorch's dispatcher allows no call during registration or removal. A call in one thread would read a table that another
thread writes, and run a freed kernel.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from threading import get_ident
from typing import Any

import torch

from ascend_graph.errors import AscendGraphError

#: Default namespace of operators.
NAMESPACE = "ascend"
#: Time that a change waits for calls to return, in seconds.
PATIENCE = 60.0


class CallsInFlightError(AscendGraphError, RuntimeError):
    """Error of changing an operator during a call of it."""


class ActiveCalls:
    """Calls of one operator in flight; a change waits for them, and calls wait for a change."""

    def __init__(self, name: str) -> None:
        self.name = name
        # By thread, how deep it is within calls. Each thread writes its own entry alone, so that calls take no lock; the
        # interpreter's own lock puts what a thread enters and what it reads in one order for all.
        self._depth: dict[int, int] = {}
        self._changed_by: int | None = None
        self._condition = threading.Condition()

    def guarded(self, call: Callable[..., Any], check: Callable[[], None]) -> Callable[..., Any]:
        """Wrap ``call`` so that it is counted; ``check`` raises if the operator was removed."""
        depth, calls = self._depth, self

        def counted(*args: Any, **kwargs: Any) -> Any:
            thread = get_ident()
            outer = depth.get(thread, 0)
            depth[thread] = outer + 1
            try:
                if not outer and calls._changed_by is not None:
                    calls._wait(thread)
                check()
                return call(*args, **kwargs)
            finally:
                if outer:
                    depth[thread] = outer
                else:
                    del depth[thread]
                    if calls._changed_by is not None:
                        calls._wake()

        return counted

    def _wait(self, thread: int) -> None:
        """Wait, uncounted, until no other thread changes the operator."""
        if self._changed_by == thread:
            return
        with self._condition:
            while self._changed_by is not None:
                del self._depth[thread]
                self._condition.notify_all()
                self._condition.wait()
                self._depth[thread] = 1

    def _wake(self) -> None:
        with self._condition:
            self._condition.notify_all()

    @contextlib.contextmanager
    def excluded(self) -> Iterator[None]:
        """Return a context without calls: those in flight have returned, and others wait; this thread's own pass.

        Raises:
            CallsInFlightError: This thread is within a call, or another thread's call does not return.
        """
        thread = get_ident()
        if self._changed_by == thread:
            yield
            return
        if thread in self._depth:
            raise CallsInFlightError(
                f"{self.name} is registered or unregistered within a call of it; expected that after the call"
            )
        with self._condition:
            while self._changed_by is not None:
                self._condition.wait()
            self._changed_by = thread
        try:
            self._drain()
            yield
        finally:
            with self._condition:
                self._changed_by = None
                self._condition.notify_all()

    def _drain(self) -> None:
        until = time.monotonic() + PATIENCE
        with self._condition, _waiting(self):
            while self._depth:
                if not self._condition.wait(min(0.1, until - time.monotonic())) and time.monotonic() >= until:
                    raise CallsInFlightError(
                        f"{self.name} is not changed: {len(self._depth)} thread(s) are within calls of it, and have been for "
                        f"{PATIENCE:.0f} s; expected calls that return"
                    )

    def within(self) -> bool:
        """Return whether this thread is within a call."""
        return get_ident() in self._depth


# ----------------------------------------------------------------------------------------------------------- looking up


_by_name: dict[str, ActiveCalls] = {}


def calls_of(name: str) -> ActiveCalls:
    """Return the call counter of the operator ``namespace::name``, which outlasts its definitions."""
    return _by_name.setdefault(name, ActiveCalls(name))


#: Functions that register an operator when it is looked up, or raise, by its name ``namespace::name``.
on_lookup: dict[str, Callable[[], None]] = {}
#: Functions that say where a missing operator is to be found, by its name ``namespace::name``. One that returns None has
#: tried to register it.
on_missing: list[Callable[[str], str | None]] = []


class _Namespace(torch._ops._OpNamespace):
    """Namespace of ``torch.ops`` that hides an operator during its definition, when it has no kernels yet."""

    # Operators take their module's name from here, and generated code finds them by it.
    __module__ = torch._ops._OpNamespace.__module__

    def __getattr__(self, op_name: str) -> Any:
        register = on_lookup.get(f"{self.name}::{op_name}")
        if register is not None:
            register()
        calls = _by_name.get(f"{self.name}::{op_name}")
        find = super().__getattr__
        if calls is None:
            return self._find(op_name)

        def once(op_name: str) -> Any:
            # There is one packet of an operator: it may have been made while this thread waited.
            return self.__dict__[op_name] if op_name in self.__dict__ else find(op_name)

        return calls.guarded(once, _nothing)(op_name)

    def _find(self, op_name: str) -> Any:
        """Look an operator up; say of a missing one where it is to be found."""
        find = super().__getattr__
        try:
            return find(op_name)
        except AttributeError as error:
            if op_name.startswith("__"):
                raise
            for tell in on_missing:
                hint = tell(f"{self.name}::{op_name}")
                if hint is None:
                    return find(op_name) if f"{self.name}::{op_name}" not in on_lookup else self.__getattr__(op_name)
                if hint:
                    raise AttributeError(f"{error}. {hint}") from None
            raise


def _nothing() -> None:
    """Check nothing."""


def guard_namespace(namespace: str) -> None:
    """Make lookups in a namespace wait for changes. A second call does nothing."""
    found = getattr(torch.ops, namespace)
    if type(found) is torch._ops._OpNamespace:
        found.__class__ = _Namespace


# ------------------------------------------------------------------------------------------------------- the lock of changes

_drained: set[ActiveCalls] = set()


@contextlib.contextmanager
def _waiting(calls: ActiveCalls) -> Iterator[None]:
    _drained.add(calls)
    try:
        yield
    finally:
        _drained.discard(calls)


class ChangeLock:
    """Lock for changes of operators; a thread within a call that the holder waits for raises instead of waiting."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        while not self._lock.acquire(timeout=0.1):
            for calls in tuple(_drained):
                if calls.within():
                    raise CallsInFlightError(
                        f"an operator is registered within a call of {calls.name}, which another thread changes and waits for; "
                        "expected that after the call"
                    )

    def __exit__(self, *_: object) -> None:
        self._lock.release()

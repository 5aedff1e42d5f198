"""Changes of torch's and TorchAir's tables that are made together or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Protocol


class Handle(Protocol):
    """Something in a table that can be taken out."""

    def remove(self) -> None:
        """Take it out; what was there before is there again."""


class Change:
    """One thing that a registration puts in force: it can be taken back, and be put in force again as it was."""

    #: Whether a new one goes over an earlier one of its kind, which then leaves from beneath it. Otherwise the earlier one
    #: has to make room first.
    stacks = True
    #: Whether the others stand on it, and leave where it does.
    carries = False

    def put(self) -> None:
        """Put it in force."""
        raise NotImplementedError

    def take(self) -> None:
        """Take it back; nothing if it is not in force."""
        raise NotImplementedError

    def held(self) -> contextlib.AbstractContextManager[None]:
        """A context in which it can be taken and put in force again, for those who hold what it made."""
        return contextlib.nullcontext()


class Entry(Change):
    """A change made by a function that returns a handle."""

    def __init__(self, register: Callable[[], Handle], *, stacks: bool = True) -> None:
        self._register = register
        self.handle: Handle | None = None
        self.stacks = stacks

    def put(self) -> None:
        """Register it."""
        self.handle = self._register()

    def take(self) -> None:
        """Remove it."""
        handle, self.handle = self.handle, None
        if handle is not None:
            handle.remove()


def exchange(old: Sequence[Change], new: Sequence[Change]) -> None:
    """Replace changes that are in force by others; a failure leaves exactly the old ones in force.

    A change that is among both stays as it is.
    """
    leaving = [change for change in old if change not in new]
    coming = [change for change in new if change not in old]
    whole = any(change.carries for change in leaving)
    with contextlib.ExitStack() as holds, contextlib.ExitStack() as undo:
        for change in leaving:
            holds.enter_context(change.held())
        for change in reversed(leaving):
            if whole or not change.stacks:
                undo.callback(change.put)
                change.take()
        for change in coming:
            change.put()
            undo.callback(change.take)
        undo.pop_all()
        for change in reversed(leaving):
            change.take()

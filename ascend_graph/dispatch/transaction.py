"""Changes of torch's and TorchAir's tables that are applied together or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Protocol


class Handle(Protocol):
    """Entry of a table that can be removed."""

    def remove(self) -> None:
        """Remove the entry and restore the previous one."""


class Change:
    """Change that a registration applies; it can be reverted, and be applied again."""

    #: If true, the new change is applied on top and the old one is then removed underneath it. Otherwise the old one is
    #: removed first.
    stacks = True
    #: If true, the other changes depend on it, and are reverted when it is.
    owns_dependents = False

    def apply(self) -> None:
        """Apply the change."""
        raise NotImplementedError

    def revert(self) -> None:
        """Revert the change; do nothing if it is not applied."""
        raise NotImplementedError

    def excluded(self) -> contextlib.AbstractContextManager[None] | None:
        """Return a context in which no thread calls the operator that it changes, if it needs one."""
        return None

    def suspended(self) -> contextlib.AbstractContextManager[None] | None:
        """Return a context in which it can be reverted and applied again, with the same objects for their holders."""
        return None


class HandleChange(Change):
    """Change made by a function that returns a handle."""

    def __init__(self, register: Callable[[], Handle], *, stacks: bool = True) -> None:
        self._register = register
        self.handle: Handle | None = None
        self.stacks = stacks

    def apply(self) -> None:
        """Call the function and keep its handle."""
        self.handle = self._register()

    def revert(self) -> None:
        """Remove the handle, if there is one."""
        handle, self.handle = self.handle, None
        if handle is not None:
            handle.remove()


def swap_changes(old: Sequence[Change], new: Sequence[Change]) -> None:
    """Replace applied changes by others; a failure leaves exactly the old ones applied.

    A change in both sequences stays as it is.
    """
    leaving = [change for change in old if change not in new]
    coming = [change for change in new if change not in old]
    whole = any(change.owns_dependents for change in leaving)
    with contextlib.ExitStack() as holds, contextlib.ExitStack() as undo:
        for hold in (*(change.excluded() for change in (*old, *coming)), *(change.suspended() for change in leaving)):
            if hold is not None:
                holds.enter_context(hold)
        for change in reversed(leaving):
            if whole or not change.stacks:
                undo.callback(change.apply)
                change.revert()
        for change in coming:
            change.apply()
            undo.callback(change.revert)
        undo.pop_all()
        for change in reversed(leaving):
            change.revert()

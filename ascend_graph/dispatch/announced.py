"""Operators that PyTorch knows by their schema, and that are registered when they are looked up.

An announced operator is in the dispatcher's table of schemas, so that searches for schemas find it. The first lookup in
``torch.ops`` registers it as a whole, or removes it as a whole. Lookups by other threads wait meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ascend_graph.dispatch.calls import ChangeLock, guard_namespace, on_lookup
from ascend_graph.errors import AscendGraphError


class AnnouncedOperatorError(AscendGraphError, AttributeError):
    """Error of looking up an operator of a package that cannot be registered; the message has the reason."""


class Announcement:
    """Announced operator: its schema in the dispatcher, and the function that registers it."""

    def __init__(self, namespace: str, schema: str, register: Callable[[], None], lock: ChangeLock) -> None:
        self.namespace, self.schema = namespace, schema
        self.name = f"{namespace}::{schema.partition('(')[0]}"
        #: Reason that lookups are refused; empty while the operator may be registered.
        self.refused = ""
        self._register, self._lock = register, lock
        self._under_way = False
        self._definition: Any = None

    def announce(self) -> None:
        """Define the schema, unless the operator is refused, and wait for the first lookup."""
        guard_namespace(self.namespace)
        if not self.refused:
            self._define()
        on_lookup[self.name] = self.resolve

    def resolve(self) -> None:
        """Register the operator; do nothing if it is registered, or is being registered by this thread.

        Raises:
            AnnouncedOperatorError: It cannot be registered. It is removed, and later lookups raise the same.
        """
        with self._lock:
            if self._under_way or not self.is_waiting:
                return
            if not self.refused:
                try:
                    self._register()
                except AscendGraphError as error:
                    self.refuse(str(error))
            if self.refused:
                raise AnnouncedOperatorError(f"{self.name}: {self.refused}")

    @property
    def is_waiting(self) -> bool:
        """True until the operator is registered or taken back."""
        return on_lookup.get(self.name) == self.resolve

    def refuse(self, reason: str) -> None:
        """Remove the schema; lookups raise with the reason."""
        self.refused = reason
        self._undefine()

    def take_back(self) -> None:
        """Remove the announcement. A second call does nothing."""
        with self._lock:
            if self.is_waiting:
                del on_lookup[self.name]
            self._undefine()

    @contextlib.contextmanager
    def superseded(self) -> Iterator[None]:
        """Make way for a registration of the operator during the context; a failure restores the announcement."""
        defined, self._under_way = self._definition is not None, True
        self._undefine()
        try:
            yield
        except BaseException:
            if defined:
                self._define()
            raise
        else:
            del on_lookup[self.name]
        finally:
            self._under_way = False

    def _define(self) -> None:
        definition: Any = torch._C._dispatch_library("FRAGMENT", self.namespace, "")
        definition.define(self.schema, "", (torch.Tag.pt2_compliant_tag,))
        self._definition = definition

    def _undefine(self) -> None:
        definition, self._definition = self._definition, None
        if definition is not None:
            definition.reset()


def is_announced(name: str) -> bool:
    """Return whether an operator is announced, but not registered."""
    return name in on_lookup


@contextlib.contextmanager
def superseded(name: str) -> Iterator[None]:
    """Make way for a registration of an operator, if it is announced; a failure restores the announcement."""
    found = getattr(on_lookup.get(name), "__self__", None)
    with found.superseded() if isinstance(found, Announcement) else contextlib.nullcontext():
        yield

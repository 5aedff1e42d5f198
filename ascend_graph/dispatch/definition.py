"""An operator in torch's tables: its definition, and what PyTorch remembers after registrations have changed or gone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

import torch

from ascend_graph.dispatch.transaction import Change
from ascend_graph.errors import AscendGraphError


class RemovedOperatorError(AscendGraphError, RuntimeError):
    """An operator is called after it was removed."""


def forget_kernels(overload: Any) -> None:
    """Have an overload look its kernels up again.

    It remembers which kernel each dispatch key led to, also one that is gone: calling that is a crash
    (``torch._ops.OpOverload._dispatch_cache``).
    """
    overload._dispatch_cache.clear()


class Definition(Change):
    """The schema of an operator that this process defines, without kernels."""

    stacks = False
    carries = True

    def __init__(self, namespace: str, schema: str) -> None:
        self.namespace, self.schema = namespace, schema
        self.name = schema.partition("(")[0]
        self._library: torch.library.Library | None = None
        self._overload: Any = None
        #: What the overload and its packet call, while the operator is away.
        self._calls: tuple[Any, Any, Any] | None = None

    @property
    def overload(self) -> Any:
        """The overload; the same one each time that the definition is put in force within :meth:`held`."""
        return self._overload

    def put(self) -> None:
        """Define the operator."""
        library = torch.library.Library(self.namespace, "FRAGMENT")
        try:
            library.define(self.schema, tags=(torch.Tag.pt2_compliant_tag,))
            if self._calls is None:
                self._overload = getattr(getattr(torch.ops, self.namespace), self.name).default
            else:
                self._revive(self._calls)
        except BaseException:
            library._destroy()
            raise
        self._library = library

    def take(self) -> None:
        """Remove the operator; calls through what was looked up before raise ``RemovedOperatorError``."""
        if self._library is None:
            return
        self._library._destroy()
        self._library = None
        self._retire()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """While the context lasts, the dispatcher keeps its entry of the operator, which the overload points to."""
        anchor = torch.library.Library(self.namespace, "IMPL")
        # Any kernel keeps the entry. Nothing ever has this key.
        anchor.impl(self.name, torch.library.fallthrough_kernel, "PrivateUse3")
        try:
            yield
        finally:
            anchor._destroy()
            if self._library is None:
                self._calls = None

    def _retire(self) -> None:
        """Whoever still holds the overload, or its packet, would call into freed memory of the dispatcher."""
        overload, name = self._overload, f"{self.namespace}::{self.name}"
        packet = overload._overloadpacket

        def removed(*args: Any, **kwargs: Any) -> NoReturn:
            raise RemovedOperatorError(f"{name} was removed; define it again, and look it up in torch.ops again")

        forget_kernels(overload)
        self._calls = (packet._op, overload._op, overload._op_dk)
        packet._op = overload._op = overload._op_dk = removed

    def _revive(self, calls: tuple[Any, Any, Any]) -> None:
        overload, namespace = self._overload, getattr(torch.ops, self.namespace)
        packet = overload._overloadpacket
        packet._op, overload._op, overload._op_dk = calls
        setattr(namespace, self.name, packet)
        if self.name not in namespace._dir:
            namespace._dir.append(self.name)
        self._calls = None

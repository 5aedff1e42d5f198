"""Definition of an operator in torch's tables, and PyTorch's caches after registrations have changed or gone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

import torch

from ascend_graph.dispatch.calls import calls_of, guard_namespace
from ascend_graph.dispatch.transaction import Change
from ascend_graph.errors import AscendGraphError


class RemovedOperatorError(AscendGraphError, RuntimeError):
    """Error of calling an operator after its removal."""


def forget_kernels(overload: Any) -> None:
    """Make an overload look up its kernels again.

    It caches the kernel of each dispatch key, even one that is gone; calling that crashes
    (``torch._ops.OpOverload._dispatch_cache``).
    """
    overload._dispatch_cache.clear()


class LibraryHandle:
    """Handle of what a torch library registered, by which it is unregistered."""

    def __init__(self, library: torch.library.Library) -> None:
        self._library: torch.library.Library | None = library

    def remove(self) -> None:
        """Unregister it. A second call does nothing."""
        library, self._library = self._library, None
        if library is not None:
            library._destroy()


class SchemaDefinition(Change):
    """Schema of an operator that this process defines, without kernels."""

    stacks = False
    owns_dependents = True

    def __init__(self, namespace: str, schema: str) -> None:
        self.namespace, self.schema = namespace, schema
        self.name = schema.partition("(")[0]
        self._library: torch.library.Library | None = None
        self._overload: Any = None
        #: Functions of the overload and its packet while the operator is removed.
        self._calls: tuple[Any, Any, Any] | None = None
        self._under_way = calls_of(f"{namespace}::{self.name}")

    @property
    def overload(self) -> Any:
        """Overload of the operator; the same object each time the definition is applied within :meth:`suspended`."""
        return self._overload

    def apply(self) -> None:
        """Define the operator."""
        guard_namespace(self.namespace)
        library = torch.library.Library(self.namespace, "FRAGMENT")
        try:
            library.define(self.schema, tags=(torch.Tag.pt2_compliant_tag,))
            if self._calls is None:
                # Found in a namespace of its own: other threads find the packet once its calls are counted.
                packet = getattr(torch._ops._OpNamespace(self.namespace), self.name)
                self._overload = packet.default
                self._guard()
            else:
                packet = self._overload._overloadpacket
                packet._op, self._overload._op, self._overload._op_dk = self._calls
                self._calls = None
            self._publish(packet)
        except BaseException:
            library._destroy()
            raise
        self._library = library

    def revert(self) -> None:
        """Remove the operator; calls through earlier lookups raise ``RemovedOperatorError``."""
        if self._library is None:
            return
        self._library._destroy()
        self._library = None
        self._retire()

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Keep the dispatcher's entry of the operator, to which the overload points, during the context."""
        anchor = torch.library.Library(self.namespace, "IMPL")
        # Any kernel keeps the entry. Nothing ever has this key.
        anchor.impl(self.name, torch.library.fallthrough_kernel, "PrivateUse3")
        try:
            yield
        finally:
            anchor._destroy()
            if self._library is None:
                self._calls = None

    def excluded(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which no other thread is within a call of the operator."""
        return self._under_way.excluded()

    def _guard(self) -> None:
        """Count the calls through the overload and its packet."""
        overload, calls = self._overload, self._under_way
        packet = overload._overloadpacket
        scripted = packet._op
        packet._op = calls.guarded(packet._op, self._check)
        overload._op = calls.guarded(overload._op, self._check)
        overload._op_dk = calls.guarded(overload._op_dk, self._check)
        # TorchScript knows the packet's function, and which operator it is.
        table = torch.jit._builtins._get_builtin_table()
        if id(scripted) in table:
            table[id(packet._op)] = table.pop(id(scripted))

    def _check(self) -> None:
        """Raise if the operator was removed while a call waited."""
        if self._library is None:
            self._removed()

    def _removed(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RemovedOperatorError(
            f"{self.namespace}::{self.name} was removed; define it again, and look it up in torch.ops again"
        )

    def _retire(self) -> None:
        """Make the overload and its packet raise, for holders would call into freed memory of the dispatcher."""
        overload = self._overload
        packet = overload._overloadpacket
        forget_kernels(overload)
        self._calls = (packet._op, overload._op, overload._op_dk)
        packet._op = overload._op = overload._op_dk = self._removed

    def _publish(self, packet: Any) -> None:
        """Make the packet an attribute of ``torch.ops.<namespace>``."""
        namespace = getattr(torch.ops, self.namespace)
        if self.name not in vars(namespace):  # the list of names is long
            namespace._dir.append(self.name)
        setattr(namespace, self.name, packet)

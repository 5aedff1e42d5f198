"""What PyTorch remembers of an operator after its registrations have changed or gone."""

from __future__ import annotations

from typing import Any, NoReturn

from ascend_graph.errors import AscendGraphError


class RemovedOperatorError(AscendGraphError, RuntimeError):
    """An operator is called after it was removed."""


def forget_kernels(overload: Any) -> None:
    """Have an overload look its kernels up again.

    It remembers which kernel each dispatch key led to, also one that is gone: calling that is a crash
    (``torch._ops.OpOverload._dispatch_cache``).
    """
    overload._dispatch_cache.clear()


def retire(overload: Any) -> None:
    """Make calls of an operator whose schema is gone an error.

    Whoever still holds the overload, or its packet, would call into freed memory of the dispatcher.
    """
    name = overload.name()

    def removed(*args: Any, **kwargs: Any) -> NoReturn:
        raise RemovedOperatorError(f"{name} was removed; define it again, and look it up in torch.ops again")

    forget_kernels(overload)
    for called in (overload, overload._overloadpacket):
        called._op = removed
    overload._op_dk = removed

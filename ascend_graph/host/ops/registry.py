"""The table of host kernels for GE operators."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ascend_graph.host.toolkit import HostRuntimeError

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class HostKernel:
    """A GE operator as a function of CPU tensors.

    ``function`` takes the operator's inputs by position under GE's names (None for an absent optional input, a list for a
    dynamic one) and its attrs by keyword; it returns a tensor, or a tuple in the order of the outputs, a dynamic output as a
    list.
    """

    op_type: str
    function: Callable[..., Any]
    inputs: tuple[str, ...]
    attrs: frozenset[str]
    dynamic_inputs: frozenset[str] = frozenset()
    ignored_attrs: frozenset[str] = frozenset()
    takes_any_attr: bool = False
    #: Shapes and dtypes of the outputs without running ``function``: called like it, returns tensors of any contents.
    infer: Callable[..., Any] | None = None

    def bind_attrs(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """The attrs to call ``function`` with.

        Raises:
            HostRuntimeError: the node has an attr that this kernel does not know: ignoring it could compute something else.
        """
        bound = {name: value for name, value in attrs.items() if name not in self.ignored_attrs}
        unknown = [] if self.takes_any_attr else sorted(set(bound) - self.attrs)
        if unknown:
            shown = ", ".join(f"{name}={bound[name]!r}" for name in unknown)
            raise HostRuntimeError(
                f"{self.op_type}: the host kernel does not know attr {shown}; it knows: {', '.join(sorted(self.attrs)) or 'none'}"
            )
        return bound


_KERNELS: dict[str, HostKernel] = {}


def host_kernel(*op_types: str, dynamic: tuple[str, ...] = (), ignores: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Register a function as the host kernel of GE operators.

    Args:
        op_types: the GE operators it implements.
        dynamic: inputs that are lists.
        ignores: attrs that do not change the result on a host.

    The function's positional parameters are GE's input names (a trailing underscore is dropped: ``from_``), its
    keyword-only ones the attrs, with GE's defaults; ``**attrs`` takes any other.
    """

    def register(function: F) -> F:
        parameters = inspect.signature(function).parameters.values()
        inputs = tuple(p.name.rstrip("_") for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
        attrs = frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
        any_attr = any(p.kind is p.VAR_KEYWORD for p in parameters)
        for op_type in op_types:
            if op_type in _KERNELS:
                raise HostRuntimeError(
                    f"{op_type} has a host kernel already: {_KERNELS[op_type].function.__qualname__}"
                )
            _KERNELS[op_type] = HostKernel(
                op_type, function, inputs, attrs, frozenset(dynamic), frozenset(ignores), any_attr
            )
        return function

    return register


def find_host_kernel(op_type: str) -> HostKernel | None:
    """The built-in host kernel of a GE operator."""
    return _KERNELS.get(op_type)


def host_kernels() -> Mapping[str, HostKernel]:
    """All built-in host kernels by GE operator."""
    return _KERNELS

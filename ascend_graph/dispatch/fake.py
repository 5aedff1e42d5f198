"""Meta functions in torch's tables: the existing one, registration over it, and unregistration."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._library.custom_ops import OPDEFS
from torch._library.simple_registry import singleton as _simple_registry
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_map_only

from ascend_graph.dispatch.definition import forget_kernels
from ascend_graph.dispatch.fitting import MetaError
from ascend_graph.dispatch.meta import MetaFunction
from ascend_graph.signatures import misfit
from ascend_graph.versions import fake_kernels, override_kernel, register_fake


@dataclass(slots=True, eq=False)
class MetaHandle:
    """Handle of a registered meta function, by which it is unregistered."""

    overload: torch._ops.OpOverload
    function: MetaFunction
    #: Origin of the previous meta function, or None.
    before: str | None
    _library: torch.library.Library | None

    @property
    def on_top(self) -> bool:
        """True if no other meta function was registered since."""
        kernels = fake_kernels(_simple_registry.find(self.overload.name()).fake_impl)
        return self._library is not None and bool(kernels) and kernels[-1].func is self.function

    def remove(self) -> None:
        """Unregister the meta function and restore the previous one. A second call does nothing."""
        if self._library is None:
            return
        _live.remove(self)
        self._library._destroy()
        self._library = None
        above = next((handle for handle in reversed(_live) if handle.overload is self.overload), None)
        _set_trampoline(self.overload, _beneath(self.overload) if above is None else _entry(above.function, above))
        forget_kernels(self.overload)


# A library that nobody holds takes its registrations back when it is collected; a handle need not be kept.
_live: list[MetaHandle] = []


def existing_meta(overload: torch._ops.OpOverload) -> str | None:
    """Return the origin of an overload's meta function, or ``None`` if it has none.

    >>> existing_meta(torch.ops.aten.mm.default)
    'a Meta kernel'
    """
    name = overload.name()
    fake = _simple_registry.find(name).fake_impl
    if len(fake_kernels(fake)) == 1 and _only_complains(name, overload):
        return None
    if fake.kernel is not None:
        return f"register_fake at {fake.kernel.source}"
    for key, what in (
        ("Meta", "a Meta kernel"),
        ("CompositeImplicitAutograd", "its decomposition (CompositeImplicitAutograd)"),
        ("CompositeExplicitAutograd", "a kernel for all devices (CompositeExplicitAutograd)"),
    ):
        if torch._C._dispatch_has_kernel_for_dispatch_key(name, key):
            return what
    return None


def _only_complains(name: str, overload: torch._ops.OpOverload) -> bool:
    """Return whether the meta function is the default of ``torch.library.custom_op``: it raises, or has nothing to say."""
    definition = OPDEFS.get(name)
    return definition is not None and definition._abstract_fn is None


def check_takes_meta(overload: torch._ops.OpOverload) -> None:
    """Refuse an operator that cannot have a meta function.

    Raises:
        MetaError: It is not an overload, or the operator decomposes into others, which are asked instead of it.
    """
    if not isinstance(overload, torch._ops.OpOverload):
        raise MetaError(f"expected one overload, such as {overload}.default; got {overload!r}")
    if torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "CompositeImplicitAutograd"):
        raise MetaError(
            f"{overload.name()} has its decomposition (CompositeImplicitAutograd): torch asks the operators it consists of, "
            "so it takes no meta function"
        )


def check_signature(name: str, function: MetaFunction, arguments: Sequence[tuple[str, bool]]) -> None:
    """Refuse a meta function that cannot be called with an operator's arguments.

    Args:
        name: The operator, as it is shown.
        function: The meta function; one of C, which does not tell its parameters, is taken.
        arguments: The arguments of the schema in order, and whether each is passed by keyword alone.

    Raises:
        MetaError: A call with all arguments does not fit the function's parameters.

    Example:
        >>> check_signature("my::norm", lambda x, *, eps: x, [("x", False), ("eps", True)])
        >>> check_signature("my::norm", lambda x: x, [("x", False), ("eps", True)])
        Traceback (most recent call last):
            ...
        ascend_graph.dispatch.fitting.MetaError: my::norm: the meta function has the parameters (x): got an unexpected ...
    """
    positional = [argument for argument, by_keyword in arguments if not by_keyword]
    keywords = [argument for argument, by_keyword in arguments if by_keyword]
    if why := misfit(function, positional, keywords):
        wanted = ", ".join([*positional, *(["*"] if keywords else []), *keywords])
        raise MetaError(
            f"{name}: the meta function has the parameters {why}; it is called with the schema's arguments, "
            f"so write def meta({wanted}): …"
        )


def register_meta(
    overload: torch._ops.OpOverload, function: MetaFunction, *, override: bool = False, own: bool = False
) -> MetaHandle:
    """Register ``function`` as the meta function of ``overload``, for the dispatcher, FakeTensor and export.

    Args:
        overload: One overload, such as ``torch.ops.npu.npu_swiglu.default``; not a packet.
        function: Takes the schema's arguments, returns tensors without data;
            :func:`~ascend_graph.dispatch.meta.meta_function` makes one.
        override: Replace a meta function that exists.
        own: True if this process defined the operator, so that no meta function of others is looked for.

    Raises:
        MetaError: There is a meta function already and ``override`` is false, or the operator decomposes into others
            (CompositeImplicitAutograd), which are asked instead of it.
    """
    existing = None
    if not own:
        check_takes_meta(overload)
        existing = existing_meta(overload)
    name = overload.name()
    if existing is not None and not override:
        raise MetaError(f"{name} has a meta function already: {existing}; pass override=True to replace it")
    library = torch.library.Library(overload.namespace, "IMPL")
    try:
        with warnings.catch_warnings():
            # Replacing was asked for; torch warns of it all the same.
            warnings.filterwarnings("ignore", message=".*Overriding a previously registered kernel.*")
            # torch.library.register_fake would write into the definition of a custom_op, for good.
            register_fake(library, name.partition("::")[2], function)
            if hasattr(function, "relation"):
                # For meta tensors torch wraps the function in a context for sizes that depend on data; a relation has none.
                override_kernel(library, name, function, "Meta")
    except BaseException:
        library._destroy()
        raise
    handle = MetaHandle(overload, function, existing, library)
    _live.append(handle)
    return handle


# ------------------------------------------------------------------------------------------------- torch's second table

# Where a mode or a tensor subclass is active, torch does not call the Python function that a kernel holds but looks the
# function up in a table by operator and key (torch/csrc/utils/python_dispatch.cpp, python_registrations_). Registering
# overwrites the entry, and taking a registration back leaves it.


def _set_trampoline(overload: torch._ops.OpOverload, function: Callable[..., Any]) -> None:
    """Write ``function`` into the table without changing the dispatcher."""
    if not torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "Meta"):
        return  # nothing looks it up
    library = torch.library.Library(overload.namespace, "IMPL")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Overriding a previously registered kernel.*")
        override_kernel(library, overload.name(), function, "Meta")
    library._destroy()


def _entry(function: MetaFunction, handle: MetaHandle) -> Callable[..., Any]:
    """Return the table's entry for one of this module's meta functions."""
    if hasattr(function, "relation"):
        return function
    from torch._library.fake_impl import construct_meta_kernel

    holder = _simple_registry.find(handle.overload.name()).fake_impl
    made: Callable[..., Any] = construct_meta_kernel(handle.overload.name(), holder)
    return made


def _beneath(overload: torch._ops.OpOverload) -> Callable[..., Any]:
    """Return the table's entry for a kernel from elsewhere, whose function is not accessible: a call of the kernel.

    The call gets plain tensors and no modes, for only then torch calls the function that the kernel holds.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        given: dict[torch.Tensor, torch.Tensor] = {}

        def plain(tensor: torch.Tensor) -> torch.Tensor:
            if type(tensor) is torch.Tensor:
                return tensor
            bare = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="meta")
            given[bare] = tensor
            return bare

        with _disable_current_modes():
            args, kwargs = tree_map_only(torch.Tensor, plain, (args, kwargs))
            made = overload(*args, **kwargs)
        return tree_map_only(torch.Tensor, lambda tensor: given.get(tensor, tensor), made)

    return call

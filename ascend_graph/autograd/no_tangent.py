"""Refusal of forward mode, and of gradients, over an author's operator that has none: without a word they read as zero.

Operators that are defined here have the kernel of csrc/eager/autograd.h instead. Neither PyTorch's fallback for operators
without autograd nor the kernel of ``torch.library.custom_op`` asks for tangents. A kernel in C++ below both, at the key
ADInplaceOrView, does: there tensors still carry tangents.

PyTorch's fallback warns of a missing gradient once in a process, and in a graph not at all. Where it would be in force, a kernel at
the key Autograd makes ``backward()`` an error.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from dataclasses import dataclass
from typing import Any

import torch
from torch._library.custom_ops import OPDEFS

from ascend_graph.autograd.no_gradient import say_so_in_graphs
from ascend_graph.autograd.register import refuses_itself
from ascend_graph.compilation import BuildError
from ascend_graph.dispatch.definition import forget_kernels
from ascend_graph.eager.library import tangent_refusals
from ascend_graph.errors import AscendGraphError

_KEY = "ADInplaceOrView"


class SilentTangentWarning(UserWarning):
    """Warning that forward mode over authors' operators gives zeros, as the kernel that refuses it does not compile."""


@dataclass(eq=False)
class RefusalOfTangents:
    """Handle of the kernel that refuses tensors with tangents."""

    _overload: Any
    #: Takes the kernel back; it is called when the handle goes, too.
    _registration: weakref.finalize[Any, RefusalOfTangents] | None = None

    def remove(self) -> None:
        """Unregister the kernel. A second call does nothing."""
        if self._registration is not None:
            self._registration()
            self._registration = None
            forget_kernels(self._overload)


def needs_refusal(overload: Any) -> bool:
    """Return whether forward mode passes an operator by, and a kernel that refuses it can be registered.

    An operator that PyTorch decomposes has the tangents of its parts; one with a kernel of its author at that key keeps it.
    """
    name = overload.name()
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    if refuses_itself(overload) or has(name, "CompositeImplicitAutograd"):
        return False
    return not has(name, _KEY) or _counts_versions(overload)


def register_refusal(overload: Any) -> RefusalOfTangents:
    """Register the kernel that refuses tensors with tangents; without a C++ compiler, warn once that there is none."""
    library = _library()
    if library is None:
        return RefusalOfTangents(overload)
    namespace, _, name = overload.name().partition("::")
    writes = any(a.alias_info is not None and a.alias_info.is_write for a in overload._schema.arguments)
    with warnings.catch_warnings():
        # That of torch.library.custom_op counts the versions of what is written, as this one does.
        warnings.filterwarnings("ignore", message=".*Overriding a previously registered kernel.*")
        registration = library.ascendgraphRefuseTangents(
            namespace.encode(), name.encode(), writes, _lacks_gradient(overload)
        )
    if registration is None:
        raise AscendGraphError(
            f"{overload.name()}: the kernel that refuses tangents cannot be registered: "
            f"{library.ascendgraphRefusalFailure().decode()}; remove the operator's own kernel at the key {_KEY}"
        )
    forget_kernels(overload)
    say_so_in_graphs()
    handle = RefusalOfTangents(overload)
    handle._registration = weakref.finalize(handle, library.ascendgraphTakeBackRefusal, registration)
    handle._registration.atexit = False
    return handle


def _lacks_gradient(overload: Any) -> bool:
    """Return whether PyTorch's fallback would stand for the gradient of an operator."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return not any(has(overload.name(), key) for key in ("Autograd", "AutogradPrivateUse1", "AutogradCPU"))


def _counts_versions(overload: Any) -> bool:
    """Return whether ``torch.library.custom_op`` counts the versions of what an operator writes, by its kernel at that key."""
    schema = overload._schema
    writes = any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)
    returns_alias = any(returned.alias_info is not None for returned in schema.returns)
    return writes and not returns_alias and overload.name() in OPDEFS


@functools.cache
def _library() -> Any:
    try:
        return tangent_refusals()
    except BuildError as error:
        warnings.warn(
            "forward-mode differentiation (torch.func.jvp, torch.autograd.forward_ad) over operators that are registered with "
            "eager= gives zeros here unless they have backward= or forward=, and so do gradients in graphs: the kernels that refuse "
            "both are not compiled. "
            f"Install a C++ compiler, or run `ascend-graph build` where one is. {error}",
            SilentTangentWarning,
            stacklevel=8,
        )
        return None

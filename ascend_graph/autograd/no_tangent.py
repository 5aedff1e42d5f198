"""Refusal of forward mode over an author's operator: it has no tangent, and without a word that reads as zero.

Operators that are defined here have the kernel of csrc/eager/autograd.h instead. Neither PyTorch's fallback for operators
without autograd nor the kernel of ``torch.library.custom_op`` asks for tangents. This check runs beneath both, at the key
ADInplaceOrView, where tensors still carry tangents: what PyTorch does for reverse mode stays as it is.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch._functorch.utils import unwrap_dead_wrappers
from torch._library.custom_ops import OPDEFS

from ascend_graph.autograd.formulas import flatten, listed
from ascend_graph.autograd.register import GradientHandle, hold, refuses_itself
from ascend_graph.autograd.tangents import ForwardModeError, has_tangent, is_differentiable_tensor

_KEY = "ADInplaceOrView"


def needs_refusal(overload: Any) -> bool:
    """Return whether forward mode passes an operator by, and a kernel that refuses it can be registered."""
    name = overload.name()
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    if refuses_itself(overload) or has(name, "CompositeImplicitAutograd"):
        return False
    return not has(name, _KEY) or name in OPDEFS


def register_refusal(overload: Any) -> GradientHandle:
    """Register the kernel that refuses tensors with tangents."""
    library = torch.library.Library(overload.namespace, "FRAGMENT")
    try:
        with warnings.catch_warnings():
            # That of torch.library.custom_op counts the versions of what is written, as this one does.
            warnings.filterwarnings("ignore", message=".*Overriding a previously registered kernel.*")
            name = overload.name().partition("::")[2]
            library.impl(name, refusing_kernel(overload), _KEY, with_keyset=True, allow_override=True)
    except BaseException:
        library._destroy()
        raise
    return hold(library)


def refusing_kernel(overload: Any) -> Callable[..., Any]:
    """Return the kernel that refuses a call whose arguments have tangents and whose results would have none."""
    arguments = overload._schema.arguments
    written = [n for n, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write]
    names = [argument.name for argument in arguments]
    counts_versions = bool(written) and overload.name() in OPDEFS

    def kernel(keyset: Any, /, *args: Any, **kwargs: Any) -> Any:
        _, tensors = flatten((*args, *kwargs.values()))
        if not torch._C._are_functorch_transforms_active():
            tensors = list(unwrap_dead_wrappers(tuple(tensors)))
        # Below autograd a transform's tensors are asked beneath their wrappers, which have the tangents.
        with torch._C._SetExcludeDispatchKeyGuard(torch._C.DispatchKey.AutogradFunctionality, False):
            dual = has_tangent(tensors)
        changed = []
        if written:
            given = {**dict(zip(names, args, strict=False)), **kwargs}
            changed = flatten([given.get(names[n]) for n in written])[1]
        if dual and any(map(is_differentiable_tensor, changed)):
            _refuse(overload, [names[n] for n in written])
        # As a fallthrough of this key does; a kernel of ATen's operators then carries tangents on by itself.
        below = torch._C._AutoDispatchBelowADInplaceOrView if counts_versions else contextlib.nullcontext
        with below():
            output = overload.redispatch(keyset & torch._C._after_ADInplaceOrView_keyset, *args, **kwargs)
        if counts_versions:
            for tensor in changed:
                torch.autograd.graph.increment_version(tensor)
        if dual and not all(has_tangent([t]) for t in flatten(listed(output))[1] if is_differentiable_tensor(t)):
            _refuse(overload, [])
        return output

    return kernel


def _refuse(overload: Any, written: list[str]) -> NoReturn:
    """Raise what csrc/eager/autograd.h says."""
    asks = "forward-mode differentiation (torch.func.jvp, jacfwd, torch.autograd.forward_ad) asks for one"
    primal = "call it on the primal (torch.autograd.forward_ad.unpack_dual)"
    if written:
        raise ForwardModeError(
            f"{overload.name()} writes {', '.join(written)} in place and has no tangent, but {asks}; forward= and backward= "
            f"are for operators that write nothing; {primal}"
        )
    raise ForwardModeError(
        f"{overload.name()} has no tangent, but {asks}; give it forward= or backward= where it is registered "
        f"(register_op(…, backward=…)), or {primal}"
    )

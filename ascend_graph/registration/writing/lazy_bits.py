"""Eager calls of operators that write, with tensors that are lazily conjugated or negated (``x.conj()``, ``x.conj().imag``).

PyTorch's fallback for them takes an operator's first result for the written argument. Of an operator that returns nothing it
reads past the end of its stack, and the process may end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_graph.dispatch.definition import LibraryHandle
from ascend_graph.registration.writing.mutation import written_arguments

#: Dispatch keys of the bits.
_KEYS = ("Conjugate", "Negative")


def register_lazy_bits(overload: Any) -> LibraryHandle:
    """Register kernels that call an operator with plain tensors, and write the values back.

    A kernel of the operator's author stays as it is.
    """
    library = torch.library.Library(overload.namespace, "FRAGMENT")
    try:
        for key in _KEYS:
            if not torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), key):
                below = torch._C._dispatch_keyset_full_after(getattr(torch._C.DispatchKey, key))
                library.impl(overload, _plain_kernel(overload, below), key, with_keyset=True)
    except BaseException:
        library._destroy()
        raise
    return LibraryHandle(library)


def _plain_kernel(overload: Any, below: torch._C.DispatchKeySet) -> Callable[..., Any]:
    """Return a kernel that hands plain tensors to the kernels of the keys below."""
    schema = overload._schema
    names = [argument.name for argument in schema.arguments]
    written = {argument.name for argument in written_arguments(schema)}
    owners = {name: a.name for a in schema.arguments if a.name in written for name in a.alias_info.before_set}
    returned = [
        next((owners[n] for n in (r.alias_info.before_set if r.alias_info else ()) if n in owners), None)
        for r in schema.returns
    ]

    def kernel(keyset: Any, /, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(names, args, strict=False)) | kwargs
        plain = {name: _plain(value) for name, value in given.items()}
        positional = [plain.pop(name) for name in names[: len(args)]]
        made = overload._handle.redispatch_boxed(keyset & below, *positional, **plain)
        plain |= dict(zip(names, positional, strict=False))
        for name in written & given.keys():
            for target, value in zip(_listed(given[name]), _listed(plain[name]), strict=True):
                if value is not target:
                    target.copy_(value)
        results = made if isinstance(made, tuple) else (made,)
        results = tuple(
            value if owner is None else given[owner] for value, owner in zip(results, returned, strict=False)
        )
        return results if isinstance(made, tuple) else made if not returned else results[0]

    return kernel


def _plain(value: Any) -> Any:
    """Return a tensor, or the tensors of a list, with memory that has the values."""
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    return value.resolve_conj().resolve_neg() if isinstance(value, torch.Tensor) else value


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]

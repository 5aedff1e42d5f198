"""Refusal of programs whose values PyTorch leaves open: writes whose memory overlaps with what the same call reads."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.operators.trees import tensors


class OverlapError(RuntimeError):
    """Write of a program whose result depends on the order in which a kernel goes over memory."""


def _places(t: torch.Tensor) -> list[int]:
    """Return the elements' places in their memory."""
    elements = t.untyped_storage().nbytes() // t.element_size()
    return list(torch.arange(elements).as_strided(t.shape, t.stride(), t.storage_offset()).flatten().tolist())


def _layout(t: torch.Tensor) -> tuple[Any, ...]:
    return tuple(t.shape), t.stride(), t.storage_offset(), t.dtype


def in_order_only(written: torch.Tensor, read: torch.Tensor) -> bool:
    """Return whether a tensor that is written overlaps with one that is read, but is not the same.

    >>> x = torch.zeros(4)
    >>> [in_order_only(x[1:], x[:-1]), in_order_only(x, x), in_order_only(x[:2], x[2:])]
    [True, False, False]
    """
    if written.untyped_storage()._cdata != read.untyped_storage()._cdata or _layout(written) == _layout(read):
        return False
    if written.dtype != read.dtype:
        return True
    return not set(_places(written)).isdisjoint(_places(read))


class NoOverlaps(TorchDispatchMode):
    """Dispatch mode that raises OverlapError for such a write; PyTorch itself checks tensors without gaps alone."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(zip((a.name for a in func._schema.arguments), args, strict=False)) | (kwargs or {})
        marks = {a.name: a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments}
        read = [t for name, value in given.items() if not marks[name] for t in tensors(value)]
        for written in (t for name, value in given.items() if marks[name] for t in tensors(value)):
            places = [] if written.is_contiguous() else _places(written)
            if len(set(places)) < len(places) or any(in_order_only(written, t) for t in read):
                raise OverlapError(f"{func}: it writes to {_layout(written)}, which overlaps with what it reads")
        return func(*args, **(kwargs or {}))

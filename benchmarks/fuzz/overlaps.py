"""Refusal of programs whose values PyTorch leaves open: writes whose memory overlaps with what the same call reads."""

from __future__ import annotations

from collections.abc import Sequence
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
    return _layout(written) != _layout(read) and _overlap(written, read)


def _overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.untyped_storage()._cdata != b.untyped_storage()._cdata:
        return False
    return a.dtype != b.dtype or not set(_places(a)).isdisjoint(_places(b))


def write_apart(written: Sequence[tuple[Any, Any]]) -> None:
    """Copy values into tensors or lists of tensors; raises OverlapError if two of them share memory, unless it is traced."""
    pairs = [pair for to, values in written for pair in zip(tensors(to), tensors(values), strict=True)]
    if not torch.compiler.is_compiling():
        for place, (to, _) in enumerate(pairs):
            if any(_overlap(to, other) for other, _ in pairs[:place]):
                raise OverlapError(f"two arguments that a call writes overlap: {_layout(to)}")
    for to, value in pairs:
        to.copy_(value)


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

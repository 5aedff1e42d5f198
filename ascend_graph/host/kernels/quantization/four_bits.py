"""Integers of 4 bits, in their three forms.

GE counts them one by one: between a graph's nodes they are tensors of ``torch.int4``, a byte for each number. PyTorch's
only kernels for that dtype are those that inspect memory, so a kernel that does not expect it refuses it. PyTorch's
programs hold eight of them in an int32, the first in the lowest bits. An aclTensor of ACL_INT4 holds two in a byte.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from ascend_graph.host.dtypes import INT4

T = torch.Tensor
F = TypeVar("F", bound=Callable[..., T])

#: Number of 4-bit integers in an int32.
PACKED = 8


def as_int4(numbers: T) -> T:
    """Convert integers from -8 to 7 to a graph's INT4.

    >>> as_int4(torch.tensor([-8, 7])).dtype
    torch.int4
    """
    return numbers.to(torch.int8).view(INT4)


def packed(numbers: T, per_word: int = PACKED) -> T:
    """Pack 4-bit numbers along the last dimension, the first in the lowest bits: eight in an int32, or two in a byte.

    Raises:
        ValueError: the last dimension is not a multiple of that.

    >>> packed(torch.tensor([1, -1, 7, -8, 0, 2, -2, 3])).item() == 0x3E2087F1
    True
    """
    if numbers.size(-1) % per_word:
        raise ValueError(
            f"the last dimension of {tuple(numbers.shape)} must be a multiple of {per_word}, the numbers packed in one "
            "element"
        )
    nibbles = (integers(numbers).to(torch.int64) & 15).unflatten(-1, (-1, per_word))
    joined: T = (nibbles << torch.arange(0, 4 * per_word, 4, device=numbers.device)).sum(-1)
    if per_word != PACKED:
        return joined.to(torch.uint8)
    return torch.where(joined >= 1 << 31, joined - (1 << 32), joined).to(torch.int32)


def unpacked(words: T) -> T:
    """Unpack the numbers in int32 words, or in bytes, along the last dimension, to int8."""
    bits = 4 * (PACKED if words.dtype == torch.int32 else 2)
    nibbles = (words.to(torch.int64).unsqueeze(-1) >> torch.arange(0, bits, 4, device=words.device)) & 15
    return torch.where(nibbles > 7, nibbles - 16, nibbles).flatten(-2).to(torch.int8)


def unpacked_where_dense(words: T) -> T:
    """Unpack a matrix along its dense dimension, as ``unpacked`` does along the last."""
    across = words.dim() > 1 and words.stride(-1) != 1 and words.stride(-2) == 1
    return unpacked(words.transpose(-1, -2)).transpose(-1, -2) if across else unpacked(words)


def integers(numbers: T) -> T:
    """Return a graph's INT4 as int8, and other tensors unchanged."""
    return numbers.view(torch.int8) if numbers.dtype is INT4 else numbers


def moves(function: F) -> F:
    """Wrap a kernel that moves elements of its first input, so that 4-bit elements move as bytes.

    PyTorch does not copy 4-bit elements.
    """

    @functools.wraps(function)
    def moved(x: T, *arguments: Any, **attrs: Any) -> T:
        if x.dtype is not INT4:
            return function(x, *arguments, **attrs)
        return function(x.view(torch.int8), *arguments, **attrs).view(INT4)

    return moved  # type: ignore[return-value]

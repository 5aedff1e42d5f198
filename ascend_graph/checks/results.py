"""What a call gave, and where two calls differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map_only

#: Relative and absolute tolerance of values that were computed in another way, by the dtype of a result; integers are equal.
TOLERANCES = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1e-4, 1e-5),
    torch.float16: (4e-3, 4e-3),
    torch.bfloat16: (3e-2, 3e-2),
    torch.complex64: (1e-4, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}


@dataclass(frozen=True, slots=True)
class Result:
    """The returns of a call, and its tensor arguments afterwards; on the CPU."""

    returns: tuple[Any, ...]
    arguments: tuple[torch.Tensor, ...]

    @staticmethod
    def of(returned: Any, arguments: Sequence[torch.Tensor]) -> Result:
        """What a call returned and did to its arguments, copied to the CPU."""
        copied = tree_map_only(torch.Tensor, _to_cpu, leaves(returned))
        return Result(tuple(copied), tuple(map(_to_cpu, arguments)))


def leaves(value: Any) -> list[Any]:
    """Tensors and other values of a result, in order; an absent tensor is None."""
    return [] if value is None else tree_flatten(value, is_leaf=lambda leaf: leaf is None)[0]


def _to_cpu(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().cpu().clone()


def differences(
    got: Result, wanted: Result, *, exact: bool = False, rtol: float | None = None, atol: float | None = None
) -> Iterator[str]:
    """Where two results differ, in words: a line for each return or argument.

    Args:
        got: The result in question.
        wanted: What is right.
        exact: Whether values are compared bit by bit.
        rtol: The relative tolerance; by default by dtype.
        atol: The absolute one.
    """
    if len(got.returns) != len(wanted.returns):
        yield f"{len(got.returns)} returns, not {len(wanted.returns)}"
        return
    for subject, mine, others in (
        ("return", got.returns, wanted.returns),
        ("argument", got.arguments, wanted.arguments),
    ):
        for number, (a, b) in enumerate(zip(mine, others, strict=True)):
            found = _difference(a, b, exact, rtol, atol)
            if found:
                yield f"{subject} {number}: {found}"


def _difference(a: Any, b: Any, exact: bool, rtol: float | None, atol: float | None) -> str:
    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
        return "" if type(a) is type(b) and a == b else f"{_named(a)}, not {_named(b)}"
    if a.shape != b.shape:
        return f"shape {list(a.shape)}, not {list(b.shape)}"
    if a.dtype != b.dtype:
        return f"{a.dtype}, not {b.dtype}"
    if a.numel() == 0:
        return ""
    if exact:
        equal = _bytes(a) == _bytes(b)
        equal = equal.reshape(*a.shape, -1).all(-1)
    else:
        rtol = TOLERANCES.get(a.dtype, (0.0, 0.0))[0] if rtol is None else rtol
        atol = TOLERANCES.get(a.dtype, (0.0, 0.0))[1] if atol is None else atol
        wide = torch.complex128 if a.dtype.is_complex else torch.float64
        equal = torch.isclose(a.to(wide), b.to(wide), rtol=rtol, atol=atol, equal_nan=True)
    if bool(equal.all()):
        return ""
    at = tuple((~equal).nonzero()[0].tolist())
    count = int((~equal).sum())
    where = f" at {list(at)}" if at else ""
    return f"{count} of {a.numel()} elements differ, the first{where} is {a[at].item()}, not {b[at].item()}"


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8).reshape(tensor.numel(), -1)


def _named(value: Any) -> str:
    return f"a tensor {list(value.shape)}" if isinstance(value, torch.Tensor) else repr(value)

"""Results of calls and the differences between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map_only

from ascend_graph.checks.tolerances import Tolerances


@dataclass(frozen=True, slots=True)
class CallResult:
    """Returns of a call and its tensor arguments afterwards, on the CPU."""

    returns: tuple[Any, ...]
    arguments: tuple[torch.Tensor, ...]
    #: Schema return of each tensor in ``returns``: a list of tensors is one return; by default in order.
    positions: tuple[int, ...] = ()
    #: Names of ``arguments``; a list of tensors has one name.
    names: tuple[str, ...] = ()

    @staticmethod
    def of(returned: Any, arguments: Sequence[torch.Tensor], names: Sequence[str] = ()) -> CallResult:
        """Copy a call's returns and its current tensor arguments to the CPU."""
        copied = tree_map_only(torch.Tensor, _to_cpu, leaves(returned))
        whole = returned if isinstance(returned, tuple) else () if returned is None else (returned,)
        positions = [n for n, one in enumerate(whole) for _ in range(1 if one is None else len(leaves(one)))]
        return CallResult(tuple(copied), tuple(map(_to_cpu, arguments)), tuple(positions), tuple(names))


def leaves(value: Any) -> list[Any]:
    """Return the tensors and other values of a result in order; an absent tensor is None."""
    return [] if value is None else tree_flatten(value, is_leaf=lambda leaf: leaf is None)[0]


def _to_cpu(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().cpu().clone()


def differences(
    got: CallResult, wanted: CallResult, *, exact: bool = False, tolerances: Tolerances | None = None
) -> Iterator[str]:
    """Yield a description of each difference of two results: a line for each return or argument.

    Args:
        got: The result in question.
        wanted: The expected result.
        exact: If true, values are compared bit by bit.
        tolerances: The tolerances of values; by default by their dtypes.
    """
    if len(got.returns) != len(wanted.returns):
        yield f"{len(got.returns)} returns, not {len(wanted.returns)}"
        return
    allowed = tolerances or Tolerances()
    for number, (a, b) in enumerate(zip(got.returns, wanted.returns, strict=True)):
        position = got.positions[number] if number < len(got.positions) else number
        found = _difference(a, b, None if exact else allowed.of_return(position, a))
        if found:
            yield f"return {number}: {found}"
    for number, (a, b) in enumerate(zip(got.arguments, wanted.arguments, strict=True)):
        name = got.names[number] if number < len(got.names) else None
        found = _difference(a, b, None if exact else allowed.of_argument(name, a))
        if found:
            yield f"argument {number}: {found}"


def _difference(a: Any, b: Any, tolerance: tuple[float, float] | None) -> str:
    """Return where two values differ by more than the tolerance, bit by bit if it is None; empty if they are equal."""
    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
        return "" if type(a) is type(b) and a == b else f"{_named(a)}, not {_named(b)}"
    if a.shape != b.shape:
        return f"shape {list(a.shape)}, not {list(b.shape)}"
    if a.dtype != b.dtype:
        return f"{a.dtype}, not {b.dtype}"
    if a.numel() == 0:
        return ""
    if tolerance is None:
        equal = _bytes(a) == _bytes(b)
        equal = equal.reshape(*a.shape, -1).all(-1)
    else:
        rtol, atol = tolerance
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

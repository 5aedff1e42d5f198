"""Layouts of results: strides, storage offsets and dtypes on the device against those of PyTorch's fake tensors.

Compilers trust the fake tensors: a compiled program that views a result fails if the operator returns another layout.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch._prims_common import check_significant_strides
from torch._subclasses.fake_tensor import FakeTensorMode

from benchmarks.operators import calls
from benchmarks.operators.comparison import Call, ComparisonVerdict, Raised, attempt
from benchmarks.operators.trees import Mover, map_leaves, tensors

#: Memory order of the arguments: a name, and a function that returns a tensor of the same values in that order.
Ordering = tuple[str, Callable[[torch.Tensor], torch.Tensor]]


def _reordered(t: torch.Tensor, order: list[int]) -> torch.Tensor:
    back = [order.index(d) for d in range(t.dim())]
    return t.permute(order).contiguous().permute(back)


def _reversed(t: torch.Tensor) -> torch.Tensor:
    """Return a tensor whose first dimension is contiguous in memory, as after a transposition."""
    return _reordered(t, list(reversed(range(t.dim()))))


def _channels_last(t: torch.Tensor) -> torch.Tensor:
    return _reordered(t, [0, *range(2, t.dim()), 1]) if t.dim() > 2 else t


def _with_gaps(t: torch.Tensor) -> torch.Tensor:
    return torch.stack([t, t], -1)[..., 1]


ORDERINGS: tuple[Ordering, ...] = (
    ("contiguous", lambda t: t),
    ("transposed", _reversed),
    ("channels last", _channels_last),
    ("gaps", _with_gaps),
)


def _layout(t: torch.Tensor) -> str:
    return f"{str(t.dtype)[6:]} {tuple(t.shape)} strides {t.stride()} offset {t.storage_offset()}"


def _differs(actual: torch.Tensor, fake: torch.Tensor) -> bool:
    if actual.layout is not torch.strided or fake.layout is not torch.strided:
        return actual.layout is not fake.layout
    if (actual.dtype, actual.shape) != (fake.dtype, fake.shape):
        return True
    if actual.numel() == 0:
        return False
    # Strides of dimensions with one element say nothing.
    same, _ = check_significant_strides(actual, fake, only_cuda=False)
    return not same or actual.storage_offset() != fake.storage_offset()


def _results(tree: Any) -> list[torch.Tensor]:
    """Return the tensors of a call's results, without its arguments, which keep their layouts."""
    return tensors({key: part for key, part in tree.items() if key in ("result", "gradients")})


def _of_fakes(call: Call, tree: Any, device: str) -> Any:
    moved = Mover(device)(tree)
    with warnings.catch_warnings(), FakeTensorMode() as mode:
        warnings.simplefilter("ignore")
        try:
            return call(map_leaves(lambda x: mode.from_tensor(x) if isinstance(x, torch.Tensor) else x, moved))
        except Exception as error:  # no fake, or one that needs values
            return Raised(f"{type(error).__name__}: {error}")


def compare_layouts(call: Call, tree: Any, device: str) -> tuple[ComparisonVerdict, str]:
    """Run the call on the device and on fake tensors of that device, and compare the layouts of the results."""
    actual = attempt(call, tree, device)
    if isinstance(actual, Raised):
        return ComparisonVerdict.REFUSED, ""
    fake = _of_fakes(call, tree, device)
    if isinstance(fake, Raised):
        return ComparisonVerdict.NO_FAKE, fake.text
    found, expected = _results(actual), _results(fake)
    if len(found) != len(expected):
        return ComparisonVerdict.WRONG, f"{len(found)} results, the fake tensors have {len(expected)}"
    for i, (a, f) in enumerate(zip(found, expected, strict=True)):
        if _differs(a, f):
            return ComparisonVerdict.WRONG, f"result {i} is {_layout(a)}, the fake tensor's {_layout(f)}"
    return ComparisonVerdict.EQUAL, ""


def layout_cases(
    op: Callable[..., Any], process: Callable[[Any], Any], tree: Any, replace: Callable[[Any, Any], Any]
) -> Iterator[tuple[str, Call, Any]]:
    """Yield each comparison's check, call and arguments: for every ordering of the arguments, forward and backward.

    Args:
        replace: gives the tree with a function applied to its tensors.
    """
    for name, order in ORDERINGS:
        changed = replace(order, tree)
        yield f"layout {name}", partial(calls.forward, op), changed
        if any(calls.differentiable(t) for t in tensors(tree)):
            yield f"layout {name} backward", partial(calls.gradients, op, process), changed


CHECKS = tuple(f"layout {name}{part}" for name, _ in ORDERINGS for part in ("", " backward"))

"""Operators as their users have them, and what they declare of their dimensions: refused where it is not true,
mapped, sharded, counted."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from ascend_graph.registration.dimensions.batching import VmapLoopWarning
from ascend_graph.registration.dimensions.independent_dims import BatchError

from . import everyday

IDS = [op.name for op in everyday.OPERATORS]


@pytest.fixture(scope="module", autouse=True)
def _library() -> Iterator[None]:
    torch.manual_seed(0)
    library = everyday.define()
    yield
    library._destroy()


@pytest.mark.parametrize("op", everyday.OPERATORS, ids=IDS)
def test_what_is_not_true_is_refused(op: everyday.Everyday) -> None:
    for declared in op.wrong:
        (names,) = declared.values()
        with pytest.raises(BatchError, match=rf"^everyday::{op.name}: .*\b{next(iter(names))}\b"):
            op.register(**declared)


@pytest.mark.parametrize("op", everyday.OPERATORS, ids=IDS)
def test_mapped_over_any_dimension_of_any_tensors(op: everyday.Everyday) -> None:
    registered = op.register()
    try:
        for args in op.calls():
            tensors = [n for n, a in enumerate(args) if isinstance(a, Tensor)]
            for count in range(1, len(tensors) + 1):
                for mapped in itertools.combinations(tensors, count):
                    hold_mapped(op, registered, args, mapped)
    finally:
        registered.unregister()


def hold_mapped(op: everyday.Everyday, registered: Any, args: tuple[Any, ...], mapped: tuple[int, ...]) -> None:
    """Once and nested, at the first, a middle and the last dimension, against calls of the kernel."""
    variants = {n: [args[n], args[n].flip(0), args[n].flip(-1)] for n in mapped}
    calls = [[variants[n][k] if n in mapped else a for n, a in enumerate(args)] for k in range(3)]
    single = [everyday.several(op.kernel(*call, **op.attrs)) for call in calls]
    expected = [torch.stack(some) for some in zip(*single, strict=True)]
    for axis in (0, 1, -1):
        stacked = [torch.stack(variants[n], axis) if n in mapped else a for n, a in enumerate(args)]
        once = torch.vmap(
            lambda *a: registered(*a, **op.attrs), tuple(axis if n in mapped else None for n in range(len(args)))
        )
        twice = torch.vmap(once, tuple(-1 if n == mapped[0] else None for n in range(len(args))))
        doubled = [torch.stack([a, a], -1) if n == mapped[0] else a for n, a in enumerate(stacked)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VmapLoopWarning)  # several tensors have no dimension in common
            found, again = everyday.several(once(*stacked)), everyday.several(twice(*doubled))
        for one, two, right in zip(found, again, expected, strict=True):
            torch.testing.assert_close(one, right, rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(two[1], right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("op", [op for op in everyday.OPERATORS if op.flops], ids=lambda op: op.name)
def test_operations_are_counted(op: everyday.Everyday) -> None:
    registered = op.register()
    try:
        for args in op.calls():
            with FlopCounterMode(display=False) as counter:
                registered(*args, **op.attrs)
            counted = counter.get_flop_counts()["Global"][registered.overload.overloadpacket]
            assert op.flops is not None
            assert counted == op.flops[1](*args)
    finally:
        registered.unregister()

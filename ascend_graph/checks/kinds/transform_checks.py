"""Checks of the ``torch.vmap`` and DTensor rules that ``batch=`` and ``reduce=`` give an operator."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from ascend_graph.checks.calls.samples import Sample
from ascend_graph.checks.kinds.subject import (
    CallRefused,
    Faulted,
    NotApplicable,
    Subject,
    Violation,
    called,
    first_line,
    require_equal,
)
from ascend_graph.checks.results import CallResult, leaves
from ascend_graph.checks.tolerances import TOLERANCES
from ascend_graph.inference.running import bind
from ascend_graph.registration.dimensions.independent_dims import combine

#: Number of devices over which a call is sharded.
RANKS = 2


def vmap(subject: Subject, sample: Sample) -> None:
    """Check that ``torch.vmap`` of the operator returns the same as separate calls.

    It is mapped over a new first dimension of all tensors, then of the first tensor only.
    """
    if any(subject.written()):
        raise NotApplicable("it writes its arguments")
    if not torch._C._dispatch_has_kernel_for_dispatch_key(subject.overload.name(), "FuncTorchBatched"):
        raise NotApplicable("it has no rule for torch.vmap; PyTorch loops")
    first = sample.on(subject.device)
    second = sample.on(subject.device, lambda t: t * 0.5 if t.is_floating_point() else t)
    tensors, others = first.tensors, second.tensors
    if not tensors:
        raise NotApplicable("no argument is a tensor")
    for mapped in dict.fromkeys((len(tensors), 1)):
        stacks = [torch.stack([a, b]) for a, b in zip(tensors[:mapped], others, strict=False)]
        wanted = [_result(subject, _with(first, [*parts, *tensors[mapped:]])) for parts in zip(*stacks, strict=True)]
        if any(not isinstance(leaf, torch.Tensor) for one in wanted for leaf in one.returns):
            raise NotApplicable("not every result is a tensor")
        if subject.differ(_result(subject, first), wanted[0], exact=True):
            raise NotApplicable("two equal calls differ")

        def call(*parts: torch.Tensor, mapped: int = mapped) -> Any:
            return tuple(leaves(subject.call(_with(first, [*parts, *tensors[mapped:]]))))

        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                together = torch.vmap(call, randomness="different")(*stacks)
        except Exception as error:  # whatever a rule raises
            raise Violation(f"its rule for torch.vmap refuses what the operator takes: {first_line(error)}") from error
        for number, one in enumerate(wanted):
            got = CallResult.of([leaf[number] for leaf in together], ())
            what = "all tensors" if mapped == len(tensors) > 1 else "the first tensor"
            require_equal(subject, got, one, f"torch.vmap over {what}, call {number}, against a call of its own")


def _result(subject: Subject, placed: Sample) -> CallResult:
    return CallResult.of(called(subject, placed), ())


def _with(sample: Sample, tensors: Sequence[torch.Tensor]) -> Sample:
    """Return the same call with other tensors."""
    others = iter(tensors)
    args, kwargs = tree_map_only(torch.Tensor, lambda _: next(others), (sample.args, dict(sample.kwargs)))
    return replace(sample, args=args, kwargs=kwargs)


def sharding(subject: Subject, sample: Sample) -> None:
    """Check that a call's shards, computed separately and combined as the DTensor rule says, give the whole result."""
    independent = subject.registered.independent_dims if subject.registered is not None else None
    if independent is None:
        raise NotApplicable("it declares no dimension: batch= and reduce= give DTensor's rule")
    from torch.distributed.tensor import Shard

    from ascend_graph.registration.dimensions.sharding import sharding_rule

    placed = sample.on(subject.device)
    whole = _result(subject, placed)
    if subject.differ(_result(subject, sample.on(subject.device)), whole, exact=True):
        raise NotApplicable("two equal calls differ")
    tried = 0
    for outputs, inputs in sharding_rule(subject.overload, independent)(*placed.args, **placed.kwargs)[1:]:
        names = [a.name for a in subject.schema.arguments][: len(placed.args)] + list(placed.kwargs)
        cut = {n: p.dim for n, p in zip(names, inputs, strict=True) if isinstance(p, Shard)}
        shards = _shards(subject, placed, cut)
        if len(shards) < RANKS:  # nothing is left for one of the devices, and DTensor would give it an empty tensor
            continue
        tried += 1
        what = ", ".join(f"{name} sharded on {axis}" for name, axis in cut.items())
        try:
            parts = [_result(subject, shard).returns for shard in shards]
        except CallRefused as error:
            raise Violation(f"with {what}, a shard is refused: {error}") from error
        except Faulted as error:
            raise Violation(f"with {what}, a shard fails: {error}") from error
        found = [
            None
            if some[0] is None
            else torch.cat(some, place.dim)
            if isinstance(place, Shard)
            else combine(place.reduce_op, some)
            for place, *some in zip(outputs, *parts, strict=True)
        ]
        added = [
            some for place, *some in zip(outputs, *parts, strict=True) if place.is_partial() and some[0] is not None
        ]
        judge = subject
        if added and subject.tolerances.atol is None:
            judge = replace(subject, tolerances=replace(subject.tolerances, atol=max(map(_rounding, added))))
        require_equal(judge, CallResult(tuple(found), ()), whole, f"with {what}, put together against the whole")
    if not tried:
        raise NotApplicable(f"no dimension that it declares has {RANKS} indices")


def _rounding(parts: Sequence[torch.Tensor]) -> float:
    """Return how much a sum of rounded summands may differ, by their size, since they may cancel each other."""
    relative, absolute = TOLERANCES.get(parts[0].dtype, (0.0, 0.0))
    return absolute + relative * max(
        (float(part.abs().max()) for part in parts if relative and part.numel()), default=0.0
    )


def _shards(subject: Subject, placed: Sample, cut: Mapping[str, int]) -> list[Sample]:
    """Return the call of each device: the sharded arguments are cut into ``RANKS`` parts along their axes."""
    values = bind(subject.schema, placed.args, placed.kwargs)
    parts = {name: values[name].chunk(RANKS, axis) for name, axis in cut.items()}
    names = [a.name for a in subject.schema.arguments]
    return [
        replace(
            placed,
            args=tuple(part.get(n, v) for n, v in zip(names, placed.args, strict=False)),
            kwargs={n: part.get(n, v) for n, v in placed.kwargs.items()},
        )
        for rank in range(min(map(len, parts.values()), default=0))
        for part in [{n: p[rank].contiguous() for n, p in parts.items()}]
    ]

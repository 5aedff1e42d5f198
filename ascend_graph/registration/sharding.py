"""How DTensor shards an operator: on its independent dimensions, and on reduced ones with partial results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ascend_graph.inference.running import bind
from ascend_graph.registration.batching import Arguments, Loops


def sharding_rule(overload: Any, loops: Loops) -> Callable[..., Any]:
    """What ``torch.distributed.tensor.experimental.register_sharding`` takes: which placements go together on one mesh dimension."""
    from torch.distributed.tensor import Partial, Replicate, Shard

    schema = overload._schema
    outputs = len(schema.returns)

    def rule(*args: Any, **kwargs: Any) -> Sequence[tuple[list[Any], list[Any]]]:
        values = bind(schema, args, kwargs)
        given = [a.name for a in schema.arguments][: len(args)] + list(kwargs)
        shapes = {n: tuple(values[n].shape) if hasattr(values[n], "shape") else None for n in values}
        call = Arguments(loops, schema, values, {n: None if s is None else len(s) for n, s in shapes.items()})
        whole = [Replicate() if shapes[n] is not None else None for n in given]
        found: list[tuple[list[Any], list[Any]]] = [([Replicate()] * outputs, list(whole))]
        labels = dict.fromkeys(
            label for p in call.inputs.values() if p is not None for label in p.axes if label is not None
        )
        for label in labels:
            name = label.partition("[")[0]
            at = {n: axis for n in given if (axis := call.axis(n, label)) is not None}
            sizes = {n: (shapes[n] or ())[axis] for n, axis in at.items()}
            if call.twice(label) or any(p is None for p in call.outputs):
                continue
            axes = [p.axes.index(label) for p in call.outputs if p is not None and label in p.axes]
            # What broadcasts from size 1 is the same everywhere.
            placed = [
                Shard(at[n]) if n in sizes and sizes[n] == max(sizes.values()) else w
                for n, w in zip(given, whole, strict=True)
            ]
            if name in loops.batch and len(axes) == outputs:
                found.append(([Shard(axis) for axis in axes], placed))
            elif name in loops.reduce and not axes:
                found.append(([Partial(loops.reduce[name])] * outputs, placed))
        return found

    return rule


@dataclass(slots=True)
class ShardingHandle:
    """A registered sharding rule that can be taken back."""

    overload: Any

    def remove(self) -> None:
        """Take the rule back. A second call does nothing."""
        propagator = _propagator()
        propagator.op_strategy_funcs.pop(self.overload, None)
        propagator.op_to_schema_info.pop(self.overload, None)


def register_sharding_rule(overload: Any, loops: Loops) -> ShardingHandle:
    """Give DTensor the rule of an operator."""
    if torch.distributed.is_available():
        from torch.distributed.tensor.experimental import register_sharding

        register_sharding(overload)(sharding_rule(overload, loops))
    return ShardingHandle(overload)


def _propagator() -> Any:
    from torch.distributed.tensor import DTensor

    return DTensor._op_dispatcher.sharding_propagator

"""Rule by which DTensor shards an operator: on independent dimensions, and on reduced ones with partial results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ascend_graph.inference.running import bind
from ascend_graph.registration.dimensions.independent_dims import Arguments, IndependentDims
from ascend_graph.shapes.axis_layout import ABSENT
from ascend_graph.versions import forget_sharding


def sharding_rule(overload: Any, independent: IndependentDims) -> Callable[..., Any]:
    """Build the rule for DTensor's ``register_sharding``: the placements that go together on one mesh dimension."""
    from torch.distributed.tensor import Partial, Replicate, Shard

    schema = overload._schema
    outputs = len(schema.returns)

    def rule(*args: Any, **kwargs: Any) -> Sequence[tuple[list[Any], list[Any]]]:
        values = bind(schema, args, kwargs)
        given = [a.name for a in schema.arguments][: len(args)] + list(kwargs)
        shapes = {n: tuple(values[n].shape) if hasattr(values[n], "shape") else None for n in values}
        call = Arguments(independent, schema, values, {n: None if s is None else len(s) for n, s in shapes.items()})
        whole = [Replicate() if shapes[n] is not None else None for n in given]
        found: list[tuple[list[Any], list[Any]]] = [([Replicate()] * outputs, list(whole))]
        labels = dict.fromkeys(
            label for p in call.inputs.values() if p is not None for label in p.axes if label is not None
        )
        for label in labels:
            name = label.partition("[")[0]
            at = {n: axis for n in given if (axis := call.axis(n, label)) is not None}
            sizes = {n: (shapes[n] or ())[axis] for n, axis in at.items()}
            if call.twice(label) or any(p is None or p is ABSENT for p in call.outputs):
                continue
            axes = [p.axes.index(label) for p in call.outputs if p is not None and label in p.axes]
            # What broadcasts from size 1 is the same everywhere.
            placed = [
                Shard(at[n]) if n in sizes and sizes[n] == max(sizes.values()) else w
                for n, w in zip(given, whole, strict=True)
            ]
            if name in independent.reduce:
                combined = Partial(independent.reduce[name])
                places = [p for p in call.outputs if p is not None]
                found.append(([Shard(p.axes.index(label)) if label in p.axes else combined for p in places], placed))
            elif name in independent.batch and len(axes) == outputs:
                found.append(([Shard(axis) for axis in axes], placed))
        return found

    return rule


#: DTensor's tables of operators; the first with an entry for the operator is used.
_TABLES = (
    "op_single_dim_strategy_funcs",
    "op_strategy_funcs",
    "op_to_schema_info",
    "op_to_schema_info_for_single_dim_strategy",
)


@dataclass(slots=True)
class ShardingHandle:
    """Handle of a registered sharding rule, by which it is unregistered."""

    overload: Any
    #: Previous entries of the operator, by table of DTensor.
    before: dict[str, Any]

    def remove(self) -> None:
        """Unregister the rule and restore the previous one. A second call does nothing."""
        _set_aside(self.overload)
        for table, value in self.before.items():
            getattr(_propagator(), table)[self.overload] = value


def _set_aside(overload: Any) -> dict[str, Any]:
    """Remove an operator from DTensor's tables, clear DTensor's caches, and return the removed entries."""
    forget_sharding()
    tables = {name: getattr(_propagator(), name, {}) for name in _TABLES}
    return {name: table.pop(overload) for name, table in tables.items() if overload in table}


def register_sharding_rule(overload: Any, independent: IndependentDims) -> ShardingHandle:
    """Register the rule of an operator with DTensor."""
    if not torch.distributed.is_available():
        return ShardingHandle(overload, {})
    from torch.distributed.tensor.experimental import register_sharding

    before = _set_aside(overload)
    register_sharding(overload)(sharding_rule(overload, independent))
    _propagator().op_to_schema_info[overload] = _kept_apart(overload._schema)
    return ShardingHandle(overload, before)


def _kept_apart(schema: torch.FunctionSchema) -> Any:
    """Return the schema info by which DTensor caches placements: every attr.

    ``register_sharding`` counts integers alone, but a list may also name an axis, and a bool may keep one.
    """
    from torch.distributed.tensor._op_schema import RuntimeSchemaInfo

    attrs = [(n, a) for n, a in enumerate(schema.arguments) if "Tensor" not in str(a.type)]
    first = min((n for n, a in attrs if not a.kwarg_only), default=100)
    return RuntimeSchemaInfo(first, [a.name for _, a in attrs if a.kwarg_only] or None, needs_pytree=True)


def _propagator() -> Any:
    from torch.distributed.tensor import DTensor

    return DTensor._op_dispatcher.sharding_propagator

"""Rule of :func:`torch.vmap` from independent dimensions: the mapped dimension goes into one, or a loop warns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from ascend_graph.dispatch.definition import LibraryHandle
from ascend_graph.inference.running import bind
from ascend_graph.registration.dimensions.independent_dims import Arguments, IndependentDims, outputs_of, ranks_of
from ascend_graph.shapes.axis_layout import ABSENT, ELLIPSIS, AxisLayout


class VmapLoopWarning(UserWarning):
    """Warning that ``torch.vmap`` calls an operator once per index, as no independent dimension can be mapped."""


def register_batching(overload: Any, independent: IndependentDims) -> LibraryHandle:
    """Register the rule of ``torch.vmap`` for an operator."""
    library = torch.library.Library(overload.namespace, "FRAGMENT")
    torch.library.register_vmap(overload.name(), batching_rule(overload, independent), lib=library)
    return LibraryHandle(library)


def batching_rule(overload: Any, independent: IndependentDims) -> Callable[..., Any]:
    """Build the rule for ``torch.library.register_vmap``: use an independent dimension, or else a loop."""
    schema = overload._schema

    def rule(info: Any, in_dims: Sequence[int | None], /, *args: Any, **kwargs: Any) -> Any:
        values = bind(schema, args, kwargs)
        positional = [a.name for a in schema.arguments if not a.kwarg_only]
        dims = {n: d for n, d in zip(positional, in_dims, strict=False) if _is_mapped(d)}
        if torch.Tag.nondeterministic_seeded in overload.tags and info.randomness != "different":
            raise RuntimeError(
                f'vmap: {schema.name} is random: call torch.vmap with randomness="different", not {info.randomness!r}'
            )
        lists = [n for n, d in dims.items() if not isinstance(d, int)]
        if not lists:
            moved = {n: values[n].movedim(d, 0) for n, d in dims.items()}
            ranks = {n: r if r is None else r - (n in dims) for n, r in ranks_of(values).items()}
            call = Arguments(independent, schema, values, ranks)
            for name in independent.batch:
                prepared = _into(call, name, values, moved, info.batch_size)
                if prepared is not None:
                    given, axes, parts = prepared
                    outputs = [
                        None if o is None or axis is None else o.unflatten(axis, (info.batch_size, -1)) if split else o
                        for o, axis, split in zip(outputs_of(overload, schema, given), axes, parts, strict=True)
                    ]
                    return _returned(outputs, axes)
        if lists:
            reason = f"elements of {', '.join(lists)} are mapped, and a list has no independent dimensions"
            instead = "map tensors that are not in lists"
        else:
            reason = f"none of its independent dimensions ({independent.written}) is in all of {', '.join(dims)} and in every output of {independent.relation}"
            instead = "declare one in batch=, or map all tensors that have it"
        warnings.warn(
            f"torch.vmap calls {schema.name} {info.batch_size} times: {reason}. The result is right. Write for one call: {instead}",
            VmapLoopWarning,
            stacklevel=2,
        )
        single = [
            outputs_of(overload, schema, values | {n: _at(values[n], d, number) for n, d in dims.items()})
            for number in range(info.batch_size)
        ]
        return _returned([_stacked(some) for some in zip(*single, strict=True)], [0] * len(schema.returns))

    return rule


def _is_mapped(dim: Any) -> bool:
    """Return whether an argument, or an element of a list, has a mapped dimension."""
    return any(map(_is_mapped, dim)) if isinstance(dim, list | tuple) else dim is not None


def _at(value: Any, dim: Any, number: int) -> Any:
    """Return an argument at an index of its mapped dimension; a list has one dimension for each element."""
    if isinstance(dim, list | tuple):
        return [_at(item, d, number) for item, d in zip(value, dim, strict=True)]
    return value if dim is None else value.select(dim, number)


def _stacked(parts: Sequence[Any]) -> Any:
    """Return one output of all calls with the mapped dimension first; None for an absent output."""
    if isinstance(parts[0], list | tuple):
        return [_stacked(some) for some in zip(*parts, strict=True)]
    return None if parts[0] is None else torch.stack(tuple(parts))


def _returned(outputs: Sequence[Any], axes: Sequence[int | None]) -> Any:
    return (outputs[0], axes[0]) if len(outputs) == 1 else (tuple(outputs), tuple(axes))


def _into(
    call: Arguments, name: str, values: Mapping[str, Any], moved: Mapping[str, torch.Tensor], size: int
) -> tuple[dict[str, Any], list[int | None], list[bool]] | None:
    """Put the mapped dimension into an independent one.

    Returns:
        The arguments of one call, the axis of the dimension in each output (None if it is absent), and whether each
        output must be split again; None if it is not possible.
    """
    grouped = any(p is not None and name in p.starts for p in call.inputs.values())
    has = {
        n: p
        for n, p in call.inputs.items()
        if p is not None and (name in p.starts if grouped else p.axes.count(name) == 1)
    }
    if any(n not in has for n in moved) or any(p is None for p in call.outputs):
        return None
    outputs = [p for p in call.outputs if p is not None]
    if grouped:
        return _into_group(call, name, has, outputs, values, moved, size)
    if any(p.axes.count(name) != 1 for p in outputs if p is not ABSENT):
        return None
    given = dict(values)
    for n, places in has.items():
        axis = places.axes.index(name)
        tensor = moved[n] if n in moved else values[n].unsqueeze(0).expand(size, *values[n].shape)
        given[n] = tensor.movedim(0, axis).flatten(axis, axis + 1)
    return given, [None if p is ABSENT else p.axes.index(name) for p in outputs], [True] * len(outputs)


def _into_group(
    call: Arguments,
    name: str,
    has: Mapping[str, AxisLayout],
    outputs: Sequence[AxisLayout],
    values: Mapping[str, Any],
    moved: Mapping[str, torch.Tensor],
    size: int,
) -> tuple[dict[str, Any], list[int | None], list[bool]] | None:
    if any(name not in p.starts for p in outputs if p is not ABSENT):
        return None
    axis_attrs = frozenset().union(*(p.axis_attrs for p in (*has.values(), *outputs)))
    at_front = bool(axis_attrs)
    given = dict(values)
    longest = max(sum(label is not None and label.startswith(f"{name}[") for label in p.axes) for p in has.values())
    for n, places in has.items():
        start = 0 if at_front else places.starts[name]
        length = sum(label is not None and label.startswith(f"{name}[") for label in places.axes)
        if n not in moved:
            if name != ELLIPSIS:  # what broadcasts needs no copies
                shape = values[n].shape
                given[n] = values[n].unsqueeze(start).expand(*shape[:start], size, *shape[start:])
            continue
        tensor = moved[n].movedim(0, start)
        for _ in range(longest - length if name == ELLIPSIS else 0):
            tensor = tensor.unsqueeze(start + 1)
        given[n] = tensor
    for attr in axis_attrs:
        value = values[attr]
        if value is None:
            return None
        # The new dimension is the first one.
        given[attr] = tree_map_only(int, lambda axis: axis + 1 if axis >= 0 else axis, value)
    axes = [None if p is ABSENT else 0 if at_front else p.starts[name] for p in outputs]
    return given, axes, [False] * len(outputs)

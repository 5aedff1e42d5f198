"""Rule of :func:`torch.vmap` from independent dimensions: the mapped dimension goes into one, or a loop warns.

Operators with lists of tensors, and operators that write, have the loop without a declaration, for PyTorch has none for them.
"""

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


def needs_loop(schema: torch.FunctionSchema) -> bool:
    """Return whether PyTorch's own loop for ``torch.vmap`` refuses a schema: lists of tensors, or arguments that are written."""
    if any(argument.kwarg_only for argument in schema.arguments if "Tensor" in str(argument.type)):
        return False  # torch.library.register_vmap refuses these
    tensors = [value for value in (*schema.arguments, *schema.returns) if "Tensor" in str(value.type)]
    return any("List" in str(value.type) or value.alias_info is not None for value in tensors)


def has_batching_rule(overload: Any) -> bool:
    """Return whether an operator has a rule of ``torch.vmap``."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "FuncTorchBatched"))


def register_batching(overload: Any, independent: IndependentDims | None) -> LibraryHandle:
    """Register the rule of ``torch.vmap`` for an operator; the loop alone without independent dimensions."""
    library = torch.library.Library(overload.namespace, "FRAGMENT")
    rule = batching_rule(overload, independent)
    if any(argument.kwarg_only and argument.name in _TAKEN for argument in overload._schema.arguments):
        library.impl(overload.name(), _with_any_names(overload, rule), "FuncTorchBatched", with_keyset=True)
    else:
        torch.library.register_vmap(overload.name(), rule, lib=library)
    return LibraryHandle(library)


#: Parameters of PyTorch's functions between a call under ``torch.vmap`` and its rule.
_TAKEN = frozenset(("keyset", "interpreter", "vmap_function", "op"))


def _with_any_names(overload: Any, rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return what ``torch.library.register_vmap`` makes of a rule, for arguments whose names its functions have, too."""
    from torch._functorch.autograd_function import custom_function_call_vmap_helper
    from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter

    def kernel(_keyset: Any, /, *args: Any, **kwargs: Any) -> Any:
        interpreter = retrieve_current_functorch_interpreter()
        return custom_function_call_vmap_helper(
            interpreter,  # type: ignore[arg-type]
            lambda info, in_dims, *operands: rule(info, in_dims, *operands, **kwargs),
            lambda *operands: overload(*operands, **kwargs),
            *args,
        )

    return kernel


def batching_rule(overload: Any, independent: IndependentDims | None) -> Callable[..., Any]:
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
        if independent is not None and all(isinstance(d, int) for d in dims.values()):
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
        return _loop(overload, independent, info.batch_size, values, dims)

    return rule


def _loop(
    overload: Any, independent: IndependentDims | None, size: int, values: dict[str, Any], dims: Mapping[str, Any]
) -> Any:
    """Call an operator once per index of the mapped dimension; warn of it."""
    schema = overload._schema
    written = [a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    lists = [n for n, d in dims.items() if not isinstance(d, int)]
    if written:
        _check_written(schema.name, written, values, dims)
        reason = f"it writes to {', '.join(written)}"
        instead = "call it once, outside of torch.vmap, with all that is mapped"
    elif lists:
        reason = f"elements of {', '.join(lists)} are mapped, and a list has no independent dimensions"
        instead = "map tensors that are not in lists"
    elif independent is None:
        reason, instead = "it returns a list", "an operator that returns one tensor"
    else:
        reason = f"none of its independent dimensions ({independent.written}) is in all of {', '.join(dims)} and in every output of {independent.relation}"
        instead = "declare one in batch=, or map all tensors that have it"
    if schema.returns and not size:
        raise RuntimeError(
            f"vmap: {schema.name}: the mapped dimension has size 0; expected at least 1, for without a call the shapes of "
            "outputs are not known"
        )
    warnings.warn(
        f"torch.vmap calls {schema.name} {size} times: {reason}. The result is right. Write for one call: {instead}",
        VmapLoopWarning,
        stacklevel=3,
    )
    single = [
        outputs_of(overload, schema, values | {n: _at(values[n], d, number) for n, d in dims.items()})
        for number in range(size)
    ]
    if not schema.returns:
        return None, None
    outputs, axes = [_stacked(some) for some in zip(*single, strict=True)], [0] * len(schema.returns)
    for position, (name, dim) in _returned_arguments(schema, dims).items():
        outputs[position], axes[position] = values[name], dim
    return _returned(outputs, axes)


def _check_written(operator: str, written: Sequence[str], values: Mapping[str, Any], dims: Mapping[str, Any]) -> None:
    """Check that each call writes to memory of its own.

    Raises:
        RuntimeError: A tensor that is written is the same for all calls.
    """
    for name in written:
        given, dim = values[name], dims.get(name)
        pairs = (
            zip(given, dim or [None] * len(given), strict=True) if isinstance(given, list | tuple) else [(given, dim)]
        )
        if any(value is not None and d is None for value, d in pairs):
            raise RuntimeError(
                f"vmap: {operator} writes to {name}, which is not mapped; expected a tensor with the mapped dimension, for each "
                "call writes to its own part. Write: in_dims that map it, or a copy for each index"
            )


def _returned_arguments(schema: torch.FunctionSchema, dims: Mapping[str, Any]) -> dict[int, tuple[str, Any]]:
    """Return the positions of returns that are written arguments, with the argument and its mapped dimension."""
    owners = {label: a.name for a in schema.arguments if a.alias_info for label in a.alias_info.before_set}
    found: dict[int, tuple[str, Any]] = {}
    for position, value in enumerate(schema.returns):
        for label in value.alias_info.before_set if value.alias_info else ():
            if owners.get(label) in dims:
                found[position] = (owners[label], dims[owners[label]])
    return found


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

"""Nodes of PyTorch that stand for calls that write, in graphs without writes: construction and reading.

``auto_functionalized_v2(op, …)`` has the memories that the call writes to (*bases*), and the view and the base of
each written argument. It returns the operator's outputs and the bases' new values. PyTorch makes such nodes for any
operator. Here they are made for registered ones, because PyTorch's own node misplaces a view if its base has an offset.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._higher_order_ops import auto_functionalize as pytorch
from torch._subclasses.functional_tensor import PythonFunctionalizeAPI

from ascend_graph.errors import AscendGraphError
from ascend_graph.registration.writing.layouts import are_apart, layout_of

#: Names of PyTorch's module that are used here.
_PIECES = ("auto_functionalized_v2", "get_base", "is_alias", "read_view_information_from_args", "try_use_slice")

#: Operators whose nodes the passes and converters of this package handle.
_ours: list[Any] = []


def lacking() -> list[str]:
    """Return the functions for describing calls that this PyTorch lacks."""
    return [name for name in _PIECES if not hasattr(pytorch, name)]


def add_operator(operator: Any) -> None:
    """Handle nodes of an operator here."""
    _ours.append(operator)


def remove_operator(operator: Any) -> None:
    """Leave nodes of an operator to PyTorch and TorchAir again."""
    _ours.remove(operator)


def is_ours(operator: Any) -> bool:
    """Return whether nodes of an operator are handled here."""
    return any(known is operator for known in _ours)


def is_mutation(node: torch.fx.Node) -> bool:
    """Return whether a node stands for a call that writes, of one of these operators."""
    return (
        node.op == "call_function"
        and node.target is torch.ops.higher_order.auto_functionalized_v2
        and is_ours(node.args[0])
    )


def written_arguments(schema: torch.FunctionSchema) -> list[torch.Argument]:
    """Return the arguments that a schema declares as written."""
    return [a for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]


#: Attribute of a function that knows calls of these operators.
_MARK = "_ascend_graph_mutations"


def decompose_all_dtypes() -> None:
    """Make PyTorch's pass decompose calls that write whatever their dtypes are. A second call does nothing.

    It skips nodes with dtypes for which Inductor makes no code, as complex ones, and then fails: ``auto_functionalized_v2 was not
    removed``. A capture runs the operator's own kernel.
    """
    from torch._inductor import pattern_matcher

    name = "fallback_node_due_to_unsupported_type"
    original = getattr(pattern_matcher, name, None)
    if original is None or hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def falls_back(node: torch.fx.Node, *args: Any, **kwargs: Any) -> bool:
        return not is_mutation(node) and bool(original(node, *args, **kwargs))

    setattr(falls_back, _MARK, True)
    setattr(pattern_matcher, name, falls_back)


# ------------------------------------------------------------------------------------------------------- making a node

#: Name that PyTorch's rules of the node use for a parameter of their own, next to the operator's arguments.
_TAKEN = "mode"


class MutationNameError(AscendGraphError, TypeError):
    """Error of an operator that writes and has an argument whose name PyTorch uses."""


class MutationOverlapError(AscendGraphError, RuntimeError):
    """Error of an operator that writes two parts of complex numbers that overlap, in a graph."""


class MutationListError(AscendGraphError, TypeError):
    """Error of an operator that writes and returns a list of tensors, which PyTorch takes into no graph."""


def _exports_bases() -> bool:
    """Return whether exported programs have nodes with bases; those of older versions of PyTorch never do."""
    try:
        from torch._export import config
    except ImportError:
        return False
    return bool(getattr(config, "enable_auto_functionalized_v2_for_export", False))


def is_functionalized_here(mode: Any, operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a call becomes a node with bases, as PyTorch is configured, or one with the arguments themselves.

    Outside of exported programs it has bases wherever written arguments share memory: PyTorch would go on with a value of
    each that has none of what the call wrote to the others.
    """
    import torch._inductor.config

    if bool(getattr(mode, "export", False)) or getattr(torch.compiler, "is_exporting", bool)():
        return _exports_bases()
    given = {**dict(zip((a.name for a in operator._schema.arguments), args, strict=False)), **kwargs}
    written = [t for a in written_arguments(operator._schema) for t in tensors_in(given.get(a.name))]
    together = any(
        _share_memory(*PythonFunctionalizeAPI(mode).unwrap_tensors(pair)) for pair in itertools.combinations(written, 2)
    )
    return together or bool(torch._inductor.config.enable_auto_functionalized_v2)


def check_operator(operator: Any) -> None:
    """Check that PyTorch has nodes for an operator that writes.

    Raises:
        MutationNameError: An argument has the name of a parameter of PyTorch's.
        MutationListError: It returns a list of tensors.
    """
    schema = operator._schema
    if any(a.name == _TAKEN for a in schema.arguments):
        raise MutationNameError(
            f"{operator}: an argument is named {_TAKEN!r}, and the operator writes to an argument; PyTorch's auto_functionalized has a "
            f"parameter of that name. Expected another name: give it a schema with one, and arguments={{<name>: {_TAKEN!r}}}"
        )
    if any(isinstance(_required(returned.type), torch.ListType) for returned in schema.returns):
        raise MutationListError(
            f"{operator}: it writes to an argument and returns a list of tensors, which PyTorch's auto_functionalized does not take; "
            "expected tensors alone. Return each tensor by itself, or make two operators of it: one that writes, one that returns the list"
        )


def functionalize(mode: Any, operator: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Put a node into the graph for a call that writes, and give the arguments their new values.

    Args:
        mode: The active ``FunctionalTensorMode``.
        operator: An operator that returns none of its arguments.
        args: The call's arguments.
        kwargs: The call's arguments by name.

    Returns:
        The operator's outputs.
    """
    ctx = PythonFunctionalizeAPI(mode)
    schema = operator._schema
    values = dict(zip((a.name for a in schema.arguments), args, strict=False)) | kwargs
    values |= {a.name: a.default_value for a in schema.arguments if a.name not in values}
    check_operator(operator)
    _check_apart(operator, [t for a in written_arguments(schema) for t in tensors_in(values[a.name])])
    bases: list[Any] = []
    for argument in written_arguments(schema):
        value = values.pop(argument.name)
        if not is_list(argument):
            values |= _view(ctx, f"_{argument.name}", value, bases)
            continue
        values[f"_{argument.name}_length"] = None if value is None else len(value)
        for n, item in enumerate(value or ()):
            values |= _view(ctx, f"_{argument.name}_{n}", item, bases)
    values["_all_bases"] = bases
    with ctx.redispatch_to_next():
        made = torch.ops.higher_order.auto_functionalized_v2(operator, **ctx.unwrap_tensors(values))  # type: ignore[arg-type]
    returned = made[: len(made) - len(bases)]
    for base, value in zip(bases, made[len(returned) :], strict=True):
        ctx.replace(base, value)
        ctx.commit_update(base)
        ctx.sync(base)
    count = len(schema.returns)
    results: Any = None if count == 0 else returned[0] if count == 1 else returned
    return ctx.wrap_tensors(results)


def is_list(argument: torch.Argument) -> bool:
    """Return whether an argument takes a list, which may be absent."""
    return isinstance(_required(argument.type), torch.ListType)


def _required(type_: Any) -> Any:
    return type_.getElementType() if isinstance(type_, torch.OptionalType) else type_


def _view(ctx: Any, prefix: str, tensor: Any, bases: list[Any]) -> dict[str, Any]:
    """Describe a written tensor as a view of a base, in PyTorch's form; add a new base to ``bases``."""
    if tensor is None:
        return {f"{prefix}_base_index": None}
    base = pytorch.get_base(tensor)
    if base is None or not _are_alike(base, tensor) or not _share_memory(*ctx.unwrap_tensors((base, tensor))):
        base = tensor
    index = next((n for n, known in enumerate(bases) if known._cdata == base._cdata), len(bases))
    if index == len(bases):
        bases.append(base)
    found: dict[str, Any] = {f"{prefix}_base_index": index}
    if base is tensor:
        return found
    # Tensors keep the strides and the offset that they had before ATen wrote to them: values have those of the graph.
    base, tensor = ctx.unwrap_tensors((base, tensor))
    if pytorch.is_alias(base, tensor):
        return found | {f"{prefix}_alias": True}
    # PyTorch counts where a slice starts from the memory's start, and slices the base, which may start later. It divides
    # by strides.
    sliceable = not any(isinstance(s, int) and s == 0 for s in base.stride())
    start = base.storage_offset()
    sliced = pytorch.try_use_slice(_From(base, start), _From(tensor, start)) if sliceable else None
    if sliced is not None:
        return found | dict(
            zip((f"{prefix}_slice_dim", f"{prefix}_slice_start", f"{prefix}_slice_end"), sliced, strict=True)
        )
    return found | {
        f"{prefix}_size": tensor.size(),
        f"{prefix}_stride": tensor.stride(),
        f"{prefix}_storage_offset": tensor.storage_offset(),
    }


class _From:
    """Layout of a tensor whose offset is counted from another start, as PyTorch's functions ask for it."""

    def __init__(self, tensor: torch.Tensor, start: Any) -> None:
        self.size, self.stride = tensor.size, tensor.stride
        self._offset = tensor.storage_offset() - start

    def storage_offset(self) -> Any:
        return self._offset


def _check_apart(operator: Any, written: Sequence[torch.Tensor]) -> None:
    """Check that written parts of complex numbers share no element, for each has memory of its own in a graph.

    Raises:
        MutationOverlapError: They may.
    """
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    bases = [pytorch.get_base(tensor) for tensor in written]
    found = [(t if base is None else base, t) for base, t in zip(bases, written, strict=True)]
    for (base, a), (other, b) in itertools.combinations(found, 2):
        if base._cdata != other._cdata or a._cdata == b._cdata or all(_are_alike(base, t) for t in (a, b)):
            continue
        if not _are_alike(a, b) or not are_apart(layout_of(a), layout_of(b), statically_known_true):
            raise MutationOverlapError(
                f"{operator}: it writes two arguments that may share memory, {a.dtype} of size {tuple(a.shape)} and {b.dtype} of size "
                f"{tuple(b.shape)}, parts of one tensor of {base.dtype}; expected parts that are apart. Pass a clone, and copy_ it back"
            )


def _are_alike(base: torch.Tensor, view: torch.Tensor) -> bool:
    """Return whether sizes and strides alone make a view of a base: the parts of complex numbers have another dtype."""
    kinds = ((t.dtype, t.is_conj(), t.is_neg()) for t in (base, view))
    return next(kinds) == next(kinds)


def offsets_of_views(values: Mapping[str, Any]) -> dict[str, int]:
    """Return the names of offsets by which a node describes written views, each with the position of its base.

    >>> offsets_of_views({"_x_storage_offset": 4, "_x_base_index": 1, "y_storage_offset": 2})
    {'_x_storage_offset': 1}
    """
    offset, index = "_storage_offset", "_base_index"
    names = [name.removesuffix(offset) for name in values if name.endswith(offset)]
    return {name + offset: values[name + index] for name in names if name + index in values}


def read_views(written: Sequence[torch.Argument], values: dict[str, Any], bases: Sequence[Any]) -> dict[str, Any]:
    """Remove the descriptions of written views from a node's values, and return the views by argument."""
    types: list[Any] = [argument.type for argument in written]
    views: dict[str, Any] = pytorch.read_view_information_from_args(
        [a.name for a in written], types, values, list(bases)
    )
    return views


# ------------------------------------------------------------------------------------------- arguments that share memory


def trace(operator: Any, mode: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Record a call that writes, after copies of read tensors that may overlap with written ones.

    A graph without writes may give an operator one value to read and to write: passes drop the copy that the program made.
    Once the operator writes in-place again, it would read its own output.

    Args:
        operator: The operator.
        mode: The active ``ProxyTorchDispatchMode``.
        args: The call's arguments.
        kwargs: The call's arguments by name.
    """
    names = [a.name for a in operator._schema.arguments]
    given = dict(zip(names, args, strict=False)) | kwargs
    written = {a.name for a in written_arguments(operator._schema)}
    targets = [t for name in written for t in tensors_in(given.get(name))]
    read = {name: value if name in written else _apart(value, targets, mode) for name, value in given.items()}
    positional = [read.pop(name) for name in names[: len(args)]]
    return mode.__torch_dispatch__(operator, (), tuple(positional), read)


def _apart(value: Any, targets: Sequence[torch.Tensor], mode: Any) -> Any:
    """Return a read argument, cloned where it may overlap with a written one."""
    if isinstance(value, list | tuple):
        return type(value)([_apart(item, targets, mode) for item in value])
    if not isinstance(value, torch.Tensor) or not any(_may_overlap(value, target) for target in targets):
        return value
    with mode:
        return value.clone()


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield a value, or the elements of a list, that are tensors."""
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, torch.Tensor):
            yield item


def _share_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(a.untyped_storage()._cdata == b.untyped_storage()._cdata)


def _may_overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    return _share_memory(a, b) and not are_apart(layout_of(a), layout_of(b), statically_known_true)


def call_where_nothing_is_written(graph: fx.Graph, node: fx.Node) -> None:
    """Replace a node whose written arguments are all absent by a call of the operator itself.

    PyTorch takes the single result of such a node for a tuple, and returns its first row.
    """
    target: Any = node.args[0]
    if node.kwargs["_all_bases"]:
        return
    kwargs: dict[str, Any] = {name: value for name, value in node.kwargs.items() if name != "_all_bases"}
    written = written_arguments(target._schema)
    kwargs |= read_views(written, kwargs, [])
    with graph.inserting_before(node):
        call = graph.call_function(target, (), kwargs)
    call.meta = dict(node.meta)
    single = len(target._schema.returns) == 1
    if single and "val" in node.meta:
        call.meta["val"] = node.meta["val"][0]
    for user in list(node.users):
        if single and user.target is operator.getitem:
            user.replace_all_uses_with(call)
            graph.erase_node(user)
        else:
            user.replace_input_with(node, call)
    graph.erase_node(node)

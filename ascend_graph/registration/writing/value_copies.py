"""Copies that a program asks for, where TorchAir would hand on the value itself: it drops ``clone`` and its like."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator
from typing import Any

import torch
from torch import fx

from ascend_graph.registration.writing import ge
from ascend_graph.registration.writing.mutation import is_mutation

#: Operators that make no new tensor in GE where sizes and dtypes agree: the argument that they return.
_HANDED_ON = {torch.ops.aten.copy.default: 1, torch.ops.aten._to_copy.default: 0}


def keep_returned_copies(graph: fx.Graph) -> None:
    """Return copies of inputs, and of values that a graph writes to an input, or returns, too, in memory of their own.

    Both compilers run PyTorch's pass that drops ``clone`` and others that change nothing (``repeat(1)``), and hand on what is copied
    into a new tensor. The program would get the value itself, which lies in the input: ``op_(x); return x.clone()``. It keeps a copy of
    an input alone that is returned, but not the second of two: ``return x.clone().t().clone()``.
    """
    (output,) = (node for node in graph.nodes if node.op == "output")
    taken = {
        _origin(node.args[1])
        for node in graph.nodes
        if node.target is torch.ops.aten.copy_.default and is_input(node.args[0])
    }
    returned = [_copied_value(node) for node in output.all_input_nodes]
    taken |= {value for value, copy in returned if copy is None or is_input(value)}
    kept: set[fx.Node] = set()
    for value, copy in returned:
        if copy is not None and value in taken and copy not in kept:
            _keep(copy)
            kept.add(copy)
        elif copy is not None:
            taken.add(value)


def return_apart(graph: fx.Graph, fresh: Collection[int]) -> None:
    """Return values that PyTorch takes for new tensors in memory of their own, those at the places ``fresh`` of the results.

    The passes of ``npu_fx_pass`` run before and drop copies, so that the graph returns an input, what it writes to one, or one value
    at two places. PyTorch takes for new what ``chunk`` and its like return, too, which are views.
    """
    (output,) = (node for node in graph.nodes if node.op == "output")
    returned = list(output.args[0]) if isinstance(output.args[0], list | tuple) else []
    writes = graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default)
    taken = {_base(node.args[1]) for node in writes if is_input(node.args[0]) and isinstance(node.args[1], fx.Node)}
    for place in (place for place in fresh if place < len(returned)):
        node = returned[place]
        if not isinstance(node, fx.Node) or not isinstance(node.meta.get("val"), torch.Tensor):
            continue
        *views, base = _views(node)
        if any(view.target is operator.getitem for view in views):
            continue
        if is_input(base) or base in taken:
            with graph.inserting_before(output):
                returned[place] = _own(node)
        taken.add(base)
    if returned:
        output.args = (type(output.args[0])(returned),)


def keep_copies_of_written_values(graph: fx.Graph) -> None:
    """Keep copies of values that a call of a registered operator wrote, or writes after it: ``op_(x); y = x.clone(); op_(x)``.

    In a capture the calls write in place, and what follows, too, for nothing reads the value but through the copy. The copy is
    dropped then.
    """
    written: set[fx.Node] = set()
    for node in reversed(list(graph.nodes)):
        if is_mutation(node):
            written |= {_origin(base) for base in node.kwargs["_all_bases"]}
        elif (source := source_of_copy(node)) is not None and _base(node) is node:  # a view of all is dropped, too
            value = _origin(source)
            if value in written or any(map(is_mutation, (value, *value.all_input_nodes))):
                _keep(node)


def _keep(copy: fx.Node) -> None:
    """Give the users of a copy one that the compilers do not drop."""
    with copy.graph.inserting_after(copy):
        own = _own(copy)
    for user in [user for user in copy.users if user is not own]:
        user.replace_input_with(copy, own)


def _own(value: fx.Node) -> fx.Node:
    """Return a copy of a value that the compilers do not drop."""
    own = value.graph.call_function(ge.own_copy(), (value,))
    own.meta = dict(value.meta)
    return own


def _copied_value(node: fx.Node) -> tuple[fx.Node, fx.Node | None]:
    """Return the node that makes a value, behind views and copies that change nothing, and the last of these copies."""
    last: fx.Node | None = None
    while True:
        node = _base(node)
        source = source_of_copy(node)
        if source is None:
            return node, last
        last = last or node
        node = source


def source_of_copy(node: fx.Node) -> fx.Node | None:
    """Return the value that a copy gives anew, which the compilers take in its place; None for any other node."""
    from torch._inductor.fx_passes.post_grad import noop_registry

    alike = same_layout
    if node.target in _HANDED_ON:  # whatever the strides are, which GE does not have
        found: Any = node.args[_HANDED_ON[node.target]]
        alike = _same_sizes
    elif node.target in noop_registry:
        _, place = noop_registry[node.target]
        found = place(node.args) if callable(place) else node.args[place]
    else:
        return None
    same = isinstance(found, fx.Node) and found.meta["val"].dtype == node.meta["val"].dtype and alike(node, found)
    return found if same else None


def separate_written_values(graph: fx.Graph) -> None:
    """Copy a value that a graph writes to an input if another input gets it, or the graph returns it.

    TorchAir hands such a value out in the input's memory, or lets its operator write there. It does so for one input alone,
    and what is returned changes with the input.
    """
    (output,) = (node for node in graph.nodes if node.op == "output")
    taken = {_origin(node) for node in output.all_input_nodes}
    for node in list(graph.nodes):
        if node.target is not torch.ops.aten.copy_.default or not is_input(node.args[0]):
            continue
        target, value, *rest = node.args
        origin = _origin(value)
        if origin in taken:
            with graph.inserting_before(node):
                node.args = (target, _own(value), *rest)
        taken.add(origin)


def _origin(node: fx.Node) -> fx.Node:
    """Return the node that makes a value, behind views, operators that hand it on and copies that change nothing."""
    while True:
        node = _base(node)
        source: Any = node.args[_HANDED_ON[node.target]] if node.target in _HANDED_ON else source_of_copy(node)
        if not isinstance(source, fx.Node):  # a number, as torch.vmap makes of those of Python
            return node
        node = source


def _base(node: fx.Node) -> fx.Node:
    """Return the node that makes a value, behind views."""
    *_, base = _views(node)
    return base


def _views(node: fx.Node) -> Iterator[fx.Node]:
    """Yield a node, what it is a view of, and so on, down to the node that makes the value."""
    yield node
    storage = storage_of(node)
    for source in node.all_input_nodes:
        if storage is not None and storage_of(source) == storage:
            yield from _views(source)
            return


def is_input(node: Any) -> bool:
    """Return whether a node is an input of the graph."""
    return isinstance(node, fx.Node) and node.op == "placeholder"


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, torch.Tensor):
            yield item


def storage_of(node: Any) -> int | None:
    """Return the memory of a node's tensors if they share one, or None."""
    if not isinstance(node, fx.Node):
        return None
    found = {t.untyped_storage()._cdata for t in _tensors(node.meta.get("val")) if torch._C._has_storage(t)}
    return found.pop() if len(found) == 1 else None


def _same_sizes(a: fx.Node, b: fx.Node) -> bool:
    return _equal(tuple(a.meta["val"].size()), tuple(b.meta["val"].size()))


def same_layout(a: fx.Node, b: fx.Node) -> bool:
    """Return whether two tensors have the same sizes and strides, as far as is known."""
    return _same_sizes(a, b) and _equal(tuple(a.meta["val"].stride()), tuple(b.meta["val"].stride()))


def _equal(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    from torch.fx.experimental.symbolic_shapes import statically_known_true, sym_eq

    return len(a) == len(b) and bool(statically_known_true(sym_eq(a, b)))

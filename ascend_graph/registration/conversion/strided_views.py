"""Views by their place in memory, ``x[:, 2:].as_strided((2,), (4,), 3)``, in GE graphs: counted in what GE has of that memory.

TorchAir takes PyTorch's strides and offset for those of the tensor that is viewed. GE has that tensor contiguously, from 0, and
nothing of the memory around it. So the view is taken from the tensor that was computed first, at the same elements.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from ascend_graph.errors import AscendGraphError
from ascend_graph.registration.writing.base_layouts import computed, is_contiguous
from ascend_graph.registration.writing.layouts import Layout, in_compact, layout_of, traced_layout

_ATEN = torch.ops.aten
#: Views that see other values than the memory has.
_OTHER_VALUES = (_ATEN._neg_view.default, _ATEN._conj.default)


class StridedViewError(AscendGraphError):
    """Error of a view by its place in memory of which GE does not have every element."""


def view_what_was_computed(graph: fx.Graph) -> None:
    """Take views by ``as_strided`` from the tensors that own their memory.

    Raises:
        StridedViewError: A view has elements that are not the owner's, or are not known to be.
        LayoutError: Sizes have symbols that are not among the graph's inputs.
    """
    for node in graph.find_nodes(op="call_function", target=_ATEN.as_strided.default):
        source: Any = node.args[0]
        owner = _owner(source)
        base = layout_of(owner.meta["val"])
        if owner is source and is_contiguous(owner.meta["val"]) and _is_known(base.offset == 0):
            continue
        with graph.inserting_before(node):
            made, place = _place(graph, owner, layout_of(node.meta["val"]), node.name)
            numbers = [[computed(graph, n, node) for n in part] for part in (place.size, place.stride, [place.offset])]
        node.args, node.kwargs = (made, *numbers[:2], *numbers[2]), {}


def _place(graph: fx.Graph, owner: fx.Node, view: Layout, name: str) -> tuple[fx.Node, Layout]:
    """Return a tensor that GE has as PyTorch has the owner, and the view's place in it."""
    value = owner.meta["val"]
    base = layout_of(value)
    from_the_start = Layout(view.size, view.stride, view.offset - base.offset)
    if is_contiguous(value):
        return owner, from_the_start
    traced = traced_layout(value)
    order = [] if traced is None else sorted(range(value.dim()), key=lambda dim: -traced.stride[dim])
    if order and is_contiguous(value.permute(order)):
        ordered = graph.call_function(_ATEN.permute.default, (owner, order))
        made = graph.call_function(_ATEN.clone.default, (ordered,))
        ordered.meta["val"] = made.meta["val"] = value.permute(order)
        return made, from_the_start
    place = in_compact(base, view, _is_known)
    if place is None:
        raise StridedViewError(
            f"{name}: as_strided takes elements of size {view.size}, stride {view.stride} and offset {view.offset} from the memory "
            f"of {owner.name}, which has size {base.size} and stride {base.stride} there; expected elements of that tensor, which alone "
            "GE has. View the whole tensor (x.as_strided(…) where x is contiguous), or take the view outside of the compiled function"
        )
    return owner, place


def _is_known(condition: Any) -> bool:
    from torch.fx.experimental.symbolic_shapes import statically_known_true  # of sympy, which takes a while

    return statically_known_true(condition)


def _owner(node: fx.Node) -> fx.Node:
    """Return the value whose memory a view is of, as far as views of the same numbers lead to it."""
    while node.op == "call_function":
        call: Any = node.args[0] if node.target is operator.getitem else node
        source = call.args[0] if call.args and call.target not in _OTHER_VALUES else None
        if not isinstance(source, fx.Node) or not _is_view(source.meta.get("val"), node.meta.get("val")):
            return node
        node = source
    return node


def _is_view(whole: Any, part: Any) -> bool:
    tensors = all(isinstance(one, torch.Tensor) and torch._C._has_storage(one) for one in (whole, part))
    return tensors and whole.dtype == part.dtype and whole.untyped_storage()._cdata == part.untyped_storage()._cdata

"""Views by their place in memory, ``x[:, 2:].as_strided((2,), (4,), 3)``, counted in what a graph has of that memory.

TorchAir takes PyTorch's strides and offset for those of the tensor that is viewed. GE has that tensor contiguously, from 0, and
nothing of the memory around it. So the view is taken from the tensor that was computed first, at the same elements.

An offset that the program gives counts from the start of the memory. The graph is compiled for inputs that begin where the first
call's do.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import fx

from ascend_graph.errors import AscendGraphError
from ascend_graph.registration.conversion.wrapped_graph import WrappedGraph
from ascend_graph.registration.writing.base_layouts import computed, is_contiguous
from ascend_graph.registration.writing.layouts import Layout, in_compact, layout_of, traced_layout

_ATEN = torch.ops.aten
#: Views by their place in memory, and writes to such views, with the position of their sizes.
_SIZES = {_ATEN.as_strided.default: 1, _ATEN.as_strided_scatter.default: 2}
#: Views that see other values than the memory has.
_OTHER_VALUES = (_ATEN._neg_view.default, _ATEN._conj.default)


class StridedViewError(AscendGraphError):
    """Error of a view by its place in memory of which a graph does not have every element."""


# ------------------------------------------------------------------------------------------------- offsets that are given


def given_offsets(graph: fx.Graph, *, captured: bool) -> dict[int, int]:
    """Return where inputs begin in memory, by their position: those with views, or writes, at an offset that the program gives.

    Raises:
        StridedViewError: The graph has such an input from 0, and the traced one begins elsewhere.
    """
    positions = {node: n for n, node in enumerate(graph.find_nodes(op="placeholder"))}
    found = {}
    for node, offset in _views(graph):
        source: Any = node.args[0]
        owner = _owner(source)
        start = owner.meta["val"].storage_offset()
        if offset is None or owner not in positions or not isinstance(start, int):
            continue
        if start and (captured or node.target is not _ATEN.as_strided.default):
            raise StridedViewError(_moved(owner.name, 0, start))
        found[positions[owner]] = start
    return found


class AtGivenOffsets(WrappedGraph):
    """Compiled graph that refuses a call where inputs do not begin where its views by place expect it.

    Args:
        compiled: A graph.
        offsets: The offsets of the trace, in elements, by the position of the input.
    """

    def __init__(self, compiled: Any, offsets: Mapping[int, int]) -> None:
        super().__init__(compiled, dict(offsets))
        self._offsets = offsets

    def __call__(self, *inputs: Any) -> Any:
        for n, offset in self._offsets.items():
            if inputs[n].storage_offset() != offset:
                raise StridedViewError(_moved(f"input {n}", offset, inputs[n].storage_offset()))
        return self._compiled(*inputs)


def _moved(name: str, expected: int, start: int) -> str:
    return (
        f"{name}: as_strided with storage_offset= sees its memory from the start, and it begins at element {start}; expected {expected}, "
        "where the graph has it. Leave storage_offset= out, which counts from the tensor's own start, or pass .clone()"
    )


def _views(graph: fx.Graph) -> Iterator[tuple[fx.Node, Any]]:
    """Yield views by place and writes to them, with the offset that the program gives, or None."""
    for node in graph.nodes:
        if node.target in _SIZES:
            rest = node.args[_SIZES[node.target] + 2 :]
            yield node, rest[0] if rest else node.kwargs.get("storage_offset")


# ----------------------------------------------------------------------------------------------------------- in GE graphs


def view_what_was_computed(graph: fx.Graph) -> None:
    """Take views by ``as_strided`` in a GE graph from the tensors that own their memory.

    Raises:
        StridedViewError: A view has elements that are not the owner's, or are not known to be.
        LayoutError: An offset has symbols that are not among the graph's inputs.
    """
    for node, offset in list(_views(graph)):
        source: Any = node.args[0]
        owner = _owner(source)
        start, is_compact = owner.meta["val"].storage_offset(), is_contiguous(owner.meta["val"])
        settled = owner is source and is_compact and (offset is None or _is_known(start == 0))
        if settled or node.target is not _ATEN.as_strided.default:  # what is written has its memory to itself
            continue
        with graph.inserting_before(node):
            if is_compact:
                node.args = (owner, *node.args[1:3], _from_start(graph, node, offset, start))
            else:
                made, place = _place(graph, owner, layout_of(node.meta["val"]), node.name)
                numbers = [[computed(graph, n, node) for n in p] for p in (place.size, place.stride, [place.offset])]
                node.args = (made, *numbers[:2], *numbers[2])
        node.kwargs = {}


def _from_start(graph: fx.Graph, node: fx.Node, offset: Any, start: Any) -> Any:
    """Return an offset, given or the view's own, counted from the start of its owner."""
    if offset is not None and _is_known(start == 0):
        return offset
    given = offset.meta["val"] if isinstance(offset, fx.Node) else offset
    return computed(graph, (node.meta["val"].storage_offset() if given is None else given) - start, node)


def _place(graph: fx.Graph, owner: fx.Node, view: Layout, name: str) -> tuple[fx.Node, Layout]:
    """Return a tensor that GE has as PyTorch has an owner that is not contiguous, and the view's place in it."""
    value = owner.meta["val"]
    base = layout_of(value)
    traced = traced_layout(value)
    order = [] if traced is None else sorted(range(value.dim()), key=lambda dim: -traced.stride[dim])
    if order and is_contiguous(value.permute(order)):
        ordered = graph.call_function(_ATEN.permute.default, (owner, order))
        made = graph.call_function(_ATEN.clone.default, (ordered,))
        ordered.meta["val"] = made.meta["val"] = value.permute(order)
        return made, Layout(view.size, view.stride, view.offset - base.offset)
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

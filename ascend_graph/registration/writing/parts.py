"""Parts of tensors in captures: of concatenations, and those that are written in gradients."""

from __future__ import annotations

import torch
from torch import fx

from ascend_graph.registration.writing import ge
from ascend_graph.registration.writing.base_layouts import is_contiguous

_ATEN = torch.ops.aten
#: Operators that put a part into a copy of a tensor, and the view that is this part.
_VIEWS = {
    _ATEN.slice_scatter.default: _ATEN.slice.Tensor,
    _ATEN.select_scatter.default: _ATEN.select.int,
    _ATEN.diagonal_scatter.default: _ATEN.diagonal.default,
    _ATEN.as_strided_scatter.default: _ATEN.as_strided.default,
}


def keep_parts_apart(graph: fx.Graph) -> None:
    """Make the parts of a concatenation that have another use tensors of their own.

    npugraph_ex computes parts in the memory of the whole, if the dimension is written as 0. What an operator then writes to a
    part is in the whole, too, and a part that is returned shares its memory. The same dimension is counted from the end here.
    """
    for node in graph.find_nodes(op="call_function", target=_ATEN.cat.default):
        parts, dim = node.args[0], node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
        used = any(user is not node for part in parts for user in part.users)
        if dim == 0 and used and node.meta["val"].dim():
            node.args, node.kwargs = (parts, -node.meta["val"].dim()), {}


def write_parts_of_copies(graph: fx.Graph) -> None:
    """Write parts to copies in the place of ``slice_scatter`` and its like.

    npugraph_ex lets operators work in place in a part, drops the ``slice_scatter`` after them, and takes the part for the whole:
    ``y = f(x); y[1:].mul_(2)`` had the gradient of ``y[1:]``, silently where it broadcasts.
    """
    for node in [node for node in graph.nodes if node.target in _VIEWS]:
        base, part, *place = node.args
        view_of = _VIEWS[node.target]
        value = base.meta["val"]
        if view_of is _ATEN.as_strided.default and not (is_contiguous(value) and value.storage_offset() == 0):
            continue  # its part is by the tensor's memory, which a copy does not have
        with graph.inserting_before(node):
            whole = graph.call_function(ge.own_copy(), (base,))
            view = graph.call_function(view_of, (whole, *place), node.kwargs)
            written = graph.call_function(_ATEN.copy_.default, (view, part))
        whole.meta = dict(node.meta)
        args, kwargs = fx.map_arg((view.args, view.kwargs), lambda given: given.meta["val"])
        view.meta = written.meta = {**part.meta, "val": view_of(*args, **kwargs)}
        node.replace_all_uses_with(whole)
        graph.erase_node(node)

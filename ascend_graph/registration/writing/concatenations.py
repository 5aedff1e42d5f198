"""Concatenations in captures: parts that a graph uses elsewhere keep memory of their own."""

from __future__ import annotations

import torch
from torch import fx

_CAT = torch.ops.aten.cat.default


def keep_parts_apart(graph: fx.Graph) -> None:
    """Make the parts of a concatenation that have another use tensors of their own.

    npugraph_ex computes parts in the memory of the whole, if the dimension is written as 0. What an operator then writes to a
    part is in the whole, too, and a part that is returned shares its memory. The same dimension is counted from the end here.
    """
    for node in graph.find_nodes(op="call_function", target=_CAT):
        parts, dim = node.args[0], node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
        used = any(user is not node for part in parts for user in part.users)
        if dim == 0 and used and node.meta["val"].dim():
            node.args, node.kwargs = (parts, -node.meta["val"].dim()), {}

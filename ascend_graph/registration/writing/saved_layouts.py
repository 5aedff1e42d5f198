"""Layout of what a captured graph keeps for its gradient: the one that it was traced with.

A capture has its inputs in contiguous memory. What it computes of a transposed one has other strides than when it was traced, and
the graph of the gradient refuses it.
"""

from __future__ import annotations

import torch
from torch import fx

from ascend_graph.registration.conversion.returned_views import lies_in_an_input
from ascend_graph.registration.writing.base_layouts import LayoutError, computed, is_contiguous
from ascend_graph.registration.writing.input_layouts import with_stride


def keep_saved_layouts(module: fx.GraphModule, forward_returns: int) -> None:
    """Give results that a graph keeps for its gradient the strides that they were traced with.

    Strides of symbols that the graph is not given stay as they are.

    Args:
        module: The graph, which is changed.
        forward_returns: Number of results that the program gets; those that are kept follow.
    """
    graph = module.graph
    (output,) = graph.find_nodes(op="output")
    returned = list(output.args[0])
    for place, node in enumerate(returned):
        value = node.meta.get("val") if isinstance(node, fx.Node) else None
        if place < forward_returns or not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            continue
        if is_contiguous(value) or lies_in_an_input(node):
            continue
        try:
            with graph.inserting_before(output):
                stride = [computed(graph, step, node) for step in value.stride()]
                returned[place] = graph.call_function(with_stride, (node, stride))
        except LayoutError:
            continue
        returned[place].meta["val"] = value
    output.args = (tuple(returned),)
    module.recompile()

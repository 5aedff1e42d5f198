"""Views of values whose dimensions PyTorch has in another order than GE: ``y = (x.t() * 2).t(); y.view(-1)``.

PyTorch computes such a value in the order of what it is made of, and views it so that the dimensions are in order again. GE has
every value contiguously. TorchAir's pass for views takes all of them in one step, by strides: it begins with those of GE, and takes
``view`` to leave the order of the elements as it is, which holds for PyTorch's strides alone.
"""

from __future__ import annotations

import torch
from torch import fx

from ascend_graph.registration.writing.base_layouts import is_contiguous

_ATEN = torch.ops.aten
_ORDERS = (_ATEN.permute.default, _ATEN.transpose.int, _ATEN.t.default)
_SIZES = (_ATEN.view.default, _ATEN.reshape.default)


def keep_order_of_views(graph: fx.Graph) -> None:
    """Compute views of such values from what they are made of: by an operator that TorchAir's pass leaves alone."""
    for node in graph.nodes:
        if node.target in _SIZES and _is_of_another_order(node.args[0]):
            node.target = _ATEN._unsafe_view.default


def _is_of_another_order(node: fx.Node) -> bool:
    """Return whether a node changes the order of dimensions of a value that is not contiguous, and TorchAir's pass takes both."""
    changed = False
    while node.target in (*_ORDERS, *_SIZES):
        changed = changed or node.target in _ORDERS
        node = node.args[0]  # type: ignore[assignment]
    value = node.meta.get("val")
    return changed and isinstance(value, torch.Tensor) and not is_contiguous(value)

"""Pictures of graphs: FX and GE side by side, with shapes, times, source lines and what has no kernel.

``model`` is what a picture is made of, ``page`` writes it, ``dumps`` reads TorchAir's own dumps (both without torch);
``tracing`` compiles a function and looks.
"""

from ascend_graph.checks.picture.dumps import read_dump
from ascend_graph.checks.picture.model import Graph, Node, Pair, PictureError
from ascend_graph.checks.picture.page import Picture

__all__ = ["Graph", "Node", "Pair", "Picture", "PictureError", "read_dump"]

"""Pictures of graphs: FX and GE side by side, with shapes, times, source lines and missing kernels.

``model`` has the data of a picture, ``page`` writes it, ``dumps`` reads TorchAir's own dumps (all without torch);
``tracing`` compiles a function and collects its graphs.
"""

from ascend_graph.pictures.dumps import read_dump
from ascend_graph.pictures.model import Graph, Node, Pair, PictureError
from ascend_graph.pictures.page import Picture

__all__ = ["Graph", "Node", "Pair", "Picture", "PictureError", "read_dump"]

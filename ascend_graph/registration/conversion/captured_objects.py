"""Objects that operators take in captures: a replay runs kernels with the object of the call that was captured.

PyTorch passes instances of TorchScript classes, and of opaque types by reference, as inputs of a graph. TorchAir tells the calls
of a captured graph apart by their sizes alone.
"""

from __future__ import annotations

import torch
from torch import fx
from torch._library.fake_class_registry import FakeScriptObject

from ascend_graph.errors import AscendGraphError


class CapturedObjectError(AscendGraphError):
    """Error of an operator that takes an object, in a capture."""


def check_objects(graph: fx.Graph) -> None:
    """Check that no operator of a capture takes an object that another call may replace or change.

    Raises:
        CapturedObjectError: An operator takes such an object.
    """
    for node in graph.nodes:
        for given in node.all_input_nodes:
            value = given.meta.get("val")
            if isinstance(value, FakeScriptObject | torch.ScriptObject):
                raise CapturedObjectError(
                    f"{node.target}: it takes {given.name}, an object, and a replay of the capture runs it with the object of the first call; "
                    "expected tensors and numbers. Pass what it reads of the object, or call it outside of the compiled function"
                )

"""Devices of compiled graphs: each graph works on one device, and is called with that device in force.

TorchAir captures and runs a graph on the current device's stream, wherever its tensors are. Of tensors on another device, a
capture holds nothing, so that replays leave memory as it is; a GE graph returns tensors of the current device.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from ascend_graph.errors import AscendGraphError
from ascend_graph.registration.conversion.wrapped_graph import WrappedGraph


class DevicesError(AscendGraphError):
    """Error of a graph with tensors of several devices."""


def on_its_device(graph: fx.Graph, compiled: Any) -> Any:
    """Return a compiled graph that makes the device of its tensors the current one while it is called.

    Raises:
        DevicesError: The tensors of the graph are on several devices.
    """
    count = torch.npu.device_count()  # type: ignore[attr-defined]
    found = (
        sorted({device.index for node in graph.nodes for device in _devices(node.meta.get("val"))}) if count > 1 else []
    )
    if len(found) > 1:
        names = ", ".join(f"npu:{index}" for index in found)
        raise DevicesError(
            f"compiled function: its tensors are on {names}, and a graph works on one device; expected one device. Move tensors to "
            "another one outside of the compiled function"
        )
    return _OnDevice(compiled, found[0]) if found else compiled


class _OnDevice(WrappedGraph):
    """Compiled graph that is called with one device in force."""

    def __init__(self, compiled: Any, index: int) -> None:
        super().__init__(compiled)  # a kept program may be loaded for another device
        self._index = index

    def __call__(self, *args: Any) -> Any:
        if torch.npu.current_device() == self._index:  # type: ignore[attr-defined]
            return self._compiled(*args)
        with torch.npu.device(self._index):  # type: ignore[attr-defined]
            return self._compiled(*args)


def _devices(value: Any) -> list[torch.device]:
    values = value if isinstance(value, list | tuple) else (value,)
    return [v.device for v in values if isinstance(v, torch.Tensor) and v.device.type == "npu"]

"""Captures for which kernels are compiled for one shape (``static_kernel_compile``): the graph runs once more for that.

TorchAir runs it on the call's inputs to record what its operators are called with, and captures it then: what it writes to an
input was written twice in the first call, and ``cache.add_(x)`` added twice.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from types import ModuleType
from typing import Any

import torch
from torch import fx

from ascend_graph.import_patches import patch_modules
from ascend_graph.registration.conversion.wrapped_graph import WrappedGraph

#: Function that runs a graph once more, and the modules that call it.
_COMPILE = "compile_static_kernel"
_CALLERS = tuple(f"{package}._acl_concrete_graph.acl_graph" for package in ("torchair", "npugraph_ex"))
#: Positions of the inputs that the graph of the present call writes.
_written: ContextVar[Sequence[int]] = ContextVar("written_inputs", default=())


def recorded_on_copies(compiled: Any, graph: fx.Graph, config: Any) -> Any:
    """Return a capture that writes its inputs once; the same one if it writes none, or no such kernels are asked for."""
    written = _written_inputs(graph) if _compiles_static_kernels(config) else ()
    return RecordedOnCopies(compiled, written) if written else compiled


def _written_inputs(graph: fx.Graph) -> tuple[int, ...]:
    """Return the positions of the inputs that a graph writes."""
    written = {node.args[0] for node in graph.nodes if node.target is torch.ops.aten.copy_.default}
    return tuple(n for n, node in enumerate(graph.find_nodes(op="placeholder")) if node in written)


def _compiles_static_kernels(config: Any) -> bool:
    """Return whether a configuration of either compiler asks for kernels of one shape."""
    captures = getattr(getattr(config, "experimental_config", None), "aclgraph", None)
    return bool(
        getattr(config, "static_kernel_compile", False) or getattr(captures, "_aclnn_static_shape_kernel", False)
    )


class RecordedOnCopies(WrappedGraph):
    """Capture that writes its inputs once: what TorchAir records is run on copies of them.

    Args:
        compiled: The capture.
        written: Positions of the inputs that it writes.
    """

    def __init__(self, compiled: Any, written: Sequence[int]) -> None:
        super().__init__(compiled, tuple(written))
        self._written = tuple(written)
        patch_modules(_PATCHES)

    def __call__(self, *inputs: Any) -> Any:
        token = _written.set(self._written)
        try:
            return self._compiled(*inputs)
        finally:
            _written.reset(token)


def _on_copies(module: ModuleType) -> Iterator[None]:
    yield
    original = getattr(module, _COMPILE, None)
    if original is None:  # a wheel of before such kernels
        return

    @functools.wraps(original)
    def compile_static_kernel(function: Any, *inputs: Any, **options: Any) -> Any:
        written = _written.get()
        return original(function, *(_copy(x) if n in written else x for n, x in enumerate(inputs)), **options)

    setattr(module, _COMPILE, compile_static_kernel)


_PATCHES = dict.fromkeys(_CALLERS, _on_copies)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy with the tensor's strides, also where its elements share memory."""
    whole = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    return whole.copy_(tensor) if not torch._debug_has_internal_overlap(tensor) else tensor.clone()

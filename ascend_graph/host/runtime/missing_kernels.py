"""Missing host kernels of a graph, found before anything of it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ascend_graph.host.runtime.engine.structure import only_looked_at


def lint_graph(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Mapping[str, tuple[str, ...]]:
    """Return the GE operators of a function's graph without a host kernel, all at once; nothing is run.

    The function is traced with its arguments and converted by TorchAir as ``torch.compile`` would, as one static graph.

    Args:
        function: a function or module; the arguments are those that it would be called with.

    Returns:
        The names of the nodes by GE operator; empty if there is a kernel for each.

    Raises:
        Exception: the error of tracing or TorchAir for a function that does not become a graph, as with operators
            without a converter.

    Example:
        ``lint_graph(model, tokens.npu())`` gives ``{"MlaProlog": ("MlaProlog", "MlaProlog_1")}``.
    """
    import torchair

    compiled = torch.compile(function, backend=torchair.get_npu_backend(), dynamic=False, fullgraph=True)
    with only_looked_at() as look:
        try:
            compiled(*args, **kwargs)
        except Exception:  # of whatever class Dynamo and TorchAir make of the engine's refusal to go on
            if not look.graphs:
                raise
    return {type_: tuple(names) for type_, names in look.missing.items()}

"""Graphs that TorchAir makes from a function, collected through its own dumps and passes."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from ascend_graph.environment import is_active
from ascend_graph.pictures.dumps import read_dump
from ascend_graph.pictures.model import Graph, Node, Pair, PictureError
from ascend_graph.pictures.page import Picture

_PLACE = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+), in [^\n]*\n\s*(?P<code>[^\n]*)')


def _pairs(
    ge_graphs: Sequence[Graph], fx_graphs: Sequence[Graph], times: Mapping[bool, Mapping[str, float]]
) -> list[Pair]:
    """Pair each GE graph with its FX graph, with the times of its nodes."""
    pairs = []
    for number, ge in enumerate(ge_graphs):
        fx = fx_graphs[number] if number < len(fx_graphs) else Graph()
        is_backward = any(node.name.startswith("tangents_") for node in fx.nodes)
        ran = times.get(is_backward, {})
        nodes = tuple(
            replace(n, microseconds=ran.get(f"{n.type}: {n.name}"), is_missing=_is_missing(n)) for n in ge.nodes
        )
        pairs.append(Pair("backward" if is_backward else "forward", fx, Graph(nodes)))
    return pairs


def picture(
    function: Callable[..., Any], *args: Any, dynamic: bool = False, run: bool = True, **kwargs: Any
) -> Picture:
    """Return a picture of a function's FX graph and of the GE graph that TorchAir makes from it, side by side.

    The function is compiled as by ``torch.compile``, as one graph. If gradients are required, the picture has the backward
    graph too. On the host runtime each node shows the time of its kernel, or that its kernel is missing.

    Args:
        function: A function or module, called with the given arguments.
        dynamic: If true, sizes are symbols.
        run: If true, run the graph once more for the times of its nodes.

    Returns:
        The picture: print it, or ``save("model.html")``, ``.svg``, ``.txt`` or ``.json``.

    Raises:
        PictureError: TorchAir makes no graph of the function.

    Example:
        ``ascend_graph.picture(model, tokens.npu()).save("model.html")``
    """
    from ascend_graph.dispatch.torchair import torchair

    torchair()  # imports it, or says what is missing
    import torchair as installed

    fx_graphs: list[Graph] = []

    def keep(module: Any, *_: Any, **__: Any) -> None:
        fx_graphs.append(_fx_graph(module))

    error = ""
    with tempfile.TemporaryDirectory(prefix="ascend_graph_picture_") as directory:
        config = installed.CompilerConfig()
        config.debug.graph_dump.type = "pbtxt"
        config.debug.graph_dump.path = directory
        config.post_grad_custom_post_pass = keep
        backend = installed.get_npu_backend(compiler_config=config)
        compiled = torch.compile(function, backend=backend, dynamic=dynamic, fullgraph=True)
        try:
            result = compiled(*args, **kwargs)
            if _tracked(result):
                _backward(compiled(*args, **kwargs))
        except Exception as raised:  # of whatever class Dynamo and TorchAir make of what the engine says
            error = str(raised).strip().partition("\n")[0]
            if not any(Path(directory).iterdir()):
                raise PictureError(
                    f"{_name(function)} cannot be captured as a graph: {type(raised).__name__}: {error}. Correct the "
                    "function: it must compile in one graph"
                ) from raised
        ge_graphs = [read_dump(path) for path in _dumps(Path(directory))]
    if not ge_graphs:
        raise PictureError(f"{_name(function)} cannot be captured as a graph: it must run something on the NPU")
    times: Mapping[bool, Mapping[str, float]] = {}
    if run and not error and is_active():
        times = _times(compiled, args, kwargs)
    pairs = _pairs(ge_graphs, fx_graphs, times)
    return Picture(_name(function), tuple(pairs), error)


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)


def _dumps(directory: Path) -> list[Path]:
    """Return the last dump of each graph in the order of compilation: after TorchAir's own passes if they ran."""
    found: dict[int, Path] = {}
    for kind in ("original", "optimized"):
        for path in directory.glob(f"dynamo_{kind}_graph_*.pbtxt"):
            found[int(path.name.removeprefix(f"dynamo_{kind}_graph_").partition("_")[0])] = path
    return [path for _, path in sorted(found.items())]


def _tracked(result: Any) -> list[torch.Tensor]:
    """Return the results that require a gradient."""
    from torch.utils._pytree import tree_leaves

    return [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]


def _backward(result: Any) -> None:
    tensors = _tracked(result)
    torch.autograd.grad(
        tensors,
        [t for t in _leaves(tensors) if t.requires_grad],
        [torch.ones_like(t) for t in tensors],
        allow_unused=True,
    )


def _leaves(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return the leaf tensors that receive gradients."""
    found: dict[int, torch.Tensor] = {}
    functions = [tensor.grad_fn for tensor in tensors]
    seen: set[Any] = set()
    while functions:
        function = functions.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        if hasattr(function, "variable"):
            found[id(function.variable)] = function.variable
        functions += [following for following, _ in function.next_functions]
    return list(found.values())


def _times(compiled: Callable[..., Any], args: Any, kwargs: Any) -> Mapping[bool, Mapping[str, float]]:
    """Return the microseconds of the nodes by name, backward (True) and forward (False), from PyTorch's profiler."""
    from torch.profiler import ProfilerActivity, profile

    def measured(call: Callable[[], Any]) -> tuple[Any, Mapping[str, float]]:
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            result = call()
        found: dict[str, float] = {}
        for event in profiled.events():
            found[event.name] = found.get(event.name, 0.0) + event.cpu_time_total
        return result, found

    result, forward = measured(lambda: compiled(*args, **kwargs))
    backward = measured(lambda: _backward(result))[1] if _tracked(result) else {}
    return {False: forward, True: backward}


def _is_missing(node: Node) -> bool:
    """Return whether the host runtime has no kernel for a node; on a device this is unknown, so false."""
    if not is_active():
        return False
    from ascend_graph.host import find_kernel, is_structure

    return not is_structure(node.type) and find_kernel(node.type) is None


# --------------------------------------------------------------------------------------------------------------- FX graph


def _fx_graph(module: Any) -> Graph:
    return Graph(tuple(_fx_node(node) for node in module.graph.nodes))


def _fx_node(node: Any) -> Node:
    type_ = node.op if node.op in ("placeholder", "output") else str(node.target)
    found = list(_PLACE.finditer(node.meta.get("stack_trace") or ""))
    source, place = (found[-1]["code"], f"{found[-1]['file']}:{found[-1]['line']}") if found else ("", "")
    inputs = tuple(each.name for each in node.all_input_nodes)
    return Node(node.name, type_, inputs, tuple(_outputs(node.meta.get("val"))), source, place)


def _outputs(value: Any) -> list[str]:
    if isinstance(value, torch.Tensor):
        return [f"{str(value.dtype).removeprefix('torch.')}[{', '.join(map(str, value.shape))}]"]
    if isinstance(value, (tuple, list)):
        return [text for each in value for text in _outputs(each)]
    return [] if value is None else [str(value)]

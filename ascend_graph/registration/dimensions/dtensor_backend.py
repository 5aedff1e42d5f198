"""Backend of ``torch.compile`` for programs with DTensors, made of TorchAir.

PyTorch gives their graphs meshes next to the tensors, and parameters that move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from operator import attrgetter
from typing import Any

import torch
from torch import fx

from ascend_graph.errors import AscendGraphError

#: Compiler as ahead-of-time autograd calls it, from a graph and its inputs to a callable.
Compiler = Callable[[fx.GraphModule, Sequence[Any]], Callable[..., Any]]
#: TorchAir's modes that capture graphs.
CAPTURED = ("reduce-overhead", "npugraph_ex")


def dtensor_backend(compiler_config: Any = None) -> Callable[..., Any]:
    """Return a backend of ``torch.compile`` for programs with DTensors and FSDP2, made of TorchAir's.

    PyTorch 2.13 gives a graph made of DTensors their meshes as inputs, and takes them as outputs. TorchAir knows
    tensors and sizes only: a GE graph fails at its first call, and a captured one cannot be kept. No node reads a mesh,
    so meshes bypass the compiler.

    Inputs that the backward pass needs, and views of them, do so too. FSDP2 frees a parameter after the forward pass
    and gathers it elsewhere before the backward pass, but a captured graph of TorchAir reads and returns the address of
    the capture. Other outputs of captured graphs (``mode="reduce-overhead"`` and ``"npugraph_ex"``) are copied. Without
    that TorchAir returns one tensor object in all calls; autograd sees only the first of its hooks, and FSDP2 gathers
    parameters in hooks.

    Args:
        compiler_config: The configuration for ``torchair.get_npu_backend``; it is not changed.

    Returns:
        A backend: ``torch.compile(model, backend=ascend_graph.dtensor_backend(config), dynamic=False)``.

    Raises:
        AscendGraphError: A node of a graph reads a mesh (``torch.distributed.config.compile_on_one_rank``).
    """
    import torch_npu  # noqa: F401  # torchair can only be imported after it
    import torchair
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    from torchair._utils import get_npu_default_decompositions

    config = torchair.CompilerConfig() if compiler_config is None else deepcopy(compiler_config)
    if config.mode.value in CAPTURED:
        config.debug.aclgraph.enable_output_clone = True
    compiler = partial(passing_by, torchair.get_compiler(config))
    return aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=get_npu_default_decompositions(),
        keep_inference_input_mutations=True,
    )


def passing_by(compiler: Compiler, graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """Compile a graph without inputs other than tensors and numbers, and without outputs that it does not compute."""
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    foreign = {
        n for n, v in enumerate(inputs) if not isinstance(v, torch.Tensor | int | float | torch.SymInt | torch.SymFloat)
    }
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    returned = output.args[0]
    if not isinstance(returned, tuple | list):
        return compiler(graph, inputs)
    #: Groups of meshes; collectives get their names.
    groups = {
        node: value
        for node in graph.graph.nodes
        if node.op == "get_attr"
        and not isinstance(value := attrgetter(node.target)(graph), torch.Tensor | fx.GraphModule)
    }
    given = {n: found for n, r in enumerate(returned) if (found := _given(r, placeholders, groups)) is not None}
    if not foreign and not given:
        return compiler(graph, inputs)
    kept = fx.Graph()
    nodes: dict[fx.Node, fx.Node] = {}
    for node in graph.graph.nodes:
        if node in (placeholders[n] for n in foreign):
            readers = [user.name for user in node.users if user is not output]
            if readers:
                raise AscendGraphError(
                    f"TorchAir takes tensors and numbers; {', '.join(readers)} of the graph read its input {node.name}, a "
                    f"{type(inputs[placeholders.index(node)]).__name__}: compile what lies between, of the local tensors"
                )
        elif node in groups and all(user is output for user in node.users):
            continue
        elif node is output:
            computed = (nodes.get(r, r) for n, r in enumerate(returned) if n not in given)
            nodes[node] = kept.output(type(returned)(computed))
            nodes[node].meta = dict(node.meta)
        else:
            nodes[node] = kept.node_copy(node, lambda n: nodes[n])
    smaller = fx.GraphModule(graph, kept)  # with the attributes that the nodes read
    smaller.meta.update(graph.meta)
    run = compiler(smaller, [v for n, v in enumerate(inputs) if n not in foreign])

    def call(*args: Any) -> Any:
        results = iter(run(*(v for n, v in enumerate(args) if n not in foreign)))
        return [given[n](args) if n in given else next(results) for n in range(len(returned))]

    return call


def _given(
    result: Any, placeholders: Sequence[fx.Node], groups: Mapping[fx.Node, Any]
) -> Callable[[Sequence[Any]], Any] | None:
    """Return a function from the inputs to an output that is not computed, or None.

    Such an output is an input, a view of an input with known sizes, or a group.
    """
    if result in groups:
        group = groups[result]
        return lambda args: group
    if result in placeholders:
        at = placeholders.index(result)
        return lambda args: args[at]
    view = _of_known_sizes(result)
    if view is None:
        return None
    for at, placeholder in enumerate(placeholders):
        base = _of_known_sizes(placeholder)
        if base is not None and _storage(base) == _storage(view) and _kind(base) == _kind(view):
            size, stride, offset = view.size(), view.stride(), view.storage_offset() - base.storage_offset()
            return lambda args: args[at].as_strided(size, stride, args[at].storage_offset() + offset)
    return None


def _of_known_sizes(node: Any) -> torch.Tensor | None:
    """Return the tensor of a node if its sizes are numbers, or None."""
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    sizes = (*value.size(), *value.stride(), value.storage_offset())
    return value if all(isinstance(size, int) for size in sizes) else None


def _kind(tensor: torch.Tensor) -> tuple[torch.dtype, bool, bool]:
    return tensor.dtype, tensor.is_conj(), tensor.is_neg()


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)

"""TorchAir as the compiler of programs with DTensors, whose graphs PyTorch gives the meshes beside the tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import fx

from ascend_graph.errors import AscendGraphError

#: What ahead-of-time autograd calls: a graph and its inputs, to something that runs.
Compiler = Callable[[fx.GraphModule, Sequence[Any]], Callable[..., Any]]


def dtensor_backend(compiler_config: Any = None) -> Callable[..., Any]:
    """A backend of ``torch.compile`` for programs with DTensors: TorchAir's, with the meshes kept out of its graphs.

    PyTorch 2.13 gives a graph that is made of DTensors their meshes as inputs, and takes them as outputs. TorchAir knows tensors and
    sizes only: a GE graph fails at its first call, a captured one cannot be kept. No node reads a mesh, so they are passed by.

    Args:
        compiler_config: What ``torchair.get_npu_backend`` takes.

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

    config = torchair.CompilerConfig() if compiler_config is None else compiler_config
    compiler = partial(without_meshes, torchair.get_compiler(config))
    return aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=get_npu_default_decompositions(),
        keep_inference_input_mutations=True,
    )


def without_meshes(compiler: Compiler, graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """What a compiler makes of a graph whose inputs that are neither tensors nor numbers pass it by."""
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    passing = [
        n for n, v in enumerate(inputs) if not isinstance(v, torch.Tensor | int | float | torch.SymInt | torch.SymFloat)
    ]
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    returned = output.args[0]
    if not passing or not isinstance(returned, tuple | list):
        return compiler(graph, inputs)
    #: Which output is which input that passes by.
    places = {n: placeholders.index(r) for n, r in enumerate(returned) if r in placeholders}
    places = {n: at for n, at in places.items() if at in passing}
    smaller = fx.GraphModule(graph, graph.graph.__class__())
    nodes: dict[fx.Node, fx.Node] = {}
    for node in graph.graph.nodes:
        if node in (placeholders[n] for n in passing):
            readers = [user.name for user in node.users if user is not output]
            if readers:
                raise AscendGraphError(
                    f"TorchAir takes tensors and numbers; {', '.join(readers)} of the graph read its input {node.name}, a "
                    f"{type(inputs[placeholders.index(node)]).__name__}: compile what lies between, of the local tensors"
                )
        elif node.op == "get_attr" and not node.users:
            continue  # the group of a mesh, whose name is what collectives are given
        elif node is output:
            smaller.graph.output(type(returned)(nodes.get(r, r) for n, r in enumerate(returned) if n not in places))
        else:
            nodes[node] = smaller.graph.node_copy(node, lambda n: nodes[n])
    smaller.recompile()
    smaller.meta.update(graph.meta)
    run = compiler(smaller, [v for n, v in enumerate(inputs) if n not in passing])

    def call(*args: Any) -> Any:
        results = iter(run(*(v for n, v in enumerate(args) if n not in passing)))
        return [args[places[n]] if n in places else next(results) for n in range(len(returned))]

    return call

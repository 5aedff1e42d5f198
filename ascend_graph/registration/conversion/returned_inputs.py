"""Results of captured graphs that lie in inputs: made outside of the capture, from the tensors of each call.

TorchAir captures such an input at the address of the first call's tensor, and copies the tensors of later calls into it: what the
first caller holds changes, and earlier results with it. Training does so with what it keeps of the inputs for the gradient.
Results that are no tensors, as absent outputs, stay outside, too: a second capture of a graph cannot give None back.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx


def compile_with_returned_inputs(
    compile_graph: Callable[[fx.GraphModule, Sequence[Any]], Any], module: fx.GraphModule, inputs: Sequence[Any]
) -> Any:
    """Compile a graph for captures without constants and results that lie in its inputs, and give them back at each call.

    Args:
        compile_graph: TorchAir's compiler: a graph and example inputs to what is called with the inputs.
        module: The graph, as ahead-of-time autograd gives it.
        inputs: Its example inputs.
    """
    (output,) = module.graph.find_nodes(op="output")
    returned: list[Any] = list(output.args[0])
    outside = [n for n, node in enumerate(returned) if not isinstance(node, fx.Node) or lies_in_an_input(node)]
    if not outside:
        return compile_graph(module, inputs)
    inside = [n for n in range(len(returned)) if n not in outside]
    made = _returning(module, [returned[n] for n in outside], pure=True)
    captured = _returning(module, [returned[n] for n in inside])
    given = _without_unread_inputs(captured)
    compiled = compile_graph(captured, [inputs[n] for n in given])
    return _WithReturnedInputs(compiled, given, made, inside + outside)


class _WithReturnedInputs:
    """Compiled graph whose results that lie in inputs are made from the inputs of each call.

    Attributes:
        given: Positions of the inputs that the compiled graph takes.
        places: Positions of its results, and then of those that ``made`` returns.
    """

    def __init__(self, compiled: Any, given: list[int], made: fx.GraphModule, places: list[int]) -> None:
        self._compiled, self._given, self._places = compiled, given, places
        self._graph, self._make = made.graph, made.forward

    def __call__(self, *inputs: Any) -> list[Any]:
        captured = self._compiled(*[inputs[n] for n in self._given])
        return _in_order(self._places, [*captured, *self._make(*inputs)])

    def get_code(self, *args: Any, **kwargs: Any) -> Any:
        """Return the program that TorchAir keeps of the graph (``cache_compile``), with these results."""
        code = self._compiled.get_code(*args, **kwargs)
        if not isinstance(code, str):
            return code
        return f"""{code}
import torch
{self._graph.python_code("self").src.replace("def forward(", "def _make(", 1)}
_captured = kernel
def kernel(*inputs):
    results = [*_captured(*[inputs[n] for n in {self._given}]), *_make(None, *inputs)]
    return [results[n] for n in {_in_order(self._places, range(len(self._places)))}]
"""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)


def _in_order(places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """Return values by their places.

    >>> _in_order([2, 0, 1], "abc")
    ['b', 'c', 'a']
    """
    return [value for _, value in sorted(zip(places, values, strict=True), key=operator.itemgetter(0))]


def lies_in_an_input(node: Any) -> bool:
    """Return whether a tensor is an input, or is made of one by views alone."""
    while isinstance(node, fx.Node) and node.op == "call_function":
        call: Any = node.args[0] if node.target is operator.getitem else node
        target, source = call.target, call.args[0] if call.args else None
        if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
            return False
        if not isinstance(source, fx.Node) or not _share_memory(source, node):
            return False
        node = source
    return isinstance(node, fx.Node) and node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor)


def _share_memory(*nodes: fx.Node) -> bool:
    """Return whether nodes have the same memory; of several tensors, the first one counts."""
    values = [node.meta.get("val") for node in nodes]
    tensors: list[Any] = [value[0] if isinstance(value, list | tuple) and value else value for value in values]
    if not all(isinstance(tensor, torch.Tensor) and torch._C._has_storage(tensor) for tensor in tensors):
        return False
    return len({tensor.untyped_storage()._cdata for tensor in tensors}) == 1


def _returning(module: fx.GraphModule, returned: list[Any], *, pure: bool = False) -> fx.GraphModule:
    """Return a copy of a graph with other results; a pure one computes nothing else."""
    graph = fx.Graph()
    nodes: dict[fx.Node, fx.Node] = {}
    needed = _sources(returned)
    for node in module.graph.nodes:
        if node.op == "output":
            made = graph.output(tuple(nodes[one] if isinstance(one, fx.Node) else one for one in returned))
        elif not pure or node.op == "placeholder" or node in needed:
            made = nodes[node] = graph.node_copy(node, lambda n: nodes[n])
        else:
            continue
        made.meta = dict(node.meta)
    copy = fx.GraphModule(module, graph)
    copy.meta.update(module.meta)
    return copy


def _sources(nodes: list[Any]) -> set[fx.Node]:
    found: set[fx.Node] = set()
    todo = [node for node in nodes if isinstance(node, fx.Node)]
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += node.all_input_nodes
    return found


def _without_unread_inputs(module: fx.GraphModule) -> list[int]:
    """Take tensors that nothing reads out of a graph's inputs, and return the positions of those that stay.

    A capture copies its inputs, read or not, into tensors of the sizes that it was captured with.
    """
    given = []
    positions = {node: n for n, node in enumerate(module.graph.find_nodes(op="placeholder"))}
    for node in reversed(module.graph.nodes):
        if not node.users and lies_in_an_input(node):
            module.graph.erase_node(node)
        elif node in positions:
            given.append(positions[node])
    module.recompile()
    return sorted(given)

"""Results of compiled graphs that are views of inputs, or of other results: made outside of the graph, at each call.

TorchAir captures an input that is returned at the address of the first call's tensor, and copies the tensors of later calls into
it: what the first caller holds changes, and earlier results with it. Training does so with what it keeps of the inputs for the
gradient. Results that are no tensors, as absent outputs, stay outside, too: a second capture of a graph cannot give None back.

A GE graph returns a view of an input by the offset of the first call's tensor, and a view of another result as a tensor of its own
with offset 0. Training with dynamic sizes makes the latter anew of the tensor that it lies in, by that offset.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from ascend_graph.registration.conversion.lazy_inputs import may_be_lazy
from ascend_graph.registration.conversion.wrapped_graph import WrappedGraph


def compile_with_returned_inputs(
    compile_graph: Callable[[fx.GraphModule, Sequence[Any]], Any], module: fx.GraphModule, inputs: Sequence[Any]
) -> Any:
    """Compile a graph for captures without constants and results that lie in its inputs, and give them back at each call.

    Args:
        compile_graph: TorchAir's compiler: a graph and example inputs to what is called with the inputs.
        module: The graph, as ahead-of-time autograd gives it.
        inputs: Its example inputs.
    """
    outside = [n for n, node in enumerate(_returned(module)) if not isinstance(node, fx.Node) or lies_in_an_input(node)]

    def compile_captured(captured: fx.GraphModule) -> tuple[Any, list[int]]:
        given = _without_unread_inputs(captured)
        return compile_graph(captured, [inputs[n] for n in given]), given

    return _compile_without(outside, compile_captured, module) if outside else compile_graph(module, inputs)


def compile_with_returned_views(
    compile_graph: Callable[[fx.GraphModule, Sequence[Any]], Any],
    module: fx.GraphModule,
    inputs: Sequence[Any],
    returns: int,
) -> Any:
    """Compile a graph for GE without results that are views of inputs, or of other results, and give them back at each call.

    Args:
        compile_graph: TorchAir's compiler: a graph and example inputs to what is called with the inputs.
        module: The graph, as ahead-of-time autograd gives it.
        inputs: Its example inputs.
        returns: Number of results that the program gets; those that are kept for the gradient follow them.
    """
    returned = _returned(module)
    bases: list[fx.Node] = []
    outside = []
    for n, node in enumerate(returned):
        root = _root(node)
        if lies_in_an_input(node):  # what is kept for the gradient is read by GE, which does not see a bit
            outside += [n] if n < returns or not may_be_lazy(root) else []
        elif n < returns and root in returned and _is_view_by_sizes(node, root):
            outside.append(n)
            bases += [] if root in bases else [root]

    def compile_ge(module: fx.GraphModule) -> tuple[Any, Sequence[int]]:
        return compile_graph(module, inputs), range(len(inputs))

    return _compile_without(outside, compile_ge, module, bases) if outside else compile_graph(module, inputs)


def _returned(module: fx.GraphModule) -> list[Any]:
    (output,) = module.graph.find_nodes(op="output")
    return list(output.args[0])


def _compile_without(
    outside: Sequence[int],
    compile_rest: Callable[[fx.GraphModule], tuple[Any, Sequence[int]]],
    module: fx.GraphModule,
    bases: Sequence[fx.Node] = (),
) -> _WithReturnedViews:
    """Compile a graph without some of its results, which are made at each call.

    Args:
        outside: Positions of these results, views of inputs or of ``bases``.
        compile_rest: Compiles the graph of the other results; also returns the positions of the inputs that it takes.
        module: The graph.
        bases: Values that the other results have.
    """
    returned = _returned(module)
    inside = [n for n in range(len(returned)) if n not in outside]
    made = _returning(module, [returned[n] for n in outside], pure=True, given=bases)
    compiled, given = compile_rest(_returning(module, [returned[n] for n in inside]))
    positions = [next(k for k, n in enumerate(inside) if returned[n] is base) for base in bases]
    return _WithReturnedViews(compiled, given, made, positions, [*inside, *outside])


class _WithReturnedViews(WrappedGraph):
    """Compiled graph whose results that are views of inputs, or of other results, are made at each call.

    Attributes:
        given: Positions of the inputs that the compiled graph takes.
        bases: Positions of the results that ``made`` takes, after all inputs.
        places: Positions of its results, and then of those that ``made`` returns.
    """

    def __init__(
        self, compiled: Any, given: Sequence[int], made: fx.GraphModule, bases: Sequence[int], places: list[int]
    ) -> None:
        super().__init__(compiled)
        self._given, self._bases, self._places = list(given), list(bases), places
        self._graph, self._make = made.graph, made.forward

    def __call__(self, *inputs: Any) -> list[Any]:
        results = self._compiled(*[inputs[n] for n in self._given])
        made = self._make(*inputs, *[results[n] for n in self._bases])
        return _in_order(self._places, [*results, *made])

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
    results = _captured(*[inputs[n] for n in {self._given}])
    results = [*results, *_make(None, *inputs, *[results[n] for n in {self._bases}])]
    return [results[n] for n in {_in_order(self._places, range(len(self._places)))}]
"""


def _in_order(places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """Return values by their places.

    >>> _in_order([2, 0, 1], "abc")
    ['b', 'c', 'a']
    """
    return [value for _, value in sorted(zip(places, values, strict=True), key=operator.itemgetter(0))]


def lies_in_an_input(node: Any) -> bool:
    """Return whether a tensor is an input, or is made of one by views alone."""
    root = _root(node)
    return isinstance(root, fx.Node) and root.op == "placeholder" and isinstance(root.meta.get("val"), torch.Tensor)


def _root(node: Any) -> Any:
    """Return the node that makes a value, behind views."""
    while isinstance(node, fx.Node) and node.op == "call_function":
        call: Any = node.args[0] if node.target is operator.getitem else node
        target, source = call.target, call.args[0] if call.args else None
        if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
            return node
        if not isinstance(source, fx.Node) or not _share_memory(source, node):
            return node
        node = source
    return node


def _is_view_by_sizes(view: fx.Node, base: fx.Node) -> bool:
    """Return whether a view is made of a value and of sizes, some of them symbols, alone."""
    if view is base:
        return False
    sources = [node for node in _sources([view], [base]) if node is not base]
    numbers = [node for node in sources if isinstance(node.meta.get("val"), int | torch.SymInt)]
    return bool(numbers) and all(node in numbers or _share_memory(node, base) for node in sources)


def _share_memory(*nodes: fx.Node) -> bool:
    """Return whether nodes have the same memory; of several tensors, the first one counts."""
    values = [node.meta.get("val") for node in nodes]
    tensors: list[Any] = [value[0] if isinstance(value, list | tuple) and value else value for value in values]
    if not all(isinstance(tensor, torch.Tensor) and torch._C._has_storage(tensor) for tensor in tensors):
        return False
    return len({tensor.untyped_storage()._cdata for tensor in tensors}) == 1


def _returning(
    module: fx.GraphModule, returned: list[Any], *, pure: bool = False, given: Sequence[fx.Node] = ()
) -> fx.GraphModule:
    """Return a copy of a graph with other results; a pure one computes nothing else, and takes ``given`` values, too."""
    graph = fx.Graph()
    nodes: dict[fx.Node, fx.Node] = {}
    needed = _sources(returned, given)
    inputs = module.graph.find_nodes(op="placeholder")
    for node in [*inputs, *given, *(node for node in module.graph.nodes if node not in (*inputs, *given))]:
        if node.op == "output":
            made = graph.output(tuple(nodes[one] if isinstance(one, fx.Node) else one for one in returned))
        elif node in given:
            made = nodes[node] = graph.placeholder(node.name)
        elif not pure or node.op == "placeholder" or node in needed:
            made = nodes[node] = graph.node_copy(node, lambda n: nodes[n])
        else:
            continue
        made.meta = dict(node.meta)
    copy = fx.GraphModule(module, graph)
    copy.meta.update(module.meta)
    return copy


def _sources(nodes: list[Any], given: Sequence[fx.Node] = ()) -> set[fx.Node]:
    """Return what nodes are made of, with themselves; what ``given`` values are made of is left out."""
    found: set[fx.Node] = set()
    todo = [node for node in nodes if isinstance(node, fx.Node)]
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += [] if node in given else node.all_input_nodes
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

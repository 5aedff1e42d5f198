"""Layout of new tensors that operators write in captures: the one that the graph was traced with.

A capture copies each input that it does not write into contiguous memory. PyTorch copies what an operator writes by
``as_strided``, with the strides that it had when the graph was traced: if it is an input, or computed from one, it would read
other elements.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from ascend_graph.dispatch.torchair import register_converter, torchair
from ascend_graph.errors import AscendGraphError
from ascend_graph.registration.writing.mutation import is_mutation, offsets_of_views
from ascend_graph.registration.writing.value_copies import source_of_copy, storage_of


class LayoutError(AscendGraphError):
    """Error of a tensor in a capture whose layout cannot be kept."""


class OverlappingInputsError(AscendGraphError):
    """Error of a written input that overlaps with another, in a capture whose sizes change."""


def check_input_sizes(graph: fx.Graph) -> None:
    """Check that a capture is given each symbol of its inputs' sizes, by which it tells calls apart.

    Raises:
        OverlappingInputsError: PyTorch gives the graph the memory that two inputs are views of, and not its size.
    """
    values = [node.meta.get("val") for node in graph.nodes if node.op == "placeholder"]
    given: set[Any] = set().union(*(v.node.expr.free_symbols for v in values if isinstance(v, torch.SymInt)))
    for value in values:
        sizes = [*value.shape, *value.stride()] if isinstance(value, torch.Tensor) else []
        unknown = set().union(*(n.node.expr.free_symbols for n in sizes if isinstance(n, torch.SymInt))) - given
        if unknown:
            raise OverlappingInputsError(
                f"input of size {tuple(value.shape)}: it is the memory of two inputs that overlap, of which one is written, and captures "
                "with dynamic sizes are not given its size; expected inputs that are apart. Pass the whole tensor, and take the parts inside "
                "of the compiled function, or compile it with dynamic=False"
            )


_library = torch.library.Library("ascend_graph", "FRAGMENT")
_library.define("in_layout(Tensor x, SymInt[] stride) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))


def _in_layout(x: torch.Tensor, stride: Sequence[int], *, copied: bool = True) -> torch.Tensor:
    made = torch.empty_strided(x.shape, stride, dtype=x.dtype, device=x.device)
    return made.copy_(x) if copied else made


_library.impl("in_layout", _in_layout, "CompositeExplicitAutograd")
torch.library.register_fake(
    "ascend_graph::in_layout", lambda x, stride: _in_layout(x, stride, copied=False), lib=_library
)


#: Operator of compiled graphs: a copy with other strides.
in_layout = torch.ops.ascend_graph.in_layout.default


@functools.lru_cache(maxsize=1)
def _convert_copies() -> None:
    """Register the converter of the copy: GE has every tensor contiguous."""
    register_converter(in_layout, lambda x, stride, meta_outputs=None: torchair().raw.TensorMove(x), own=True)


#: Copies that passes drop where sizes and strides are those of the source.
_COPIES = (torch.ops.aten.clone.default, torch.ops.aten._to_copy.default, torch.ops.aten.copy.default)


def keep_base_layouts(graph: fx.Graph) -> None:
    """Give new tensors that operators write the strides that they were traced with.

    Raises:
        LayoutError: Strides are symbols that the graph does not have.
    """
    writes_inputs = any(
        node.target is torch.ops.aten.copy_.default and node.args[0].op == "placeholder" for node in graph.nodes
    )
    for calls in _calls_by_value(graph):
        base, places = _base_and_places(calls)
        value = base.meta.get("val")
        if base.op != "call_function" or not isinstance(value, torch.Tensor):
            continue
        # It may be computed in an input, whose offset it has not in the trace.
        moved = writes_inputs and (any(places) or _is_view(base))
        if base.target in _COPIES or not is_contiguous(value) or moved:
            _count_from_the_start(graph, calls)
            _lay_out(graph, calls)


def keep_layouts_of_handed_on(graph: fx.Graph) -> None:
    """Copy bases of GE graphs for which TorchAir hands on another tensor: a view by its place in memory is of the copy.

    Views of all bases are counted from where these start: GE's tensors have the memory to themselves.

    Raises:
        LayoutError: Strides are symbols that the graph does not have.
    """
    for calls in _calls_by_value(graph):
        base, places = _base_and_places(calls)
        if any(places):
            _count_from_the_start(graph, calls)
            if source_of_copy(base) is not None:
                _convert_copies()
                _lay_out(graph, calls)


#: Calls that write one value, one after the other, with its position among the bases of each.
_Calls = list[tuple[fx.Node, int]]


def _calls_by_value(graph: fx.Graph) -> list[_Calls]:
    """Return the calls that write each value."""
    found: dict[tuple[fx.Node, int], _Calls] = {}
    for writer in filter(is_mutation, graph.nodes):
        for n in range(len(_bases(writer))):
            found.setdefault(_first_call(writer, n), []).append((writer, n))
    return list(found.values())


def _base_and_places(calls: _Calls) -> tuple[fx.Node, list[list[str]]]:
    """Return the value that the first call gets, and the names of the offsets by which each call describes a view of it."""
    writer, n = calls[0]
    return _bases(writer)[n], [
        [name for name, at in offsets_of_views(call.kwargs).items() if at == k] for call, k in calls
    ]


def _lay_out(graph: fx.Graph, calls: _Calls) -> None:
    """Give calls a copy of the value that they write, with the strides that it was traced with."""
    writer, n = calls[0]
    bases = _bases(writer)
    bases[n] = _laid_out(graph, writer, bases[n])
    writer.kwargs = {**writer.kwargs, "_all_bases": bases}


def _count_from_the_start(graph: fx.Graph, calls: _Calls) -> None:
    """Count the offsets of written views from the start of the value."""
    base, places = _base_and_places(calls)
    start = base.meta["val"].storage_offset()
    for (call, _), names in zip(calls, places, strict=True):
        for name in names:
            given: Any = call.kwargs[name]
            value = given.meta["val"] if isinstance(given, fx.Node) else given
            with graph.inserting_before(call):
                call.kwargs = {**call.kwargs, name: computed(graph, value - start, base)}


def _first_call(writer: fx.Node, n: int) -> tuple[fx.Node, int]:
    """Return the first call that wrote a base of a call, whose new value the next one got, and so on, with its position there."""
    while _is_written(base := _bases(writer)[n]):
        given: Any = base.args
        writer, position = given
        n = position - (len(writer.meta["val"]) - len(_bases(writer)))
    return writer, n


def _bases(writer: fx.Node) -> list[fx.Node]:
    bases: Any = writer.kwargs["_all_bases"]
    return list(bases)


def placed_inputs(graph: fx.Graph) -> dict[int, int]:
    """Return the traced offsets of inputs of which calls write views that are described by their place in memory."""
    positions = {node: n for n, node in enumerate(graph.find_nodes(op="placeholder"))}
    found = {}
    for calls in _calls_by_value(graph):
        base, places = _base_and_places(calls)
        if base in positions and any(places) and isinstance(offset := base.meta["val"].storage_offset(), int):
            found[positions[base]] = offset
    return found


def _is_view(base: fx.Node) -> bool:
    """Return whether a tensor is a view of what it is made of."""
    storage = storage_of(base)
    return storage is not None and any(storage_of(node) == storage for node in base.all_input_nodes)


def _laid_out(graph: fx.Graph, writer: fx.Node, base: fx.Node) -> fx.Node:
    """Return a copy of a base with the strides that it was traced with."""
    value = base.meta["val"]
    with graph.inserting_before(writer):
        stride = [computed(graph, step, base) for step in value.stride()]
        made = graph.call_function(in_layout, (base, stride))
    with value.fake_mode:
        made.meta["val"] = _in_layout(value, value.stride(), copied=False)
    return made


def _is_written(base: fx.Node) -> bool:
    """Return whether a node is the new value of a base of an earlier call, which has its layout."""
    return base.target is operator.getitem and isinstance(base.args[0], fx.Node) and is_mutation(base.args[0])


def is_contiguous(value: torch.Tensor) -> bool:
    """Return whether a traced tensor is contiguous for all of its sizes."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true, sym_eq

    steps: list[Any] = [1] if value.dim() else []
    for size in reversed(value.shape[1:]):
        steps.append(steps[-1] * size)
    return statically_known_true(sym_eq(tuple(value.stride()), tuple(reversed(steps))))


def computed(graph: fx.Graph, value: Any, owner: fx.Node) -> Any:
    """Return a number as an argument of a node: symbols are read from the graph's inputs.

    Raises:
        LayoutError: The graph has no input with a symbol of it.
    """
    if not isinstance(value, torch.SymInt):
        return value
    from torch.utils._sympy.interp import sympy_interp
    from torch.utils._sympy.reference import PythonReferenceAnalysis

    inputs = {
        node.meta["val"].node.expr: fx.Proxy(node, fx.proxy.GraphAppendingTracer(graph))
        for node in graph.nodes
        if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.SymInt)
    }
    expression = value.node.expr
    if lacking := [str(symbol) for symbol in expression.free_symbols if symbol not in inputs]:
        raise LayoutError(
            f"{owner.name}: its strides, or the places of its parts, which the graph goes by, have the symbols {', '.join(lacking)}, "
            "which are not among the inputs; expected contiguous inputs, or fixed sizes. Pass .contiguous(), or compile with dynamic=False"
        )
    known = set(graph.nodes)
    made = sympy_interp(PythonReferenceAnalysis, inputs, expression)
    for node in graph.nodes:
        if node not in known:
            node.meta["val"] = node.target(*(a.meta["val"] if isinstance(a, fx.Node) else a for a in node.args))
    return made.node if isinstance(made, fx.Proxy) else made

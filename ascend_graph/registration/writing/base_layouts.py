"""Layout of new tensors that operators write in captures: the one that the graph was traced with.

A capture copies each input that it does not write into contiguous memory. PyTorch copies what an operator writes by
``as_strided``, with the strides that it had when the graph was traced: if it is an input, or computed from one, it would read
other elements.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import fx

from ascend_graph.errors import AscendGraphError
from ascend_graph.registration.writing.mutation import is_mutation


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


#: Copies that passes drop where sizes and strides are those of the source.
_COPIES = (torch.ops.aten.clone.default, torch.ops.aten._to_copy.default, torch.ops.aten.copy.default)


def keep_base_layouts(graph: fx.Graph, writers: Iterable[fx.Node]) -> None:
    """Give new tensors that calls of ``writers`` write the strides that they were traced with.

    Raises:
        LayoutError: Strides are symbols that the graph does not have.
    """
    for writer in writers:
        given: Any = writer.kwargs["_all_bases"]
        bases = [_in_its_layout(graph, writer, base) for base in given]
        writer.kwargs = {**writer.kwargs, "_all_bases": bases}


def _in_its_layout(graph: fx.Graph, writer: fx.Node, base: fx.Node) -> fx.Node:
    value = base.meta.get("val")
    if base.op != "call_function" or not isinstance(value, torch.Tensor) or _is_written(base):
        return base
    if base.target not in _COPIES and is_contiguous(value):
        return base
    with graph.inserting_before(writer):
        stride = [computed(graph, step, base) for step in value.stride()]
        made = graph.call_function(torch.ops.ascend_graph.in_layout.default, (base, stride))
    with value.fake_mode:  # type: ignore[attr-defined]
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
            f"{owner.name}: an operator writes to this tensor in a capture, and its strides have the symbols {', '.join(lacking)}, which are not "
            "among the inputs; expected contiguous inputs, or fixed sizes. Pass .contiguous(), or compile with dynamic=False"
        )
    known = set(graph.nodes)
    made = sympy_interp(PythonReferenceAnalysis, inputs, expression)
    for node in graph.nodes:
        if node not in known:
            node.meta["val"] = node.target(*(a.meta["val"] if isinstance(a, fx.Node) else a for a in node.args))
    return made.node if isinstance(made, fx.Proxy) else made

"""Layout of inputs of a capture that authors' kernels read: the one that eager calls have.

A capture has its inputs in contiguous memory. A kernel that goes by strides, or by the address alone, gets another tensor than in
an eager call: the values of ``op(w.t())`` are others, without a word.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import fx

from ascend_graph.errors import AscendGraphError
from ascend_graph.registration.registered import registry
from ascend_graph.registration.writing.base_layouts import LayoutError, computed, is_contiguous
from ascend_graph.registration.writing.layouts import traced_layout
from ascend_graph.registration.writing.mutation import is_mutation
from ascend_graph.registration.writing.value_copies import is_input


class WrittenWindowsError(AscendGraphError):
    """Error of an input whose own elements share memory, and of which ATen writes a part, in a GE graph."""


def check_written_inputs(graph: fx.Graph) -> None:
    """Check that no element of an input that a GE graph writes has the memory of another.

    Raises:
        WrittenWindowsError: GE would write one of these elements, and leave the others as they are.
    """
    for node in graph.nodes:
        if node.target is not torch.ops.aten.copy_.default or not is_input(node.args[0]):
            continue
        traced = traced_layout(node.args[0].meta["val"])
        if traced is not None and 0 not in traced.size and _has_windows(traced.size, traced.stride):
            raise WrittenWindowsError(
                f"input of size {traced.size} and strides {traced.stride}: it is written, and several of its elements are one in memory, which GE "
                "holds apart; expected elements apart from each other. Pass .contiguous() and copy_ it back, or compile with "
                'backend="npugraph_ex"'
            )


_library = torch.library.Library("ascend_graph", "FRAGMENT")
_library.define("with_stride(Tensor(a) x, SymInt[] stride) -> Tensor(a)", tags=(torch.Tag.pt2_compliant_tag,))


def _with_stride(x: torch.Tensor, stride: Sequence[int]) -> torch.Tensor:
    """Return the tensor, or a copy if it has other strides; the tensor, too, if windows of it would overlap."""
    if x.stride() == tuple(stride) or _has_windows(x.shape, stride):
        return x
    size = [min(n, 1) if step == 0 else n for n, step in zip(x.shape, stride, strict=True)]
    made = torch.empty_strided(size, stride, dtype=x.dtype, device=x.device)
    return made.copy_(x[tuple(slice(n) for n in size)]).expand(x.shape)


def _has_windows(size: Sequence[int], stride: Sequence[int]) -> bool:
    """Return whether elements share memory other than by a dimension that repeats them.

    >>> _has_windows((3, 4), (1, 3)), _has_windows((3, 4), (0, 1)), _has_windows((3, 4), (2, 1))
    (False, False, True)
    """
    reach = 0
    for step, n in sorted((step, n) for step, n in zip(stride, size, strict=True) if n > 1 and step):
        if step <= reach:
            return True
        reach += (n - 1) * step
    return False


_library.impl("with_stride", _with_stride, "CompositeExplicitAutograd")
torch.library.register_fake(
    "ascend_graph::with_stride",
    lambda x, stride: torch.empty_strided(x.shape, stride, dtype=x.dtype, device=x.device),
    lib=_library,
)
#: Operator of captures: a tensor with other strides.
with_stride = torch.ops.ascend_graph.with_stride.default


def _has_own_kernel(node: fx.Node) -> bool:
    """Return whether a node calls a registered operator that does not call an aclnn function, which goes by strides."""
    target = node.args[0] if is_mutation(node) else node.target
    found = registry.get(target.name()) if isinstance(target, torch._ops.OpOverload) else None
    return found is not None and found.call is None


def keep_input_layouts(module: fx.GraphModule) -> None:
    """Give inputs that an author's kernel depends on the strides that they were traced with, and then its results.

    Inputs that the graph writes keep them by themselves. Strides of symbols that the graph is not given stay as they are.

    Args:
        module: The graph, which is changed.
    """
    graph = module.graph
    kernels = list(filter(_has_own_kernel, graph.nodes))
    needed: set[fx.Node] = set(kernels)
    for node in reversed(graph.nodes):
        if any(user in needed for user in node.users):
            needed.add(node)
    written = {node.args[0] for node in graph.nodes if node.target is torch.ops.aten.copy_.default}
    inputs = graph.find_nodes(op="placeholder")
    strided = [
        node
        for node in inputs
        if node in needed - written and _is_strided(node.meta.get("val")) and not is_contiguous(node.meta["val"])
    ]
    for node in strided:
        _keep_stride(graph, node, inputs[-1])
    for node in kernels if strided else ():
        # A kernel that makes its results like its arguments would give others than its meta function says.
        for result in _results(node):
            _keep_stride(graph, result, result)
    module.recompile()


def _is_strided(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


def _keep_stride(graph: fx.Graph, node: fx.Node, last: fx.Node) -> None:
    """Make users of a node read it with the strides that it was traced with, from after ``last`` on."""
    value = node.meta["val"]
    try:
        with graph.inserting_before(last.next):
            stride = [computed(graph, step, node) for step in value.stride()]
            made = graph.call_function(with_stride, (node, stride))
    except LayoutError:
        return
    made.meta["val"] = value
    node.replace_all_uses_with(made, delete_user_cb=lambda user: user is not made)


def _results(node: fx.Node) -> Iterator[fx.Node]:
    """Return the nodes of the tensors that a call returns, without new values of what it writes."""
    if _is_strided(node.meta.get("val")):
        yield node
        return
    returned = len(node.args[0]._schema.returns) if is_mutation(node) else None  # type: ignore[union-attr]
    for user in [user for user in node.users if user.target is operator.getitem]:
        if returned is None or user.args[1] < returned:  # type: ignore[operator]
            yield from _results(user)

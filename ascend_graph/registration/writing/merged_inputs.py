"""Results that are views of an input which ahead-of-time autograd has merged with another.

Where two inputs overlap and one of them is written, PyTorch compiles for the memory of both. It makes a result anew by the views
that lead to it from its input, and applies them to that memory: ``f(t, t[1:])``, which returns the second input's first row,
gives ``t[0]`` (pytorch 198095).
"""

from __future__ import annotations

import dataclasses
import operator
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

from ascend_graph.errors import AscendGraphError
from ascend_graph.registration.writing.layouts import traced_layout

#: Fields of a result's description that say which views lead to it: in PyTorch 2.13, and before it described them by themselves.
_VIEWS = ("view_meta_sequence", "functional_tensor")
#: Kinds of results that are views of inputs.
_OF_INPUTS = ("alias_of_input", "is_input")


class MergedInputsError(AscendGraphError):
    """Error of a result that is a view of an input which overlaps with a written one, and cannot be made anew."""


def give_views_their_layout(graph: fx.Graph, *, captured: bool) -> None:
    """Have PyTorch make views of merged inputs by their layout in the memory, not by the views that lead to them.

    Args:
        graph: The forward graph. Its results have the layout of the tensors that were traced.
        captured: True for a capture. GE gives views with another dtype than the input's as tensors of their own.

    Raises:
        MergedInputsError: Such a result is computed, so that its place in the memory is lost.
    """
    context = torch._guards.TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    if metadata is None or not isinstance(metadata.output_info, list):
        return
    inputs = graph.find_nodes(op="placeholder")
    (output,) = graph.find_nodes(op="output")
    returned: Any = output.args[0]
    first = len(metadata.tokens) + metadata.num_mutated_inp_runtime_indices
    for n, info in enumerate(metadata.output_info):
        place = len(metadata.tokens) + info.base_idx if info.base_idx is not None else len(inputs)
        field = next((name for name in _VIEWS if hasattr(info, name)), "")
        views = getattr(info, field, None)
        if views is None or info.output_type.name not in _OF_INPUTS:  # the base of others is no input
            continue
        if place >= len(inputs) or first + n >= len(returned):
            continue
        if (merged := _is_merged(inputs[place])) is False:
            continue
        node = returned[first + n]
        same = _leads_to(inputs[place], views, node)
        laid_out = captured or inputs[place].meta["val"].dtype == node.meta["val"].dtype
        if same is not True and laid_out and _is_view_of(inputs[place], node):
            changes: dict[str, Any] = {field: None}
            metadata.output_info[n] = dataclasses.replace(info, **changes)
        elif same is False and merged:
            raise MergedInputsError(
                f"result {n} of a compiled function: it is a view of an input that overlaps with another input, of which one is written; "
                "expected inputs that are apart. Pass the whole tensor, and take the parts inside of the compiled function, or take the "
                "view outside"
            )


def _is_merged(base: fx.Node) -> bool | None:
    """Return whether an input is the memory of several; None with a PyTorch whose graphs do not describe their inputs."""
    description = base.meta.get("desc")
    return None if description is None else type(description).__name__ in ("SyntheticBaseAOTInput", "ViewBaseAOTInput")


def _is_view_of(base: fx.Node, node: Any) -> bool:
    """Return whether a graph makes a tensor of an input by views alone."""
    while isinstance(node, fx.Node) and node is not base:
        views = isinstance(node.target, torch._ops.OpOverload) and any(
            r.alias_info for r in node.target._schema.returns
        )
        node = node.args[0] if views or node.target is operator.getitem else None
    return node is base


def _leads_to(base: fx.Node, views: Any, node: Any) -> bool | None:
    """Return whether views of an input give a tensor of a graph, for the sizes it was traced with; None if that is not known."""
    memory, value = (n.meta.get("val") if isinstance(n, fx.Node) else None for n in (base, node))
    if not isinstance(memory, torch.Tensor) or not isinstance(value, torch.Tensor):
        return None
    given, wanted = traced_layout(memory), traced_layout(value)
    if given is None or wanted is None or _is_symbolic(views):
        return None
    elements = given.last(bool) + 1
    with unset_fake_temporarily():
        tensor = torch.empty(max(elements, 0), dtype=memory.dtype, device="meta")
        tensor = tensor.as_strided(given.size, given.stride, given.offset)
        try:
            return traced_layout(_replayed(views, tensor)) == wanted
        except (RuntimeError, IndexError):  # the memory has other dimensions than the input
            return False


def _is_symbolic(views: Any) -> bool:
    if hasattr(views, "sequence"):
        return any(view.has_symbolic_inputs for view in views.sequence)
    return bool(torch._functionalize_is_symbolic(views.tensor))


def _replayed(views: Any, base: torch.Tensor) -> torch.Tensor:
    """Return the tensor that views make of a base."""
    made: torch.Tensor
    if hasattr(views, "sequence"):
        made = torch._C._functionalization.apply_view_meta_sequence(base, views.sequence)
    else:
        made = torch._functionalize_apply_view_metas(views.tensor, base)
    return made

"""Nodes of calls that write and have the written arguments themselves, and what graphs get in their place.

PyTorch makes ``auto_functionalized(op, …)`` under ``enable_auto_functionalized_v2 = False``, which vLLM sets, and in older
exported programs. TorchAir does not convert it, and passes here know the other node, which has bases.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from ascend_graph.registration.writing.mutation import is_list, is_ours, tensors_in, written_arguments


def calls_by_arguments(graph: fx.Graph) -> list[fx.Node]:
    """Return the nodes that stand for calls of these operators that write, and have the written arguments themselves."""
    nodes = graph.find_nodes(op="call_function", target=torch.ops.higher_order.auto_functionalized)
    return [node for node in nodes if is_ours(node.args[0])]


def describe_by_bases(graph: fx.Graph, call: fx.Node) -> None:
    """Replace a node that has the written arguments themselves by one that has them as bases, each its own."""
    target: Any = call.args[0]
    count = max(1, len(target._schema.returns))
    results: list[Any] = list(range(count))
    kwargs: dict[str, Any] = {name: value for name, value in call.kwargs.items() if name != "_only_clone_these_tensors"}
    bases: list[Any] = []

    def place(prefix: str, tensor: Any) -> int | None:
        """Make a tensor a base, and return the place of its new value in the results."""
        kwargs[f"{prefix}_base_index"] = None if tensor is None else len(bases)
        bases.extend([] if tensor is None else [tensor])
        return None if tensor is None else count + len(bases) - 1

    for argument in written_arguments(target._schema):
        given, prefix = kwargs.pop(argument.name), f"_{argument.name}"
        if not is_list(argument):
            results.append(place(prefix, given))
            continue
        kwargs[f"{prefix}_length"] = None if given is None else len(given)
        results.append(None if given is None else [place(f"{prefix}_{n}", item) for n, item in enumerate(given)])
    with graph.inserting_before(call):
        made = graph.call_function(
            torch.ops.higher_order.auto_functionalized_v2, (target,), kwargs | {"_all_bases": bases}
        )
    made.meta = {key: what for key, what in call.meta.items() if key != "eager_input_vals"}
    value = call.meta.get("val")
    if value is not None:
        made.meta["val"] = (*value[:count], *(t for each in value[count:] for t in tensors_in(each)))
    _hand_out(graph, call, results, made)
    graph.erase_node(call)


def _hand_out(graph: fx.Graph, old: fx.Node, results: Sequence[Any], made: fx.Node) -> None:
    """Give those who take one result of a node, or of a list among its results, its place in another node's results."""
    for user in [user for user in old.users if user.target is operator.getitem]:
        number: Any = user.args[1]
        place = results[number]
        if isinstance(place, list):
            _hand_out(graph, user, place, made)
        with graph.inserting_before(user):
            given = {user: _result(graph, made, place)} if user.users else {}
        for each in list(user.users):
            each.args, each.kwargs = fx.map_arg((each.args, each.kwargs), lambda n, given=given: given.get(n, n))  # type: ignore[misc]
        graph.erase_node(user)


def _result(graph: fx.Graph, made: fx.Node, place: Any) -> Any:
    if isinstance(place, list):
        return [_result(graph, made, each) for each in place]
    if place is None:
        return None
    taken = graph.call_function(operator.getitem, (made, place))
    if "val" in made.meta:
        taken.meta["val"] = made.meta["val"][place]
    return taken

"""Offsets and strides of written views in GE graphs, computed from the sizes of the graph's inputs.

TorchAir asks its own tensors for them, which begin at 0, and refuses the number where the graph has a symbol.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx
from torch.utils._sympy.functions import FloorDiv

_ASKED = (torch.ops.aten.sym_storage_offset.default, torch.ops.aten.sym_stride.int)


def compute_offsets(graph: fx.Graph) -> None:
    """Replace questions for a tensor's offset or stride by arithmetic of the graph's symbols, where these suffice."""
    values = {node: node.meta.get("val") for node in graph.nodes if node.op == "placeholder"}
    symbols = {value.node.expr: node for node, value in values.items() if isinstance(value, torch.SymInt)}
    for node in [node for node in graph.nodes if node.target in _ASKED]:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            with graph.inserting_before(node):
                made = _computed(graph, value.node.expr, symbols)
            if made is not None:
                node.replace_all_uses_with(made)
                graph.erase_node(node)


def _computed(graph: fx.Graph, expression: Any, symbols: Mapping[Any, fx.Node]) -> fx.Node | int | None:
    """Return a node of the expression, or its number; None if it has another symbol or function."""
    if expression.is_Integer:
        return int(expression)
    if expression in symbols:
        return symbols[expression]
    parts = list(expression.args)
    if expression.is_Pow and parts[1].is_Integer and parts[1] > 0:
        function, parts = operator.mul, [parts[0]] * int(parts[1])
    elif expression.is_Add or expression.is_Mul:
        function = operator.add if expression.is_Add else operator.mul
    elif isinstance(expression, FloorDiv):
        function = operator.floordiv
    else:
        return None
    made = [_computed(graph, part, symbols) for part in parts]
    if any(part is None for part in made):
        return None
    return functools.reduce(functools.partial(_call, graph, function), made)


def _call(graph: fx.Graph, function: Any, a: Any, b: Any) -> fx.Node:
    node = graph.call_function(function, (a, b))
    node.meta["val"] = function(*(n.meta["val"] if isinstance(n, fx.Node) else n for n in (a, b)))
    return node

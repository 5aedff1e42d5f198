"""Operators of a graph that need no kernel, and those whose kernel is missing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascend_graph.host.runtime.engine.model import ordered_nodes
from ascend_graph.host.runtime.engine.operators import find_kernel

if TYPE_CHECKING:
    from torchair._ge_concrete_graph.ge_ir_pb2 import GraphDef, OpDef

INPUT_TYPES = frozenset({"Data", "RefData"})


CONST_TYPES = frozenset({"Const", "Constant"})


#: Nodes that need no computation.
STRUCTURE = INPUT_TYPES | CONST_TYPES | {"ConstPlaceHolder", "NetOutput", "NoOp"}


@dataclass
class Look:
    """Record of the missing kernels in graphs that are only read."""

    graphs: int = 0
    #: Names of nodes by GE operator.
    missing: dict[str, list[str]] = field(default_factory=dict)

    def add(self, graph: GraphDef) -> None:
        """Record a graph."""
        self.graphs += 1
        for type_, names in missing_kernels(ordered_nodes(graph)).items():
            self.missing.setdefault(type_, []).extend(names)


#: Active records; the last one receives the graphs.
looks: list[Look] = []


@contextlib.contextmanager
def only_looked_at() -> Iterator[Look]:
    """Record and refuse every graph in all threads meanwhile, instead of compiling it."""
    looks.append(Look())
    try:
        yield looks[-1]
    finally:
        looks.pop()


def is_structure(type_: str) -> bool:
    """Return whether nodes of a GE operator need no computation: inputs, constants, the graph's results."""
    return type_ in STRUCTURE


def missing_kernels(nodes: Sequence[OpDef]) -> dict[str, list[str]]:
    """Return the GE operators among nodes that have no host kernel, with the names of their nodes."""
    missing: dict[str, list[str]] = {}
    for op in nodes:
        if op.type not in STRUCTURE and find_kernel(op.type) is None:
            missing.setdefault(op.type, []).append(op.name)
    return missing

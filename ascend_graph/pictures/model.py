"""Data of graph pictures: nodes with their outputs, times and source lines. It does not import torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ascend_graph.errors import AscendGraphError


class PictureError(AscendGraphError):
    """Function or file that yields no graph, or picture that cannot be written."""


@dataclass(frozen=True, slots=True)
class Node:
    """Node of a graph."""

    name: str
    #: Operator: torch's in an FX graph, GE's in a GE graph.
    type: str
    #: Names of the nodes that it reads.
    inputs: tuple[str, ...] = ()
    #: Dtype and shape of each output: ``float32[2, 3]``.
    outputs: tuple[str, ...] = ()
    #: Source line of the program that it comes from, and the location of that line.
    source: str = ""
    place: str = ""
    #: Node of the FX graph from which a node of a GE graph was made.
    made_from: str = ""
    #: Microseconds on the host in one run; None if it did not run.
    microseconds: float | None = None
    #: True if the host runtime has no kernel for it.
    is_missing: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """Graph: its nodes in a valid execution order."""

    nodes: tuple[Node, ...] = ()

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, slots=True)
class Row:
    """Node of the FX graph and the nodes of the GE graph made from it; either may be absent."""

    fx: Node | None
    ge: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """FX graph that TorchAir received, and the GE graph that it made from it."""

    title: str
    fx: Graph
    ge: Graph

    def rows(self) -> Iterator[Row]:
        """Yield both graphs side by side: rows in the order of the FX graph, then GE nodes without an FX node."""
        owners = _owners(self)
        by_owner: dict[str, list[Node]] = {}
        for node in self.ge.nodes:
            by_owner.setdefault(owners[node.name], []).append(node)
        known = {node.name for node in self.fx.nodes}
        waiting = [node for node in self.ge.nodes if owners[node.name] not in known]
        for node in self.fx.nodes:
            yield Row(node, tuple(by_owner.get(node.name, ())))
        for node in waiting:
            yield Row(None, (node,))

    @property
    def missing(self) -> dict[str, list[str]]:
        """GE operators that the host runtime has no kernel for, and the names of their nodes."""
        missing: dict[str, list[str]] = {}
        for node in self.ge.nodes:
            if node.is_missing:
                missing.setdefault(node.type, []).append(node.name)
        return missing

    def as_dict(self) -> dict[str, Any]:
        """Return the two graphs as JSON-compatible values."""
        return {
            "title": self.title,
            "fx": [asdict(node) for node in self.fx.nodes],
            "ge": [asdict(node) for node in self.ge.nodes],
            "missing": self.missing,
        }


def _owners(pair: Pair) -> dict[str, str]:
    """Return for each GE node the FX node in whose row it stands, or "" for none.

    This is the node it was made from, or else the node of its first reader.
    """
    known = {node.name for node in pair.fx.nodes}
    result = next((node.name for node in pair.fx.nodes if node.type == "output"), "")
    owners: dict[str, str] = {}
    for node in pair.ge.nodes:
        if node.made_from in known:
            owners[node.name] = node.made_from
        elif node.name in known:  # an input has one name in both
            owners[node.name] = node.name
        elif node.type == "NetOutput":
            owners[node.name] = result
    # Other nodes stand next to their reader (a constant), or after the node they read (a cast that GE needs).
    for node in reversed(pair.ge.nodes):
        for name in node.inputs:
            if owners.get(node.name):
                owners.setdefault(name, owners[node.name])
    for node in pair.ge.nodes:
        owners.setdefault(node.name, next((owners[name] for name in node.inputs if owners.get(name)), ""))
    return owners


def ordered(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return nodes in an order in which they can run, otherwise unchanged; nodes of a cycle stay last."""
    by_name = {node.name: node for node in nodes}
    done: dict[str, Node] = {}
    for root in nodes:
        stack = [(root, iter(root.inputs))]
        under_way = {root.name}
        while stack and root.name not in done:
            node, inputs = stack[-1]
            following = next(
                (by_name[n] for n in inputs if n in by_name and n not in done and n not in under_way), None
            )
            if following is None:
                done[node.name] = node
                under_way.discard(node.name)
                stack.pop()
            else:
                under_way.add(following.name)
                stack.append((following, iter(following.inputs)))
    return tuple(done.values())


def unique(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return nodes with unique names: repeated names get a number."""
    seen: dict[str, int] = {}
    found = []
    for node in nodes:
        count = seen[node.name] = seen.get(node.name, 0) + 1
        found.append(node if count == 1 else replace(node, name=f"{node.name}#{count}"))
    return tuple(found)

"""A graph as a picture has it: nodes with what they give, how long they took and where they come from. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ascend_graph.errors import AscendGraphError


class PictureError(AscendGraphError):
    """There is no graph to picture: a function that becomes none, or a file that holds none."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a graph."""

    name: str
    #: The operator: of torch in an FX graph, GE's in a GE graph.
    type: str
    #: The names of the nodes that it reads.
    inputs: tuple[str, ...] = ()
    #: What it gives: ``float32[2, 3]`` for each output.
    outputs: tuple[str, ...] = ()
    #: The line of the program that it comes from, and where that is.
    source: str = ""
    place: str = ""
    #: In a GE graph, the node of the FX graph that it was made from.
    made_from: str = ""
    #: Microseconds on the host in one run; None where it was not run.
    microseconds: float | None = None
    #: Whether the host runtime has no kernel for it.
    is_missing: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in an order in which they can run."""

    nodes: tuple[Node, ...] = ()

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True, slots=True)
class Row:
    """A node of the FX graph, and the nodes of the GE graph that it became; either may be absent."""

    fx: Node | None
    ge: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """The FX graph that TorchAir was given, and the GE graph that it made of it."""

    title: str
    fx: Graph
    ge: Graph

    def rows(self) -> Iterator[Row]:
        """Both graphs side by side, in the order of the FX graph, or of the GE graph where that is all there is."""
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
        """The GE operators that the host runtime has no kernel for, and the names of their nodes."""
        missing: dict[str, list[str]] = {}
        for node in self.ge.nodes:
            if node.is_missing:
                missing.setdefault(node.type, []).append(node.name)
        return missing

    def as_dict(self) -> dict[str, Any]:
        """The two graphs as values that JSON has."""
        return {
            "title": self.title,
            "fx": [asdict(node) for node in self.fx.nodes],
            "ge": [asdict(node) for node in self.ge.nodes],
            "missing": self.missing,
        }


def _owners(pair: Pair) -> dict[str, str]:
    """For each GE node the FX node in whose row it stands: what it was made from, or what first reads it; "" for none."""
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
    # What is left stands beside what reads it (a constant), or after what it reads (a cast that GE needs).
    for node in reversed(pair.ge.nodes):
        for name in node.inputs:
            if owners.get(node.name):
                owners.setdefault(name, owners[node.name])
    for node in pair.ge.nodes:
        owners.setdefault(node.name, next((owners[name] for name in node.inputs if owners.get(name)), ""))
    return owners


def ordered(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Nodes in an order in which they can run, otherwise as they are; nodes of a cycle stay last."""
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
    """Nodes of different names: one that comes twice is numbered."""
    seen: dict[str, int] = {}
    found = []
    for node in nodes:
        count = seen[node.name] = seen.get(node.name, 0) + 1
        found.append(node if count == 1 else replace(node, name=f"{node.name}#{count}"))
    return tuple(found)

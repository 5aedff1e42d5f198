"""Reader of graphs from TorchAir: nodes, edges, constants and attrs of a serialized ``ge.proto.ModelDef``."""

from __future__ import annotations

import ctypes
import heapq
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ascend_graph.environment import HostRuntimeError
from ascend_graph.errors import AscendGraphError
from ascend_graph.host.dtypes import proto_dtype, torch_dtype
from ascend_graph.prototypes import DataType

if TYPE_CHECKING:
    from torchair._ge_concrete_graph.ge_ir_pb2 import AttrDef, GraphDef, OpDef, TensorDef

#: Numbers in ge::Format of formats in blocks: NC1HWC0, FRACTAL_Z, FRACTAL_NZ, NDC1HWC0, FRACTAL_Z_3D, and FRACTAL_NZ
#: with blocks of a given width.
IN_BLOCKS = frozenset({3, 4, 29, 32, 33, *range(50, 55)})

#: Output of a node: its name and the output's index.
Edge = tuple[str, int]
#: Slot that always holds None: absent optional inputs read it.
ABSENT = 0
Source = int | tuple[int, ...]


class GraphCompileError(HostRuntimeError):
    """Error for a graph that cannot run on the host runtime; the message names the node and what is wrong with it."""


def read_graph(model: bytes) -> GraphDef:
    """Return the main graph of a serialized ``ge.proto.ModelDef``.

    Raises:
        GraphCompileError: there is none.
    """
    from google.protobuf.message import DecodeError
    from torchair._ge_concrete_graph.ge_ir_pb2 import ModelDef

    definition = ModelDef()
    try:
        definition.ParseFromString(model)
    except DecodeError as error:
        raise GraphCompileError(f"expected a serialized ge.proto.ModelDef: {error}") from error
    if not definition.graph:
        raise GraphCompileError("ge.proto.ModelDef has no graph; expected one")
    return definition.graph[0]


def ordered_nodes(graph: GraphDef) -> list[OpDef]:
    """Sort nodes after everything they depend on, otherwise in the graph's own order: in-place operators rely on it."""
    nodes: dict[str, OpDef] = {}
    for op in graph.op:
        if op.name in nodes:
            raise GraphCompileError(f"two nodes are named {op.name!r}; expected a name of its own for each")
        nodes[op.name] = op
    order = {name: i for i, name in enumerate(nodes)}
    waiting: dict[str, int] = {}
    users: dict[str, list[str]] = {}
    for name, op in nodes.items():
        sources = {split_edge(edge)[0] for edge in op.input if edge}
        for source in sources:
            if source not in nodes:
                raise GraphCompileError(
                    f"node {name} ({op.type}) reads {source!r}, which is not in the graph; expected a node of it"
                )
            users.setdefault(source, []).append(name)
        waiting[name] = len(sources)
    ready = [order[name] for name, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    names = list(nodes)
    result = []
    while ready:
        name = names[heapq.heappop(ready)]
        result.append(nodes[name])
        for user in users.get(name, ()):
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, order[user])
    if len(result) != len(nodes):
        raise GraphCompileError(
            f"the graph must not have a cycle; it has one through {next(n for n, c in waiting.items() if c)!r}"
        )
    return result


def placeholder(op: OpDef) -> torch.Tensor:
    """Return a frozen parameter as memory holds it; the memory belongs to PyTorch and is not copied."""
    kept = "storage_shape" in op.attr and op.attr["storage_format"].i in IN_BLOCKS
    shape = list(op.attr["storage_shape" if kept else "origin_shape"].list.i)
    dtype = torch_dtype(op.attr["dtype"].dt)
    address, size = op.attr["addr"].i, op.attr["size"].i
    count = 1
    for dimension in shape:
        count *= dimension
    if min(shape, default=0) < 0 or count * dtype.itemsize > size:
        raise GraphCompileError(f"{size} bytes are too few; expected those of {dtype} of shape {shape}")
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    if not _is_mapped(address, size):
        raise GraphCompileError(f"{size} bytes at address {address:#x} must be memory of this process")
    return torch.frombuffer((ctypes.c_char * size).from_address(address), dtype=dtype, count=count).reshape(shape)


def _is_mapped(address: int, size: int) -> bool:
    """Return whether memory is readable: graphs are untrusted, and reading elsewhere would end the process."""
    end = address
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        region, permissions = line.split()[:2]
        low, high = (int(part, 16) for part in region.split("-"))
        if low <= end < high and permissions.startswith("r"):
            end = high
        if end >= address + size:
            return True
    return False


def match_inputs(
    given: Sequence[tuple[str, int]], inputs: Sequence[str], is_dynamic: Sequence[bool]
) -> tuple[Source, ...] | None:
    """Return the slots of a node's inputs in the order of the kernel's, or None if a name is unknown."""
    plain = {name for name, dynamic in zip(inputs, is_dynamic, strict=True) if not dynamic}
    named = {name: slot for name, slot in given if name in plain}
    listed = [(name, slot) for name, slot in given if name not in plain and slot != ABSENT]
    counts = _split_dynamic([name for name, _ in listed], [name for name in inputs if name not in plain])
    if counts is None:
        return None
    rest = iter(slot for _, slot in listed)
    sizes = iter(counts)
    return tuple(
        tuple(itertools.islice(rest, next(sizes))) if dynamic else named.get(name, ABSENT)
        for name, dynamic in zip(inputs, is_dynamic, strict=True)
    )


def _split_dynamic(names: Sequence[str], dynamic: Sequence[str]) -> tuple[int, ...] | None:
    """Return the number of names that belong to each dynamic input, or None if they do not fit.

    The k-th tensor of a dynamic input ``x`` is named ``x<k>``. With eleven tensors ``x10`` may also be the first of an
    input ``x1``. Of all ways to read the names, the one with the fewest empty inputs is taken.

    >>> _split_dynamic(["x0", "x1", "x10", "x11"], ["x", "x1"])
    (2, 2)
    """

    def ways(start: int, remaining: Sequence[str]) -> Iterator[tuple[int, ...]]:
        if not remaining:
            if start == len(names):
                yield ()
            return
        longest = 0
        while start + longest < len(names) and names[start + longest] == f"{remaining[0]}{longest}":
            longest += 1
        for count in range(longest, -1, -1):
            for rest in ways(start + count, remaining[1:]):
                yield (count, *rest)

    return min(ways(0, dynamic), key=lambda counts: counts.count(0), default=None)


def split_edge(edge: str) -> tuple[str, int]:
    node, _, index = edge.rpartition(":")
    try:
        return node, int(index)
    except ValueError:
        raise GraphCompileError(f"edge {edge!r} is not of the form name:index") from None


def data_edges(op: OpDef) -> list[str]:
    return [edge for edge in op.input if not edge.endswith(":-1")]


def tensor_of(definition: TensorDef) -> torch.Tensor:
    """Return a constant as a tensor; a string as its bytes."""
    if proto_dtype(definition.desc.dtype) is DataType.STRING:
        return torch.tensor(list(definition.data), dtype=torch.uint8)
    dtype = torch_dtype(proto_dtype(definition.desc.dtype))
    shape = list(definition.desc.shape.dim)
    count = 1
    for dimension in shape:
        count *= dimension
    if min(shape, default=0) < 0 or count * dtype.itemsize != len(definition.data):
        raise GraphCompileError(
            f"a constant has {len(definition.data)} bytes; expected those of {dtype} of shape {shape}"
        )
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(definition.data), dtype=dtype).reshape(shape)


def attr_value(attr: AttrDef) -> Any:
    """Return the Python value of an attr: strings as str, lists as lists, Type attrs as ge::DataType numbers."""
    kind = attr.WhichOneof("value")
    if kind is None:
        return None
    if kind == "s":
        return attr.s.decode(errors="surrogateescape")
    if kind == "t":
        return tensor_of(attr.t)
    if kind == "list_list_int":
        return [list(inner.list_i) for inner in attr.list_list_int.list_list_i]
    if kind == "list_list_float":
        return [list(inner.list_f) for inner in attr.list_list_float.list_list_f]
    if kind == "list":
        for field in ("i", "f", "b", "dt"):
            values = getattr(attr.list, field)
            if values:
                return list(values)
        return [value.decode(errors="surrogateescape") for value in attr.list.s]
    return getattr(attr, kind)


def error_text(error: BaseException) -> str:
    """Format a failure of the engine for its caller."""
    return str(error) if isinstance(error, AscendGraphError) else f"{type(error).__name__}: {error}"

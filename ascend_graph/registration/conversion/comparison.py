"""Comparison of two converters by the GE nodes that they build for the same call.

A converter made from a binding knows the schema and the prototype. A hand-written one may know more: that a mask is
cast first, or that an absent list becomes an empty tensor. If the former replaces the latter, both are called, and a
difference is reported.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch

from ascend_graph.dispatch.torchair import ConverterFunction, torchair
from ascend_graph.prototypes import DataType, OpPrototype, UnknownPrototypeError, find_prototype

#: Lookup of a prototype by op type; None if it is unknown.
Lookup = Callable[[str], OpPrototype | None]


class ReplacedConverterWarning(UserWarning):
    """Warning that a converter made from a binding builds other nodes than the converter that it replaces."""


class RefusedError(Exception):
    """Error of a converter that raised, or returned values that TorchAir does not take."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes that one call of a converter added to an empty graph, independent of names and of how a default is written."""

    #: Returns, each by the nodes that it is computed from; None if they were not described.
    returns: Any
    #: All nodes, including those that no return depends on.
    nodes: tuple[str, ...]
    #: Op type, output name, and dtype that the converter itself set, of each return.
    announced: tuple[tuple[str, str, int], ...]

    def difference(self, other: Nodes) -> list[str]:
        """Return the differences from another call, in words; empty if it computes the same."""
        found = differences(self.returns, other.returns)
        return found or differences(self.nodes, other.nodes)


def build_nodes(
    converter: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    metas: Any,
    *,
    prototype_of: Lookup | None = None,
    describe: bool = True,
) -> Nodes:
    """Call a converter in a graph of its own.

    Args:
        converter: The converter as TorchAir holds it (``overload._ge_converter``).
        args: The call; graph inputs of the same dtype and shape stand for GE tensors of other graphs.
        kwargs: The same, by name.
        metas: The meta outputs of the FX node, in the schema's order.
        prototype_of: The prototypes whose defaults stand for attrs that a node does not have.
        describe: If true, the returns get their shapes and dtypes from ``metas``, as TorchAir does.

    Raises:
        RefusedError: The converter raised.
    """
    pieces = torchair()
    tensor_class = pieces.ge.Tensor
    with pieces.ge.GeGraph() as graph:
        numbers = count()
        positional = [_stand_in(value, str(n), pieces.ge, numbers) for n, value in enumerate(args)]
        named = {name: _stand_in(value, name, pieces.ge, numbers) for name, value in kwargs.items()}
        if getattr(converter, "require_meta", False):
            named["meta_outputs"] = metas
        try:
            made = converter(*positional, **named)
            flat = _flat(made, tensor_class)
            announced = tuple((tensor.node.type, tensor.desc.name, tensor.desc.dtype) for tensor in flat)
            describe = describe and metas is not None and made is not None and _fits(made, metas)
            if describe:
                pieces.fx.set_ge_outputs(made, metas)
                made = _without_absent(made, metas)
        except Exception as error:  # of a function that anybody may have written
            raise RefusedError(f"{type(error).__name__}: {error}") from error
        reader = _Reader({node.name: node for node in graph.op}, prototype_of or known_prototype)
        returns = reader.structure(made, tensor_class) if describe else None
        # A constant matters by who uses it; some converters leave unused ones behind.
        nodes = sorted(str(reader.node(node.name)) for node in graph.op if not reader.is_leaf(node))
        return Nodes(returns, tuple(nodes), announced)


def _stand_in(value: Any, name: str, ge: Any, numbers: Iterator[int]) -> Any:
    """Return a call's argument with an input of the current graph for each GE tensor of another graph."""
    if isinstance(value, ge.Tensor):
        shape = list(value.desc.shape.dim)
        data = ge.Data(index=next(numbers), dtype=int(DataType.FLOAT), shape=shape, placement="NPU", node_name=name)
        data.desc.dtype = value.desc.dtype
        if value._meta is not None:
            data.set_meta(value._meta)
        return data
    if isinstance(value, list | tuple):
        return type(value)([_stand_in(item, f"{name}.{n}", ge, numbers) for n, item in enumerate(value)])
    return value


def known_prototype(op_type: str) -> OpPrototype | None:
    """Return the loaded or installed prototype of a name, or None."""
    try:
        return find_prototype(op_type)
    except UnknownPrototypeError:
        return None


def _fits(made: Any, metas: Any) -> bool:
    """Return whether a converter returned as many tensors as the schema has returns, as TorchAir requires."""
    count = len(metas) if isinstance(metas, tuple | list) else None
    return (len(made) if isinstance(made, list | tuple) else None) == count


def _without_absent(made: Any, metas: Any) -> Any:
    """Return the outputs with None for absent ones, for which a converter may return a tensor or None.

    The dtype that a converter wrote there has no effect either.
    """
    if not isinstance(metas, tuple | list):
        return made
    for one, meta in zip(made, metas, strict=True):
        if meta is None and one is not None:
            one.desc.dtype = 0
    return tuple(None if meta is None else one for one, meta in zip(made, metas, strict=True))


def _flat(made: Any, tensor_class: type) -> list[Any]:
    if isinstance(made, tensor_class):
        return [made]
    return [t for item in made for t in _flat(item, tensor_class)] if isinstance(made, list | tuple) else []


class _Reader:
    """Reader of a graph's nodes as nested tuples that do not depend on names, or on the order of attrs."""

    def __init__(self, nodes: Mapping[str, Any], prototype_of: Lookup) -> None:
        self.nodes, self.prototype_of = nodes, prototype_of
        self.known: dict[str, Any] = {}

    def structure(self, made: Any, tensor_class: type) -> Any:
        if isinstance(made, tensor_class):
            return self.tensor(made.tensor)  # type: ignore[attr-defined]
        return tuple(self.structure(i, tensor_class) for i in made) if isinstance(made, list | tuple) else made

    def tensor(self, name: str) -> Any:
        node, _, index = name.rpartition(":")
        return (self.node(node), int(index))

    def node(self, name: str) -> Any:
        if name not in self.known:
            self.known[name] = self.read(self.nodes[name])
        return self.known[name]

    def read(self, node: Any) -> Any:
        if node.type == "Data":
            return ("Data", node.name)
        if (constant := self.constant(node)) is not None:
            return ("Const", constant.dtype, tuple(constant.shape), _plain(constant.flatten().tolist()))
        prototype = self.prototype_of(node.type)
        attrs: dict[str, Any] = {}
        if prototype is not None:
            attrs = {a.name: _plain(a.default) for a in prototype.attrs if not a.required and a.default_known}
        attrs |= {name: _attr(value) for name, value in node.attr.items() if not name.startswith("_")}
        producers = [name for name in node.input if not name.endswith(":-1")]
        wired = [
            (desc.name, read := self.tensor(producer), None if read[0][0] == "Const" else desc.dtype)
            for producer, desc in zip(producers, node.input_desc, strict=True)
            if producer
        ]
        outputs = [(desc.name, desc.dtype, tuple(desc.shape.dim)) for desc in node.output_desc]
        controls = sorted(str(self.node(name[:-3])) for name in node.input if name.endswith(":-1"))
        return (node.type, tuple(sorted(wired)), tuple(sorted(attrs.items())), tuple(outputs), tuple(controls))

    def is_leaf(self, node: Any) -> bool:
        """Return whether a node matters only through its users."""
        return node.type == "Data" or self.constant(node) is not None

    def constant(self, node: Any) -> torch.Tensor | None:
        """Return the value of a Const, or of a Cast of one, which are the same to GE; None for other nodes."""
        ge = torchair().ge
        if node.type == "Const":
            value = node.attr["value"].t
            dtype = ge.ge_type_to_torch_type(ge._ge_proto_dtype_to_ge_dtype(value.desc.dtype))
            content = bytearray(value.data)
            flat = torch.frombuffer(content, dtype=dtype) if content else torch.empty(0, dtype=dtype)
            return flat.reshape(tuple(value.desc.shape.dim))
        if node.type == "Cast":
            producer = self.nodes[node.input[0].rpartition(":")[0]]
            value = self.constant(producer) if producer.type == "Const" else None
            return None if value is None else value.to(ge.ge_type_to_torch_type(node.attr["dst_type"].i))
        return None


def _attr(value: Any) -> Any:
    kind = value.WhichOneof("value")
    content = getattr(value, kind) if kind else None
    if kind == "list":
        for name in ("s", "i", "f", "b", "dt"):
            if getattr(content, name):
                return _plain(list(getattr(content, name)))
        return ()
    if kind in ("list_list_int", "list_list_float", "t"):
        return str(content)
    return _plain(content)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return round(torch.tensor(value, dtype=torch.float32).item(), 12)
    return int(value) if isinstance(value, int) else value


def differences(theirs: Any, ours: Any, path: str = "") -> list[str]:
    """Return the differences of two nested tuples, in words.

    >>> differences(("Cast", (1, 2)), ("Cast", (1, 3)))
    ['.1.1: theirs 2, ours 3']
    """
    if theirs == ours:
        return []
    if isinstance(theirs, tuple) and isinstance(ours, tuple) and len(theirs) == len(ours):
        found = [d for n, (a, b) in enumerate(zip(theirs, ours, strict=True)) for d in differences(a, b, f"{path}.{n}")]
        if found:
            return found
    return [f"{path}: theirs {str(theirs)[:300]}, ours {str(ours)[:300]}"]


# ------------------------------------------------------------------------------------------------------ one for another


#: Number of remembered kinds of calls of one operator; more are compared each time.
_REMEMBERED = 4096


def beside(
    ours: ConverterFunction, replaced: ConverterFunction, operator: str, prototype: OpPrototype
) -> ConverterFunction:
    """Wrap ``ours`` to compare each new kind of call with the converter that it ``replaced``.

    A kind of call is the dtypes and ranks of its tensors, the absent ones among them, and all other values. If the two
    build different nodes, a :class:`ReplacedConverterWarning` shows the difference. If the replaced one raises, nothing
    is compared.
    """
    seen: dict[Any, str] = {}
    tensor_class = torchair().ge.Tensor
    needs_metas = getattr(ours, "require_meta", False)

    def prototype_of(op_type: str) -> OpPrototype | None:
        return prototype if op_type == prototype.op_type else known_prototype(op_type)

    def compare(args: Sequence[Any], kwargs: Mapping[str, Any], metas: Any) -> str:
        try:
            theirs = build_nodes(replaced, args, kwargs, metas, prototype_of=prototype_of)
        except RefusedError:
            return ""
        try:
            described = theirs.returns is not None
            mine = build_nodes(ours, args, kwargs, metas, prototype_of=prototype_of, describe=described)
        except RefusedError as error:
            return f"not to be compared, for in a graph of its own: {error}"
        return "; ".join(theirs.difference(mine)[:3])

    @functools.wraps(ours)
    def convert(*args: Any, meta_outputs: Any = None, **kwargs: Any) -> Any:
        made = ours(*args, **kwargs, meta_outputs=meta_outputs) if needs_metas else ours(*args, **kwargs)
        kind = (*(_kind(v, tensor_class) for v in args), *((n, _kind(v, tensor_class)) for n, v in kwargs.items()))
        difference = seen.get(kind)
        if difference is None:
            difference = compare(args, kwargs, meta_outputs)
            if len(seen) < _REMEMBERED:
                seen[kind] = difference
        if difference:
            warnings.warn(
                f"{operator} → {prototype.op_type}: the converter that was replaced builds other nodes for this call: "
                f"{difference}. Nothing in the schema or the prototype tells of them: say them with arguments= or "
                "converter=, or leave override=True out",
                ReplacedConverterWarning,
                stacklevel=2,
            )
        return made

    convert.require_meta = True  # type: ignore[attr-defined]
    return convert


def _kind(value: Any, tensor_class: type) -> Any:
    if isinstance(value, tensor_class):
        rank = None if value._meta is None else value.rank  # type: ignore[attr-defined]
        return (int(value.dtype), rank)  # type: ignore[attr-defined]
    if isinstance(value, list | tuple):
        return tuple(_kind(item, tensor_class) for item in value)
    return value if isinstance(value, int | float | str | bool | torch.dtype | None) else str(value)

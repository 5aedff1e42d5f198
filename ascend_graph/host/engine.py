"""The host runtime's graph engine: a GE graph, as torchair hands it over, becomes a list of calls of host kernels.

Compiling resolves every node to its kernel and every edge to a slot, so that running is a loop over closures. A graph
whose inputs all have known shapes is compiled as static: its output shapes are found by one run on zeros, as GE finds
them with InferShape. Whatever cannot be found so makes the graph dynamic, which GE does too.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ascend_graph.errors import AscendGraphError
from ascend_graph.host.dtypes import ge_dtype, proto_dtype, torch_dtype
from ascend_graph.host.ops import HostKernel, find_host_kernel
from ascend_graph.host.toolkit import HostRuntimeError

if TYPE_CHECKING:
    from torchair._ge_concrete_graph.ge_ir_pb2 import AttrDef, GraphDef, OpDef, TensorDef, TensorDescriptor

_INPUT_TYPES = frozenset({"Data", "RefData"})
_CONST_TYPES = frozenset({"Const", "Constant"})
_UNKNOWN = -1

Slots = list[Any]


class GraphCompileError(HostRuntimeError):
    """A graph cannot run on the host runtime; the message names the node and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """A graph output: GE's dtype number and sizes, -1 where the size is not known before the graph runs."""

    dtype: int
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled graph; ``run`` takes and returns CPU tensors in the graph's order."""

    is_static: bool
    outputs: tuple[OutputSpec, ...]
    run: Callable[..., Sequence[torch.Tensor]]


@dataclass(frozen=True, slots=True)
class Step:
    """One node: reads input slots, calls its kernel, writes output slots."""

    node: str
    kernel: HostKernel
    attrs: Mapping[str, Any]
    #: Per kernel input: a slot, None for an absent one, or the slots of a dynamic one.
    sources: tuple[int | tuple[int, ...] | None, ...]
    first_target: int
    targets: int

    def closure(self, *, infer: bool) -> Callable[[Slots], None]:
        """A function that does this step on a list of slots; with ``infer`` only shapes and dtypes are right."""
        body = self.kernel.infer if infer and self.kernel.infer is not None else self.kernel.function
        function = functools.partial(body, **self.attrs) if self.attrs else body
        target, count, where = self.first_target, self.targets, f"{self.node} ({self.kernel.op_type})"

        def call(slots: Slots) -> Any:
            try:
                return function(*[_fetch(slots, source) for source in self.sources])
            except Exception as error:
                raise HostRuntimeError(f"node {where}: {error}") from error

        if count == 1:

            def step(slots: Slots) -> None:
                result = call(slots)
                slots[target] = result[0] if isinstance(result, (tuple, list)) else result

        else:

            def step(slots: Slots) -> None:
                results = _flatten(call(slots))
                if len(results) < count:
                    raise HostRuntimeError(
                        f"node {where}: the kernel gave {len(results)} outputs, the node has {count}"
                    )
                slots[target : target + count] = results[:count]

        return step


def _fetch(slots: Slots, source: int | tuple[int, ...] | None) -> Any:
    if source is None:
        return None
    if isinstance(source, tuple):
        return [slots[i] for i in source]
    return slots[source]


def _flatten(results: Any) -> list[Any]:
    if results is None:
        return []
    if isinstance(results, torch.Tensor):
        return [results]
    return [item for result in results for item in (result if isinstance(result, (list, tuple)) else (result,))]


def compile_model(model: bytes, options: Mapping[str, str]) -> Plan:
    """Compile a serialised ``ge.proto.ModelDef``.

    Raises:
        GraphCompileError: the graph is malformed, or has an operator without a host kernel.
    """
    del options  # they tune a device
    from torchair._ge_concrete_graph.ge_ir_pb2 import ModelDef

    definition = ModelDef()
    try:
        definition.ParseFromString(model)
    except Exception as error:
        raise GraphCompileError(f"not a serialised ge.proto.ModelDef: {error}") from error
    if not definition.graph:
        raise GraphCompileError("the model holds no graph")
    return _GraphCompiler(definition.graph[0]).compile()


class _GraphCompiler:
    def __init__(self, graph: GraphDef) -> None:
        self.nodes: dict[str, OpDef] = {}
        for op in graph.op:
            if op.name in self.nodes:
                raise GraphCompileError(f"two nodes are named {op.name!r}")
            self.nodes[op.name] = op
        self.slots: dict[tuple[str, int], int] = {}
        self.constants: dict[int, torch.Tensor] = {}
        self.inputs: dict[int, tuple[int, TensorDescriptor]] = {}
        self.outputs: list[int] = []
        self.output_dtypes: list[int] = []
        self.steps: list[Step] = []

    def compile(self) -> Plan:
        for op in self._ordered():
            if op.type in _INPUT_TYPES:
                self._add_input(op)
            elif op.type in _CONST_TYPES:
                self.constants[self._allocate(op, 1)] = _tensor_of(op.attr["value"].t, op.name)
            elif op.type == "ConstPlaceHolder":
                self._add_placeholder(op)
            elif op.type == "NetOutput":
                self.outputs = [slot for slot in map(self._slot, _data_edges(op)) if slot is not None]
                self.output_dtypes = [
                    int(proto_dtype(d.dtype)) for edge, d in zip(op.input, op.input_desc, strict=False) if edge
                ]
            elif op.type != "NoOp":
                self._add_step(op)
        positions = [self.inputs[i][0] for i in sorted(self.inputs)]
        run = self._runner(positions, infer=False)
        sizes = self._static_outputs(positions)
        if sizes is not None:
            return Plan(True, sizes, run)
        return Plan(False, tuple(OutputSpec(dtype, (_UNKNOWN,)) for dtype in self._dynamic_dtypes()), run)

    def _dynamic_dtypes(self) -> list[int]:
        return self.output_dtypes if len(self.output_dtypes) == len(self.outputs) else [0] * len(self.outputs)

    def _ordered(self) -> list[OpDef]:
        """Nodes after everything they depend on, otherwise in the graph's own order: in-place operators rely on it."""
        order = {name: i for i, name in enumerate(self.nodes)}
        waiting: dict[str, int] = {}
        users: dict[str, list[str]] = {}
        for name, op in self.nodes.items():
            sources = {source for edge in op.input if edge for source in [_split_edge(edge)[0]]}
            for source in sources:
                if source not in self.nodes:
                    raise GraphCompileError(f"node {name} ({op.type}) reads {source!r}, which is not in the graph")
                users.setdefault(source, []).append(name)
            waiting[name] = len(sources)
        ready = [order[name] for name, count in waiting.items() if count == 0]
        heapq.heapify(ready)
        names = list(self.nodes)
        result = []
        while ready:
            name = names[heapq.heappop(ready)]
            result.append(self.nodes[name])
            for user in users.get(name, ()):
                waiting[user] -= 1
                if waiting[user] == 0:
                    heapq.heappush(ready, order[user])
        if len(result) != len(self.nodes):
            raise GraphCompileError(f"the graph has a cycle through {next(n for n, c in waiting.items() if c)!r}")
        return result

    def _allocate(self, op: OpDef, count: int) -> int:
        first = len(self.slots)
        for index in range(count):
            self.slots[op.name, index] = first + index
        return first

    def _slot(self, edge: str) -> int | None:
        if not edge:
            return None
        node, index = _split_edge(edge)
        try:
            return self.slots[node, index]
        except KeyError:
            raise GraphCompileError(f"edge {edge!r} names no output of a node before it") from None

    def _add_input(self, op: OpDef) -> None:
        index = op.attr["index"].i
        if index in self.inputs:
            raise GraphCompileError(f"two graph inputs have index {index}")
        description = op.output_desc[0] if op.output_desc else op.input_desc[0]
        self.inputs[index] = (self._allocate(op, 1), description)

    def _add_placeholder(self, op: OpDef) -> None:
        """A frozen parameter: its memory belongs to PyTorch and stays where it is."""
        import ctypes

        shape = list(op.attr["origin_shape"].list.i)
        dtype = torch_dtype(op.attr["dtype"].dt)
        size = op.attr["size"].i
        memory = (ctypes.c_char * size).from_address(op.attr["addr"].i) if size else bytearray()
        tensor = torch.frombuffer(memory, dtype=dtype).reshape(shape) if size else torch.empty(shape, dtype=dtype)
        self.constants[self._allocate(op, 1)] = tensor

    def _add_step(self, op: OpDef) -> None:
        kernel = find_kernel(op.type)
        if kernel is None:
            raise GraphCompileError(
                f"node {op.name}: the host runtime has no kernel for GE operator {op.type}; give it one in an operator package "
                "(ascend_graph.host.package) or with ascend_graph.host.ops.host_kernel"
            )
        attrs = {name: value for name, value in _attrs_of(op).items() if not name.startswith("_")}
        sources = self._sources(op, kernel)
        count = len(op.output_desc)
        first = self._allocate(op, count)
        self.steps.append(Step(op.name, kernel, kernel.bind_attrs(attrs), sources, first, count))

    def _sources(self, op: OpDef, kernel: HostKernel) -> tuple[int | tuple[int, ...] | None, ...]:
        """Slots by input name: descriptions carry the names, in the order of the data edges."""
        named: dict[str, int | None] = {}
        lists: dict[str, list[int]] = {name: [] for name in kernel.dynamic_inputs}
        for edge, description in zip(_data_edges(op), op.input_desc, strict=False):
            slot = self._slot(edge)
            name = description.name
            if name in kernel.inputs and name not in kernel.dynamic_inputs:
                named[name] = slot
                continue
            base = name.rstrip("0123456789")
            owner = next(
                (d for d in kernel.dynamic_inputs if d == base or (name.startswith(d) and name[len(d) :].isdigit())),
                None,
            )
            if owner is not None and slot is not None:
                lists[owner].append(slot)
            elif slot is not None:
                raise GraphCompileError(
                    f"node {op.name} ({op.type}) has an input {name!r}; the host kernel knows: {', '.join(kernel.inputs)}"
                )
        return tuple(tuple(lists[n]) if n in kernel.dynamic_inputs else named.get(n) for n in kernel.inputs)

    def _runner(self, positions: Sequence[int], *, infer: bool) -> Callable[..., Sequence[torch.Tensor]]:
        template: Slots = [None] * len(self.slots)
        for slot, constant in self.constants.items():
            template[slot] = constant
        steps = [step.closure(infer=infer) for step in self.steps]
        outputs = tuple(self.outputs)

        def run(*inputs: torch.Tensor) -> Sequence[torch.Tensor]:
            slots = template.copy()
            for position, tensor in zip(positions, inputs, strict=True):
                slots[position] = tensor
            for step in steps:
                step(slots)
            return [slots[i] for i in outputs]

        return run

    def _static_outputs(self, positions: Sequence[int]) -> tuple[OutputSpec, ...] | None:
        """The outputs' dtypes and sizes, or None where they depend on data or on sizes that are not known."""
        samples = []
        for index in sorted(self.inputs):
            description = self.inputs[index][1]
            sizes = list(description.shape.dim)
            if any(size < 0 for size in sizes):
                return None
            samples.append(torch.zeros(sizes, dtype=torch_dtype(proto_dtype(description.dtype))))
        try:
            results = self._runner(positions, infer=True)(*samples)
        except HostRuntimeError:
            return None  # for zeros it has no result; whether it has one for real data shows when it runs
        return tuple(OutputSpec(int(ge_dtype(r.dtype)), tuple(r.shape)) for r in results)


def find_kernel(op_type: str) -> HostKernel | None:
    """The kernel of a GE operator: of an installed operator package, or else built in."""
    from ascend_graph.host.package import find_package_kernel

    return find_package_kernel(op_type) or find_host_kernel(op_type)


def _split_edge(edge: str) -> tuple[str, int]:
    node, separator, index = edge.rpartition(":")
    if not separator:
        raise GraphCompileError(f"edge {edge!r} is not of the form name:index")
    return node, int(index)


def _data_edges(op: OpDef) -> list[str]:
    return [edge for edge in op.input if not edge.endswith(":-1")]


def _tensor_of(definition: TensorDef, name: str) -> torch.Tensor:
    dtype = torch_dtype(proto_dtype(definition.desc.dtype))
    shape = list(definition.desc.shape.dim)
    if not definition.data:
        return torch.empty(shape, dtype=dtype)
    try:
        return torch.frombuffer(bytearray(definition.data), dtype=dtype).reshape(shape)
    except (RuntimeError, ValueError) as error:
        raise GraphCompileError(
            f"constant {name}: {len(definition.data)} bytes are no {dtype} of shape {shape}"
        ) from error


def _attrs_of(op: OpDef) -> dict[str, Any]:
    return {name: attr_value(attr) for name, attr in op.attr.items()}


def attr_value(attr: AttrDef) -> Any:
    """The Python value of an attr: strings as str, lists as lists, Type attrs as ge::DataType numbers."""
    kind = attr.WhichOneof("value")
    if kind is None:
        return None
    if kind == "s":
        return attr.s.decode(errors="surrogateescape")
    if kind == "t":
        return _tensor_of(attr.t, "attr")
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


def describe_operator(op_type: str) -> list[tuple[str, str, str]]:
    """Role, name and kind of an operator's parameters, as the graph engine reports registered operators.

    Installed operator packages and loaded headers come first, then the prototypes that torchair's wheel documents.

    Raises:
        HostRuntimeError: no prototype is known.
    """
    prototype = _prototype(op_type)
    if prototype is None:
        raise HostRuntimeError(f"no prototype of {op_type} is loaded, installed or documented by torchair")
    return [
        *(("i", p.name, p.kind.value) for p in prototype.inputs),
        *(("o", p.name, p.kind.value) for p in prototype.outputs),
        *(("a", a.name, _IR_TYPES.get(a.type.value, "VT_" + a.type.value.upper())) for a in prototype.attrs),
    ]


_IR_TYPES = {
    "Int": "VT_INT",
    "Float": "VT_FLOAT",
    "Bool": "VT_BOOL",
    "String": "VT_STRING",
    "Type": "VT_DATA_TYPE",
    "Tensor": "VT_TENSOR",
    "Bytes": "VT_BYTES",
    "ListInt": "VT_LIST_INT",
    "ListFloat": "VT_LIST_FLOAT",
    "ListBool": "VT_LIST_BOOL",
    "ListString": "VT_LIST_STRING",
    "ListType": "VT_LIST_DATA_TYPE",
    "ListTensor": "VT_LIST_TENSOR",
    "ListListInt": "VT_LIST_LIST_INT",
    "NamedAttrs": "VT_NAMED_ATTRS",
    "ListNamedAttrs": "VT_LIST_NAMED_ATTRS",
}


def _prototype(op_type: str) -> Any:
    from ascend_graph.prototypes import UnknownPrototypeError, find_prototype, parse_text

    try:
        return find_prototype(op_type)
    except UnknownPrototypeError:
        pass
    from torchair._ge_concrete_graph import auto_generated_ge_raw_ops as raw_ops

    function = getattr(raw_ops, op_type, None) or getattr(raw_ops, f"_{op_type}", None)
    text = getattr(function, "__doc__", None)
    if not text:
        return None
    parsed = parse_text(text).prototypes
    return next((p for p in parsed if p.op_type == op_type), None)


def error_text(error: BaseException) -> str:
    """What a failure of the engine tells its caller."""
    return str(error) if isinstance(error, AscendGraphError) else f"{type(error).__name__}: {error}"

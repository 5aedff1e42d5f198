"""The host runtime's graph engine: a GE graph, as torchair hands it over, becomes a list of calls of host kernels.

Compiling resolves every node to its kernel and every edge to a slot, so that running is a loop over closures. Nodes
whose inputs are all constants are computed once, while compiling. A graph whose inputs all have known shapes is
compiled as static if the shapes of its outputs follow: they are found as GE finds them, node by node, here on tensors
without data. Where a shape depends on data, or on a size that is not known, the graph is dynamic.
"""

from __future__ import annotations

import ctypes
import functools
import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ascend_graph.errors import AscendGraphError
from ascend_graph.host.dtypes import ge_dtype, proto_dtype, torch_dtype
from ascend_graph.host.ops import HostKernel, find_host_kernel
from ascend_graph.host.toolkit import HostRuntimeError

if TYPE_CHECKING:
    from torchair._ge_concrete_graph.ge_ir_pb2 import AttrDef, GraphDef, OpDef, TensorDef

    from ascend_graph.prototypes import OpPrototype

_INPUT_TYPES = frozenset({"Data", "RefData"})
#: Attrs that say how a device lays tensors out.
_LAYOUT_ATTRS = frozenset({"input_layout_info", "output_layout_info"})
_CONST_TYPES = frozenset({"Const", "Constant"})
_UNKNOWN = -1
#: The slot that always holds None: absent optional inputs read it.
_ABSENT = 0
#: Constants that are computed while compiling are kept for the graph's life, so large ones are not.
_LARGEST_FOLDED = 1 << 16

Slots = list[Any]
Source = int | tuple[int, ...]
Run = Callable[..., Sequence[torch.Tensor]]


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
    run: Run


@dataclass(frozen=True, slots=True)
class Step:
    """One node: reads input slots, calls its kernel, writes output slots."""

    node: str
    kernel: HostKernel
    attrs: Mapping[str, Any]
    #: Per kernel input: a slot, or the slots of a dynamic one.
    sources: tuple[Source, ...]
    first_target: int
    targets: int

    def function(self) -> Callable[..., Any]:
        """The kernel with this node's attrs."""
        return functools.partial(self.kernel.function, **self.attrs) if self.attrs else self.kernel.function

    def arguments(self, slots: Slots) -> list[Any]:
        """What the kernel is called with."""
        return [[slots[i] for i in s] if isinstance(s, tuple) else slots[s] for s in self.sources]

    def reads(self) -> Iterator[int]:
        """Every slot it reads."""
        for source in self.sources:
            yield from source if isinstance(source, tuple) else (source,)

    def outputs(self, results: Any) -> list[torch.Tensor]:
        """The kernel's results as one tensor per output.

        Raises:
            HostRuntimeError: they are too few, or no tensors.
        """
        tensors = _flatten(results)
        if len(tensors) < self.targets:
            raise HostRuntimeError(f"the kernel gave {len(tensors)} outputs, the node has {self.targets}")
        for tensor in tensors[: self.targets]:
            if not isinstance(tensor, torch.Tensor):
                raise HostRuntimeError(f"the kernel gave {type(tensor).__name__} where the node has a tensor")
        return tensors[: self.targets]

    def closure(self) -> Callable[[Slots], None]:
        """A function that does this step on a list of slots."""
        function, target, end = self.function(), self.first_target, self.first_target + self.targets
        if self.targets != 1:

            def several(slots: Slots) -> None:
                slots[target:end] = self.outputs(function(*self.arguments(slots)))

            return several
        match self.sources:
            case (int(a),):

                def unary(slots: Slots) -> None:
                    result = function(slots[a])
                    slots[target] = result if type(result) is torch.Tensor else self.outputs(result)[0]

                return unary
            case (int(a), int(b)):

                def binary(slots: Slots) -> None:
                    result = function(slots[a], slots[b])
                    slots[target] = result if type(result) is torch.Tensor else self.outputs(result)[0]

                return binary

        def single(slots: Slots) -> None:
            result = function(*self.arguments(slots))
            slots[target] = result if type(result) is torch.Tensor else self.outputs(result)[0]

        return single

    def error(self, cause: Exception, slots: Slots) -> HostRuntimeError:
        """What to raise when the kernel failed on these slots."""
        shown = ", ".join(
            f"{name}={_describe(value)}" for name, value in zip(self.kernel.inputs, self.arguments(slots), strict=True)
        )
        return HostRuntimeError(f"node {self.node} ({self.kernel.op_type}): {cause}; its inputs: {shown or 'none'}")


def _describe(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, list):
        return f"[{', '.join(map(_describe, value))}]"
    return "absent"


def _flatten(results: Any) -> list[Any]:
    if results is None:
        return []
    if isinstance(results, torch.Tensor):
        return [results]
    if not isinstance(results, (tuple, list)):
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
    with torch.no_grad():
        return _GraphCompiler(definition.graph[0]).compile()


class _GraphCompiler:
    def __init__(self, graph: GraphDef) -> None:
        self.nodes: dict[str, OpDef] = {}
        for op in graph.op:
            if op.name in self.nodes:
                raise GraphCompileError(f"two nodes are named {op.name!r}")
            self.nodes[op.name] = op
        self.slots: dict[tuple[str, int], int] = {}
        self.size = _ABSENT + 1
        #: Slots that hold the same value in every run. Kernels must not write to it.
        self.constants: dict[int, torch.Tensor] = {}
        #: Slots of frozen parameters: PyTorch's memory, whose contents may change between runs.
        self.parameters: dict[int, torch.Tensor] = {}
        #: Slots of the graph's inputs by their index.
        self.inputs: dict[int, int] = {}
        self.outputs: list[int] = []
        self.output_dtypes: list[int] = []
        self.steps: list[Step] = []
        #: Slots whose shape and dtype are known, as tensors without data.
        self.shapes: dict[int, torch.Tensor] = {}

    def compile(self) -> Plan:
        for op in self._ordered():
            try:
                self._add(op)
            except GraphCompileError:
                raise
            except Exception as error:
                raise GraphCompileError(f"node {op.name} ({op.type}): {error_text(error)}") from error
        outputs = [self.shapes.get(slot) for slot in self.outputs]
        specs = tuple(
            OutputSpec(dtype, (_UNKNOWN,))
            if output is None
            else OutputSpec(int(ge_dtype(output.dtype)), tuple(output.shape))
            for output, dtype in zip(outputs, self.output_dtypes, strict=True)
        )
        return Plan(all(output is not None for output in outputs), specs, self._runner())

    def _add(self, op: OpDef) -> None:
        if op.subgraph_name:
            raise GraphCompileError(f"node {op.name} ({op.type}): the host runtime has no operators with subgraphs")
        if op.type in _INPUT_TYPES:
            self._add_input(op)
        elif op.type in _CONST_TYPES:
            self._add_constant(self._allocate(op, 1), _tensor_of(op.attr["value"].t))
        elif op.type == "ConstPlaceHolder":
            slot, parameter = self._allocate(op, 1), _placeholder(op)
            self.parameters[slot] = parameter
            self._learn(slot, parameter)
        elif op.type == "NetOutput":
            for edge, description in zip(_data_edges(op), op.input_desc, strict=False):
                slot = self._slot(edge)
                if slot != _ABSENT:
                    self.outputs.append(slot)
                    self.output_dtypes.append(int(proto_dtype(description.dtype)))
        elif op.type != "NoOp":
            self._add_step(op)

    def _ordered(self) -> list[OpDef]:
        """Nodes after everything they depend on, otherwise in the graph's own order: in-place operators rely on it."""
        order = {name: i for i, name in enumerate(self.nodes)}
        waiting: dict[str, int] = {}
        users: dict[str, list[str]] = {}
        for name, op in self.nodes.items():
            sources = {_split_edge(edge)[0] for edge in op.input if edge}
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
        first = self.size
        self.size += count
        for index in range(count):
            self.slots[op.name, index] = first + index
        return first

    def _slot(self, edge: str) -> int:
        if not edge:
            return _ABSENT
        try:
            return self.slots[_split_edge(edge)]
        except KeyError:
            raise GraphCompileError(f"edge {edge!r} names no output of a node before it") from None

    def _add_input(self, op: OpDef) -> None:
        index = op.attr["index"].i
        if index in self.inputs:
            raise GraphCompileError(f"two graph inputs have index {index}")
        descriptions = op.output_desc or op.input_desc
        if not descriptions:
            raise GraphCompileError(f"node {op.name} ({op.type}) does not describe its tensor")
        slot, description = self._allocate(op, 1), descriptions[0]
        self.inputs[index] = slot
        sizes = list(description.shape.dim)
        if all(size >= 0 for size in sizes):
            self.shapes[slot] = torch.empty(sizes, dtype=torch_dtype(proto_dtype(description.dtype)), device="meta")

    def _add_step(self, op: OpDef) -> None:
        kernel = find_kernel(op.type)
        if kernel is None:
            raise GraphCompileError(
                f"node {op.name}: the host runtime has no kernel for GE operator {op.type}; give it one in an operator package "
                "(ascend_graph.host.package) or with ascend_graph.host.ops.host_kernel"
            )
        attrs = {
            name: attr_value(attr)
            for name, attr in op.attr.items()
            if not name.startswith("_") and name not in _LAYOUT_ATTRS
        }
        sources = self._unshared(kernel, self._sources(op, kernel))
        step = Step(op.name, kernel, kernel.bind_attrs(attrs), sources, self.size, len(op.output_desc))
        self._allocate(op, step.targets)
        if not self._fold(step):
            self.steps.append(step)
            self._infer(step)

    def _sources(self, op: OpDef, kernel: HostKernel) -> tuple[Source, ...]:
        """Slots by input name: descriptions carry the names, in the order of the data edges."""
        edges = _data_edges(op)
        if len(edges) > len(op.input_desc):
            raise GraphCompileError(
                f"node {op.name} ({op.type}) has {len(edges)} inputs and describes {len(op.input_desc)}"
            )
        names = [description.name for description in op.input_desc][: len(edges)]
        given = [(name, self._slot(edge)) for name, edge in zip(names, edges, strict=True)]
        for inputs in (kernel.inputs, *kernel.other_inputs):
            sources = _matched(given, inputs, [name in kernel.dynamic_inputs for name in kernel.inputs])
            if sources is not None:
                break
        else:
            known = ", ".join(n + "[]" if n in kernel.dynamic_inputs else n for n in kernel.inputs) or "none"
            raise GraphCompileError(
                f"node {op.name} ({op.type}) has inputs {', '.join(names)}; the host kernel knows: {known}"
            )
        missing = [
            name
            for name, source in zip(kernel.inputs, sources, strict=True)
            if source == _ABSENT and name in kernel.required_inputs
        ]
        if missing:
            raise GraphCompileError(f"node {op.name} ({op.type}) lacks its required input {', '.join(missing)}")
        return sources

    def _unshared(self, kernel: HostKernel, sources: tuple[Source, ...]) -> tuple[Source, ...]:
        """The sources, with a fresh copy in place of every constant that the kernel writes to."""
        result = list(sources)
        for position, name in enumerate(kernel.inputs):
            source = sources[position]
            if name in kernel.written_inputs and isinstance(source, int) and source in self.constants:
                copy = find_host_kernel("TensorMove")
                assert copy is not None
                self.steps.append(Step(f"copy of {name}", copy, {}, (source,), self.size, 1))
                result[position] = self.size
                self.size += 1
        return tuple(result)

    def _add_constant(self, slot: int, tensor: torch.Tensor) -> None:
        self.constants[slot] = tensor
        self._learn(slot, tensor)

    def _fold(self, step: Step) -> bool:
        """Compute a node of constants, or of known shapes, now; whether it was done."""
        known = self.shapes if step.kernel.shapes_only else self.constants
        if not step.kernel.pure or not all(slot in known or slot == _ABSENT for slot in step.reads()):
            return False
        slots: Slots = [None] * self.size
        for slot in step.reads():
            slots[slot] = known.get(slot)
        try:
            results = step.outputs(step.function()(*step.arguments(slots)))
        except Exception:
            return False  # a branch that never matters may hold it; running tells what is wrong
        if sum(result.numel() for result in results) > _LARGEST_FOLDED:
            return False
        for slot, result in enumerate(results, step.first_target):
            self._add_constant(slot, result)
        return True

    def _template(self) -> Slots:
        template: Slots = [None] * self.size
        for slot, tensor in (*self.constants.items(), *self.parameters.items()):
            template[slot] = tensor
        return template

    def _runner(self) -> Run:
        template = self._template()
        positions = [self.inputs[i] for i in sorted(self.inputs)]
        # TorchAir hands a number, which the graph declares without dimensions, over as a tensor of one.
        numbers = tuple(p for p in positions if p in self.shapes and self.shapes[p].dim() == 0)
        outputs = tuple(self.outputs)
        kept = {_ABSENT, *self.constants, *self.parameters, *outputs}
        last_use: dict[int, int] = {}
        for i, step in enumerate(self.steps):
            written = range(step.first_target, step.first_target + step.targets)
            last_use.update((slot, i) for slot in (*step.reads(), *written) if slot not in kept)
        dead: list[list[int]] = [[] for _ in self.steps]
        for slot, i in last_use.items():
            dead[i].append(slot)
        by_closure = {step.closure(): step for step in self.steps}
        program = [(closure, tuple(slots)) for closure, slots in zip(by_closure, dead, strict=True)]

        def run(*inputs: torch.Tensor) -> Sequence[torch.Tensor]:
            if len(inputs) != len(positions):
                raise HostRuntimeError(f"the graph takes {len(positions)} inputs and was given {len(inputs)}")
            slots = template.copy()
            for position, tensor in zip(positions, inputs, strict=True):
                slots[position] = tensor
            for position in numbers:
                slots[position] = slots[position].reshape(())
            closure = None
            try:
                for closure, unused in program:
                    closure(slots)
                    for slot in unused:
                        slots[slot] = None
            except Exception as error:
                assert closure is not None
                raise by_closure[closure].error(error, slots) from error
            return [slots[i] for i in outputs]

        return run

    def _learn(self, slot: int, tensor: torch.Tensor) -> None:
        self.shapes[slot] = tensor if tensor.is_meta else torch.empty_like(tensor, device="meta")

    def _infer(self, step: Step) -> None:
        """Learn the shapes and dtypes of a node's outputs, where they follow from what is known."""
        kernel = step.kernel
        arguments = []
        for name, source in zip(kernel.inputs, step.sources, strict=True):
            known = self.constants if name in kernel.value_inputs else self.shapes
            slots = source if isinstance(source, tuple) else (source,)
            if any(slot not in known for slot in slots if slot != _ABSENT):
                return
            values = [known.get(slot) for slot in slots]
            arguments.append(values if isinstance(source, tuple) else values[0])
        if kernel.data_dependent:
            return
        function = functools.partial(kernel.infer, **step.attrs) if kernel.infer is not None else step.function()
        try:
            results = step.outputs(function(*arguments))
        except Exception:
            try:  # a kernel may need data, whatever it is: one of NumPy, or of an extension
                results = step.outputs(function(*[_zeros(a) for a in arguments]))
            except Exception:
                return  # for zeros it has no result; whether it has one for real data shows when it runs
        for slot, result in enumerate(results, step.first_target):
            self._learn(slot, result)


def _zeros(value: Any) -> Any:
    if isinstance(value, list):
        return [_zeros(item) for item in value]
    return torch.zeros_like(value, device="cpu") if isinstance(value, torch.Tensor) and value.is_meta else value


def _placeholder(op: OpDef) -> torch.Tensor:
    """A frozen parameter: its memory belongs to PyTorch and stays where it is."""
    shape = list(op.attr["origin_shape"].list.i)
    dtype = torch_dtype(op.attr["dtype"].dt)
    address, size = op.attr["addr"].i, op.attr["size"].i
    count = 1
    for dimension in shape:
        count *= dimension
    if min(shape, default=0) < 0 or count * dtype.itemsize > size:
        raise GraphCompileError(f"{size} bytes do not hold {dtype} of shape {shape}")
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    if not _is_mapped(address, size):
        raise GraphCompileError(f"{size} bytes at address {address:#x} are no memory of this process")
    return torch.frombuffer((ctypes.c_char * size).from_address(address), dtype=dtype, count=count).reshape(shape)


def _is_mapped(address: int, size: int) -> bool:
    """Whether memory is readable: graphs are untrusted, and reading elsewhere would end the process."""
    end = address
    for line in Path("/proc/self/maps").read_text().splitlines():
        region, permissions = line.split()[:2]
        low, high = (int(part, 16) for part in region.split("-"))
        if low <= end < high and permissions.startswith("r"):
            end = high
        if end >= address + size:
            return True
    return False


def _matched(
    given: Sequence[tuple[str, int]], inputs: Sequence[str], is_dynamic: Sequence[bool]
) -> tuple[Source, ...] | None:
    """The slots of a node's inputs in the order of the kernel's, or None where a name is unknown."""
    plain = {name for name, dynamic in zip(inputs, is_dynamic, strict=True) if not dynamic}
    named = {name: slot for name, slot in given if name in plain}
    listed = [(name, slot) for name, slot in given if name not in plain and slot != _ABSENT]
    counts = _split_dynamic([name for name, _ in listed], [name for name in inputs if name not in plain])
    if counts is None:
        return None
    rest = iter(slot for _, slot in listed)
    sizes = iter(counts)
    return tuple(
        tuple(itertools.islice(rest, next(sizes))) if dynamic else named.get(name, _ABSENT)
        for name, dynamic in zip(inputs, is_dynamic, strict=True)
    )


def _split_dynamic(names: Sequence[str], dynamic: Sequence[str]) -> tuple[int, ...] | None:
    """How many names belong to each dynamic input, or None where they cannot.

    The k-th tensor of a dynamic input ``x`` is named ``x<k>``, so that with eleven tensors ``x10`` may also be the
    first of an input ``x1``. Of all ways to read the names the one with the fewest empty inputs is taken.

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


def find_kernel(op_type: str) -> HostKernel | None:
    """The kernel of a GE operator: of an installed operator package, or else built in."""
    from ascend_graph.host.package import find_package_kernel

    return find_package_kernel(op_type) or find_host_kernel(op_type)


def _split_edge(edge: str) -> tuple[str, int]:
    node, _, index = edge.rpartition(":")
    try:
        return node, int(index)
    except ValueError:
        raise GraphCompileError(f"edge {edge!r} is not of the form name:index") from None


def _data_edges(op: OpDef) -> list[str]:
    return [edge for edge in op.input if not edge.endswith(":-1")]


def _tensor_of(definition: TensorDef) -> torch.Tensor:
    dtype = torch_dtype(proto_dtype(definition.desc.dtype))
    shape = list(definition.desc.shape.dim)
    count = 1
    for dimension in shape:
        count *= dimension
    if min(shape, default=0) < 0 or count * dtype.itemsize != len(definition.data):
        raise GraphCompileError(f"a constant of {len(definition.data)} bytes is no {dtype} of shape {shape}")
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(definition.data), dtype=dtype).reshape(shape)


def attr_value(attr: AttrDef) -> Any:
    """The Python value of an attr: strings as str, lists as lists, Type attrs as ge::DataType numbers."""
    kind = attr.WhichOneof("value")
    if kind is None:
        return None
    if kind == "s":
        return attr.s.decode(errors="surrogateescape")
    if kind == "t":
        return _tensor_of(attr.t)
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


def _prototype(op_type: str) -> OpPrototype | None:
    from ascend_graph.prototypes import UnknownPrototypeError, find_prototype

    try:
        return find_prototype(op_type)
    except UnknownPrototypeError:
        return documented_prototype(op_type)


def documented_prototype(op_type: str) -> OpPrototype | None:
    """The prototype that torchair's wheel carries as the docstring of the operator's raw op; None without one."""
    from torchair._ge_concrete_graph import auto_generated_ge_raw_ops as raw_ops

    from ascend_graph.prototypes import parse_text

    function = getattr(raw_ops, op_type, None) or getattr(raw_ops, f"_{op_type}", None)
    text = getattr(function, "__doc__", None)
    if not text:
        return None
    parsed = parse_text(f"{text}\n.OP_END_FACTORY_REG({op_type})").prototypes  # the wheel leaves the end off
    return next((p for p in parsed if p.op_type == op_type), None)


def error_text(error: BaseException) -> str:
    """What a failure of the engine tells its caller."""
    return str(error) if isinstance(error, AscendGraphError) else f"{type(error).__name__}: {error}"

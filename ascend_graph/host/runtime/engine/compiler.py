"""Compiler of the host runtime's graph engine: it turns torchair's GE graph into a list of host kernel calls.

Compiling resolves every node to its kernel and every edge to a slot, so that running is a loop over closures. Nodes
whose inputs are all constants are computed once, while compiling. A graph whose inputs all have known shapes is
compiled as static if the shapes of its outputs follow. They are found as GE finds them, node by node, here on tensors
without data. If a shape depends on data or on an unknown size, the graph is dynamic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from ascend_graph.environment import HostRuntimeError
from ascend_graph.host.dtypes import ge_dtype, proto_dtype, torch_dtype
from ascend_graph.host.kernels import HostKernel, find_host_kernel
from ascend_graph.host.runtime.engine.effects import Memory
from ascend_graph.host.runtime.engine.format_checks import check_formats
from ascend_graph.host.runtime.engine.formats import Blocks, blocks_of_input, blocks_of_parameter
from ascend_graph.host.runtime.engine.model import (
    ABSENT,
    Edge,
    GraphCompileError,
    Source,
    attr_value,
    data_edges,
    error_text,
    match_inputs,
    ordered_nodes,
    placeholder,
    read_graph,
    split_edge,
    tensor_of,
)
from ascend_graph.host.runtime.engine.operators import find_kernel, input_dtypes
from ascend_graph.host.runtime.engine.program import CompiledGraph, GraphProgram, OutputSpec, Slots, Step
from ascend_graph.host.runtime.engine.shape_inference import infer_outputs, shape_signature
from ascend_graph.host.runtime.engine.structure import CONST_TYPES, INPUT_TYPES, STRUCTURE, looks, missing_kernels
from ascend_graph.prototypes import DataType

if TYPE_CHECKING:
    from torchair._ge_concrete_graph.ge_ir_pb2 import GraphDef, OpDef

#: Attrs that tell how a device lays tensors out.
_LAYOUT_ATTRS = frozenset({"input_layout_info", "output_layout_info"})
#: Prefixes of attrs that do not belong to an operator: GE's private ones, and those that torchair's scopes (data_dump
#: …) put on any node.
_MARKS = ("_", "torchair_")
_UNKNOWN = -1
#: Largest constant computed while compiling: constants live as long as the graph, so larger ones are not kept.
_LARGEST_FOLDED = 1 << 16


def compile_model(model: bytes, options: Mapping[str, str]) -> CompiledGraph:
    """Compile a serialized ``ge.proto.ModelDef``.

    Raises:
        GraphCompileError: the graph is malformed, or has an operator without a host kernel.
    """
    del options  # they tune a device
    if looks:
        looks[-1].add(read_graph(model))
        raise GraphCompileError("the graph is only read; expected no run of it while a picture is made")
    with torch.no_grad():
        return _GraphCompiler(read_graph(model)).compile()


class _GraphCompiler:
    def __init__(self, graph: GraphDef) -> None:
        self.graph = graph
        #: Nodes in order; the graph's outputs are read after everything else.
        self.nodes = sorted(ordered_nodes(graph), key=lambda op: op.type == "NetOutput")
        #: Last node that reads each edge, as an index into ``nodes``.
        self.last_reads = {split_edge(edge): i for i, op in enumerate(self.nodes) for edge in data_edges(op) if edge}
        #: Current slot of each edge's value, and the reverse.
        self.slots: dict[Edge, int] = {}
        self.edges: dict[int, Edge] = {}
        self.size = ABSENT + 1
        self.memory = Memory()
        #: Slots that hold the same value in every run.
        self.constants: dict[int, torch.Tensor] = {}
        #: Slots of frozen parameters: PyTorch's memory, whose contents may change between runs.
        self.parameters: dict[int, torch.Tensor] = {}
        #: Slots of the graph's inputs by their index.
        self.inputs: dict[int, int] = {}
        #: Slots that are a graph input, or an output that is one: writes to them reach the caller's memory.
        self.variables: set[int] = set()
        #: Slots of graph inputs and parameters that memory holds in blocks, as copies in order.
        self.ordered: set[int] = set()
        self.steps: list[Step] = []
        #: Slots whose shape and dtype are known, as tensors without data.
        self.shapes: dict[int, torch.Tensor] = {}
        #: Documented dtypes by operator and input.
        self.dtypes: dict[str, Mapping[str, frozenset[DataType]]] = {}
        #: Inferred outputs by operator, attrs, shapes and dtypes of the inputs.
        self.inferred: dict[Any, Sequence[torch.Tensor | None]] = {}

    def compile(self) -> CompiledGraph:
        self._check_kernels()
        for position, op in enumerate(self.nodes):
            try:
                self._add(op, position)
            except GraphCompileError:
                raise
            except Exception as error:  # of kernels, which anybody may write: all is reported, with the node
                raise GraphCompileError(f"node {op.name} ({op.type}): {error_text(error)}") from error
        outputs = [output for op in self.nodes if op.type == "NetOutput" for output in self._net_output(op)]
        inputs = [self.inputs[i] for i in sorted(self.inputs)]
        values = {**self.constants, **self.parameters}
        program = GraphProgram(self.steps, self.size, values, inputs, [slot for slot, _ in outputs], self.shapes)
        is_static = all(slot in self.shapes for slot, _ in outputs)
        return CompiledGraph(is_static, tuple(spec for _, spec in outputs), program.runner(), program.traced_runner())

    def _check_kernels(self) -> None:
        """Raise an error that names all kernels missing for the graph at once."""
        for op in self.nodes:
            if op.subgraph_name:
                raise GraphCompileError(
                    f"node {op.name} ({op.type}): operators with subgraphs are not supported on the host; write the "
                    "condition without torch.cond, or run this part in eager mode"
                )
        missing = missing_kernels(self.nodes)
        if not missing:
            return
        shown = ", ".join(f"{type_} ({_nodes(names)})" for type_, names in missing.items())
        raise GraphCompileError(
            f"the host runtime has no kernel for GE operator{'s' if len(missing) > 1 else ''} {shown}; write one in an "
            "operator package (ascend_graph.host.build_operator_package) or with ascend_graph.host.kernels.host_kernel"
        )

    def _add(self, op: OpDef, position: int) -> None:
        if op.type in INPUT_TYPES:
            self._add_input(op)
        elif op.type in CONST_TYPES:
            self._add_constant(self._allocate(op, 1), tensor_of(op.attr["value"].t))
        elif op.type == "ConstPlaceHolder":
            slot, parameter = self._allocate(op, 1), placeholder(op)
            self.parameters[slot] = parameter
            self.memory.add(slot)
            if (blocks := blocks_of_parameter(op)) is not None:
                self._order(op, slot, blocks, parameter.dtype)
            else:
                self._learn(slot, parameter)
        elif op.type not in STRUCTURE:
            self._add_step(op, position)

    def _net_output(self, op: OpDef) -> Iterator[tuple[int, OutputSpec]]:
        for edge, description in zip(data_edges(op), op.input_desc, strict=False):
            slot = self._slot(edge)
            if slot == ABSENT:
                continue
            output = self.shapes.get(slot)
            if output is None:
                yield slot, OutputSpec(int(proto_dtype(description.dtype)), (_UNKNOWN,), split_edge(edge)[0])
            else:
                yield slot, OutputSpec(int(ge_dtype(output.dtype)), tuple(output.shape), split_edge(edge)[0])

    def _allocate(self, op: OpDef, count: int) -> int:
        first = self.size
        self.size += count
        for index in range(count):
            self.slots[op.name, index] = first + index
            self.edges[first + index] = op.name, index
        return first

    def _slot(self, edge: str) -> int:
        if not edge:
            return ABSENT
        try:
            return self.slots[split_edge(edge)]
        except KeyError:
            raise GraphCompileError(f"edge {edge!r} must name an output of a node before it") from None

    def _add_input(self, op: OpDef) -> None:
        index = op.attr["index"].i
        if index in self.inputs:
            raise GraphCompileError(f"two graph inputs have index {index}; expected one for each")
        descriptions = op.output_desc or op.input_desc
        if not descriptions:
            raise GraphCompileError(f"node {op.name} ({op.type}) must describe its tensor")
        slot, description = self._allocate(op, 1), descriptions[0]
        self.inputs[index] = slot
        self.memory.add(slot)
        dtype = torch_dtype(proto_dtype(description.dtype))
        if (blocks := blocks_of_input(description)) is not None:
            self._order(op, slot, blocks, dtype)
            return
        self.variables.add(slot)
        sizes = list(description.shape.dim)
        if all(size >= 0 for size in sizes):
            self.shapes[slot] = torch.empty(sizes, dtype=dtype, device="meta")

    def _order(self, op: OpDef, kept: int, blocks: Blocks, dtype: torch.dtype) -> None:
        """Read the node's tensor from a slot that holds it in blocks, whenever the graph runs."""
        slot = self._allocate(op, 1)
        self.steps.append(Step(f"order of {op.name}", blocks.kernel(), {}, (kept,), slot, 1))
        self.memory.add(slot)
        self.ordered.add(slot)
        self.shapes[slot] = torch.empty(blocks.sizes, dtype=dtype, device="meta")

    def _add_step(self, op: OpDef, position: int) -> None:
        kernel = find_kernel(op.type)
        assert kernel is not None, op.type
        attrs = {
            name: attr_value(attr)
            for name, attr in op.attr.items()
            if not name.startswith(_MARKS) and name not in _LAYOUT_ATTRS
        }
        sources = self._isolated(kernel, self._sources(op, kernel), position)
        bound = kernel.bind_attrs(attrs)
        self._check_dtypes(kernel, sources)
        check_formats(op, kernel)
        unknown = not self._check_shapes(kernel, sources, bound)
        step = Step(op.name, kernel, bound, sources, self.size, len(op.output_desc), unknown)
        self._allocate(op, step.targets)
        if not self._fold(step):
            self.steps.append(step)
            self._place(step)
            self._infer(step)

    def _sources(self, op: OpDef, kernel: HostKernel) -> tuple[Source, ...]:
        """Return the slots in the order of the kernel's inputs.

        Descriptions carry the inputs' names, in the order of the data edges.
        """
        edges = data_edges(op)
        if len(edges) > len(op.input_desc):
            raise GraphCompileError(
                f"node {op.name} ({op.type}) has {len(edges)} inputs; expected at most {len(op.input_desc)}, as it "
                "describes"
            )
        names = [description.name for description in op.input_desc][: len(edges)]
        given = [(name, self._slot(edge)) for name, edge in zip(names, edges, strict=True)]
        for inputs in (kernel.inputs, *kernel.other_inputs):
            sources = match_inputs(given, inputs, [name in kernel.dynamic_inputs for name in kernel.inputs])
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
            if source == ABSENT and name in kernel.required_inputs
        ]
        if missing:
            hint = kernel.attrs_among_inputs(missing)
            raise GraphCompileError(f"node {op.name} ({op.type}) lacks its required input {', '.join(missing)}{hint}")
        return sources

    def _check_shapes(self, kernel: HostKernel, sources: tuple[Source, ...], attrs: Mapping[str, Any]) -> bool:
        """Refuse a node with input shapes that its operator does not take; return False if not all are known yet."""
        if not kernel.shapes:
            return True
        slots = [slot for source in sources for slot in (source if isinstance(source, tuple) else (source,))]
        if any(slot != ABSENT and slot not in self.shapes for slot in slots):
            return False
        known = self.shapes.get
        arguments = [list(map(known, source)) if isinstance(source, tuple) else known(source) for source in sources]
        kernel.check_shapes(arguments, attrs)
        return True

    def _check_dtypes(self, kernel: HostKernel, sources: tuple[Source, ...]) -> None:
        """Refuse one of GE's own operators with input dtypes that documents do not name, if the dtypes are known."""
        if kernel is not find_host_kernel(kernel.op_type):
            return
        if kernel.op_type not in self.dtypes:
            self.dtypes[kernel.op_type] = input_dtypes(kernel.op_type)
        for name, source in zip(kernel.inputs, sources, strict=True):
            valid = self.dtypes[kernel.op_type].get(name)
            for slot in source if isinstance(source, tuple) else (source,):
                given = self.shapes.get(slot)
                if valid is None or given is None or not given.numel() or ge_dtype(given.dtype) in valid:
                    continue
                known = ", ".join(DataType(dtype).name for dtype in sorted(valid))
                raise HostRuntimeError(f"{name} is {ge_dtype(given.dtype).name}; expected {known}")

    def _isolated(self, kernel: HostKernel, sources: tuple[Source, ...], position: int) -> tuple[Source, ...]:
        """Return the sources of the node at ``position``, after copies that isolate its writes.

        A write is visible where the same edge is read later, and in the caller's memory if the edge is a graph input.
        It is not visible in a constant, a frozen parameter or any other value that shares the memory on the host.
        """
        written = [slot for slot in kernel.slots_of(sources, kernel.written_inputs) if slot != ABSENT]
        moved: dict[int, int] = {}
        for slot in dict.fromkeys(written):
            if slot in self.ordered:
                raise HostRuntimeError(
                    f"it writes to {self.edges[slot][0]}, a graph input in a format like FRACTAL_NZ; cast it to ACL_FORMAT_ND (2) first"
                )
            others = {s for s in self.memory.overlapping(slot) if self._is_read_from(s, position)}
            if slot in self.variables:
                moved |= {other: self._copy(other) for other in sorted(others - self.variables)}
            elif others or any(self._is_fixed(origin) for origin in self.memory.origins(slot)):
                moved[slot] = self._copy(slot)
        if not moved:
            return sources
        return tuple(
            tuple(moved.get(s, s) for s in source) if isinstance(source, tuple) else moved.get(source, source)
            for source in sources
        )

    def _is_read_from(self, slot: int, position: int) -> bool:
        """Return whether the node at ``position`` or a later one reads a slot."""
        edge = self.edges.get(slot)
        return edge is not None and self.last_reads.get(edge, -1) >= position

    def _is_fixed(self, slot: int) -> bool:
        """Return whether operators must not write to a slot's own memory."""
        return any(slot in fixed for fixed in (self.constants, self.parameters, self.variables, self.ordered))

    def _copy(self, slot: int) -> int:
        """Copy a slot's value; the new slot takes over the value's edge."""
        kernel = find_host_kernel("TensorMove")
        assert kernel is not None
        copy, edge = self.size, self.edges.pop(slot)
        self.size += 1
        self.steps.append(Step(f"copy of {edge[0]}:{edge[1]}", kernel, {}, (slot,), copy, 1))
        self.slots[edge] = copy
        self.edges[copy] = edge
        self.memory.add(copy)
        if slot in self.shapes:
            self.shapes[copy] = self.shapes[slot]
        return copy

    def _place(self, step: Step) -> None:
        """Record which memory the outputs of a step may lie in."""
        kernel = step.kernel
        viewed = [slot for slot in kernel.slots_of(step.sources, kernel.views) if slot != ABSENT]
        groups = [source if isinstance(source, tuple) else (source,) for source in step.sources]
        references = {
            index: groups[position][item] for index, (position, item) in kernel.referenced(map(len, groups)).items()
        }
        for index in range(step.targets):
            slot, reference = step.first_target + index, references.get(index, ABSENT)
            if reference == ABSENT:
                self.memory.add(slot, viewed)
                continue
            self.memory.add(slot, [reference])
            if reference in self.variables:
                self.variables.add(slot)

    def _add_constant(self, slot: int, tensor: torch.Tensor) -> None:
        self.constants[slot] = tensor
        self.memory.add(slot)
        self._learn(slot, tensor)

    def _fold(self, step: Step) -> bool:
        """Compute a node of constants, or of known shapes, now; return whether it was done."""
        known = self.shapes if step.kernel.shapes_only else self.constants
        if not step.kernel.pure or not all(slot in known or slot == ABSENT for slot in step.reads()):
            return False
        slots: Slots = [None] * self.size
        for slot in step.reads():
            slots[slot] = known.get(slot)
        try:
            results = step.outputs(step.function()(*step.arguments(slots)))
        except Exception:
            return False  # a branch that never matters may hold it; running tells what is wrong
        tensors = [result for result in results if result is not None]
        if len(tensors) < len(results) or sum(result.numel() for result in tensors) > _LARGEST_FOLDED:
            return False
        for slot, result in enumerate(tensors, step.first_target):
            self._add_constant(slot, result)
        return True

    def _learn(self, slot: int, tensor: torch.Tensor) -> None:
        self.shapes[slot] = tensor if tensor.is_meta else torch.empty_like(tensor, device="meta")

    def _infer(self, step: Step) -> None:
        """Infer the shapes and dtypes of a node's outputs from the known ones, if possible."""
        kernel = step.kernel
        arguments = []
        for name, source in zip(kernel.inputs, step.sources, strict=True):
            known = self.constants if name in kernel.value_inputs else self.shapes
            read = self.constants if kernel.infer is not None and name in kernel.inferred_from else {}
            slots = source if isinstance(source, tuple) else (source,)
            if kernel.data_dependent or any(slot not in known for slot in slots if slot != ABSENT):
                return
            values = [read.get(slot, known.get(slot)) for slot in slots]
            arguments.append(values if isinstance(source, tuple) else values[0])
        if kernel.value_inputs or kernel.inferred_from or any(isinstance(v, torch.Tensor) for v in step.attrs.values()):
            results = infer_outputs(step, arguments, self.constants)
        else:  # layers of a model are alike
            key = (kernel.op_type, step.targets, repr(step.attrs), shape_signature(arguments))
            if key not in self.inferred:
                self.inferred[key] = infer_outputs(step, arguments, self.constants)
            results = self.inferred[key]
        for slot, result in enumerate(results, step.first_target):
            if result is not None:
                self._learn(slot, result)


def _nodes(names: list[str]) -> str:
    """Format nodes of one type for a message: the first, and how many more."""
    return f"node {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")

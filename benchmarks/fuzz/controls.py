"""Controls of known faults: the same program, or the same wheel, without the part that a fault is of."""

from __future__ import annotations

import builtins
import copy
import functools
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import torch

from benchmarks.fuzz.findings import FuzzFinding
from benchmarks.fuzz.programs import FuzzProgram, ProgramLine, make_arguments

TANH = re.compile(r"""approximate=['"]tanh['"]""")


def with_copies(program: FuzzProgram) -> FuzzProgram:
    """Return the program with ``as_strided`` of contiguous copies."""
    nodes: list[ProgramLine] = []
    for number, node in enumerate(program.nodes):
        if ".as_strided(" in node.text:
            copy = f"copy{number}"
            nodes.append(ProgramLine("{0}.clone(memory_format=torch.contiguous_format)", node.args[:1], (copy,)))
            nodes.append(replace(node, args=(copy, *node.args[1:])))
        else:
            nodes.append(node)
    return replace(program, nodes=tuple(nodes))


def is_right(program: FuzzProgram, mode: str) -> bool:
    return _found(program, mode) is None


def is_explained(program: FuzzProgram, finding: FuzzFinding, without: str = "") -> bool:
    """Return whether a program is right in a finding's mode, or what is found there is another one and explained.

    ``without`` is the ending of a mode that lacks one of the compiler's passes.
    """
    from benchmarks.fuzz.check import judge
    from benchmarks.fuzz.modes import cpu_results

    other = _found(program, finding.mode + without)
    if other is None:
        return True
    other = replace(other, mode=finding.mode)
    same = (other.kind, other.message) == (finding.kind, finding.message)
    return not same and other.kind != "no control" and judge(program, other, cpu_results(program)) != ("", "")


def _found(program: FuzzProgram, mode: str) -> FuzzFinding | None:
    """Run a control. One that the CPU refuses, as a copy made writes to what is read, shows nothing: it is not right."""
    from benchmarks.fuzz.check import run_mode
    from benchmarks.fuzz.modes import cpu_results

    try:
        expected = cpu_results(program)
    except RuntimeError as error:
        return FuzzFinding(f"program {program.seed}", mode, "no control", str(error))
    return run_mode(program, mode, expected)[1]


def calls_operators(program: FuzzProgram) -> bool:
    """Return whether graphs call the program's operators: they drop a call whose only results are empty lists."""
    scope = program.scope()
    scope.update(zip(program.names(), make_arguments(program, 0), strict=True))
    exec("\n".join(node.line() for node in program.nodes), scope)
    results = [scope[name] for node in program.nodes if "op0(" in node.text for name in node.targets]
    return any(op.written for op in program.operators) or any(result != [] for result in results)


def with_copied_outputs(program: FuzzProgram) -> FuzzProgram:
    """Return the program that returns copies of its tensors."""
    values = {*(i.name for i in program.inputs), *(name for node in program.nodes for name in node.targets)}
    names = {output: f"copied{n}" for n, output in enumerate(program.outputs) if output in values}
    copies = tuple(ProgramLine("{0}.clone()", (output,), (name,)) for output, name in names.items())
    outputs = tuple(names.get(output, output) for output in program.outputs)
    return replace(program, nodes=program.nodes + copies, outputs=outputs)


def with_used_inputs(program: FuzzProgram) -> FuzzProgram:
    """Return the program that returns a copy of each of its tensors, too."""
    names = {i.name: f"used{n}" for n, i in enumerate(program.inputs)}
    copies = tuple(ProgramLine("{0}.clone()", (name,), (copy,)) for name, copy in names.items())
    return replace(program, nodes=program.nodes + copies, outputs=(*program.outputs, *names.values()))


_PART = re.compile(r"\{0\}\.split\(1, (-?\d+)\)\[-1\]")


def without_parts(program: FuzzProgram) -> FuzzProgram:
    """Return the program with ``narrow`` in the place of the last part of a ``split``."""
    part = r"{0}.narrow(\1, {0}.shape[\1] - 1, 1)"
    return replace(program, nodes=tuple(replace(n, text=_PART.sub(part, n.text)) for n in program.nodes))


def with_elements(program: FuzzProgram) -> FuzzProgram:
    """Return the program with other sizes in the place of 0."""
    sizes = tuple({name: n or 7 + call for name, n in one.items()} for call, one in enumerate(program.sizes))
    return replace(program, sizes=sizes)


def without_bits(program: FuzzProgram) -> FuzzProgram:
    """Return the program with plain inputs in the place of negated ones, with the same values."""
    plain = tuple(replace(i, layout="plain") if i.layout == "negated" else i for i in program.inputs)
    return replace(program, inputs=plain)


def with_contiguous_inputs(program: FuzzProgram) -> FuzzProgram:
    """Return the program with plain inputs in the place of transposed ones and of ones with gaps."""
    strided = ("transposed", "gaps")
    inputs = tuple(replace(i, layout="plain") if i.layout in strided else i for i in program.inputs)
    return replace(program, inputs=inputs)


def with_copied_inputs(program: FuzzProgram) -> FuzzProgram:
    """Return the program that reads copies of its tensors, made by an operator that no pass drops."""
    names = {i.name: f"copied_{i.name}" for i in program.inputs}
    texts = ["{0} ^ False" if i.dtype == "bool" else "{0} * 1" for i in program.inputs]
    copies = tuple(
        ProgramLine(text, (i.name,), (names[i.name],)) for text, i in zip(texts, program.inputs, strict=True)
    )

    def renamed(text: str) -> str:
        return re.sub(r"\bx\d+\b", lambda name: names.get(name[0], name[0]), text)

    nodes = tuple(replace(n, text=renamed(n.text), args=tuple(map(renamed, n.args))) for n in program.nodes)
    outputs = tuple(map(renamed, program.outputs))
    return replace(program, nodes=copies + nodes, outputs=outputs, checkpoint=False)  # which keeps the inputs


def without_overlaps(program: FuzzProgram) -> FuzzProgram:
    """Return the program with inputs, and results of ``expand``, whose elements have memory of their own."""
    overlapping = ("expanded", "windows")
    inputs = tuple(replace(i, layout="plain") if i.layout in overlapping else i for i in program.inputs)
    copied = ".contiguous()"
    nodes = tuple(replace(n, text=n.text + copied) if n.targets and "expand(" in n.text else n for n in program.nodes)
    feeds = tuple(
        replace(n, text=n.text.replace(".shape)", f".shape){copied}")) if "op0(" in n.text else n for n in nodes
    )
    return replace(program, inputs=inputs, nodes=feeds)


def without_input_views(program: FuzzProgram) -> FuzzProgram:
    """Return the program with None in the place of outputs that share memory with an argument."""
    from benchmarks.fuzz.modes import cpu_results

    shared = {b for a, b in cpu_results(program)[0].shared if a.startswith("argument")}
    outputs = tuple("None" if f"output {n}" in shared else name for n, name in enumerate(program.outputs))
    return replace(program, outputs=outputs)


def exact_gelu(program: FuzzProgram) -> FuzzProgram:
    nodes = tuple(replace(node, text=TANH.sub("approximate='none'", node.text)) for node in program.nodes)
    return replace(program, nodes=nodes)


def from_the_start(grad: Any, sizes: Any, dim: int, *place: Any) -> tuple[Any, ...]:
    return grad, sizes, dim % grad.rank, *place


def with_known_ones(tensor: Any, *dims: Any) -> tuple[Any, ...]:
    """Return a tensor of GE's whose sizes are numbers where a guard says that they are 1."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    known = copy.copy(tensor)
    known._symsize = [1 if statically_known_true(n == 1) else n for n in tensor.symsize]
    return known, *dims


@contextmanager
def converted_with(overload: Any, change: Callable[..., tuple[Any, ...]]) -> Iterator[None]:
    """Convert nodes of an operator with changed arguments within the block."""
    from ascend_graph.dispatch.torchair import existing_converter

    original = existing_converter(overload)

    @functools.wraps(original)
    def convert(*args: Any, **kwargs: Any) -> Any:
        return original(*change(*args), **kwargs)

    overload._ge_converter = convert
    try:
        yield
    finally:
        overload._ge_converter = original


@contextmanager
def with_maximum() -> Iterator[None]:
    """Give all code the name ``Max`` within the block."""
    builtins.Max = max  # type: ignore[attr-defined]
    try:
        yield
    finally:
        del builtins.Max  # type: ignore[attr-defined]


@contextmanager
def _prepared_with(change: Callable[[Any, bool], None]) -> Iterator[None]:
    """Change copies of all graphs before TorchAir compiles them within the block."""
    from ascend_graph.registration.writing import graph_passes

    graph_passes.install()
    original = graph_passes.prepared

    def prepared(module: torch.fx.GraphModule, *, captured: bool) -> torch.fx.GraphModule:
        made = graph_passes._copied(original(module, captured=captured))
        change(made.graph, captured)
        made.recompile()
        return made

    graph_passes.prepared = prepared
    try:
        yield
    finally:
        graph_passes.prepared = original


def separated_values() -> AbstractContextManager[None]:
    """Give each written argument and each returned copy a value of its own within the block, in all graphs."""
    from ascend_graph.registration.writing import graph_passes

    def separate(graph: torch.fx.Graph, captured: bool) -> None:
        graph_passes.keep_returned_copies(graph)
        if not captured:
            graph_passes.separate_written_values(graph)

    return _prepared_with(separate)


def filled_from_inputs() -> AbstractContextManager[None]:
    """Make constant tensors of graphs from an input of the graph within the block."""
    aten = torch.ops.aten
    values: dict[Any, Callable[..., Any]] = {
        aten.zeros.default: lambda size: 0,
        aten.ones.default: lambda size: 1,
        aten.full.default: lambda size, value: value,
        aten.scalar_tensor.default: lambda value: value,
    }

    ranges = (aten.arange.default, aten.arange.start, aten.arange.start_step)

    def fill(graph: torch.fx.Graph, captured: bool) -> None:
        tensors = [n for n in graph.nodes if n.op == "placeholder" and isinstance(n.meta.get("val"), torch.Tensor)]
        for node in [node for node in graph.nodes if node.target in ranges and tensors]:
            first, by = (node.args[0] if len(node.args) > 1 else 0), (node.args[2] if len(node.args) > 2 else 1)
            form = {"dtype": node.meta["val"].dtype, "device": node.meta["val"].device}
            with graph.inserting_before(node):
                steps = graph.call_function(aten.new_full.default, (tensors[0], list(node.meta["val"].shape), by), form)
                ends = graph.call_function(aten.cumsum.default, (steps, 0))
                made = graph.call_function(aten.add.Tensor, (ends, first - by))
            for new in (steps, ends, made):
                new.meta = dict(node.meta)
            node.replace_all_uses_with(made)
            graph.erase_node(node)
        for node in [node for node in graph.nodes if node.target in values and tensors]:
            size = () if node.target is aten.scalar_tensor.default else node.args[0]
            form = {"dtype": node.meta["val"].dtype, "device": node.meta["val"].device}
            with graph.inserting_before(node):
                made = graph.call_function(
                    aten.new_full.default, (tensors[0], size, values[node.target](*node.args)), form
                )
            made.meta = dict(node.meta)
            node.replace_all_uses_with(made)
            graph.erase_node(node)

    return _prepared_with(fill)

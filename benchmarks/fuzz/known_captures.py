"""Known faults of npugraph_ex, in captures alone: predicates of a program and its finding."""

from __future__ import annotations

import re
from dataclasses import replace

from benchmarks.fuzz.controls import (
    calls_operators,
    filled_from_inputs,
    is_explained,
    is_right,
    with_contiguous_inputs,
    with_copied_inputs,
    with_elements,
    with_maximum,
    with_used_inputs,
    without_overlaps,
    without_parts,
)
from benchmarks.fuzz.faults import SINE, SLICE, Case, KnownFault, as_strided, case
from benchmarks.fuzz.findings import FuzzFinding
from benchmarks.fuzz.programs import FuzzProgram, Input, ProgramLine
from benchmarks.fuzz.settings import Setting

_REAL = "AssertionError: Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. Found in aten.where.self(FakeTensor(..., device='npu:0', size=(2,), dtype=torch.bool), tensor(0., device='npu:0', size=())"
_CONSTANT = re.compile(re.escape(_REAL[:118]) + r".*[\[( ]tensor\(", re.DOTALL)


def _real_constant(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether a gradient's graph makes a constant, as ``zeros``: npugraph_ex runs it outside of the fake mode.

    The same program is right, or another finding in it is explained, once its graphs fill constants from an input.
    """
    from benchmarks.fuzz.check import judge, run_mode
    from benchmarks.fuzz.modes import cpu_results

    captures = finding.mode in ("npugraph_ex", "npugraph_ex_dynamic") and program.grad
    if not captures or not _CONSTANT.match(finding.message) or is_right(program, finding.mode):
        return False
    with filled_from_inputs():
        expected = cpu_results(program)
        other = run_mode(program, finding.mode, expected)[1]
        return other is None or (not _CONSTANT.match(other.message) and judge(program, other, expected) != ("", ""))


def _unnamed_maximum(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether npugraph_ex writes a size as ``Max(…)`` into code that has no such name, in gradients of slices.

    The same program is right once it has one.
    """
    says = finding.message.startswith("NameError: name 'Max' is not defined")
    if finding.mode != "npugraph_ex_dynamic" or not program.grad or not says or is_right(program, finding.mode):
        return False
    with with_maximum():
        return is_right(program, finding.mode)


_BROADCAST = "RuntimeError: Attempting to broadcast a dimension of length 3 at -1! Mismatching argument at index 1 had torch.Size([3]); but expected shape should be broadcastable to [2]"


def _slice_for_base(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether npugraph_ex's pass for writes in place gives the gradient of a written view for that of its base.

    The same program, or the same with inputs that have memory of their own, is right without the pass, and has the same fault with it.
    """
    from benchmarks.fuzz.check import run_mode
    from benchmarks.fuzz.modes import FUNCTIONAL, cpu_results

    captures = finding.mode in ("npugraph_ex", "npugraph_ex_dynamic") and program.grad and not program.operators
    says = finding.kind == "value of gradients" or re.search(
        r"broadcast|[Ss]ize|shape|[Dd]imension", finding.message[:300]
    )
    if not captures or not says or all(node.targets for node in program.nodes):
        return False
    for one in (program, without_overlaps(program)):
        expected = cpu_results(one)
        found, without = (run_mode(one, mode, expected)[1] for mode in (finding.mode, finding.mode + FUNCTIONAL))
        if found is not None and found.kind == finding.kind and without is None:
            return True
    return False


def _slice_case(target: str) -> Case:
    nodes = (ProgramLine("F.gelu({0})", ("x0",), ("v0",)), ProgramLine(f"{target}.mul_(2)", ("v0",)))
    nodes += (ProgramLine("torch.sin({0})", ("v0",), ("v1",)),)
    program, finding = case("npugraph_ex", _BROADCAST, *nodes, outputs=("v1",), grad=True)
    return replace(program, sizes=({"a": 3},)), finding


def _parts_of_an_input(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether parts of an input, the results of one split, are no views of it from the second call on."""
    says = re.match(r"call (\d+): (.*)", finding.message)
    captures = finding.mode in ("npugraph_ex", "npugraph_ex_dynamic") and program.grad
    if not captures or finding.kind != "memory is not shared" or says is None or int(says[1]) < 2:
        return False
    if (narrowed := without_parts(program)) != program and is_right(narrowed, finding.mode):
        return True
    pairs = re.findall(r"argument (\d+) and output (\d+)", says[2])
    parts: set[str] = set()  # with views of them
    for node in program.nodes:
        if node.args and (len(node.targets) > 1 or node.args[0] in parts):
            parts |= set(node.targets)
    if len(pairs) != len(says[2].split(", ")) or not all(
        program.inputs[int(i)].grad and program.outputs[int(k)] in parts for i, k in pairs
    ):
        return False
    places = {int(k) for _, k in pairs}
    outputs = tuple("None" if n in places else name for n, name in enumerate(program.outputs))
    return is_right(replace(program, outputs=outputs), finding.mode)


def _unused_input(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether an input that no operator of a capture reads has another size than when it was captured.

    The same program is right, or another finding in it is explained, once it returns a copy of each input, too.
    """
    says = r"RuntimeError: The size of tensor a .* must match .*_acl_concrete_graph/acl_graph\.py"
    raises = finding.kind == "raises" and re.match(says, finding.message, re.DOTALL) is not None
    if not raises or finding.mode != "npugraph_ex_dynamic" or is_right(program, finding.mode):
        return False
    return is_explained(with_used_inputs(program), finding)


def _empty_output(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether a captured graph returns a tensor without elements, and is captured for a second size.

    The same program is right with elements.
    """
    says = re.match(r"RuntimeError: Expected allocated_pointer != definitely_stale_pointers", finding.message)
    filled = with_elements(program)
    if finding.mode != "npugraph_ex_dynamic" or says is None or filled == program or is_right(program, finding.mode):
        return False
    return is_right(filled, finding.mode)


def _exchanged_buffer(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether a graph returns a view of a module's buffer that it writes, and is captured for another tensor in its place.

    The same program is right where the buffer stays.
    """
    says = re.match(r"RuntimeError: Expected allocated_pointer != definitely_stale_pointers", finding.message)
    captures = finding.mode in ("npugraph_ex", "npugraph_ex_dynamic") and program.setting.owner == "module"
    kept = replace(program, setting=replace(program.setting, exchanged=False))
    if not captures or says is None or kept == program or calls_operators(program) or is_right(program, finding.mode):
        return False
    return is_right(kept, finding.mode)


def _exchanged_case(exchanged: bool) -> Case:
    nodes = (ProgramLine("{0}.flatten()", ("x0",), ("v0",)), ProgramLine("{0}.zero_()", ("x0",)))
    program, finding = case("npugraph_ex", _STALE, *nodes, outputs=("v0",))
    inputs = (replace(program.inputs[0], sizes=("a", 3)),)
    return replace(program, inputs=inputs, setting=Setting(("x0",), "module", exchanged), sizes=({"a": 1},)), finding


def _empty_case(size: int) -> Case:
    program, finding = case("npugraph_ex_dynamic", _STALE, SINE, outputs=("v0",))
    inputs = (replace(program.inputs[0], sizes=("a", "b")),)
    return replace(program, inputs=inputs, sizes=({"a": 2, "b": size}, {"a": 3, "b": size})), finding


def _strided_copy(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether npugraph_ex removed the copy whose memory ``as_strided`` views: its offset is then another's.

    The same program is right without the pass that removes copies.
    """
    from benchmarks.fuzz.modes import COPIES

    captures = finding.mode in ("npugraph_ex", "npugraph_ex_dynamic") and not program.operators
    if not captures or finding.kind != "value of outputs" or not any(".as_strided(" in n.text for n in program.nodes):
        return False
    return not is_right(program, finding.mode) and is_right(program, finding.mode + COPIES)


def _unused_case(*outputs: str) -> Case:
    view = ProgramLine("{0}.view({0}.shape)", ("x1",), ("v1",))
    program, finding = case("npugraph_ex_dynamic", _GROWN, SINE, view, outputs=outputs)
    inputs = (replace(program.inputs[0], sizes=(7,)), Input("x1", "float32", (3, "a")))
    return replace(program, inputs=inputs), finding


def _copy_case(copy: str) -> Case:
    nodes = (SLICE, ProgramLine("{0}.sub_(-1)", ("v1",)), ProgramLine(copy, ("v1",), ("v0",)), as_strided("v0"))
    program, finding = case("npugraph_ex", "call 1: [0]: 2 of 2 values differ", *nodes, outputs=("v2",))
    return replace(program, sizes=({"a": 4},)), replace(finding, kind="value of outputs")


def _other_rank(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether npugraph_ex writes a result into an input of another shape that has as many elements.

    The same program is right, or has another known fault, without the pass for writes in place.
    """
    from benchmarks.fuzz.modes import FUNCTIONAL

    says = re.match(r"RuntimeError: output with shape .* doesn't match the broadcast shape", finding.message)
    if finding.mode not in ("npugraph_ex", "npugraph_ex_dynamic") or says is None or is_right(program, finding.mode):
        return False
    return is_explained(program, finding, FUNCTIONAL)


def _rank_case(*sizes: int) -> Case:
    nodes = (SINE, ProgramLine("{0} + {1}", ("v0", "x1"), ("v1",)))
    program, finding = case("npugraph_ex", _RANK, *nodes, outputs=("v1",))
    return replace(program, inputs=(Input("x0", "float32", (1,)), Input("x1", "float32", sizes))), finding


def _in_place_of_what_is_read(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether npugraph_ex lets an operator write to memory that it reads by another argument.

    The same program is right without the pass for writes in place.
    """
    from benchmarks.fuzz.modes import FUNCTIONAL

    says = "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory"
    captures = finding.mode in ("npugraph_ex", "npugraph_ex_dynamic") and says in finding.message
    if not captures or is_right(program, finding.mode):
        return False
    return is_right(program, finding.mode + FUNCTIONAL)


def _read_case(source: str) -> Case:
    nodes = (SINE, ProgramLine(f"torch.index_add({{0}}[:2], 0, {_ZEROS}, {source})", ("v0",), ("v1",)))
    program, finding = case("npugraph_ex", _READ, *nodes, outputs=("v1",))
    return replace(program, sizes=({"a": 3},)), finding


def _overlapping_input(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether a later call's input is copied into that of the first, whose elements share memory.

    The same program is right, or has another known fault, with inputs and values that have memory of their own.
    """
    says = re.match(r"RuntimeError: unsupported operation: more than one element of the written-to", finding.message)
    if program.operators:  # graphs with registered operators do not return their inputs
        return False
    if finding.mode not in ("npugraph_ex", "npugraph_ex_dynamic") or says is None or is_right(program, finding.mode):
        return False
    return "acl_graph.py" in finding.message and is_explained(without_overlaps(program), finding)


def _overlapping_case(line: str) -> Case:
    program, finding = case("npugraph_ex", _WRITTEN, ProgramLine(line, ("x0",), ("v0",)), outputs=("v0",))
    return replace(program, inputs=(replace(program.inputs[0], layout="expanded"),)), finding


def _strided_input(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether a gradient keeps a copy of an input with strides, which a capture has in contiguous memory.

    Graphs with registered operators are right. The same program is right, or has another known fault, with contiguous inputs.
    """
    says = re.match(r"AssertionError: expected size .*, stride \d+==\d+ at dim", finding.message)
    captures = finding.mode in ("npugraph_ex", "npugraph_ex_dynamic") and program.grad and not program.operators
    if not captures or says is None or is_right(program, finding.mode):
        return False
    return is_explained(with_contiguous_inputs(program), finding)


def _strided_case(layout: str) -> Case:
    nodes = (ProgramLine("{0}.clone()", ("x0",), ("v0",)), ProgramLine("{0} * {0}", ("v0",), ("v1",)))
    program, finding = case("npugraph_ex", _STRIDES, *nodes, outputs=("v1",), grad=True)
    inputs = (replace(program.inputs[0], sizes=("a", 5), layout=layout),)
    return replace(program, inputs=inputs), finding


def _overwritten_input(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether a later call's input is copied into that of the first, which is returned, or kept for the gradient.

    The same program is right, or has another known fault, once it reads copies of its inputs.
    """
    captures = finding.mode in ("npugraph_ex", "npugraph_ex_dynamic")
    if (
        not captures
        or calls_operators(program)
        or finding.kind not in ("value of earlier arguments", "memory is not shared")
    ):
        return False
    return not is_right(program, finding.mode) and is_explained(with_copied_inputs(program), finding)


def _view_case(line: str) -> Case:
    program, finding = case(
        "npugraph_ex", "call 2: argument 0 of call 1", SINE, ProgramLine(line, ("x0",), ("v1",)), outputs=("v0", "v1")
    )
    program = replace(program, sizes=({"a": 2}, {"a": 2}))
    return program, replace(finding, kind="value of earlier arguments")


def _result_in_a_cat(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether a part of a concatenation lies in it, and is a result, or written in place, too.

    The same program is right without the pass that makes operators compute there.
    """
    from benchmarks.fuzz.modes import CATS

    captures = finding.mode in ("npugraph_ex", "npugraph_ex_dynamic")
    kinds = ("memory is shared", "value of outputs", "value of arguments")
    if not captures or calls_operators(program) or finding.kind not in kinds or is_right(program, finding.mode):
        return False
    return is_right(program, finding.mode + CATS)


def _cat_case(*outputs: str) -> Case:
    program, finding = case("npugraph_ex", "call 1: output 0 and output 1", SINE, _CAT, outputs=outputs)
    return program, replace(finding, kind="memory is shared")


_ZEROS = "torch.zeros_like({0}[:2], dtype=torch.int64)"
_READ = "RuntimeError: unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
_CAT = ProgramLine("torch.cat([{0}, {0}])", ("v0",), ("v1",))
_RANK = "RuntimeError: output with shape torch.Size([1]) doesn't match the broadcast shape (1, 1)"
_WRITTEN = "RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation. [_acl_concrete_graph/acl_graph.py:1529]"
_STRIDES = "AssertionError: expected size 2==2, stride 5==1 at dim=0; expected size 5==5, stride 1==2 at dim=1"
_MAXIMUM = "NameError: name 'Max' is not defined"
_STALE = "RuntimeError: Expected allocated_pointer != definitely_stale_pointers.end() to be true, but got false."
_GROWN = "RuntimeError: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1 [_acl_concrete_graph/acl_graph.py:1535]"
_WHERE = ProgramLine("torch.where({0} > 0, {0}, 2.0)", ("x0",), ("v0",))


def _step_case(line: str) -> Case:
    node = ProgramLine(line, ("x0",), ("v0",))
    program, finding = case("npugraph_ex_dynamic", _MAXIMUM, node, outputs=("v0",), grad=True)
    inputs = (replace(program.inputs[0], sizes=("a", "b")),)
    return replace(program, inputs=inputs, sizes=({"a": 4, "b": 3}, {"a": 5, "b": 7})), finding


def _parts_case(grad: bool) -> Case:
    split = ProgramLine("torch.split({0}, 1)", ("x0",), ("v0", "v1"))
    program, finding = case("npugraph_ex", "call 2: argument 0 and output 0, argument 0 and output 1", split, grad=grad)
    program = replace(program, outputs=("v0", "v1"), sizes=({"a": 2},))
    return program, replace(finding, kind="memory is not shared")


CAPTURE_FAULTS: tuple[KnownFault, ...] = (
    KnownFault(
        "view-of-exchanged-buffer",
        _exchanged_buffer,
        lambda: _exchanged_case(exchanged=True),
        lambda: _exchanged_case(exchanged=False),
    ),
    KnownFault(
        "real-constant-in-gradient",
        _real_constant,
        lambda: case("npugraph_ex", _REAL, _WHERE, outputs=("v0",), grad=True),
        lambda: case("npugraph_ex", _REAL, SINE, outputs=("v0",), grad=True),
    ),
    KnownFault(
        "slice-for-base-in-gradient",
        _slice_for_base,
        lambda: _slice_case("{0}[:2]"),
        lambda: _slice_case("{0}"),
    ),
    KnownFault(
        "parts-of-an-input",
        _parts_of_an_input,
        lambda: _parts_case(grad=True),
        lambda: _parts_case(grad=False),
    ),
    KnownFault(
        "unused-input-grows",
        _unused_input,
        lambda: _unused_case("v0"),
        lambda: _unused_case("v0", "v1"),
    ),
    KnownFault(
        "maximum-in-gradient",
        _unnamed_maximum,
        lambda: _step_case("{0}[:, ::2] - 1"),
        lambda: _step_case("{0}[::2] - 1"),
    ),
    KnownFault("empty-output", _empty_output, lambda: _empty_case(0), lambda: _empty_case(2)),
    KnownFault(
        "as-strided-of-a-removed-copy",
        _strided_copy,
        lambda: _copy_case("torch.clone({0})"),
        lambda: _copy_case("{0} + 0.5"),
    ),
    KnownFault(
        "view-of-first-input", _overwritten_input, lambda: _view_case("{0}[1:]"), lambda: _view_case("{0}[1:] + 1")
    ),
    KnownFault(
        "strided-input-in-gradient",
        _strided_input,
        lambda: _strided_case("transposed"),
        lambda: _strided_case("plain"),
    ),
    KnownFault("result-in-a-cat", _result_in_a_cat, lambda: _cat_case("v0", "v1"), lambda: _cat_case("v1")),
    KnownFault("in-place-of-another-rank", _other_rank, lambda: _rank_case(1, 1), lambda: _rank_case(1)),
    KnownFault(
        "in-place-of-what-is-read",
        _in_place_of_what_is_read,
        lambda: _read_case("{0}[1:]"),
        lambda: _read_case("{0}[1:] + 1"),
    ),
    KnownFault(
        "overlapping-input-of-a-capture",
        _overlapping_input,
        lambda: _overlapping_case("{0}.detach()"),
        lambda: _overlapping_case("torch.sin({0})"),
    ),
)

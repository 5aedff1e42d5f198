"""Known faults of the wheels as predicates over a program and its finding; docs/wheel-faults.md describes each.

Each has its smallest program and a sibling that it must not explain: a predicate that is too broad hides other faults.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import torch

from benchmarks.fuzz.controls import (
    calls_operators,
    converted_with,
    exact_gelu,
    from_the_start,
    is_explained,
    is_right,
    separated_values,
    with_copied_outputs,
    with_copies,
    with_known_ones,
    without_bits,
    without_input_views,
    without_overlaps,
)
from benchmarks.fuzz.faults import SINE, SLICE, Case, KnownFault, as_strided, case
from benchmarks.fuzz.findings import FuzzFinding
from benchmarks.fuzz.known_captures import CAPTURE_FAULTS
from benchmarks.fuzz.known_dtypes import DTYPE_FAULTS
from benchmarks.fuzz.known_options import OPTION_FAULTS
from benchmarks.fuzz.programs import FuzzProgram, ProgramLine, make_arguments


def _scalar_view(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether TorchAir's converter of ``as_strided`` fails on a view of rank 0, whose last size it reads."""
    message = r"IndexError: list index out of range\s+While executing %as_strided\S* .*aten\.as_strided\.default\]\(args = \(%\w+, \[\], \[\]"
    # Functionalizing a write makes one; a program may call it itself.
    writes = any(not node.targets or "as_strided" in node.text for node in program.nodes)
    return finding.mode in ("ge", "ge_dynamic") and writes and re.match(message, finding.message, re.DOTALL) is not None


def _strided_view(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether ``as_strided`` takes PyTorch's strides of a view, or of an input with strides or an offset.

    GE has either in contiguous memory, a capture its copies of inputs. The same program is right with ``as_strided`` of copies,
    where a capture runs without the pass for writes in place if the program is wrong without it, too. GE graphs with registered
    operators take such views from what was computed.
    """
    from benchmarks.fuzz.modes import FUNCTIONAL

    if finding.mode.startswith("ge") and program.operators and calls_operators(program):
        return False

    outside = (
        r"RuntimeError: (node AsStrided \(AsStrided\): .* reach outside|setStorage: sizes .* out of bounds for storage)"
    )
    says = re.match(outside, finding.message)
    values = finding.kind in ("value of outputs", "value of arguments")
    if not finding.mode.startswith(("ge", "npugraph_ex")) or not (values or says) or is_right(program, finding.mode):
        return False
    strided = any(_has_strided_source(program, call) for call in range(len(program.sizes)))
    modes = [finding.mode]
    if finding.mode.startswith("npugraph_ex") and not is_right(program, finding.mode + FUNCTIONAL):
        modes.append(finding.mode + FUNCTIONAL)
    return strided and any(is_right(with_copies(program), mode) for mode in modes)


def _has_strided_source(program: FuzzProgram, call: int) -> bool:
    """Return whether ``as_strided`` is given a tensor with gaps or an offset in one of the calls."""
    scope = program.scope()
    scope.update(zip(program.names(), make_arguments(program, call), strict=True))
    for node in program.nodes:
        if ".as_strided(" in node.text:
            source = scope[node.args[0]]
            if source.storage_offset() or not source.is_contiguous():
                return True
        exec(node.line(), scope)
    return False


def _is_input_view(program: FuzzProgram) -> bool:
    """Return whether an output shares memory with an input that a line writes, through ATen operators alone."""
    from benchmarks.fuzz.modes import cpu_results

    if calls_operators(program):
        return False  # graphs with registered operators are compiled without the fault
    scope = program.scope()
    scope.update(zip(program.names(), make_arguments(program, 0), strict=True))
    exec("\n".join(node.line() for node in program.nodes), scope)
    written = {f"argument {n}" for n, i in enumerate(program.inputs) if scope[i.name]._version}
    return any(a in written and b.startswith("output") for a, b in cpu_results(program)[0].shared)


def _input_view(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether a returned view of a written input has lost its offset or strides (W9, W10).

    The same program is right, or has another known fault, once it returns no such view.
    """
    says = {
        "ge_dynamic": r"RuntimeError: setStorage: sizes .* are out of bounds for storage|call \d+: \[\d+\]",
        "npugraph_ex_dynamic": r"RuntimeError: (Expected allocated_pointer != definitely_stale_pointers|Any stale tensors which)",
    }.get(finding.mode)
    kinds = ("raises", "value of outputs")
    return (
        says is not None
        and finding.kind in kinds
        and re.match(says, finding.message) is not None
        and _is_input_view(program)
        and is_explained(without_input_views(program), finding)
    )


def _overlapping_write(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether ATen writes to an input whose own elements share memory, which GE has apart.

    Registered operators that write such an input are refused by name. The same program is right, or has another known fault, with inputs that have memory of their own.
    """
    values = finding.kind in ("value of outputs", "value of arguments")
    apart = without_overlaps(program)
    if finding.mode not in ("ge", "ge_dynamic") or not values or apart.inputs == program.inputs:
        return False
    return not is_right(program, finding.mode) and is_explained(apart, finding)


def _windows_case(layout: str) -> Case:
    program, finding = case("ge", "call 1: [0]: 1 of 6 values differ", ProgramLine("{0}[1].add_(1)", ("x0",)))
    inputs = (replace(program.inputs[0], sizes=(3, "a"), layout=layout),)
    return replace(program, inputs=inputs), replace(finding, kind="value of outputs")


def _bits(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether GE reads an input without its negative bit, in a program without registered operators.

    The same program is right, or has another known fault, without the bit.
    """
    plain = without_bits(program)
    values = finding.kind in ("value of outputs", "value of arguments")
    values |= finding.kind == "value of gradients" and program.grad
    values |= finding.kind == "form of outputs" and "is_neg" in finding.message  # it lies in the input
    if finding.mode not in ("ge", "ge_dynamic") or not values or program.operators or plain == program:
        return False
    return not is_right(program, finding.mode) and is_explained(plain, finding)


def _reordered_views(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether TorchAir's pass for views takes the strides of a value that it does not have, without registered operators.

    The same program is right without the pass.
    """
    from benchmarks.fuzz.modes import VIEWS

    values = finding.kind in ("value of outputs", "value of arguments")
    values |= finding.kind == "value of gradients" and program.grad
    if finding.mode not in ("ge", "ge_dynamic") or not values or calls_operators(program):
        return False
    return not is_right(program, finding.mode) and is_right(program, finding.mode + VIEWS)


def _views_case(first: str) -> Case:
    nodes = (ProgramLine(first, ("x0",), ("v0",)), ProgramLine("({0} + 1).t().reshape(-1)", ("v0",), ("v1",)))
    program, finding = case("ge", "call 1: [0]: 4 of 6 values differ", *nodes, outputs=("v1",))
    inputs = (replace(program.inputs[0], sizes=(3, "a")),)
    return replace(program, inputs=inputs), replace(finding, kind="value of outputs")


def _bits_case(layout: str) -> Case:
    program, finding = case("ge", "call 1: [0]: 2 of 2 values differ", SINE, outputs=("v0",))
    inputs = (replace(program.inputs[0], layout=layout),)
    return replace(program, inputs=inputs), replace(finding, kind="value of outputs")


def _alias_of_output(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether a view of another output is made again by the strides and the offset of GE's copy of it (gradients).

    The same program is right, or has another known fault, once it returns copies. Graphs with registered operators do not
    have this one.
    """
    from benchmarks.fuzz.modes import cpu_results

    raises = re.match(r"RuntimeError: setStorage: sizes .* are out of bounds for storage", finding.message)
    if finding.mode != "ge_dynamic" or not program.grad or not (raises or finding.kind == "value of outputs"):
        return False
    if calls_operators(program):
        return False
    shared = cpu_results(program)[0].shared
    aliases = any(a.startswith("output") and b.startswith("output") for a, b in shared)
    if not aliases:
        return False
    return is_explained(with_copied_outputs(program), finding)


def _first_offset(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether a training step returns, or keeps, a part of an input by the offset of the first call's tensor (W31).

    The same program is right, or has another known fault, if no call's inputs have an offset.
    """
    raises = re.match(r"RuntimeError: setStorage: sizes .* are out of bounds for storage", finding.message)
    if finding.mode not in ("ge", "ge_dynamic") or not program.grad or calls_operators(program):
        return False
    plain = tuple(replace(i, layout="plain") if i.layout == "offset" else i for i in program.inputs)
    later = re.match(r"call (?!1:)", finding.message) is not None
    wrong = later and finding.kind in ("value of outputs", "value of gradients")
    asked = plain != program.inputs and bool(raises or wrong)
    return asked and not is_right(program, finding.mode) and is_explained(replace(program, inputs=plain), finding)


def _offset_case(layout: str) -> Case:
    part = ProgramLine("torch.chunk({0}, 2)", ("x0",), ("v0", "v1"))
    program, finding = case("ge", "call 2: [0]: 2 of 2 values differ", part, outputs=("v0",), grad=True)
    inputs = (replace(program.inputs[0], sizes=(4, "a"), layout=layout),)
    return replace(program, inputs=inputs, sizes=program.sizes[:1] * 2), replace(finding, kind="value of outputs")


def _value_of_two(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether a value is written to two inputs, or written to one and returned (W20 to W22).

    The same program is right once each written input has a value of its own.
    """
    kinds = ("value of arguments", "value of outputs", "memory is shared")
    compiled = finding.mode.startswith(("ge", "npugraph_ex"))
    if not compiled or calls_operators(program) or finding.kind not in kinds or is_right(program, finding.mode):
        return False
    with separated_values():
        return is_right(program, finding.mode)


def _two_case(lines: int) -> Case:
    nodes = (SINE, ProgramLine("{0}.copy_({1})", ("x1", "v0")), ProgramLine("{0}.copy_({1})", ("x0", "v0")))
    program, finding = case("ge", "call 1: [0]: 2 of 2 values differ", *nodes[:lines], outputs=("n",))
    inputs = (*program.inputs, replace(program.inputs[0], name="x1"))
    return replace(program, inputs=inputs), replace(finding, kind="value of arguments")


_TRUNCATED = (
    "RuntimeError: input 0 is a number, which the graph declares as float32 and is given as int64. TorchAir hands"
)
_SLICED = (
    "RuntimeError: value cannot be converted to type int32 without overflow\n\nWhile executing %slice_backward_1 : "
)
_NORMALIZED = "ValueError: Input v should not be a Tensor object for creating a Const node.\n\nWhile executing %native_layer_norm_backward : "


def _refused(says: str, *, grad: bool = True) -> Callable[[FuzzProgram, FuzzFinding], bool]:
    """Return a predicate of a message with which TorchAir's converter refuses dynamic sizes, in gradients alone if asked.

    Graphs with registered operators that write have nodes of our own, unless PyTorch makes views of inputs that share memory.
    """

    def explains(program: FuzzProgram, finding: FuzzFinding) -> bool:
        asked = finding.mode == "ge_dynamic" and (program.grad or not grad)
        asked = asked and (any(i.alias for i in program.inputs) or not any(op.written for op in program.operators))
        return asked and re.match(says, finding.message) is not None

    return explains


def _negative_slice(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether TorchAir's converter of the gradient of a slice takes a dimension counted from the end for none.

    The same program is right once the converter is given the dimension counted from the start.
    """
    says = r"RuntimeError: (node .*must match|Function CompiledFunctionBackward returned an invalid gradient)"
    raises = finding.kind == "raises" and re.match(says, finding.message, re.DOTALL) is not None
    if finding.mode != "ge_dynamic" or not program.grad or not raises or is_right(program, finding.mode):
        return False
    with converted_with(torch.ops.aten.slice_backward.default, from_the_start):
        return is_right(program, finding.mode)


def _gelu_tanh(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether TorchAir's converter of ``gelu`` dropped ``approximate="tanh"``: all results are those of the exact one."""
    from benchmarks.fuzz.check import run_mode
    from benchmarks.fuzz.modes import cpu_results

    exact = exact_gelu(program)
    if finding.mode not in ("ge", "ge_dynamic") or finding.kind != "value of outputs" or exact == program:
        return False
    return not is_right(program, finding.mode) and run_mode(program, finding.mode, cpu_results(exact))[1] is None


def _gelu_case(approximate: str) -> Case:
    node = ProgramLine(f"F.gelu({{0}}, approximate={approximate!r})", ("x0",), ("v0",))
    program, finding = case("ge", "", node, outputs=("v0",))
    return program, replace(finding, kind="value of outputs", message="call 1: [0]: 1 of 2 values differ")


def _symbolic_one(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether TorchAir's converter of ``squeeze`` keeps a dimension whose size is 1 by a guard.

    The same program is right once the converter, and nothing else, is given the number.
    """
    kinds = ("raises", "form of outputs", "value of outputs", "value of arguments")
    squeezes = any(".squeeze" in node.text for node in program.nodes)
    if finding.mode != "ge_dynamic" or finding.kind not in kinds or not squeezes or is_right(program, finding.mode):
        return False
    squeeze = torch.ops.aten.squeeze
    with converted_with(squeeze.default, with_known_ones), converted_with(squeeze.dim, with_known_ones):
        return is_right(program, finding.mode)


def _squeeze_case(line: str) -> Case:
    nodes = (ProgramLine("torch.tensor_split({0}, 3, -1)", ("x0",), ("v0", "v1", "v2")),)
    nodes += (ProgramLine(line, ("v2",), ("v3",)), ProgramLine("{0}.add_(1)", ("v3",)))
    program, finding = case("ge_dynamic", _SCATTER, *nodes)
    inputs = (replace(program.inputs[0], sizes=("b", "a")),)
    return replace(program, inputs=inputs, sizes=({"a": 3, "b": 2},)), finding


_SCATTER = "RuntimeError: node ScatterElements (ScatterElements): Index tensor must have the same number of dimensions as self tensor"
_SQUARE = ProgramLine("{0}.mul_({0})", ("x0",))
_EXPAND = ProgramLine("{0}.expand(2, *{0}.shape)", ("x0",), ("v0",))
_NEXT = ProgramLine("{0} + 1", ("v2",), ("v3",))
_OUTSIDE = "RuntimeError: node AsStrided (AsStrided): size [2], stride [4] and offset 0 reach outside of 4 elements"
_EXPANDED = ProgramLine("{0}.expand(2, *{0}.shape)", ("v0",), ("v1",))
_STORAGE = "RuntimeError: setStorage: sizes [2, 2], strides [2, 1], storage offset 0, and itemsize 4 requiring a storage size of 16 are out of bounds for storage of size 8"
_NARROWED = "RuntimeError: node Mul (Mul): The size of tensor a (5) must match the size of tensor b (2) at non-singleton dimension 0; its inputs: x1=float32[5, 3], x2=float32[2, 3]"
_SCATTERED = "RuntimeError: node ViewCopy (ViewCopy): size [4, 3] and stride [{}] differ in length; expected one"
_WRITE = ProgramLine("{0}[0].add_(1)", ("x0",))
_STRIDED = "IndexError: list index out of range\n\nWhile executing %as_strided : [num_users=1] = call_function[target=torch.ops.aten.as_strided.default](args = (%getitem, [], []"


def _nothing_case(grad: bool) -> Case:
    message = "RuntimeError: node FloorMod (FloorMod): ZeroDivisionError; its inputs: x1=int64[], x2=int64[]"
    nodes = (SINE, ProgramLine("{0}[:1]", ("v0",), ("v1",)))
    program, finding = case("ge_dynamic", message, *nodes, outputs=("v1",), grad=grad)
    return replace(program, inputs=(replace(program.inputs[0], sizes=(0, "a")),)), finding


def _narrow_case(dim: int) -> Case:
    nodes = (SINE, ProgramLine(f"{{0}}.narrow({dim}, 0, 1)", ("v0",), ("v1",)))
    program, finding = case("ge_dynamic", _NARROWED, *nodes, outputs=("v1",), grad=True)
    return replace(program, inputs=(replace(program.inputs[0], sizes=("a", 3)),)), finding


KNOWN: tuple[KnownFault, ...] = (
    *CAPTURE_FAULTS,
    *OPTION_FAULTS,
    *DTYPE_FAULTS,
    KnownFault(
        "symbolic-float-truncated",
        _refused(r"RuntimeError: input \d+ is a number, which the graph declares as float32 and is given as int64"),
        lambda: case("ge_dynamic", _TRUNCATED, grad=True),
        lambda: case("ge_dynamic", _TRUNCATED),
    ),
    KnownFault(
        "slice-in-gradient",
        _refused(r"RuntimeError: value cannot be converted to type int32.*\s+While executing %slice_backward"),
        lambda: case("ge_dynamic", _SLICED, grad=True),
        lambda: case("ge_dynamic", _SLICED),
    ),
    KnownFault(
        "slice-of-nothing-in-gradient",
        _refused(r"RuntimeError: node FloorMod \(FloorMod\): ZeroDivisionError"),
        lambda: _nothing_case(grad=True),
        lambda: _nothing_case(grad=False),
    ),
    KnownFault("negative-slice-in-gradient", _negative_slice, lambda: _narrow_case(-2), lambda: _narrow_case(0)),
    KnownFault(
        "layer-norm-without-weight-in-gradient",
        _refused(r"ValueError: Input v should not be a Tensor.*\s+While executing %native_layer_norm_backward"),
        lambda: case("ge_dynamic", _NORMALIZED, grad=True),
        lambda: case("ge_dynamic", _NORMALIZED),
    ),
    KnownFault(
        "as-strided-scatter",
        # The rank of the tensor of sizes, 1, is taken for their number.
        _refused(
            r"RuntimeError: node ViewCopy .*: size \[\d+, [\d, ]*\] and stride \[1\] differ in length", grad=False
        ),
        lambda: case("ge_dynamic", _SCATTERED.format("1")),
        lambda: case("ge_dynamic", _SCATTERED.format("3, 1")),
    ),
    KnownFault(
        "alias-of-output-in-gradient",
        _alias_of_output,
        lambda: case("ge_dynamic", _STORAGE, SINE, _EXPANDED, outputs=("v0", "v1"), grad=True),
        lambda: case("ge_dynamic", _STORAGE, SINE, _EXPANDED, outputs=("v1",), grad=True),
    ),
    KnownFault(
        "as-strided-of-a-view",
        _strided_view,
        lambda: case("ge", _OUTSIDE, SLICE, as_strided("v1"), _NEXT, outputs=("v3",)),
        lambda: case("ge", _OUTSIDE, SLICE, as_strided("x0"), _NEXT, outputs=("v3",)),
    ),
    KnownFault(
        "symbolic-size-of-one",
        _symbolic_one,
        lambda: _squeeze_case("{0}.squeeze()"),
        lambda: _squeeze_case("{0}.flatten()"),
    ),
    KnownFault(
        "write-to-overlapping-input",
        _overlapping_write,
        lambda: _windows_case("windows"),
        lambda: _windows_case("gaps"),
    ),
    KnownFault(
        "reordered-views", _reordered_views, lambda: _views_case("{0}.t()"), lambda: _views_case("{0}.t().contiguous()")
    ),
    KnownFault("bits-of-inputs", _bits, lambda: _bits_case("negated"), lambda: _bits_case("plain")),
    KnownFault("value-of-two-tensors", _value_of_two, lambda: _two_case(3), lambda: _two_case(2)),
    KnownFault("gelu-tanh", _gelu_tanh, lambda: _gelu_case("tanh"), lambda: _gelu_case("none")),
    KnownFault(
        "view-of-written-input",
        _input_view,
        lambda: case("ge_dynamic", _STORAGE, _SQUARE, _EXPAND, outputs=("v0",)),
        lambda: case("ge_dynamic", _STORAGE, _EXPAND, outputs=("v0",)),
    ),
    KnownFault("offset-of-first-call", _first_offset, lambda: _offset_case("offset"), lambda: _offset_case("plain")),
    KnownFault(
        "as-strided-scalar",
        _scalar_view,
        lambda: case("ge", _STRIDED, _WRITE),
        lambda: case("ge", _STRIDED, ProgramLine("{0} + 1", ("x0",), ("v0",)), outputs=("v0",)),
    ),
)


def known_fault(program: FuzzProgram, finding: FuzzFinding) -> str:
    """Return the name of the wheel's fault that explains a finding, or an empty text."""
    return next((k.name for k in KNOWN if k.explains(program, finding)), "")

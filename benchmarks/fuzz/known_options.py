"""Known faults of options of the wheel's compilers: predicates of a program and its finding."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.fuzz.controls import calls_operators, is_explained, is_right
from benchmarks.fuzz.faults import Case, KnownFault, case
from benchmarks.fuzz.findings import FuzzFinding
from benchmarks.fuzz.programs import FuzzProgram, ProgramLine


def _is_of(option: str, program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether a capture of ATen alone is right without an option that it has, or wrong by another known fault."""
    captures = tuple(each for each in program.setting.captures if each[0] != option)
    plain = replace(program, setting=replace(program.setting, captures=captures))
    if not finding.mode.startswith("npugraph_ex") or plain == program or calls_operators(program):
        return False
    return not is_right(program, finding.mode) and is_explained(plain, finding)


def _cloned_views(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether a capture clones a returned view of an input: the clone's place is taken for the view's."""
    return finding.kind in ("value of outputs", "raises") and _is_of("clone_output", program, finding)


def _static_kernels(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether a capture runs once more to record its calls, on the inputs that it writes, or on fake tensors."""
    return finding.kind != "value of gradients" and _is_of("static_kernel_compile", program, finding)


def _clone_case(clones: bool) -> Case:
    nodes = (ProgramLine("{0}.view(-1, {0}.shape[-1])", ("x0",), ("v0",)), ProgramLine("{0}[:, -1]", ("v0",), ("v1",)))
    program, finding = case("npugraph_ex_dynamic", "call 1: [0]: 1 of 2 values differ", *nodes, outputs=("v1",))
    captures = (("clone_output", clones),)
    return replace(program, setting=replace(program.setting, captures=captures)), replace(
        finding, kind="value of outputs"
    )


def _static_case(static: bool) -> Case:
    nodes = (ProgramLine("{0}.add_(1)", ("x0",), ()), ProgramLine("{0} * 2", ("x0",), ("v0",)))
    program, finding = case("npugraph_ex", "call 1: [0]: 2 of 2 values differ", *nodes, outputs=("v0",))
    captures = (("static_kernel_compile", static),)
    return replace(program, setting=replace(program.setting, captures=captures)), replace(
        finding, kind="value of outputs"
    )


OPTION_FAULTS = (
    KnownFault("cloned-views", _cloned_views, lambda: _clone_case(True), lambda: _clone_case(False)),
    KnownFault("static-kernels", _static_kernels, lambda: _static_case(True), lambda: _static_case(False)),
)

"""Known faults of options of the wheel's compilers: predicates of a program and its finding."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.fuzz.controls import calls_operators, is_right
from benchmarks.fuzz.faults import Case, KnownFault, case
from benchmarks.fuzz.findings import FuzzFinding
from benchmarks.fuzz.programs import FuzzProgram, ProgramLine


def _cloned_views(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether a capture clones a returned view of an input: the clone's place is taken for the view's.

    The same program is right without ``clone_output``.
    """
    captures = tuple(option for option in program.setting.captures if option[0] != "clone_output")
    plain = replace(program, setting=replace(program.setting, captures=captures))
    if not finding.mode.startswith("npugraph_ex") or finding.kind != "value of outputs" or plain == program:
        return False
    return not calls_operators(program) and not is_right(program, finding.mode) and is_right(plain, finding.mode)


def _clone_case(clones: bool) -> Case:
    nodes = (ProgramLine("{0}.view(-1, {0}.shape[-1])", ("x0",), ("v0",)), ProgramLine("{0}[:, -1]", ("v0",), ("v1",)))
    program, finding = case("npugraph_ex_dynamic", "call 1: [0]: 1 of 2 values differ", *nodes, outputs=("v1",))
    captures = (("clone_output", clones),)
    return replace(program, setting=replace(program.setting, captures=captures)), replace(
        finding, kind="value of outputs"
    )


OPTION_FAULTS = (KnownFault("cloned-views", _cloned_views, lambda: _clone_case(True), lambda: _clone_case(False)),)

"""Known faults of GE's nodes with float64: predicates of a program and its finding."""

from __future__ import annotations

import re
from dataclasses import replace

from benchmarks.fuzz.controls import is_right
from benchmarks.fuzz.faults import Case, KnownFault, case
from benchmarks.fuzz.findings import FuzzFinding
from benchmarks.fuzz.programs import FuzzProgram, ProgramLine

#: Lines whose GE node has an attr that is no short binary fraction.
_ATTRS = re.compile(r"F\.(selu|leaky_relu|scaled_dot_product_attention)\(")


def _float_attr(program: FuzzProgram, finding: FuzzFinding) -> bool:
    """Return whether a node of float64 computes with an attr of float32, as all float attrs of GE nodes are.

    The same program is right with inputs of float32.
    """
    inputs = tuple(replace(i, dtype="float32") if i.dtype == "float64" else i for i in program.inputs)
    values = finding.kind == "value of outputs" or (finding.kind == "value of gradients" and program.grad)
    if finding.mode not in ("ge", "ge_dynamic") or not values or inputs == program.inputs:
        return False
    if not any(_ATTRS.search(node.text) for node in program.nodes) or is_right(program, finding.mode):
        return False
    return is_right(replace(program, inputs=inputs), finding.mode)


def _selu_case(dtype: str) -> Case:
    line = ProgramLine("F.selu({0})", ("x0",), ("v0",))
    program, finding = case("ge", "call 1: [0]: 2 of 2 values differ", line, outputs=("v0",))
    inputs = (replace(program.inputs[0], dtype=dtype),)
    return replace(program, inputs=inputs), replace(finding, kind="value of outputs")


DTYPE_FAULTS: tuple[KnownFault, ...] = (
    KnownFault("float-attr-of-double", _float_attr, lambda: _selu_case("float64"), lambda: _selu_case("float32")),
)

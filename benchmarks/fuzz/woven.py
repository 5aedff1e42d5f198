"""Random ATen programs with calls of two registered operators between their lines: one that computes, one that writes."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import replace
from random import Random

from benchmarks.fuzz.generate import Line, ProgramDrawing, UnusableLineError
from benchmarks.fuzz.operators import ROUTES, FuzzOperator, FuzzOutput, InputSpec, letters
from benchmarks.fuzz.programs import FuzzProgram

#: Shares of lines that call an operator, and that make memory which others share.
SHARES = {"operators": 0.35, "between": 0.3, "any": 0.35}
_COMPUTES: tuple[Line, ...] = (("f=", "op0({0}, {1})", 1), ("f", "op0({0}, {0})", 1))
_WRITES: tuple[Line, ...] = (
    ("f=", "op1({0}, {1})", 0),
    ("f=", "op1({0}, {1} * 2)", 0),
    ("f", "op1({0}, {0}.clone())", 0),
)
_BETWEEN: tuple[Line, ...] = (
    *(("f=", f"torch.cat([{pair}]{dim})", 1) for pair in ("{0}, {1}", "{0}, {0} + 1") for dim in ("", ", 0", ", -1")),
    *(
        ("f", text, 1)
        for text in ("torch.sin({0})", "{0} * 2", "{0}.clone()", "{0}[1:]", "{0}.flatten()", "{0}.mT", "{0}[0]")
    ),
    ("f=", "torch.stack([{0}, {1}])", 1),
    ("f", "torch.chunk({0}, 2)", 2),
    ("f=", "{0}.copy_({1})", 0),
)


def _operators(seed: int, grad: bool) -> tuple[FuzzOperator, ...]:
    """Return an operator that computes, and one that writes unless gradients are compared: it has none."""
    r = Random(f"woven operators {seed}")
    inputs = tuple(InputSpec(name, "required", ("*s",), label=name) for name in ("x", "w"))
    dtypes, order = ("float32", "float16", "bfloat16", "float64"), (0, 1)

    def output(name: str) -> FuzzOutput:
        return FuzzOutput(name, ("*s",), ("*s",), (r.choice([0.5, 1.0]), r.choice([-1.0, 0.5, 1.0])), dtype="x")

    computes, writes = f"Woven{letters(seed)}Computes", f"Woven{letters(seed)}Writes"
    returned = (output("x"),) if r.random() < 0.6 else (output("x"), output("y"))
    first = FuzzOperator(computes, inputs, (), (output("y"),), dtypes, r.choice(ROUTES), order=order, backward=grad)
    return (
        (first,) if grad else (first, FuzzOperator(writes, inputs, (), returned, dtypes, r.choice(ROUTES), "x", order))
    )


def generate_woven(seed: int) -> FuzzProgram:
    """Return the program of a seed, 4 to 20 lines, a third of which call registered operators."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawing = ProgramDrawing(seed)
        operators = _operators(seed, drawing.program.grad)
        drawing.begin(replace(drawing.program, operators=operators))
        several = any(len(op.outputs) > 1 for op in operators)
        writes = [(kinds, text, int(several)) for kinds, text, _ in _WRITES if len(operators) > 1]
        wanted = drawing.random.choice([4, 6, 8, 12, 16, 20])
        if writes and drawing.random.random() < 0.5:  # an argument of the program is written, and copied
            with contextlib.suppress(UnusableLineError):
                drawing.try_line(drawing.random.choice(writes))
                drawing.try_line(("f", "{0}.clone()", 1))
        for _ in range(wanted * 20):
            if len(drawing.nodes) >= wanted:
                break
            (kind,) = drawing.random.choices(list(SHARES), list(SHARES.values()))
            among = {"operators": (*_COMPUTES, *writes), "between": _BETWEEN, "any": (None,)}[kind]
            try:
                drawing.try_line(drawing.random.choice(among))
            except UnusableLineError:
                continue
        calls = [node for node in drawing.nodes if node.text.startswith("op")]
        if not calls:
            drawing.begin(replace(drawing.program, nodes=tuple(drawing.nodes), operators=()))
            return drawing.finish()
        # One call at least is in the graph: what nothing needs is dropped.
        return drawing.finish([(calls[-1].targets or calls[-1].args)[0]])

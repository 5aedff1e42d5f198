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
#: Calls of the operator that writes, by what it writes: its first input, both, an optional second one, too, or a list.
_WRITES: dict[str, tuple[Line, ...]] = {
    "one": (("f=", "op1({0}, {1})", 0), ("f=", "op1({0}, {1} * 2)", 0), ("f", "op1({0}, {0}.clone())", 0)),
    "both": (
        ("f=", "op1({0}, {1})", 0),
        ("f=", "op1({0}[:1], {1}[-1:])", 0),
        ("f", "op1({0}[:1], {0}[-1:])", 0),
        ("f", "op1({0}[..., ::2], {0}[..., 1::2])", 0),
        ("f", "op1({0}[0], {0}[1])", 0),
    ),
    "optional": (("f=", "op1({0}, {1})", 0), ("f", "op1({0}, None)", 0), ("f", "op1({0}[0], {0}[-1])", 0)),
    "list": (
        ("f=", "op1([{0}, {1}], {1} * 2)", 0),
        ("f=", "op1([{0}], {1})", 0),
        ("f", "op1(list({0}.unbind(0)), {0}[0].clone())", 0),
        ("f", "op1(list(torch.chunk({0}, 2, -1)), torch.chunk({0}, 2, -1)[0] * 2)", 0),
    ),
}
#: Copies of what the first call wrote.
_COPIES: tuple[Line, ...] = (("f", "{0}.clone()", 1), ("f", "({0}.clone(), {0}.clone())", 2))
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


def _operators(seed: int, grad: bool) -> tuple[tuple[FuzzOperator, ...], tuple[Line, ...]]:
    """Return an operator that computes, and one that writes with calls of it; without it if gradients are compared."""
    r = Random(f"woven operators {seed}")
    dtypes, order = ("float32", "float16", "bfloat16", "float64"), (0, 1)
    kind = r.choices(list(_WRITES), [4, 2, 2, 2])[0]

    def output(name: str, place: int = 0) -> FuzzOutput:
        weights = (r.choice([0.5, 1.0]), r.choice([-1.0, 0.5, 1.0]))
        return FuzzOutput(name, ("*s",), ("*s",), weights, dtype="w" if kind == "list" else "x", list=place)

    def inputs(**kinds: str) -> tuple[InputSpec, ...]:
        return tuple(InputSpec(name, kinds.get(name, "required"), ("*s",), label=name) for name in ("x", "w"))

    name = f"Woven{letters(seed)}"
    first = FuzzOperator(
        f"{name}Computes", inputs(), (), (output("y"),), dtypes, r.choice(ROUTES), order=order, backward=grad
    )
    if grad:
        return (first,), ()
    in_place = ("x", "w") if kind in ("both", "optional") else ("x",)
    outputs = tuple(output(name, int(kind == "list")) for name in in_place)
    returned = () if r.random() < 0.6 else (output("y"),)
    given = inputs(x="list") if kind == "list" else inputs(w="optional") if kind == "optional" else inputs()
    writes = FuzzOperator(
        f"{name}Writes", given, (), outputs + returned, dtypes, r.choice(ROUTES), in_place=in_place, order=order
    )
    return (first, writes), tuple((kinds, text, len(returned)) for kinds, text, _ in _WRITES[kind])


def generate_woven(seed: int) -> FuzzProgram:
    """Return the program of a seed, 4 to 20 lines, a third of which call registered operators."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawing = ProgramDrawing(seed)
        operators, writes = _operators(seed, drawing.program.grad)
        drawing.begin(replace(drawing.program, operators=operators))
        wanted = drawing.random.choice([4, 6, 8, 12, 16, 20])
        copies: tuple[str, ...] = ()
        if writes and drawing.random.random() < 0.5:  # an argument of the program is written, and copied
            with contextlib.suppress(UnusableLineError):
                drawing.try_line(drawing.random.choice(writes))
                drawing.try_line(drawing.random.choice(_COPIES))
                copies = drawing.nodes[-1].targets
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
        return drawing.finish([(calls[-1].targets or calls[-1].args)[0], *(copies if len(copies) > 1 else ())])

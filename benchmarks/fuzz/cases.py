"""Random programs that call random operators: with present or absent arguments, views, lists, attrs and other lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from benchmarks.fuzz.arrangements import arranged
from benchmarks.fuzz.generate import extend
from benchmarks.fuzz.operators import (
    NUMBERS,
    TORCH_NUMBERS,
    AttrSpec,
    FuzzOperator,
    InputSpec,
    attr_value,
    draw_operator,
    dtype_list,
)
from benchmarks.fuzz.programs import LAYOUTS, FuzzProgram, Input, ProgramLine
from benchmarks.fuzz.variations import varied

#: Expressions that make an argument from an input of the program.
_FEEDS = ("{0}",) * 6 + (
    "{0}.clone()",
    "{0}.detach().clone()",
    "torch.stack([{0}, {0}])[1]",
    "torch.cat([{0}, {0}])[: {0}.shape[0]]",
)
_DTYPE_NAMES = {number: f"torch.{name}" for name, number in NUMBERS.items()}


class _Case:
    """Inputs of a call under construction."""

    def __init__(self, seed: int, op: FuzzOperator) -> None:
        self.random, self.wide = Random(f"case {seed}"), Random(f"wide case {seed}")
        self.op, self.inputs = op, list[Input]()
        self.rank = self.random.choice([1, 1, 1, 2, 0]) if len(op.inputs[0].dims) > 1 else self.random.choice([1, 1, 2])
        self.dtype = self.random.choice(op.dtypes)
        self.grad = op.backward and self.random.random() < 0.6
        self.nodes: list[ProgramLine] = []

    def tensor(self, spec: InputSpec, item: int = 0) -> str:
        """Add an input of the program for an input of the operator, and return its name."""
        r = self.random
        sizes: list[str | int] = []
        for dim in spec.dims:
            if dim.startswith("*"):
                sizes += [f"{dim[1:]}{i}" for i in range(self.rank)]
            else:
                sizes.append(f"{dim[:-3]}{item}" if dim.endswith("[i]") else dim)
        name = f"x{len(self.inputs)}"
        dtype = spec.dtype or self.dtype
        layout = r.choice(LAYOUTS) if r.random() < 0.35 else "plain"
        grad = self.grad and dtype.startswith(("float", "bfloat")) and r.random() < 0.8
        self.inputs.append(Input(name, dtype, tuple(sizes), layout, grad))
        return name

    def argument(self, spec: InputSpec) -> str:
        """Return the text of an argument, and add the inputs that it needs."""
        r = self.random
        if spec.kind == "list":
            if self.wide.random() < 0.3:
                return self.parts(spec)
            return f"[{', '.join(self.tensor(spec, i) for i in range(r.randint(1, 3)))}]"
        if spec.kind == "optional" and r.random() < 0.45:
            return "None"
        name = self.tensor(spec)
        feed = r.choice(_FEEDS)
        if not self.op.in_place and self.inputs[-1].sizes and self.wide.random() < 0.1:
            feed = "{0}[:1].expand({0}.shape)"
        if spec.name in self.op.in_place and self.op.functional == "author":
            # The node writes to its input, and nothing else reads that; a view of the same memory is another value.
            self.nodes.append(ProgramLine("({0} * 1).unsqueeze(0)", (name,), (f"w{len(self.nodes)}",)))
            return f"{self.nodes[-1].targets[0]}.squeeze(0)"
        if spec.name in self.op.written and feed == "{0}" and r.random() < 0.3:
            # Calls may write to two views of one tensor.
            self.nodes.append(ProgramLine("torch.stack([{0}, {0}])", (name,), (f"w{len(self.nodes)}",)))
            return f"{self.nodes[-1].targets[0]}[0]"
        if spec.name in self.op.written and feed != "{0}":
            target = f"w{len(self.nodes)}"
            self.nodes.append(ProgramLine(feed, (name,), (target,)))
            return target
        return feed.format(name) if len(self.inputs[-1].sizes) or "shape" not in feed else name

    def parts(self, spec: InputSpec) -> str:
        """Return a list that is empty, or whose length is a size; of one tensor where another list has the same sizes."""
        if self.wide.random() < 0.3:
            return "[]"
        own = {dim for dim in spec.dims if dim.endswith("[i]")}
        if any(own & {*other.dims} for other in self.op.inputs if other.name != spec.name):
            return f"[{self.tensor(spec)}]"  # each part has the size of the first
        whole = self.tensor(replace(spec, dims=(f"u{len(self.inputs)}", *spec.dims)))
        return f"list({whole}.unbind(0))"

    def value(self, a: AttrSpec) -> str:
        """Return an attr's value: of a numeric one sometimes a size, or the program's number."""
        if a.type == "ListType":  # an int[], which takes torch's numbers alone
            names = {number: name for name, number in NUMBERS.items()}
            return repr([TORCH_NUMBERS[names[n]] for n in dtype_list(self.random, self.op.dtypes)])
        drawn = repr(attr_value(self.random, a.type))
        sized = [i.name for i in self.inputs if i.sizes]
        if a.type not in ("Int", "ListInt") or not sized or self.wide.random() > 0.25:
            return "None" if a.schema_type.endswith("?") and self.wide.random() < 0.3 else drawn
        size = self.wide.choice([f"{self.wide.choice(sized)}.shape[0]", "n"])
        return size if a.type == "Int" else f"[{size}, 1]"

    def attrs(self) -> list[str]:
        """Return the attrs as keyword arguments; one with a default may be left out."""
        found = []
        for place in self.op.order:
            if place < len(self.op.inputs):
                continue
            a = self.op.attrs[place - len(self.op.inputs)]
            defaulted = a.default is not None and (a.type != "Type" or self.op.route == "own")
            if defaulted and self.random.random() < 0.5:
                continue
            value: Any = _DTYPE_NAMES[self.random.choice([0, 1, 27])] if a.type == "Type" else self.value(a)
            counts = any(o.count == a.name or f"+ {a.name}" in w for o in self.op.outputs for w in o.written)
            if a.type == "Int" and counts and value.lstrip("-").isdigit():
                value = repr(abs(int(value)))
            found.append(f"{a.label}={value}")
        return found


def _call(texts: list[str], attrs: list[str]) -> str:
    return f"op0({', '.join([*texts, *attrs])})".replace("{", "{{").replace("}", "}}")


def operator_program(seed: int, op: FuzzOperator) -> FuzzProgram | None:
    """Return a program that calls the operator once or twice, among ATen lines; None if the CPU refuses the call."""
    case = _Case(seed, op)
    r = case.random
    texts = [case.argument(op.inputs[place]) for place in op.order if place < len(op.inputs)]
    returned = [o.name for o in op.outputs if o.name not in op.written]
    targets = tuple(f"r{i}" for i in range(len(returned)))
    attrs = case.attrs()
    call = _call(texts, attrs)
    nodes = [*case.nodes, ProgramLine(call, (), targets)]
    outputs = list(targets)
    outputs += [target for node in case.nodes for target in node.targets]
    if op.written:
        place = [p for p in op.order if p < len(op.inputs)].index([i.name for i in op.inputs].index(op.in_place[0]))
        outputs.append(texts[place])
        if r.random() < 0.3:
            nodes.append(ProgramLine(call, (), targets))
        if texts[place].endswith("[0]"):
            texts[place] = f"{texts[place][:-3]}[1]"
            nodes.append(ProgramLine(_call(texts, attrs), (), targets))
    names = sorted({s for i in case.inputs for s in i.sizes if isinstance(s, str)})
    first = {name: r.randint(2, 5) for name in names}
    sizes = [first]
    if r.random() < 0.6:
        sizes += [{name: r.randint(2, 6) for name in names} for _ in range(2)]
    if names and case.wide.random() < 0.25:
        sizes = [{**one, case.wide.choice(names): case.wide.choice([0, 1, 1])} for one in sizes]
    program = FuzzProgram(seed, tuple(case.inputs), tuple(nodes), tuple(outputs), tuple(sizes), (op,))
    return extend(arranged(program, Random(f"arranged {seed}")), r.choice([0, 0, 1, 2, 4]))


#: Operators that a kind of item asks for.
_WANTED: dict[str, Callable[[FuzzOperator], bool]] = {
    "operator": lambda op: True,
    "gradient": lambda op: op.backward,
    "author": lambda op: op.functional == "author",
}


def generate_case(seed: int, kind: str = "operator") -> FuzzProgram:
    """Return the first program of the seed whose call the CPU accepts; ``gradient`` and ``author`` ask for such operators.

    A seed alone decides whether a program is differentiated, so lines are drawn anew each time if more is asked for.
    """
    for number in range(50 if kind == "operator" else 1000):
        op = varied(draw_operator(seed, number), Random(f"varied {seed} {number}"))
        if not _WANTED[kind](op):
            continue
        program = operator_program(seed if kind == "operator" else seed + 100_003 * number, op)
        if program is not None and (program.grad or kind != "gradient"):
            return program
    raise ValueError(f"seed {seed}: none of its operators could be called")

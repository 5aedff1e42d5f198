"""Generator of random programs: each line is tried on the CPU for the sizes of every call, and redrawn if refused."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import torch

from benchmarks.fuzz import vocabulary
from benchmarks.fuzz.arrangements import arranged, recomputed
from benchmarks.fuzz.controls import without_bits
from benchmarks.fuzz.overlaps import NoOverlaps
from benchmarks.fuzz.programs import LAYOUTS, FuzzProgram, Input, ProgramLine, make_arguments
from benchmarks.fuzz.settings import drawn_setting, with_options

#: Largest number of a program; larger ones overflow some dtypes or depend on rounding.
LARGEST = 200.0
#: Maximum number of elements of a value.
MOST = 4096
DTYPES = ("float32",) * 6 + ("float16", "bfloat16", "int64", "int32", "int8", "bool", "float64", "int32", "float16")
WEIGHTS = {"pure": 9, "view": 5, "several": 1, "write": 4}


Line = tuple[str, str, int]
#: Lines of the vocabulary by their effect on memory, each with the number of its targets.
LINES: dict[str, list[Line]] = {
    "pure": [(*line, 1) for line in vocabulary.PURE],
    "view": [(*line, 1) for line in vocabulary.VIEWS],
    "several": vocabulary.SEVERAL,
    "write": [(*line, 0) for line in vocabulary.WRITES],
}


@dataclass(frozen=True)
class GeneratedValue:
    """Name in a program, with its tensor in each call."""

    name: str
    tensors: tuple[torch.Tensor, ...]

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return self.tensors[0].dim()

    def least(self, dim: int) -> int:
        """Return the smallest size of a dimension over the calls."""
        return min(t.shape[dim] for t in self.tensors)

    def has(self, kind: str) -> bool:
        """Return whether the value is of a kind of the vocabulary."""
        dtype = self.tensors[0].dtype
        if kind == "b":
            return dtype is torch.bool
        integer = not dtype.is_floating_point and not dtype.is_complex and dtype is not torch.bool
        return {"a": True, "f": dtype.is_floating_point, "i": integer, "n": dtype.is_floating_point or integer}[kind]

    def goes_with(self, first: GeneratedValue, relation: str) -> bool:
        """Return whether the value may be combined with the first one of a line."""
        pairs = list(zip(first.tensors, self.tensors, strict=True))
        if relation == "=":
            return all(a.shape == b.shape and a.dtype == b.dtype for a, b in pairs)
        if relation == "m":
            return all(
                a.dim() > 1 and b.dim() > 1 and a.shape[-1] == b.shape[-2] and a.dtype == b.dtype for a, b in pairs
            )
        try:
            shapes = [torch.broadcast_shapes(a.shape, b.shape) for a, b in pairs]
        except RuntimeError:
            return False
        return relation == "~" or all(s == a.shape for s, (a, _) in zip(shapes, pairs, strict=True))


class UnusableLineError(Exception):
    """Line that the CPU refuses, or whose values are not usable."""


class ProgramDrawing:
    """Program under construction, with the values of its names on the CPU in each call."""

    def __init__(self, seed: int, program: FuzzProgram | None = None) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.every_line = self.random.random() < 0.15
        self.begin(program or arranged(self._start(), Random(f"arranged {seed}")))

    def begin(self, program: FuzzProgram) -> None:
        """Continue with a program, of which each call is run."""
        self.program = program
        self.nodes = list(self.program.nodes)
        self.scopes = [_run(self.program, call) for call in range(len(self.program.sizes))]
        targets = [t for node in self.nodes for t in node.targets]
        names = [*(spec.name for spec in self.program.inputs), *targets]
        self.values = [self._value(name) for name in names if isinstance(self.scopes[0][name], torch.Tensor)]

    def _start(self) -> FuzzProgram:
        r = self.random
        first = {"a": r.randint(2, 6), "b": r.randint(2, 5), "c": r.randint(1, 4)}
        dynamic = r.random() < 0.6
        other = {name: r.randint(2, 8) if dynamic and r.random() < 0.8 else size for name, size in first.items()}
        third = {name: r.randint(2, 8) if other[name] != size else size for name, size in first.items()}
        inputs: list[Input] = []
        pool: list[str | int] = ["a", "b", "c", 1, 3, 4]
        shared = tuple(r.choice(["a", "b", "c", 3]) for _ in range(r.randint(1, 3)))
        grad = r.random() < 0.3
        for i in range(r.randint(1, 4)):
            dtype = r.choice(DTYPES)
            sizes = (
                shared if r.random() < 0.6 else tuple(r.choice(pool) for _ in range(r.choice([0, 1, 1, 2, 2, 3, 4])))
            )
            # PyTorch gives a shared base the size of what is seen of it: one with gaps has more.
            plain = [k for k in inputs if not k.alias and k.layout == "plain"]
            if plain and not grad and r.random() < 0.12:
                of = r.choice(plain)
                inputs.append(replace(of, name=f"x{i}", alias=of.name, layout=r.choice(["plain", "offset"])))
                continue
            layout = r.choice(LAYOUTS) if r.random() < 0.35 else "plain"
            inputs.append(Input(f"x{i}", dtype, sizes, layout, grad and dtype.startswith("float")))
        return FuzzProgram(self.seed, tuple(inputs), (), (), (first, other, third) if dynamic else (first,))

    def _value(self, name: str) -> GeneratedValue:
        return GeneratedValue(name, tuple(scope[name] for scope in self.scopes))

    def _line(self, line: Line | None) -> tuple[str, list[str], int]:
        """Return a line's text, drawn unless given, with its values and the number of its targets."""
        r = self.random
        if line is None:
            line = r.choice(LINES[r.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]])
            if line[1] in vocabulary.NOT_CONVERTED and not self.every_line:
                raise UnusableLineError
        kinds, text, targets = line
        # Later values are chosen more often, so that programs grow deep.
        chosen = [self._pick([v for v in self.values if v.has(kinds[0])])]
        for relation in kinds[1:]:
            beside = [v for v in self.values if (v.has("i") if relation == "i" else v.goes_with(chosen[0], relation))]
            chosen.append(self._pick(beside))
        return _filled(text, r, chosen[0]), [v.name for v in chosen], targets

    def _pick(self, among: Sequence[GeneratedValue]) -> GeneratedValue:
        if not among:
            raise UnusableLineError
        weights = [2 if i >= len(among) - 4 else 1 for i in range(len(among))]
        return self.random.choices(among, weights)[0]

    def try_line(self, line: Line | None = None) -> None:
        """Draw a line and keep it, or leave everything as it was."""
        text, args, count = self._line(line)
        targets = tuple(f"v{len(self.nodes)}" if count == 1 else f"v{len(self.nodes)}_{i}" for i in range(count))
        node = ProgramLine(text, tuple(args), targets)
        candidate = replace(self.program, nodes=(*self.nodes, node))
        scopes = []
        for call in range(len(self.program.sizes)):
            scopes.append(_run(candidate, call))
        ranks = {t: {s[t].dim() for s in scopes} for t in targets}
        if any(len(r) > 1 for r in ranks.values()):
            raise UnusableLineError
        for scope in scopes:
            _check(scope)
        self.nodes.append(node)
        self.scopes = scopes
        known = [v.name for v in self.values]
        self.values = [self._value(name) for name in [*known, *targets]]

    def finish(self, first: Sequence[str] = ()) -> FuzzProgram:
        """Return the program with drawn outputs after ``first``: values, views, arguments, repeated values, sizes."""
        r = self.random
        made = [v.name for v in self.values if not v.name.startswith("x")] or [self.values[0].name]
        outputs = [*first, made[-1], *r.sample(made, min(len(made), r.randint(0, 4)))]
        if r.random() < 0.3:
            outputs.append(r.choice(self.values).name)
        if r.random() < 0.25:
            outputs.append(
                f"{r.choice([v.name for v in self.values if v.rank])}.shape[0]"
                if any(v.rank for v in self.values)
                else "n"
            )
        if r.random() < 0.1:
            outputs.append("None")
        outputs = outputs if r.random() < 0.2 else list(dict.fromkeys(outputs))
        program = replace(self.program, nodes=tuple(self.nodes), outputs=tuple(outputs))
        if program.grad and not _differentiable(program):
            inputs = tuple(replace(i, grad=False) for i in program.inputs)
            program = replace(program, inputs=inputs)
        setting = drawn_setting(program.inputs, program.grad, Random(f"setting {self.seed}"))
        program = replace(program, setting=with_options(setting, Random(f"options {self.seed}")))
        return recomputed(program, Random(f"recomputed {self.seed}"))


def _filled(text: str, random: Random, first: GeneratedValue) -> str:
    """Return a line's text with drawn parameters; placeholders of values stay."""

    def parameter(match: re.Match[str]) -> str:
        try:
            return vocabulary.PARAMETERS[match[1]](random, first)
        except (ValueError, IndexError):  # of a value without dimensions
            raise UnusableLineError from None

    return re.sub(r"\{([a-z]+)\}", parameter, text)


def _run(program: FuzzProgram, call: int) -> dict[str, Any]:
    """Return every name's value after the program's lines, on the CPU.

    They must run with plain inputs, too: what PyTorch copies of a negated one may overlap with what is written.
    """
    if (plain := without_bits(program)) != program:
        _run(plain, call)
    scope = program.scope()
    scope.update(zip(program.names(), make_arguments(program, call), strict=True))
    try:
        with NoOverlaps():
            exec("\n".join(node.line() for node in program.nodes), scope)
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError, ZeroDivisionError):
        raise UnusableLineError from None
    return scope


def _check(scope: dict[str, Any]) -> None:
    for value in scope.values():
        if isinstance(value, torch.Tensor):
            if value.numel() > MOST or value.is_complex() or value.dim() > 5 or value.numel() == 0:
                raise UnusableLineError
            if value.dtype is not torch.bool and not bool((value.detach().double().abs() <= LARGEST).all()):
                raise UnusableLineError


def _differentiable(program: FuzzProgram) -> bool:
    from benchmarks.fuzz.modes import cpu_results  # which imports programs

    try:
        cpu_results(program)
    except RuntimeError:
        return False
    return True


def generate(seed: int) -> FuzzProgram:
    """Return the program of a seed, 5 to 40 lines."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawing = ProgramDrawing(seed)
        _grow(drawing, drawing.random.choice([5, 6, 8, 10, 12, 16, 20, 28, 40]))
        return drawing.finish()


def extend(program: FuzzProgram, lines: int) -> FuzzProgram | None:
    """Return the program extended by random lines and outputs; None if the CPU refuses the existing lines."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            drawing = ProgramDrawing(program.seed, program)
        except UnusableLineError:
            return None
        _grow(drawing, len(program.nodes) + lines)
        return drawing.finish(program.outputs)


def _grow(drawing: ProgramDrawing, wanted: int) -> None:
    for _ in range(wanted * 20):
        if len(drawing.nodes) >= wanted:
            return
        try:
            drawing.try_line()
        except UnusableLineError:
            continue


def generate_line(line: Line, seed: int) -> FuzzProgram | None:
    """Return a program of one line of the vocabulary, or None if this seed yields none; some seed suits each line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawing = ProgramDrawing(seed)
        try:
            if line[2] == 0:
                drawing.try_line(("a", "{0}.clone()", 1))
            drawing.try_line(line)
        except UnusableLineError:
            return None
        return drawing.finish()

"""Differential test of the shape back ends, with random relations and random calls.

The reference is Python's inference (:meth:`ascend_graph.shapes.Relation.infer`). With all sizes known, the eager C++ program,
the C++ of generated packages and GE's ``InferShape`` and ``InferDataType`` must give the same shapes and dtypes and refuse
the same calls. Python must agree with an independent reading of the text (:mod:`benchmarks._reading`). With sizes of -1 and
ranks of -2 ``InferShape`` must be sound: it must not refuse or contradict what Python accepts for some sizes. Everything
generated must compile. None of it needs PyTorch: the generated package's code is compiled with stand-ins for the few types
that it uses (``data/relations/torch``).
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ascend_graph.codegen.eager_library.cpp_operators import cpp_name
from ascend_graph.codegen.infer_shape import infer_shape_source
from ascend_graph.codegen.infer_shape_names import GE_DTYPES
from ascend_graph.codegen.output_shapes import CppTensor, output_code
from ascend_graph.codegen.rendering import GenerationError

from ascend_graph.binding.generated_schema import AclnnArgumentKind as Parameter_
from ascend_graph.eager.shape_code import SCALAR_TYPES, attr_kind, encode
from ascend_graph.environment import toolkit_directory
from ascend_graph.prototypes.model import Attr, AttrType, OpPrototype, Parameter, ParameterKind
from ascend_graph.shapes import Relation, RelationError, ShapeError, parse_relation

ROOT = Path(__file__).parent.parent
HERE = Path(__file__).parent / "data/relations"

# --------------------------------------------------------------------------------------------------- random relations

#: Input names, some of which are keywords of C++ or are used by templates.
INPUT_NAMES = (
    "x",
    "w",
    "b",
    "context",
    "batch",
    "layout",
    "default",
    "class",
    "results",
    "ways",
    "template",
    "x_",
    "op",
)
DIM_NAMES = ("n", "m", "k2", "int", "sizes", "switch", "größe", "axes", "shape", "n__", "leading_dims")
GROUP_NAMES = ("s", "t", "r", "group", "auto")
ATTRS: Mapping[str, AttrType] = {
    "k": AttrType.INT,
    "axis": AttrType.INT,
    "union": AttrType.INT,
    "flag": AttrType.BOOL,
    "dims": AttrType.LIST_INT,
    "pad": AttrType.LIST_INT,
    "mode": AttrType.STRING,
    "alpha": AttrType.FLOAT,
    "to": AttrType.TYPE,
}
_PARAMETERS = {
    AttrType.INT: Parameter_.INT,
    AttrType.BOOL: Parameter_.BOOL,
    AttrType.LIST_INT: Parameter_.INTS,
    AttrType.STRING: Parameter_.STRING,
    AttrType.FLOAT: Parameter_.FLOAT,
    AttrType.TYPE: Parameter_.DTYPE,
}
KINDS = {name: attr_kind(_PARAMETERS[kind], False) for name, kind in ATTRS.items()}
DTYPES = (
    "float16",
    "float32",
    "bfloat16",
    "int32",
    "int64",
    "uint8",
    "int8",
    "bool",
    "uint16",
    "complex64",
    "float8_e5m2",
)


class Grammar:
    """Generator of relations' texts, with any construct next to any other."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.inputs = rng.sample(INPUT_NAMES, rng.choice((1, 1, 2, 2, 3)))
        self.dims: list[str] = []
        self.groups: list[str] = []
        self.defined: list[str] = []
        self.ellipsis = False
        self.symbols: list[str] = []
        #: True for the subset that all back ends know: no axes, lists or choices on sizes.
        self.plain = rng.random() < 0.4
        self.optional = frozenset(name for name in self.inputs[1:] if rng.random() < 0.4)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def relation(self) -> str:
        """Return the text of a relation."""
        inputs = ", ".join(self.input(name) for name in self.inputs)
        clauses = [self.clause() for _ in range(self.rng.choice((0, 0, 0, 1, 1, 2)))]
        outputs = ", ".join(self.output(n) for n in range(self.rng.choice((1, 1, 2))))
        return f"{inputs} -> {outputs}" + (f" where {', '.join(clauses)}" if clauses else "")

    # ------------------------------------------------------------------------------------------------------- inputs

    def input(self, name: str) -> str:
        if self.chance(0.08):
            return name + (f": {self.dtype_condition()}" if self.chance(0.3) else "")
        text = name + self.pattern()
        if not self.plain and self.chance(0.12):
            text += f" if {self.condition(1)} else {self.pattern()}"
        if self.chance(0.15):
            text += f": {self.dtype_condition()}"
        return text

    def dtype_condition(self) -> str:
        if self.chance(0.5):
            symbol = self.rng.choice(("T", "U"))
            self.symbols.append(symbol)
            return symbol
        if self.plain:
            return self.rng.choice(("float16", "(float16, float32, int32, int8, bool)"))
        return self.rng.choice(("float16", "(float16, float32)", "(float32, int8 if flag else int32)", "(to, float16)"))

    def pattern(self) -> str:
        items = [self.pattern_item() for _ in range(self.rng.choice((0, 1, 1, 2, 2, 3)))]
        if self.chance(0.45):
            items.insert(self.rng.randint(0, len(items)), self.open_item())
            if self.chance(0.3):
                items.insert(self.rng.randint(0, len(items)), self.open_item())
        if not self.plain and self.chance(0.1):
            items.insert(self.rng.randint(0, len(items)), f"{self.dim()}@{self.axis()}")
        if not self.plain and self.chance(0.08):
            items.insert(self.rng.randint(0, len(items)), f"*{self.group()}@dims")
        return f"[{', '.join(items)}]"

    def pattern_item(self) -> str:
        kind = self.rng.random()
        if kind < 0.7:
            return self.dim()
        if kind < 0.78:
            return self.rng.choice(("1", "2", "3"))
        if kind < 0.86:
            return "_"
        if self.plain:
            return self.rng.choice(("k", "union", "flag"))
        if kind < 0.92:
            return self.rng.choice(("k", "union", "flag", "(pad[0])"))
        return f"({self.number(1)})" if self.dims else "_"

    def dim(self) -> str:
        if self.dims and self.chance(0.4):
            return self.rng.choice(self.dims)
        name = self.rng.choice(DIM_NAMES)
        self.dims.append(name)
        return name

    def group(self) -> str:
        if self.groups and self.chance(0.4):
            return self.rng.choice(self.groups)
        name = self.rng.choice(GROUP_NAMES)
        self.groups.append(name)
        return name

    def open_item(self) -> str:
        if self.chance(0.4):
            self.ellipsis = True
            return "..."
        return "*dims" if not self.plain and self.chance(0.05) else f"*{self.group()}"

    def axis(self) -> str:
        return self.rng.choice(("axis", "axis", "0", "-1", "1", "dims", "(k - 1)", "(axis if flag else 0)"))

    # -------------------------------------------------------------------------------------------------- expressions

    def number(self, depth: int) -> str:
        rng = self.rng
        if depth == 0 or self.chance(0.25):
            leaves = [
                *self.dims,
                *self.dims,
                "k",
                "union",
                rng.choice(("0", "1", "2", "3", "5", "9223372036854775807")),
            ]
            leaves += self.defined
            if not self.plain and self.chance(0.1):
                leaves += ["flag", "pad[0]", "pad[-1]", "dims[k]", *(f"{g}[0]" for g in self.groups)]
            return rng.choice(leaves)
        a, b = (self.number(depth - 1) for _ in range(2))
        if self.chance(0.08):
            return self.rounded(a, b)
        kind = rng.random()
        if kind < 0.5:
            return f"({a} {rng.choice(['+', '-', '*', '*', '//', '%'])} {b})"
        if kind < 0.62:
            return f"{rng.choice(['min', 'max', 'ceildiv'])}({a}, {b})"
        if kind < 0.72 or (self.plain and kind < 0.83):
            name = rng.choice(self.inputs)
            return f"{rng.choice(['rank', 'numel'])}({name})"
        if kind < 0.80:
            function = rng.choice(["len", "prod", "sum", "min", "max"])
            return f"{function}({self.list(depth - 1)})"
        if kind < 0.83:
            return f"index({self.list(depth - 1)}, {a})"
        if kind < 0.87:
            return f"-{a}"
        if kind < 0.92:
            return f"({a} {rng.choice(['or', 'and'])} {b})"
        return f"({a} if {self.condition(depth - 1)} else {b})"

    def rounded(self, a: str, b: str) -> str:
        """Return a quotient or remainder, often of negative numbers, in an expression that is mostly a valid size."""
        rng = self.rng
        difference, by = f"({a} - {b} - 1)", rng.choice(("2", "3", "4", "-2", "-3"))
        rest = f"ceildiv({difference}, {by})" if self.chance(0.3) else f"{difference} {rng.choice(['//', '%'])} {by}"
        return f"(7 + {rest})"

    def list(self, depth: int) -> str:
        choices = ["dims", "pad", *self.groups, *self.groups]
        if self.ellipsis:
            choices.append("...")
        if depth > 0:
            choices += [f"({self.number(depth - 1)}, {self.number(depth - 1)})"]
        return self.rng.choice(choices)

    def condition(self, depth: int) -> str:
        rng = self.rng
        if self.plain and self.chance(0.6):
            return rng.choice([*self.inputs, f"not {rng.choice(self.inputs)}", "flag", "(k > 1)", "(k == 1 and flag)"])
        if depth > 0 and self.chance(0.35):
            kind = rng.random()
            if kind < 0.3:
                return f"not {self.simple(depth - 1)}"
            return f"({self.condition(depth - 1)} {rng.choice(['and', 'or'])} {self.condition(depth - 1)})"
        return self.simple(depth)

    def simple(self, depth: int) -> str:
        rng = self.rng
        kind = rng.random()
        if kind < 0.4:
            operator = rng.choice(["==", "!=", "<", "<=", ">", ">="])
            return f"({self.number(depth)} {operator} {self.number(depth)})"
        if kind < 0.52 or self.plain:
            return rng.choice(self.inputs)
        if kind < 0.60:
            return "flag"
        if kind < 0.68:
            return rng.choice(['(mode == "a")', '(mode != "b")', '(mode in ("a", "b"))', "mode", "dims", "alpha"])
        if kind < 0.74:
            return f"({self.number(0)} {rng.choice(['in', 'not in'])} (1, 2, k))"
        if kind < 0.80:
            return f"(rank({rng.choice(self.inputs)}) {rng.choice(['==', '>', '<='])} {rng.choice('0123')})"
        if kind < 0.86:
            return rng.choice(
                [f"({rng.choice(self.inputs)} is None)", "(k is not None)", "(alpha > 1)", "(pad == dims)"]
            )
        if kind < 0.92:
            return f"(dtype({rng.choice(self.inputs)}) {rng.choice(['==', '!='])} {rng.choice(('float16', 'int32'))})"
        return self.number(0)

    def clause(self) -> str:
        if self.chance(0.4):
            name = f"q{len(self.defined)}"
            text = f"{name} = {self.number(2)}"
            self.defined.append(name)
            return text
        return self.condition(2)

    # ------------------------------------------------------------------------------------------------------ outputs

    def output(self, number: int) -> str:
        name = f"y{number}"
        if self.chance(0.05) and number == 0:
            return self.inputs[0]
        text = name + self.shape()
        if self.chance(0.3):
            text += f" if {self.condition(1)} else {self.shape()}"
        if self.chance(0.5):
            text += f": {self.dtype(2)}"
        return text

    def shape(self) -> str:
        if self.chance(0.08):
            return f" like {self.rng.choice(self.inputs)}"
        if self.chance(0.03):
            return " None"
        items = [self.number(self.rng.choice((0, 0, 1, 2))) for _ in range(self.rng.choice((0, 1, 2, 2, 3)))]
        if self.chance(0.5):
            items.insert(self.rng.randint(0, len(items)), self.output_group())
        if not self.plain and self.chance(0.1):
            items.insert(self.rng.randint(0, len(items)), f"({self.number(1)})@{self.axis()}")
        return f"[{', '.join(items)}]"

    def output_group(self) -> str:
        if self.plain:
            return self.rng.choice([*(f"*{g}" for g in self.groups), *(["..."] if self.ellipsis else []), "1"])
        choices = [f"*{g}" for g in self.groups] + ["*dims"]
        choices += [f"*ones({g})" for g in self.groups] + [f"*ones({g})@dims" for g in self.groups]
        choices += [f"*{g}[{self.bounds()}]" for g in [*self.groups, "dims"]]
        choices += [f"*ones({g}[{self.bounds()}])" for g in self.groups]
        choices += [f"*reshape({g}, {self.rng.choice(['dims', '(2, -1)', '(k, -1)', '(4,)'])})" for g in self.groups]
        if self.ellipsis:
            choices += ["..."] * 3
        return self.rng.choice(choices)

    def bounds(self) -> str:
        """Return the bounds of a part of a list: many hold for short lists, some for none."""
        return self.rng.choice((":", "1:", ":1", ":-1", "-1:", "k:", ":k", ":len(dims) - 1", "0:0", "1:-1"))

    def dtype(self, depth: int) -> str:
        rng = self.rng
        name = rng.choice(self.inputs)
        choices = ["float16", "int64", name, name, "to", f"dtype({name})", *self.symbols]
        if self.plain:
            choices.append(f"promote({name}, {rng.choice(self.inputs)})")
        elif depth > 0:
            inner = self.dtype(depth - 1)
            choices += [
                f"promote({name}, {rng.choice([*self.inputs, 'alpha', 'k', 'flag', 'float16', 'to'])})",
                f"floating({name})",
                f"integral_sum({inner})",
                f"real({inner})",
                f"({inner} if {rng.choice([*self.inputs, 'flag', 'k > 1'])} else {name})",
            ]
        return rng.choice(choices)


@dataclass(frozen=True)
class RelationCase:
    """Relation with the operator that it is for."""

    relation: Relation
    prototype: OpPrototype
    attrs: tuple[str, ...] = tuple(ATTRS)

    @property
    def optional(self) -> frozenset[str]:
        """Inputs that may be absent."""
        return frozenset(p.name for p in self.prototype.inputs if p.kind is ParameterKind.OPTIONAL)


def cases(seed: int, count: int) -> list[RelationCase]:
    """Return random relations that parse and whose names are all defined."""
    rng = random.Random(seed)
    found: list[RelationCase] = []
    while len(found) < count:
        grammar = Grammar(rng)
        try:
            relation = parse_relation(grammar.relation())
            relation.program(frozenset(relation.inputs), KINDS)
        except RelationError:
            continue
        found.append(case_of(str(relation), f"Random{seed}N{len(found)}", grammar.optional))
    return found


def case_of(text: str, op_type: str, optional: frozenset[str] = frozenset()) -> RelationCase:
    """Return a relation with an operator that has its inputs and outputs, and all attrs."""
    relation = parse_relation(text)
    inputs = tuple(
        Parameter(n, ParameterKind.OPTIONAL if n in optional else ParameterKind.REQUIRED) for n in relation.inputs
    )
    outputs = tuple(Parameter(f"out{n}") for n in range(len(relation.outputs)))
    attrs = tuple(Attr(name, kind, True) for name, kind in ATTRS.items())
    return RelationCase(relation, OpPrototype(op_type, inputs, attrs, outputs))


# ------------------------------------------------------------------------------------------------------- random calls


@dataclass(frozen=True)
class RelationCall:
    """Call: shapes (``None`` for an absent input) and dtypes by input, and attrs; dtype attrs by name."""

    shapes: Mapping[str, tuple[int, ...] | None]
    dtypes: Mapping[str, str]
    attrs: Mapping[str, Any]


def random_call(case: RelationCase, rng: random.Random) -> RelationCall:
    """Return a call that usually has the dimensions that the patterns require."""
    from ascend_graph.shapes.syntax import DimensionGroup, Dims, Ellipsis_, Literal, Name, Size

    sizes = (0, 1, 1, 2, 2, 3, 4, 6)
    attrs: dict[str, Any] = {
        "k": rng.choice((-2, -1, 0, 1, 2, 2, 3, 4, 2**40 if rng.random() < 0.2 else 1)),
        "axis": rng.choice((-3, -2, -1, -1, 0, 0, 1, 2)),
        "union": rng.choice((0, 1, 2, 3)),
        "flag": rng.random() < 0.5,
        "dims": [rng.choice((-2, -1, 0, 1, 2)) for _ in range(rng.choice((0, 1, 1, 2, 3)))],
        "pad": [rng.choice((0, 1, 2, 3)) for _ in range(rng.choice((0, 1, 2, 2)))],
        "mode": rng.choice(("a", "b", "c")),
        "alpha": rng.choice((0.0, 0.5, 1.0, 2.5)),
        "to": rng.choice(("float16", "float32", "int8", "bool")),
    }
    dims = {name: rng.choice(sizes) for name in DIM_NAMES} | {n: int(v) for n, v in attrs.items() if isinstance(v, int)}
    groups = {n: tuple(rng.choice(sizes) for _ in range(rng.choice((0, 1, 1, 2)))) for n in GROUP_NAMES}
    batch = tuple(rng.choice(sizes) for _ in range(rng.choice((0, 1, 2))))
    shapes: dict[str, tuple[int, ...] | None] = {}
    dtypes: dict[str, str] = {}
    common = rng.choice(DTYPES)
    for tensor in case.relation.input_tensors:
        dtypes[tensor.name] = common if rng.random() < 0.6 else rng.choice(DTYPES)
        if tensor.name in case.optional and rng.random() < 0.35:
            shapes[tensor.name] = None
            continue
        pattern = rng.choice(tensor.alternatives).shape
        made: list[int] = []
        for item in pattern.items if isinstance(pattern, Dims) else ():
            if isinstance(item, Ellipsis_):
                part = batch[rng.randint(0, len(batch)) :]
                made += [1 if rng.random() < 0.2 else size for size in part]
            elif isinstance(item, DimensionGroup):
                made += groups.get(str(item.value), ())
            elif isinstance(item, Size) and isinstance(item.value, Literal):
                made.append(int(item.value.value or 0))
            elif isinstance(item, Size) and isinstance(item.value, Name):
                made.append(max(dims.get(item.value.id, 2), 0))
            else:
                made.append(rng.choice(sizes))
        if not isinstance(pattern, Dims):
            made = [rng.choice(sizes) for _ in range(rng.choice((0, 1, 2, 3)))]
        if rng.random() < 0.1 and made:
            made[rng.randrange(len(made))] = rng.choice(sizes)
        if rng.random() < 0.04:
            made = made[1:] if rng.random() < 0.5 else [*made, 2]
        shapes[tensor.name] = tuple(min(max(size, 0), 64) for size in made)
    return RelationCall(shapes, dtypes, attrs)


Spec = tuple[tuple[int, ...], str] | None


@dataclass(frozen=True)
class Answer:
    """Answer to a call: the outputs' shapes and dtypes, ``None`` for a refusal, or how Python failed."""

    outputs: tuple[Spec, ...] | None
    fault: str = ""


def reference(case: RelationCase, call: RelationCall) -> Answer:
    """Return Python's answer."""
    dtypes = {name: call.dtypes[name] for name in call.shapes}
    try:
        found: Any = case.relation.infer(call.shapes, dtypes, call.attrs)
    except (ShapeError, RelationError):
        return Answer(None)
    except Exception as error:  # a fault is what is looked for
        return Answer(None, f"{type(error).__name__}: {error}")
    for spec in found:
        if spec is not None and not all(type(size) is int and 0 <= size < 2**63 for size in spec[0]):
            return Answer(None, f"sizes {spec[0]}")
    return Answer(tuple(None if spec is None else (tuple(spec[0]), spec[1]) for spec in found))


# --------------------------------------------------------------------------------------------------- native programs


def compile_all(jobs: Sequence[tuple[Path, Sequence[str]]], workers: int) -> list[str]:
    """Compile several programs in parallel; return the compiler's output for each, empty for success."""
    compiler = shutil.which("g++") or shutil.which("c++")
    assert compiler is not None, "needs a C++ compiler"

    def run(job: tuple[Path, Sequence[str]]) -> str:
        path, options = job
        command = [
            compiler,
            "-std=c++17",
            "-O0",
            "-Wall",
            "-Wextra",
            "-Werror",
            *options,
            str(path),
            "-o",
            str(path.with_suffix("")),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else done.stderr or f"exit code {done.returncode}"

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(run, jobs))


def run_native(program: Path, lines: Sequence[str]) -> list[Any]:
    """Run a program and return one JSON value for every input line."""
    done = subprocess.run(
        [program],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{program.name} ended with {done.returncode}: {done.stderr[-2000:]}"
    found = [json.loads(text) for text in done.stdout.splitlines()]
    assert len(found) == len(lines), f"{program.name}: {len(found)} answers for {len(lines)} lines"
    return found


def words_of_attrs(case: RelationCase, attrs: Mapping[str, Any], numbers: Mapping[str, int]) -> list[Any]:
    words: list[Any] = []
    for name, kind in ATTRS.items():
        value = attrs[name]
        if kind is AttrType.LIST_INT:
            words += ["l", len(value), *value]
        elif kind is AttrType.STRING:
            words += ["s", value]
        elif kind is AttrType.FLOAT:
            words += ["f", value]
        elif kind is AttrType.BOOL:
            words += ["b", int(value)]
        else:
            words += ["i", numbers[value] if kind is AttrType.TYPE else value]
    return words


class InferShapes:
    """GE's InferShape and InferDataType, compiled with the headers of operator projects."""

    name = "infer_shape"

    def __init__(self) -> None:
        self.numbers = {name: int(number) for name, number in GE_DTYPES.items()}

    def source(self, case: RelationCase) -> str:
        """Return the C++ of a case; raise GenerationError if it cannot be generated."""
        return infer_shape_source(case.prototype, case.relation)

    def program(self, sources: Mapping[int, str], all_cases: Sequence[RelationCase]) -> str:
        """Return the text of a program that answers lines."""
        rows = []
        for number in sources:
            p = all_cases[number].prototype
            space = f"ascend_graph_{p.op_type}"
            rows.append(
                f"    {{{number}, {{{len(p.inputs)}, {len(p.outputs)}, {space}::InferShape, {space}::InferDataType}}}},"
            )
        text = (HERE / "infer_shape.cpp").read_text().replace("// @CASES@", "\n".join(rows))
        return "\n".join(sources.values()) + text

    def options(self) -> list[str]:
        return [f"-I{toolkit_directory() / 'include/op_host'}"]

    def line(self, number: int, case: RelationCase, call: RelationCall) -> str:
        words: list[Any] = [number]
        for parameter in case.prototype.inputs:
            shape = call.shapes[parameter.name]
            words += [0, 0, 0] if shape is None else [1, self.numbers[call.dtypes[parameter.name]], len(shape), *shape]
        return " ".join(map(str, [*words, *words_of_attrs(case, call.attrs, self.numbers)]))


class _TorchNumbers:
    """Shared part of the two back ends of eager calls: lines with torch's dtype numbers."""

    def line(self, number: int, case: RelationCase, call: RelationCall) -> str:
        words: list[Any] = [number, len(case.relation.inputs)]
        for name in case.relation.inputs:
            shape = call.shapes[name]
            words += [0, 0, 0] if shape is None else [1, SCALAR_TYPES[call.dtypes[name]], len(shape), *shape]
        for name, kind in ATTRS.items():
            value = call.attrs[name]
            if kind is AttrType.TYPE:
                words.append(SCALAR_TYPES[value])
            else:
                # Of a float only whether it is 0 is asked in C++; lists and texts are left to the meta function.
                words.append(int(value) if kind in (AttrType.INT, AttrType.BOOL) else int(bool(value)))
        return " ".join(map(str, words))

    def wanted(self, answer: Answer, got: Any) -> list[Any]:
        """Return the outputs in the form of these back ends; a dtype of 1000 is promoted by torch."""
        assert answer.outputs is not None
        return [
            None if spec is None else [list(spec[0]), 1000 if had and had[1] == 1000 else SCALAR_TYPES[spec[1]]]
            for spec, had in zip(answer.outputs, got, strict=True)
        ]


class Programs(_TorchNumbers):
    """Shape programs of eager operators (csrc/eager/shape_program.cpp)."""

    name = "eager_program"

    def source(self, case: RelationCase) -> str | None:
        """Return the program's numbers, or ``None`` if the meta function decides."""
        inputs = case.relation.inputs
        attrs = {n: (len(inputs) + p, kind) for p, (n, kind) in enumerate(KINDS.items())}
        code = encode(case.relation, {name: n for n, name in enumerate(inputs)}, attrs)
        if code is None:
            return None
        words: list[int] = [code.slots, len(code.inputs)]
        for pattern in code.inputs:
            words += [pattern.argument, pattern.items is None, *_items(pattern.items or ())]
        words.append(len(code.checks))
        for check in code.checks:
            words += [len(check.same), *check.same, check.argument, len(check.among), *check.among]
        words += [len(code.clauses), *(n for clause in code.clauses for n in clause)]
        words += [len(code.nodes), *(n for node in code.nodes for n in node), len(code.outputs)]
        for branches in code.outputs:
            words.append(len(branches))
            for b in branches:
                words += [
                    b.condition,
                    b.kind,
                    b.like,
                    *_items(b.items),
                    b.dtype.kind,
                    len(b.dtype.values),
                    *b.dtype.values,
                ]
        return " ".join(str(int(word)) for word in words)

    def program(self, sources: Mapping[int, str], all_cases: Sequence[RelationCase]) -> str:
        """Return the text of a program that answers lines."""
        rows = "\n".join(f'    {{{number}, "{text}"}},' for number, text in sources.items())
        return (HERE / "program.cpp").read_text().replace("// @CASES@", rows)

    def options(self) -> list[str]:
        return [f"-I{ROOT / 'csrc/eager'}"]


def _items(items: Sequence[tuple[int, int]]) -> list[int]:
    return [len(items), *(n for item in items for n in item)]


class Packages(_TorchNumbers):
    """Shape code of generated packages (csrc/eager/shapes.h), compiled with stand-ins for PyTorch's types."""

    name = "generated_package"

    def source(self, case: RelationCase) -> str | None:
        """Return one function's body, or ``None`` if the meta function decides."""
        tensors = {name: CppTensor(cpp_name(name), name in case.optional) for name in case.relation.inputs}
        attrs = {name: (cpp_name(name), kind) for name, kind in KINDS.items()}
        code = output_code(case.relation, tensors, attrs)
        if code is None:
            return None
        lines = []
        for n, tensor in enumerate(tensors.values()):
            value = f"call.tensors[{n}]" if tensor.optional else f"*call.tensors[{n}]"
            kind = "std::optional<at::Tensor>" if tensor.optional else "at::Tensor"
            lines.append(f"    [[maybe_unused]] const {kind}& {tensor.name} = {value};")
        for n, (name, kind_) in enumerate(ATTRS.items()):
            type_ = "bool" if kind_ is AttrType.BOOL else "int64_t"
            lines.append(f"    [[maybe_unused]] const {type_} {cpp_name(name)} = call.numbers[{n}];")
        body = "\n".join([*lines, *(f"    {line}" for line in code.statements)])
        return f"{{\n{body}\n    return {{{', '.join(code.outputs)}}};\n}}\n"

    def program(self, sources: Mapping[int, str], all_cases: Sequence[RelationCase]) -> str:
        """Return the text of a program that answers lines."""
        functions = "\n".join(
            f"std::vector<at::Tensor> case_{n}([[maybe_unused]] const Call& call) {body}" for n, body in sources.items()
        )
        rows = "\n".join(f"    {{{n}, case_{n}}}," for n in sources)
        return (HERE / "package.cpp").read_text().replace("// @FUNCTIONS@", functions).replace("// @CASES@", rows)

    def options(self) -> list[str]:
        return [f"-I{ROOT / 'csrc/eager'}", f"-I{HERE / 'torch'}"]


@dataclass
class RelationReport:
    """Report of a comparison."""

    relations: int = 0
    runs: Counter[str] = field(default_factory=Counter)
    covered: Counter[str] = field(default_factory=Counter)
    refusals: int = 0
    unknown: int = 0
    #: Runs with unknown sizes for which InferShape determines something about some output.
    informative: int = 0
    differences: list[str] = field(default_factory=list)
    unsound: list[str] = field(default_factory=list)
    does_not_compile: list[str] = field(default_factory=list)


def compare_reading(
    report: RelationReport, all_cases: Sequence[RelationCase], *, seed: int = 0, calls: int = 8
) -> None:
    """Compare Python with a direct evaluation of the relation's text, which shares no form with the back ends.

    This needs PyTorch.
    """
    from benchmarks._reading import read

    rng = random.Random(seed)
    for case in all_cases:
        for _ in range(calls):
            call = random_call(case, rng)
            answer = reference(case, call)
            said = read(case.relation, call.shapes, call.dtypes, call.attrs, ("to",))
            report.runs["text"] += 1
            report.refusals += said is None
            if said != answer.outputs:
                report.differences.append(f"text: says {said}, Python {answer.outputs}: {shown(case, call)}")


def compare_symbolic(
    report: RelationReport, all_cases: Sequence[RelationCase], *, seed: int = 0, calls: int = 1
) -> None:
    """Compare Python's answers for symbolic sizes, as in meta functions of a traced graph; this needs PyTorch."""
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

    from ascend_graph.dispatch.meta import _check, _decide

    rng = random.Random(seed)

    for case in all_cases:
        accepted = 0
        for _ in range(6 * calls):
            call = random_call(case, rng)
            answer = reference(case, call)
            if accepted == calls or (answer.outputs is None and rng.random() < 0.8):
                continue
            accepted += 1
            env = ShapeEnv()
            shapes: dict[str, Any] = {}
            for name, shape in call.shapes.items():
                sizes = []
                for axis, size in enumerate(shape or ()):
                    source = ConstantSource(f"{name}_{axis}")
                    symbol = env.create_symbol(size, source, dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None)
                    sizes.append(env.create_symintnode(symbol, hint=size, source=source))
                shapes[name] = None if shape is None else tuple(sizes)
            dtypes = {name: call.dtypes[name] for name in shapes}
            report.runs["symbolic"] += 1
            try:
                found: Any = case.relation.infer(shapes, dtypes, call.attrs, check=_check, decide=_decide)
            except (ShapeError, RelationError, RuntimeError) as error:
                if answer.outputs is not None:
                    report.differences.append(f"symbolic: refused, {error}: {shown(case, call)}")
                continue
            except Exception as error:  # a fault is what is looked for
                report.differences.append(f"symbolic: {type(error).__name__}: {error}: {shown(case, call)}")
                continue
            got = tuple(None if spec is None else (tuple(map(_hint, spec[0])), spec[1]) for spec in found)
            # torch refuses a tensor of negative sizes when the meta function makes it.
            if answer.outputs is None and all(size >= 0 for spec in got if spec for size in spec[0]):
                report.differences.append(f"symbolic: says {got}, Python refuses: {shown(case, call)}")
            elif answer.outputs is not None and got != answer.outputs:
                report.differences.append(f"symbolic: says {got}, Python {answer.outputs}: {shown(case, call)}")


def _hint(size: Any) -> Any:
    return size if isinstance(size, int) else size.node.hint


def shown(case: RelationCase, call: RelationCall) -> str:
    return f"{case.relation}\n    shapes {dict(call.shapes)} dtypes {dict(call.dtypes)} attrs {dict(call.attrs)}"


def _promotes_scalars(case: RelationCase, call: RelationCall) -> bool:
    """Return whether a dtype may depend on which tensors have rank 0, which InferDataType cannot know."""
    text = str(case.relation)
    return ("promote(" in text or "floating(" in text) and any(shape == () for shape in call.shapes.values())


def masked(call: RelationCall, rng: random.Random) -> RelationCall:
    """Return the call with some sizes, or a rank, unknown."""
    shapes: dict[str, tuple[int, ...] | None] = {}
    for name, shape in call.shapes.items():
        if shape is not None and rng.random() < 0.12:
            shapes[name] = (-2,)
        else:
            shapes[name] = shape and tuple(-1 if rng.random() < 0.5 else size for size in shape)
    return RelationCall(shapes, call.dtypes, call.attrs)


def completion(call: RelationCall, rng: random.Random) -> RelationCall:
    """Return the call with random sizes for the unknown ones."""
    shapes: dict[str, tuple[int, ...] | None] = {}
    for name, shape in call.shapes.items():
        some = (-1,) * rng.choice((0, 1, 2, 3)) if shape == (-2,) else shape
        shapes[name] = some and tuple(rng.choice((0, 1, 2, 3, 4, 6)) if size == -1 else size for size in some)
    return RelationCall(shapes, call.dtypes, call.attrs)


def agrees(said: Sequence[int], true: Sequence[int]) -> bool:
    """Return whether a shape with unknown sizes allows a shape."""
    if list(said) == [-2]:
        return True
    return len(said) == len(true) and all(a in (-1, b) for a, b in zip(said, true, strict=True))


def compare(
    all_cases: Sequence[RelationCase],
    backends: Sequence[Any],
    *,
    seed: int = 0,
    calls: int = 8,
    workers: int = 2,
    batch: int = 150,
    change: Any = None,
) -> RelationReport:
    """Run all relations through all back ends; ``change`` may corrupt a source, to test that this is found."""
    report = RelationReport(relations=len(all_cases))
    rng = random.Random(seed)
    plans: list[tuple[int, RelationCall, Answer]] = []
    for number, case in enumerate(all_cases):
        for _ in range(calls):
            call = random_call(case, rng)
            answer = reference(case, call)
            report.runs["python"] += 1
            if answer.fault:
                report.differences.append(f"python: {answer.fault}: {shown(case, call)}")
            plans.append((number, call, answer))
            report.refusals += answer.outputs is None
    with tempfile.TemporaryDirectory() as directory:
        for backend in backends:
            _compare_one(report, backend, all_cases, plans, Path(directory), rng, workers, batch, change)
    return report


def _compare_one(
    report: RelationReport,
    backend: Any,
    all_cases: Sequence[RelationCase],
    plans: Sequence[tuple[int, RelationCall, Answer]],
    directory: Path,
    rng: random.Random,
    workers: int,
    batch: int,
    change: Any,
) -> None:
    sources: dict[int, str] = {}
    for number, case in enumerate(all_cases):
        try:
            source = backend.source(case)
        except GenerationError:
            continue
        if source is not None:
            sources[number] = source if change is None else change(backend.name, source)
    report.covered[backend.name] += len(sources)
    numbers = list(sources)
    jobs: list[tuple[Path, list[str]]] = []
    parts: list[list[int]] = []
    for start in range(0, len(numbers), batch):
        part = numbers[start : start + batch]
        path = directory / f"{backend.name}{start}.cpp"
        path.write_text(backend.program({n: sources[n] for n in part}, all_cases))
        jobs.append((path, backend.options()))
        parts.append(part)
    for (path, _), part, error in zip(jobs, parts, compile_all(jobs, workers), strict=True):
        if error:
            report.does_not_compile.append(f"{backend.name}: {error[:3000]}")
            continue
        mine = set(part)
        chosen = [plan for plan in plans if plan[0] in mine]
        _run_part(report, backend, all_cases, chosen, path.with_suffix(""), rng)


def _run_part(
    report: RelationReport,
    backend: Any,
    all_cases: Sequence[RelationCase],
    plans: Sequence[tuple[int, RelationCall, Answer]],
    program: Path,
    rng: random.Random,
) -> None:
    lines = [backend.line(number, all_cases[number], call) for number, call, _ in plans]
    for (number, call, answer), got in zip(plans, run_native(program, lines), strict=True):
        case = all_cases[number]
        difference = _difference(backend, case, call, answer, got)
        if difference is None:
            continue
        report.runs[backend.name] += 1
        if difference:
            report.differences.append(f"{backend.name}: {difference}: {shown(case, call)}")
    if not isinstance(backend, InferShapes):
        return
    open_calls = [(n, masked(call, rng)) for n, call, answer in plans for _ in range(2) if answer.outputs is not None]
    truths = [(n, call, answer) for n, call, answer in plans for _ in range(2) if answer.outputs is not None]
    lines = [backend.line(n, all_cases[n], call) for n, call in open_calls]
    answers = run_native(program, lines)
    for (number, call), (_, original, truth), got in zip(open_calls, truths, answers, strict=True):
        case = all_cases[number]
        report.unknown += 1
        for known, answer in [(original, truth), *_completions(case, call, rng)]:
            fault = _unsound(case, known, answer, got)
            if fault:
                report.unsound.append(f"{fault}: {shown(case, call)}\n    completed {dict(known.shapes)}")
                break
        if got is not None:
            report.informative += any(shape != [-2] for shape, _ in got)


def _completions(case: RelationCase, call: RelationCall, rng: random.Random) -> Iterator[tuple[RelationCall, Answer]]:
    for _ in range(4):
        known = completion(call, rng)
        answer = reference(case, known)
        if answer.outputs is not None:
            yield known, answer


def _difference(backend: Any, case: RelationCase, call: RelationCall, answer: Answer, got: Any) -> str | None:
    """Return the difference, empty if there is none, or ``None`` if there is nothing to compare."""
    if isinstance(backend, InferShapes):
        if _promotes_scalars(case, call):
            return None
        if answer.outputs is not None and any(spec and len(spec[0]) > 25 for spec in answer.outputs):
            return None  # more dimensions than GE has
    if got == "meta":
        return None  # left to Python
    if got is None:
        return "" if answer.outputs is None else f"refused, Python says {answer.outputs}"
    if answer.outputs is None:
        # A promotion that is left to torch refuses there.
        return None if any(spec and spec[1] == 1000 for spec in got) else f"says {got}, Python refuses"
    wanted = backend.wanted(answer, got) if hasattr(backend, "wanted") else _ge_specs(answer, got)
    return "" if got == wanted else f"says {got}, Python {wanted}"


def _ge_specs(answer: Answer, got: Any) -> list[Any]:
    """Return the outputs in the form of InferShape: an absent one has the shape [0] and any dtype."""
    assert answer.outputs is not None
    return [
        [[0], had[1]] if spec is None else [list(spec[0]), int(GE_DTYPES[spec[1]])]
        for spec, had in zip(answer.outputs, got, strict=True)
    ]


def _unsound(case: RelationCase, call: RelationCall, answer: Answer, got: Any) -> str:
    if _promotes_scalars(case, call) or answer.outputs is None:
        return ""
    if any(spec and len(spec[0]) > 25 for spec in answer.outputs):
        return ""
    if got is None:
        return f"refused, Python says {answer.outputs}"
    for spec, (shape, dtype) in zip(answer.outputs, got, strict=True):
        if not agrees(shape, (0,) if spec is None else spec[0]):
            return f"says {shape}, Python {spec}"
        if spec is not None and dtype != int(GE_DTYPES[spec[1]]):
            return f"says dtype {dtype}, Python {spec}"
    return ""
